//! Help on the command line: the verbs, the codes of errors, and the exit codes.

use dendrer_object::{Code, Value, document};

use crate::answer::{Answer, Line, Page};
use crate::codes::{CODES, CodeEntry, EXITS, Exit, entry};
use crate::table::{Align, Table};

/// The help on a verb, or on all of them.
#[derive(Debug, Clone)]
pub struct HelpAnswer {
    /// The verbs, each with a sentence.
    pub verbs: Vec<(String, String)>,
    /// The text.
    pub text: String,
}

document! {
    /// Help
    pub object HelpDocument: "help" (answer: &HelpAnswer) {
        /// The verbs
        items: Vec<VerbObject> =
            answer.verbs.iter().map(|(verb, about)| VerbObject::of(verb, about)).collect(),
        /// The text
        text: &str = &answer.text,
    }

    /// A verb
    object VerbObject(name: &str, words: &str) {
        /// The name
        verb: &str = name,
        /// The use of the verb in one sentence
        about: &str = words,
    }

    /// Exit codes
    pub object ExitCodesDocument: "exit-codes" () {
        /// The exit codes, in order
        items: Vec<ExitObject> = EXITS.iter().map(ExitObject::of).collect(),
    }

    /// An exit code
    object ExitObject(exit: &Exit) {
        /// The number
        code: u8 = exit.code,
        /// The meaning in a few words
        meaning: &str = exit.meaning,
        /// Examples of commands that end with it
        examples: &str = exit.examples,
    }

    /// Codes
    pub object ExplainDocument: "explain" (codes: &[CodeEntry]) {
        /// The codes, in order
        items: Vec<CodeObject> = codes.iter().map(CodeObject::of).collect(),
    }

    /// A code
    object CodeObject(entry: &CodeEntry) {
        /// The code
        code: Code = entry.code,
        /// The exit code of a command that ends with it
        exit: u8 = entry.exit,
        /// The kind of the fault
        kind: &str = entry.code.kind(),
        /// The meaning and the remedy
        text: &str = entry.text,
        /// The meaning in one sentence
        title: &str = entry.title,
    }
}

impl Answer for HelpAnswer {
    fn document(&self) -> Value {
        HelpDocument::of(self).into()
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
        ExitCodesDocument::of().into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let columns = [("code", Align::Right), ("meaning", Align::Left), ("for example", Align::Left)];
        let mut table = Table::new(columns);
        for exit in EXITS {
            table.row(vec![exit.code.to_string(), exit.meaning.to_owned(), exit.examples.to_owned()]);
        }
        let worst = "of several answers the worst one counts: 4, then 7, then 6; each error's own code is in dendrer explain";
        page.rows(&table).into_iter().chain([worst.into()]).collect()
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
        let codes = self.code.map_or(CODES, |code| std::slice::from_ref(entry(code)));
        ExplainDocument::of(codes).into()
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
