//! Help on the command line: the verbs, the codes of errors, and the exit codes.

use dendrer_object::{Code, Value, document};

use crate::answer::{Answer, Line, Page};
use crate::codes::{CODES, CodeEntry, EXITS, Exit, entry};
use crate::table::{Align, Table};
use crate::verify::words::{WORDS, WordEntry};

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
    pub object ExplainDocument: "explain" (codes: &[CodeEntry], words: &[WordEntry]) {
        /// The codes, in order
        items: Vec<CodeObject> = codes.iter().map(CodeObject::of).collect(),
        /// The words of verify; absent for a code
        words?: Vec<WordObject> = (!words.is_empty()).then(|| words.iter().map(WordObject::of).collect()),
    }

    /// A word of verify
    object WordObject(entry: &WordEntry) {
        /// The word
        word: &str = entry.word,
        /// The line that has it; empty for the verdict
        line: &str = entry.line,
        /// The meaning
        text: &str = entry.text,
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

/// An explanation.
#[derive(Debug, Clone, Copy)]
pub enum ExplainAnswer {
    /// Of all codes and words.
    All,
    /// Of a code.
    Code(Code),
    /// Of a word of `verify`.
    Word(&'static WordEntry),
}

impl Answer for ExplainAnswer {
    fn document(&self) -> Value {
        let (codes, words): (&[CodeEntry], &[WordEntry]) = match self {
            ExplainAnswer::All => (CODES, WORDS),
            ExplainAnswer::Code(code) => (std::slice::from_ref(entry(*code)), &[]),
            ExplainAnswer::Word(word) => (&[], std::slice::from_ref(*word)),
        };
        ExplainDocument::of(codes, words).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        match self {
            ExplainAnswer::All => {}
            ExplainAnswer::Code(code) => {
                let CodeEntry { code, title, text, exit } = entry(*code);
                let exit = format!("exit code {exit}");
                return [&format!("{code}  {title}"), "", *text, "", &exit].map(Line::from).into();
            }
            ExplainAnswer::Word(WordEntry { word, line, text }) => {
                let of = match *line {
                    "" => "a verdict".to_owned(),
                    line if line == *word => "a line".to_owned(),
                    line => format!("a word of the line {line}"),
                };
                return [&format!("{word}  {of} of verify"), "", *text].map(Line::from).into();
            }
        }
        let line = |code: &CodeEntry| format!("{}  exit {}  {}", code.code, code.exit, code.title);
        let sum = format!("{} of {} codes", CODES.len(), CODES.len());
        let words = WORDS.iter().map(|entry| entry.word).collect::<Vec<_>>().join(", ");
        CODES.iter().map(line).chain([format!("words of verify: {words}"), sum]).map(Line::from).collect()
    }
}
