//! Where answers go: stdout for the answer, stderr for everything else, one document or lines.

use std::io::{self, BufWriter, IsTerminal, Write};

use dendrer_object::Value;
use dendrer_view::{document, quote};

use crate::failure::{Failure, Result};

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One document.
    Json,
    /// One item a line, and a summary.
    Jsonl,
}

/// When colour is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless the environment says otherwise.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The places an answer goes to.
pub(crate) struct Out {
    format: Format,
    writer: Box<dyn Write>,
    color: bool,
    width: Option<usize>,
    quiet: bool,
    items: u64,
}

/// What stands out, without red against green alone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
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

impl Out {
    /// Decides on colour and width once. `file` takes the answer away from stdout.
    pub(crate) fn new(
        format: Format,
        color: ColorChoice,
        width: Option<usize>,
        full: bool,
        quiet: bool,
        file: Option<&str>,
    ) -> Result<Out> {
        let terminal = file.is_none() && io::stdout().is_terminal();
        let writer: Box<dyn Write> = match file {
            None => Box::new(BufWriter::new(io::stdout())),
            Some(path) => {
                let file = std::fs::File::create(path);
                let file = file.map_err(|error| {
                    Failure::new("E0108", format!("cannot write {path}")).at("cause", error.to_string())
                });
                Box::new(BufWriter::new(file?))
            }
        };
        let width = match (width, terminal && !full) {
            (Some(width), _) => Some(width),
            (None, true) => {
                std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).or_else(terminal_width)
            }
            (None, false) => None,
        };
        Ok(Out { format, writer, color: decide_color(color, terminal), width, quiet, items: 0 })
    }

    /// How the answer is written.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Whether people read it.
    pub(crate) fn is_text(&self) -> bool {
        self.format == Format::Text
    }

    /// The width at which lines are cut; `None` where they are not.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// Wraps what should stand out. The text must be escaped already.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        let code = match style {
            Style::Bad => "38;5;208",
            Style::Good => "34",
            Style::Warn => "33",
            Style::Dim => "2",
            Style::Strong => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Writes a line of the answer for people.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) -> Result<()> {
        let text = line.as_ref();
        self.write(text.as_bytes())?;
        self.write(b"\n")
    }

    /// Writes an item of a stream, for `--jsonl`.
    pub(crate) fn item(&mut self, item: &Value) -> Result<()> {
        self.items += 1;
        let text = quote::json(item);
        self.line(text)
    }

    /// Ends a stream with its summary.
    pub(crate) fn summary<'k>(
        &mut self,
        schema: &str,
        members: impl IntoIterator<Item = (&'k str, Value)>,
    ) -> Result<()> {
        let count = ("items", Value::from(self.items));
        let summary = document(schema, members.into_iter().chain([count]));
        self.line(quote::json(&Value::record([("summary", summary)])))
    }

    /// Writes the one document of the answer.
    pub(crate) fn document(&mut self, value: &Value) -> Result<()> {
        self.line(quote::json(value))
    }

    /// Writes raw bytes of the answer, as an export does.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(bytes)
    }

    /// Says something that is not the answer.
    pub(crate) fn say(&mut self, line: impl AsRef<str>) {
        if !self.quiet {
            // Nobody can be told that stderr is closed.
            let _ = writeln!(io::stderr(), "{}", line.as_ref());
        }
    }

    /// Hands over to the system what was written so far.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(closed)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.write_all(bytes).map_err(closed)
    }
}

/// A reader that went away ends the program quietly; anything else is a failure.
fn closed(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure { code: QUIET, ..Failure::default() };
    }
    Failure::new("E0801", "cannot write the answer").at("cause", error.to_string())
}

/// The code of a failure that nobody is left to hear.
pub(crate) const QUIET: &str = "";

fn decide_color(choice: ColorChoice, terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let choice = match (choice, std::env::var("DENDRER_COLOR").as_deref()) {
        (ColorChoice::Auto, Ok("always")) => ColorChoice::Always,
        (ColorChoice::Auto, Ok("never")) => ColorChoice::Never,
        (choice, _) => choice,
    };
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR") => false,
        ColorChoice::Auto if set("CLICOLOR_FORCE") => true,
        ColorChoice::Auto => terminal && std::env::var("TERM").as_deref() != Ok("dumb"),
    }
}

fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}
