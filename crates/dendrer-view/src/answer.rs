//! One answer for text and JSON.
//!
//! [`Answer`] turns typed data into a document and into lines, so both agree. A line is made of styled spans: the
//! printer decides on colour codes, on the spelling of characters and on the place of notes, and [`layout`](crate::layout)
//! on widths. Nothing here reads or prints.
//!
//! Rule: text of a record enters a [`Line`] only through [`quote`]; test `nothing_that_acts_gets_through`.

use dendrer_object::{Code, RunName, Timestamp, Value};

use crate::text::TimeForm;
use crate::{quote, text};

/// The answer to one question.
pub trait Answer {
    /// Returns the answer as its published document.
    fn document(&self) -> Value;

    /// Returns the answer as lines for people.
    fn lines(&self, page: &Page) -> Vec<Line>;

    /// Returns notes that a reader of stderr gets with the document; the lines have them already.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns what the answer amounts to: the program makes its exit code of it.
    fn end(&self) -> End {
        End::Answered
    }
}

/// An answer whose items are handed over one by one, so that no list of them is kept.
pub trait ItemAnswer {
    /// One item.
    type Item;

    /// Returns an item as it is in the document; `None` if the list leaves it out.
    fn item(&mut self, item: &Self::Item) -> Option<Value>;

    /// Returns the lines that can be printed when an item has come. Items may be kept to line columns up.
    fn item_lines(&mut self, item: &Self::Item, page: &Page) -> Vec<Line>;

    /// Returns the document without its items.
    fn summary(&self) -> Value;

    /// Returns the whole document with its items.
    fn whole(&self, items: Vec<Value>) -> Value {
        let mut document = self.summary().as_object().cloned().unwrap_or_default();
        document.set("items", Value::array(items));
        Value::Object(document)
    }

    /// Returns the lines of the items that were kept.
    fn kept_lines(&mut self, page: &Page) -> Vec<Line>;

    /// Returns the lines after the last item, which sum them up.
    fn last_lines(&mut self, page: &Page) -> Vec<Line>;

    /// Returns what the answer amounts to.
    fn end(&self) -> End {
        End::Answered
    }
}

/// The outcome of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The question was answered (exit code 0).
    Answered,
    /// The answer is no: nothing was found, or two runs differ (exit code 1).
    No,
    /// An intent was refused, and the refusal is kept (exit code 5).
    Refused,
    /// The answer depends on a value that is not known (exit code 6).
    Unknown,
    /// The answer reports a problem with this code; the table of codes has the exit code.
    Problem(Code),
}

impl End {
    /// The exit code of a command that ends with this answer.
    pub fn exit(self) -> u8 {
        match self {
            End::Answered => 0,
            End::No => 1,
            End::Refused => 5,
            End::Unknown => 6,
            End::Problem(code) => crate::codes::entry(code).exit,
        }
    }
}

/// The page that lines are written for.
#[derive(Debug, Clone)]
pub struct Page {
    /// The width in columns, at least [`WIDTH_MIN`](crate::layout::WIDTH_MIN); `None` if nothing is wrapped or cut.
    pub width: Option<usize>,
    /// Whether values are shown whole, however many lines they take.
    pub full: bool,
    /// How times are written.
    pub times: TimeForm,
    /// Whether a screen reader reads it: lists instead of tables, words instead of marks.
    pub accessible: bool,
    /// Whether what is not ASCII is spelled out, before lines are laid out.
    pub ascii: bool,
    /// The store and the bundles that were read, as paths, in the order in which they were opened.
    pub sources: Vec<String>,
    /// Whether the only source is the store that every verb finds here, so lists and values need not name it.
    pub is_usual: bool,
}

/// An emphasis, without red against green alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A violation or a failure.
    Bad,
    /// All is well.
    Good,
    /// Something to look at, and a value that changed.
    Warn,
    /// A value that is new.
    Added,
    /// A value that is gone.
    Removed,
    /// Ids and other small print.
    Dim,
    /// A heading.
    Strong,
}

/// A piece of a line in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSpan {
    /// The style; `None` for plain text.
    pub style: Option<Style>,
    /// The text, escaped.
    pub text: String,
}

/// One line for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// The pieces, from left to right.
    pub spans: Vec<TextSpan>,
    /// The place the line goes to.
    pub place: LinePlace,
    /// The column that the line continues at if it is wrapped; two deeper than its beginning if `None`.
    pub hang: Option<usize>,
    /// Whether the line is a part of a document, which is never wrapped.
    pub is_document: bool,
    /// The words of a command that the line ends with: wrapped so that a shell still reads it.
    pub command: Option<Vec<String>>,
    /// The command that prints the line whole: it takes its place after twelve lines.
    pub more: Option<Vec<String>>,
}

/// The place a line goes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LinePlace {
    /// It is part of the answer.
    #[default]
    Answer,
    /// It is a note beside the answer, on stderr.
    Note,
    /// It is a command to type next, on stderr; the line has no spans.
    Help(Vec<String>),
}

impl Page {
    /// A page without a width, with times in UTC.
    pub const WIDE: Page = Page {
        width: None,
        full: false,
        times: TimeForm::Utc,
        accessible: false,
        ascii: false,
        sources: Vec::new(),
        is_usual: true,
    };

    /// Returns `; RUN, read from PATH` for the last line of a list; empty for the store that every verb finds here.
    pub fn of_run(&self, run: &RunName) -> String {
        if self.is_usual { String::new() } else { format!("; {run}{}", self.read_from()) }
    }

    /// Returns `, read from PATH` for the line that names the run; empty if nothing was opened.
    pub fn read_from(&self) -> String {
        let paths: Vec<String> = self.sources.iter().map(|path| quote::escape(path)).collect();
        if paths.is_empty() { String::new() } else { format!(", read from {}", paths.join(" and ")) }
    }

    /// Writes escaped text in the characters of the page.
    pub fn spell(&self, text: String) -> String {
        if self.ascii && !text.is_ascii() { quote::ascii(&text) } else { text }
    }

    /// Writes a time; nothing if times are hidden.
    pub fn time(&self, ts: Timestamp) -> String {
        text::time(ts, &self.times)
    }
}

impl Line {
    /// A line in one style.
    pub fn styled(style: Style, text: impl Into<String>) -> Line {
        Line::of(Some(style), text)
    }

    /// A line in a style, or plain.
    pub fn of(style: Option<Style>, text: impl Into<String>) -> Line {
        Line { spans: vec![TextSpan { style, text: text.into() }], ..Line::default() }
    }

    /// A note beside the answer.
    pub fn note(text: impl Into<String>) -> Line {
        Line { place: LinePlace::Note, ..Line::from(text.into()) }
    }

    /// A line that ends with a command.
    pub fn command<S: ToString>(lead: impl Into<String>, argv: impl IntoIterator<Item = S>) -> Line {
        let argv = argv.into_iter().map(|word| word.to_string()).collect();
        Line { command: Some(argv), ..Line::from(lead.into()) }
    }

    /// A value, of which a command shows the rest if it takes more than twelve lines.
    pub fn value(text: impl Into<String>, more: Vec<String>) -> Line {
        Line { more: Some(more), ..Line::from(text.into()) }
    }

    /// Continues at this column if it is wrapped.
    pub fn hang(self, column: usize) -> Line {
        Line { hang: Some(column), ..self }
    }

    /// A command to type next.
    pub fn help<S: ToString>(argv: impl IntoIterator<Item = S>) -> Line {
        let argv = argv.into_iter().map(|word| word.to_string()).collect();
        Line { place: LinePlace::Help(argv), ..Line::default() }
    }

    /// Gives the whole line a style, but a command at its end.
    pub fn paint(self, style: Style) -> Line {
        let spans = vec![TextSpan { style: Some(style), text: self.lead() }];
        Line { spans, ..self }
    }

    /// Adds plain text at the end.
    pub fn then(mut self, text: impl Into<String>) -> Line {
        self.spans.push(TextSpan { style: None, text: text.into() });
        self
    }

    /// Adds text in a style at the end.
    pub fn then_styled(mut self, style: Style, text: impl Into<String>) -> Line {
        self.spans.push(TextSpan { style: Some(style), text: text.into() });
        self
    }

    /// Puts plain text in front.
    pub fn after(mut self, text: impl Into<String>) -> Line {
        self.spans.insert(0, TextSpan { style: None, text: text.into() });
        self
    }

    /// Returns the text without styles.
    pub fn text(&self) -> String {
        let command = self.command.iter().map(|argv| quote::shell(argv));
        std::iter::once(self.lead()).chain(command).collect()
    }

    /// Returns the text in front of the command, without styles.
    pub(crate) fn lead(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Returns another text in the style and at the place of this line.
    pub(crate) fn of_same_place(&self, text: String) -> Line {
        let style = self.spans.first().and_then(|span| span.style);
        Line { spans: vec![TextSpan { style, text }], place: self.place.clone(), ..Line::default() }
    }
}

impl From<String> for Line {
    fn from(text: String) -> Line {
        Line::of(None, text)
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Line {
        Line::from(text.to_owned())
    }
}

/// Returns the text of lines without styles; notes and commands begin with `(stderr)`. For tests.
pub fn plain(lines: &[Line]) -> String {
    let one = |line: &Line| match &line.place {
        LinePlace::Answer => line.text(),
        LinePlace::Note => format!("(stderr) {}", line.text()),
        LinePlace::Help(argv) => format!("(stderr) help: {}", argv.join(" ")),
    };
    lines.iter().map(|line| one(line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_text() {
        let line = Line::from("abc").paint(Style::Warn).then("  x");
        assert_eq!(line.text(), "abc  x");
        let command = Line::command("SUGGESTION  ", ["dendrer", "show", "a b"]);
        assert_eq!(
            plain(&[line, command, Line::help(["dendrer", "runs"])]),
            "abc  x\nSUGGESTION  dendrer show 'a b'\n(stderr) help: dendrer runs\n"
        );
    }
}

/// Returns a document as the items of a stream and the object that sums them up. A document without a list of its own is the
/// one item.
pub fn stream(document: &Value) -> (Vec<Value>, Value) {
    let mut summary = document.as_object().cloned().unwrap_or_default();
    let items = match document.get("items").and_then(Value::as_array) {
        Some(items) => items.iter().cloned().collect(),
        None => {
            let schema = document.get("schema").cloned().unwrap_or(Value::Null);
            summary = dendrer_object::Object::default();
            summary.set("schema", schema);
            vec![document.clone()]
        }
    };
    summary.set("items", Value::from(items.len() as u64));
    (items, Value::record([("summary", Value::Object(summary))]))
}
