//! Help on the command line: the verbs, the codes of errors, and the exit codes.

use dendrer_object::{Code, Value};

use crate::answer::{Answer, Line, Page};
use crate::codes::{CODES, CodeEntry, EXITS, entry};
use crate::document;
use crate::table::{Align, Table};

/// The help on a verb, or on all of them.
#[derive(Debug, Clone)]
pub struct HelpAnswer {
    /// The verbs, each with a sentence.
    pub verbs: Vec<(String, String)>,
    /// The text.
    pub text: String,
}

impl Answer for HelpAnswer {
    fn document(&self) -> Value {
        let items = self.verbs.iter().map(|(verb, about)| {
            Value::record([("verb", Value::from(verb.as_str())), ("about", Value::from(about.as_str()))])
        });
        let text = Value::from(self.text.as_str());
        document("help", [("items", Value::array(items)), ("text", text)])
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        self.text.lines().map(Line::from).collect()
    }
}

/// The table of exit codes.
#[derive(Debug, Clone, Copy)]
pub struct ExitCodesAnswer;

impl Answer for ExitCodesAnswer {
    fn document(&self) -> Value {
        let items = EXITS.iter().map(|exit| {
            Value::record([
                ("code", Value::from(u64::from(exit.code))),
                ("meaning", Value::from(exit.meaning)),
                ("examples", Value::from(exit.examples)),
            ])
        });
        document("exit-codes", [("items", Value::array(items))])
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let columns = [("code", Align::Right), ("meaning", Align::Left), ("for example", Align::Left)];
        let mut table = Table::new(columns);
        for exit in EXITS {
            table.row(vec![exit.code.to_string(), exit.meaning.to_owned(), exit.examples.to_owned()]);
        }
        let worst = "of several answers the worst one counts: 4, then 7, then 6; each error's own code is in dendrer explain";
        table.lines(page.width).0.into_iter().map(Line::from).chain([worst.into()]).collect()
    }
}

/// The explanation of a code, or the list of all codes.
#[derive(Debug, Clone, Copy)]
pub struct ExplainAnswer {
    /// The code; `None` for the list.
    pub code: Option<Code>,
}

impl Answer for ExplainAnswer {
    fn document(&self) -> Value {
        let item = |code: &CodeEntry| {
            Value::record([
                ("code", Value::from(code.code)),
                ("exit", Value::from(u64::from(code.exit))),
                ("kind", Value::from(code.code.kind())),
                ("text", Value::from(code.text)),
                ("title", Value::from(code.title)),
            ])
        };
        let codes = self.code.map_or(CODES, |code| std::slice::from_ref(entry(code)));
        document("explain", [("items", Value::array(codes.iter().map(item)))])
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        if let Some(CodeEntry { code, title, text, exit }) = self.code.map(entry) {
            let exit = format!("exit code {exit}");
            return [&format!("{code}  {title}"), "", *text, "", &exit].map(Line::from).into();
        }
        let line = |code: &CodeEntry| format!("{}  exit {}  {}", code.code, code.exit, code.title);
        let sum = format!("{} of {} codes", CODES.len(), CODES.len());
        CODES.iter().map(line).chain([sum]).map(Line::from).collect()
    }
}
