//! One answer for text and JSON.
//!
//! [`Answer`] turns typed data into a document and into lines, so both agree. A line is made of styled spans: the
//! printer decides on colour codes, on the spelling of characters and on the place of notes. Nothing here reads or
//! prints.
//!
//! Rule: text of a record enters a [`Line`] only through [`quote`]; test `nothing_that_acts_gets_through`.

use dendrer::ask::show::PlaceChange;
use dendrer_object::{Code, RunName, Timestamp, Value};

use crate::table::Table;
use crate::text::TimeForm;
use crate::{change, quote, text};

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
    /// The number of characters at which lines are cut; `None` if they are not cut.
    pub width: Option<usize>,
    /// How times are written.
    pub times: TimeForm,
    /// Whether a screen reader reads it: lists instead of tables, words instead of marks.
    pub accessible: bool,
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
    /// Something to look at.
    Warn,
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
    /// Whether something was left out that a larger width shows.
    pub cut: bool,
    /// The place the line goes to.
    pub place: LinePlace,
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

/// Notes that lines were cut, and names the flag that shows them whole.
pub const CUT: &str = "(lines are cut at the width; a larger --width shows more, --full everything)";

impl Page {
    /// A page without a width, with times in UTC.
    pub const WIDE: Page =
        Page { width: None, times: TimeForm::Utc, accessible: false, sources: Vec::new(), is_usual: true };

    /// Returns `; RUN, read from PATH` for the last line of a list; empty for the store that every verb finds here.
    pub fn of_run(&self, run: &RunName) -> String {
        if self.is_usual { String::new() } else { format!("; {run}{}", self.read_from()) }
    }

    /// Returns `, read from PATH` for the line that names the run; empty if nothing was opened.
    pub fn read_from(&self) -> String {
        let paths: Vec<String> = self.sources.iter().map(|path| quote::escape(path)).collect();
        if paths.is_empty() { String::new() } else { format!(", read from {}", paths.join(" and ")) }
    }

    /// Returns the line of a text, cut at the width of the page.
    pub fn fit(&self, text: &str) -> Line {
        Line::fit(text, self.width)
    }

    /// Returns the line of a change, with both sides shortened if lines are cut.
    pub fn change(&self, change: &PlaceChange) -> Line {
        let line = change::change_line(change, self.width.map(|width| width / 3));
        let cut = line.len() < change::change_line(change, None).len();
        Line { cut, ..Line::from(if self.accessible { in_words(&line) } else { line }) }
    }

    /// Returns the rows of a table: as a list for a screen reader, else with [`CUT`] at the end if one was cut.
    pub fn table(&self, table: &Table) -> Vec<Line> {
        if self.accessible {
            return table.list().into_iter().map(Line::from).collect();
        }
        let (lines, cut) = table.lines(self.width);
        lines.into_iter().chain(cut.then(|| CUT.to_owned())).map(Line::from).collect()
    }

    /// Writes a time; nothing if times are hidden.
    pub fn time(&self, ts: Timestamp) -> String {
        text::time(ts, &self.times)
    }
}

impl Line {
    /// Returns the line of a text, cut at a width.
    pub fn fit(text: &str, width: Option<usize>) -> Line {
        let short = width.map_or_else(|| text.to_owned(), |width| quote::shorten(text, width));
        Line { cut: short.len() < text.len(), ..Line::from(short) }
    }

    /// A line in one style.
    pub fn styled(style: Style, text: impl Into<String>) -> Line {
        Line::from(text.into()).paint(style)
    }

    /// A note beside the answer.
    pub fn note(text: impl Into<String>) -> Line {
        Line { place: LinePlace::Note, ..Line::from(text.into()) }
    }

    /// A command to type next.
    pub fn help<S: ToString>(argv: impl IntoIterator<Item = S>) -> Line {
        let argv = argv.into_iter().map(|word| word.to_string()).collect();
        Line { place: LinePlace::Help(argv), ..Line::default() }
    }

    /// Gives the whole line a style.
    pub fn paint(self, style: Style) -> Line {
        let spans = vec![TextSpan { style: Some(style), text: self.text() }];
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
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}

impl From<String> for Line {
    fn from(text: String) -> Line {
        Line { spans: vec![TextSpan { style: None, text }], ..Line::default() }
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

/// Writes a word for the mark at the head of a change.
fn in_words(change: &str) -> String {
    let words = [("~ ", "changed "), ("+ ", "added "), ("- ", "removed "), ("= ", "written alike ")];
    let known = words.iter().find_map(|(mark, word)| Some((change.strip_prefix(mark)?, word)));
    known.map_or_else(|| change.to_owned(), |(rest, word)| format!("{word}{rest}"))
}

/// Writes a value over several lines, two blanks a level; below `depth` levels only the number of members is written.
pub fn pretty(value: &Value, indent: usize, depth: Option<usize>) -> Vec<String> {
    let mut lines = Vec::new();
    text::pretty(value, indent, depth, &mut lines, "");
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_text_and_whether_it_was_cut() {
        let line = Line::fit("abcdefgh", Some(6)).paint(Style::Warn).then("  x");
        assert_eq!(line.text(), "abc...  x");
        assert!(line.cut && !Line::fit("abc", Some(6)).cut);
        assert_eq!(
            plain(&[line, Line::help(["dendrer", "runs"])]),
            "abc...  x\n(stderr) help: dendrer runs\n"
        );
    }

    #[test]
    fn pretty_values_end_at_a_depth() {
        let value = dendrer_object::json::parse_door(br#"{"a":[1,{"b":2}],"c":{}}"#).unwrap();
        let all = ["{", "  \"a\": [", "    1", "    {", "      \"b\": 2", "    }", "  ]", "  \"c\": {}", "}"];
        assert_eq!(pretty(&value, 0, None), all);
        assert_eq!(pretty(&value, 1, Some(1)), ["  {", "    \"a\": [... 2 items]", "    \"c\": {}", "  }"]);
    }
}
