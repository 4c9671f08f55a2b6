//! Where answers go: stdout for the answer, stderr for everything else, one document or lines.

use std::cell::RefCell;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use dendrer::Trace;
use dendrer::bundle::Opened;
use dendrer::source::SourceHead;
use dendrer_object::{Code, Object, RunName, Value};
pub(crate) use dendrer_view::answer::Style;
use dendrer_view::answer::{Answer, ItemAnswer, Line, LinePlace, Page, TextSpan};
use dendrer_view::fields::Fields;
use dendrer_view::forms::FindingsForm;
use dendrer_view::layout::lay;
use dendrer_view::problem::{ShownProblem as _, in_bundle, in_store};
use dendrer_view::quote;
use dendrer_view::quote::shell;
use dendrer_view::text::TimeForm;
use dendrer_view::{answer, ask, head, layout};

use self::files::Whole;
use self::pager::Pager;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::ColorChoice;
use crate::global::Format;
use crate::global::Global;

pub(crate) mod drawing;
pub(crate) mod files;
mod pager;
pub(crate) mod usage;

/// How the answer of a call is written.
pub(crate) struct Form {
    /// Text, one document or a stream.
    pub(crate) format: Format,
    /// The fields that were asked for.
    pub(crate) fields: Option<Fields>,
    /// Whether a long answer may be paged.
    pub(crate) pages: bool,
    /// Whether the verb opens the file of the answer itself.
    pub(crate) is_bytes: bool,
    /// Whether the verb can be run again if it failed before it wrote anything.
    pub(crate) again: bool,
}

/// The places an answer goes to.
pub(crate) struct Out {
    format: Format,
    fields: Option<Fields>,
    sink: Sink,
    color: bool,
    ascii: bool,
    width: Option<usize>,
    /// The width of what goes to stderr.
    error_width: Option<usize>,
    full: bool,
    times: TimeForm,
    quiet: bool,
    items: u64,
    /// The items of one document, until it is printed.
    kept: Vec<Value>,
    /// Whether the verb continues after the reader closed the pipe.
    outlives: bool,
    /// Whether nobody does.
    gone: bool,
    /// What is said when the pager has shown the answer.
    after: Vec<String>,
    /// What is wrong with the log that is read.
    incomplete: Option<Code>,
    /// Where the answer was read, and with which reserve. The fault is there until a document has it.
    head: SourceHead,
    /// Whether no store was named, so that every verb finds the same one here.
    is_usual: bool,
    /// The files that were read, and the runs in them.
    bundles: Vec<(String, Vec<RunName>)>,
    /// The store, where it was named.
    store: Option<String>,
    /// Whether nothing of the answer was written yet.
    untouched: bool,
    /// Whether what goes to stderr is kept with the answer, as a terminal shows both.
    keeps_notes: bool,
}

enum Sink {
    Stdout(BufWriter<io::Stdout>),
    Pager(Pager),
    File(AnswerFile),
    /// For a program that asked.
    Kept(Rc<RefCell<Vec<u8>>>),
}

/// A file that is begun when there is something to write, and is there when the command has ended well: one that fails, or is
/// stopped, leaves an older one as it was.
struct AnswerFile {
    path: PathBuf,
    file: Option<Whole>,
    /// Whether it is read while it grows.
    grows: bool,
}

impl Out {
    /// Decides on place, colour and width once.
    pub(crate) fn new(global: &Global, form: &Form) -> Out {
        let format = form.format;
        let file = global.output.as_deref().filter(|_| !form.is_bytes);
        let terminal = file.is_none() && io::stdout().is_terminal();
        let screen = terminal_size::terminal_size().filter(|_| terminal);
        // Forms of other programs are never wrapped.
        let is_own = global.format.as_deref().is_none_or(|form| form == "text");
        let width = page_width(global.width.filter(|_| is_own), terminal && is_own, || {
            terminal_size::terminal_size_of(io::stdout())
        });
        let error_width = page_width(global.width, io::stderr().is_terminal(), error_screen);
        let pages = form.pages && format == Format::Text && !global.no_pager && !accessible() && !dumb();
        let sink = match (file, screen) {
            (Some(path), _) => Sink::File(AnswerFile { path: path.into(), file: None, grows: false }),
            (None, Some((width, height))) if pages && !pager::refused() => {
                Sink::Pager(Pager::new(width.0.into(), height.0.into()))
            }
            (None, _) => Sink::Stdout(BufWriter::new(io::stdout())),
        };
        Out {
            format,
            fields: form.fields.clone(),
            sink,
            color: decide_color(global.color, terminal),
            ascii: global.ascii || accessible() || terminal && !utf8(),
            width,
            error_width,
            full: global.full,
            times: global.times(),
            quiet: global.quiet,
            items: 0,
            kept: Vec::new(),
            outlives: true,
            gone: false,
            after: Vec::new(),
            incomplete: None,
            head: SourceHead::default(),
            is_usual: global.store.is_none()
                && std::env::var_os("DENDRER_STORE").is_none_or(|name| name.is_empty()),
            bundles: Vec::new(),
            store: global.store.clone(),
            untouched: true,
            keeps_notes: false,
        }
    }

    /// As [`Out::new`], with an answer that is kept in memory unless it goes to a file; with its notes if `keeps_notes`.
    pub(crate) fn kept_in(
        global: &Global,
        form: &Form,
        answer: &Rc<RefCell<Vec<u8>>>,
        keeps_notes: bool,
    ) -> Out {
        let mut out = Out { keeps_notes, ..Out::new(global, form) };
        if !matches!(out.sink, Sink::File(_)) {
            answer.borrow_mut().clear();
            out.sink = Sink::Kept(Rc::clone(answer));
        }
        out
    }

    /// Ends the verb as soon as nobody reads its answer: for lists that are their own purpose.
    pub(crate) fn ends_with_its_reader(&mut self) {
        self.outlives = false;
    }

    /// Hands over each item as it comes, where an answer has no end.
    pub(crate) fn has_no_end(&mut self) {
        if let Sink::File(answer) = &mut self.sink {
            answer.grows = true;
        }
    }

    /// How the answer is to be handed over. Chosen fields are cut out of the document, whatever is shown then.
    pub(crate) fn format(&self) -> Format {
        if self.fields.is_some() && self.format == Format::Text { Format::Json } else { self.format }
    }

    /// Whether each item is handed over on its own.
    pub(crate) fn is_stream(&self) -> bool {
        self.format() == Format::Jsonl
    }

    /// Whether people read it.
    pub(crate) fn is_text(&self) -> bool {
        self.format() == Format::Text
    }

    /// Prints an answer as lines or as its document, and returns the exit code.
    pub(crate) fn answer(&mut self, answer: &impl Answer) -> Result {
        match self.is_text() {
            true => {
                self.print(answer.lines(&self.page()))?;
                let document = if self.head.at_stage_0 { answer.document() } else { Value::Null };
                self.caveat(document.as_object())?;
            }
            false => {
                answer.notes().iter().for_each(|note| self.say(note));
                self.document(&answer.document())?;
            }
        }
        Ok(answer.end().exit())
    }

    /// Prints lines that only people get, in front of an answer.
    pub(crate) fn ahead(&mut self, lines: Vec<Line>) -> Result<()> {
        if self.is_text() { self.print(lines) } else { Ok(()) }
    }

    /// As [`Out::answer`], for an answer that ends with a failure: an error after the lines, or the exit code of a document.
    pub(crate) fn answer_or(&mut self, answer: &impl Answer, failure: Option<Failure>) -> Result {
        let code = self.answer(answer)?;
        match failure {
            None => Ok(code),
            Some(failure) if self.is_text() => Err(failure),
            Some(failure) => Ok(failure.exit()),
        }
    }

    /// As [`Out::answer`], for an answer that is a document for people as well.
    pub(crate) fn answer_as_json(&mut self, answer: &impl Answer) -> Result {
        self.document(&answer.document())?;
        Ok(answer.end().exit())
    }

    /// As [`Out::answer`], for findings in the form of another program: SARIF is a document for people as well.
    pub(crate) fn findings(&mut self, form: FindingsForm, answer: &impl Answer) -> Result {
        match form {
            FindingsForm::Sarif => self.answer_as_json(answer),
            FindingsForm::Github | FindingsForm::Junit => self.answer(answer),
        }
    }

    /// As [`Out::answer`], for a document of another standard: no field is chosen of it, and no item cut out.
    pub(crate) fn answer_whole(&mut self, answer: &impl Answer) -> Result {
        match self.is_text() {
            true => self.print(answer.lines(&self.page()))?,
            false => self.json(&answer.document())?,
        }
        Ok(answer.end().exit())
    }

    /// Prints one item of an answer.
    pub(crate) fn take<A: ItemAnswer>(&mut self, answer: &mut A, item: &A::Item) -> Result<()> {
        match self.format() {
            Format::Text => self.print(answer.item_lines(item, &self.page())),
            Format::Jsonl => answer.item(item).map_or(Ok(()), |item| self.item(&item)),
            Format::Json => {
                self.kept.extend(answer.item(item));
                Ok(())
            }
        }
    }

    /// Prints the items of an answer that were kept until now.
    pub(crate) fn pause<A: ItemAnswer>(&mut self, answer: &mut A) -> Result<()> {
        if self.is_text() {
            self.print(answer.kept_lines(&self.page()))?;
        }
        Ok(())
    }

    /// Ends an answer of items, and returns the exit code.
    pub(crate) fn end<A: ItemAnswer>(&mut self, answer: &mut A) -> Result {
        match self.format() {
            Format::Text => {
                self.pause(answer)?;
                self.print(answer.last_lines(&self.page()))?;
                self.caveat(None)?;
            }
            Format::Jsonl => self.end_stream(&answer.summary())?,
            Format::Json => {
                let items = self.kept();
                self.document(&answer.whole(items))?;
            }
        }
        Ok(answer.end().exit())
    }

    /// As [`Out::end`], for an answer that ends with a failure: an error after the lines, or the exit code of a document.
    pub(crate) fn end_or<A: ItemAnswer>(&mut self, answer: &mut A, failure: Option<Failure>) -> Result {
        let code = self.end(answer)?;
        failure.filter(|_| self.is_text()).map_or(Ok(code), Err)
    }

    /// Ends an answer that had no items: its document is the one item of a stream.
    pub(crate) fn end_whole<A: ItemAnswer>(&mut self, answer: &mut A) -> Result {
        match self.is_text() {
            true => self.end(answer),
            false => {
                self.document(&answer.whole(Vec::new()))?;
                Ok(answer.end().exit())
            }
        }
    }

    /// Takes the items of the one document, which were kept until now.
    pub(crate) fn kept(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.kept)
    }

    /// The page that lines are written for.
    pub(crate) fn page(&self) -> Page {
        Page {
            width: self.width,
            full: self.full,
            times: self.times.clone(),
            accessible: accessible(),
            ascii: self.ascii,
            sources: self.head.read_from.clone(),
            is_usual: self.is_usual && self.bundles.is_empty(),
        }
    }

    /// Prints lines, each where it belongs and as wide as that place is.
    pub(crate) fn print(&mut self, lines: Vec<Line>) -> Result<()> {
        let page = self.page();
        let errors = Page { width: self.error_width, ..page.clone() };
        for line in lines {
            let is_answer = line.place == LinePlace::Answer;
            let paste = |argv: Vec<String>| self.pasted(argv);
            let (command, more) = (line.command.map(paste), line.more.map(paste));
            let line = Line { command, more, ..line };
            for line in lay(vec![line], if is_answer { &page } else { &errors }) {
                let text = painted(&line, self.color);
                match line.place {
                    LinePlace::Answer => self.line(text)?,
                    LinePlace::Note => self.say_as_it_is(text),
                    LinePlace::Help(argv) => self.help(&argv.iter().map(String::as_str).collect::<Vec<_>>()),
                }
            }
        }
        Ok(())
    }

    /// Writes a line of the answer for people.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) -> Result<()> {
        let text = line.as_ref();
        match self.ascii && !text.is_ascii() {
            true => self.write(quote::ascii(text).as_bytes())?,
            false => self.write(text.as_bytes())?,
        }
        self.write(b"\n")
    }

    /// Writes a value as JSON on a line.
    fn json(&mut self, value: &Value) -> Result<()> {
        let text = if self.ascii { quote::json_ascii(value) } else { quote::json(value) };
        self.write(text.as_bytes())?;
        self.write(b"\n")
    }

    /// Writes an item of a stream, for `--jsonl`.
    pub(crate) fn item(&mut self, item: &Value) -> Result<()> {
        self.items += 1;
        match &self.fields {
            Some(fields) => {
                let item = fields.of_item(item);
                self.json(&item)
            }
            None => self.json(item),
        }
    }

    /// Ends a stream with the document that its items are left out of.
    fn end_stream(&mut self, document: &Value) -> Result<()> {
        let mut summary = self.placed(document.as_object().cloned().unwrap_or_default());
        summary.set("items", Value::from(self.items));
        self.json(&Value::record([("summary", Value::Object(summary))]))
    }

    /// Adds to a document about runs where they were read, and what is wrong there.
    fn placed(&mut self, document: Object) -> Object {
        let is_read = ask::is_read(&document);
        let document = head::complete(document, is_read, &self.head);
        self.head.tampered = None;
        document
    }

    /// Writes the one document of the answer: whole, as items and a summary, or the chosen fields for people.
    pub(crate) fn document(&mut self, value: &Value) -> Result<()> {
        let placed = value.as_object().map(|document| Value::Object(self.placed(document.clone())));
        let value = placed.as_ref().unwrap_or(value);
        match (self.format, &self.fields) {
            (Format::Jsonl, _) => self.stream(value),
            (Format::Json, Some(fields)) => {
                let chosen = fields.of_document(value);
                self.json(&chosen)
            }
            (Format::Text, Some(fields)) => {
                let lines = fields.lines(value, self.width, accessible());
                lines.into_iter().try_for_each(|line| self.line(line))
            }
            (_, None) => self.json(value),
        }
    }

    /// Writes a document as the items of a stream and what sums them up.
    fn stream(&mut self, value: &Value) -> Result<()> {
        let (items, summary) = answer::stream(value);
        items.iter().try_for_each(|item| self.item(item))?;
        self.json(&summary)
    }

    /// Refuses raw bytes as the answer if a document goes to the same place.
    pub(crate) fn takes_bytes(&self) -> Result<()> {
        if self.is_text() {
            return Ok(());
        }
        Err(Failure::new(Code::E0106, "stdout cannot take both the export and a document about it")
            .note("say where the export goes with -o FILE"))
    }

    /// Writes raw bytes of the answer, as an export does.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(bytes)
    }

    /// Warns of what may be wrong with what is shown, and is not known to be.
    pub(crate) fn warn(&mut self, code: Code, message: &str) {
        // Not to be silenced, as with what is known.
        self.warn_as_wide(&format!("warning[{code}]: {}", quote::escape(message)));
    }

    /// Writes a line that no flag silences to stderr, or where notes are kept.
    fn warn_as_wide(&mut self, line: &str) {
        let keeps = self.keeps_notes && matches!(self.sink, Sink::Kept(_));
        let page = Page { width: if keeps { self.width } else { self.error_width }, ..self.page() };
        for line in lay(vec![Line::from(line)], &page) {
            match keeps {
                // A buffer in memory takes every line.
                true => drop(self.line(line.text())),
                false => to_stderr(&line.text()),
            }
        }
    }

    /// Warns that what is shown is not what was signed. The document has it as well.
    pub(crate) fn tampered(&mut self, path: &str, code: Code, message: &str) {
        let text = format!("{} is TAMPERED: {message}", quote::escape(path));
        // Not to be silenced: what follows looks like any other record.
        self.warn_as_wide(&format!("warning[{code}]: {}", quote::escape(&text)));
        self.head.tampered = Some((code, message.to_owned()));
    }

    /// As [`Out::tampered`], of a store: what is not found in it may be in what is missing.
    pub(crate) fn incomplete(&mut self, path: &str, code: Code, message: &str) {
        self.tampered(path, code, message);
        self.incomplete = Some(code);
    }

    /// Turns what was not found in a log that is not whole into what is wrong with the log.
    pub(crate) fn judge(&self, failure: Failure) -> Failure {
        let failure = self.incomplete.into_iter().fold(failure, not_found_in);
        let failure = self.bundles.iter().fold(failure, |failure, (path, runs)| failure.help_in(path, runs));
        failure.help_of(self.store.as_deref())
    }

    /// Remembers which file an answer is of, so that what helps is asked of that file too.
    pub(crate) fn reads(&mut self, opened: &Opened) {
        self.reads_from(&opened.path);
        self.bundles.push((opened.path.display().to_string(), opened.runs.clone()));
    }

    /// Remembers the stage of a run that is asked about: an answer at stage 0 says what it does not claim.
    pub(crate) fn asks(&mut self, trace: &Trace) {
        self.reads_run(trace);
        self.head.asks(trace);
    }

    /// Remembers a run that is read: an answer about a part of its source names that.
    pub(crate) fn reads_run(&mut self, trace: &Trace) {
        let known = self.head.unfinished.len();
        self.head.reads_run(trace);
        let found = self.head.unfinished.get(known).filter(|(_, found)| found.lost.is_some());
        if let Some((run, found)) = found.cloned() {
            self.warn(Code::E0312, &format!("{run}: {}", found.words()));
        }
    }

    /// Leaves the caveat of stage 0 out: the answer is a block of another specification.
    pub(crate) fn asks_nothing(&mut self) {
        self.head.at_stage_0 = false;
    }

    /// Says below an answer for people what it does not claim.
    fn caveat(&mut self, document: Option<&Object>) -> Result<()> {
        self.print(head::caveats(document, &self.head))
    }

    /// Remembers where an answer was read: answers say it.
    pub(crate) fn reads_from(&mut self, path: &Path) {
        let here = std::env::current_dir().ok();
        let shown = here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path).display().to_string();
        self.head.reads(shown);
    }

    /// Says something that is not the answer, as wide as stderr is. On a terminal it is printed below the answer so far.
    pub(crate) fn say(&mut self, line: impl AsRef<str>) {
        let page = Page { width: self.error_width, ..self.page() };
        for line in lay(vec![Line::from(line.as_ref())], &page) {
            self.say_as_it_is(line.text());
        }
    }

    fn say_as_it_is(&mut self, line: impl AsRef<str>) {
        if self.quiet {
            return;
        }
        match self.sink {
            Sink::Pager(_) => self.after.push(line.as_ref().to_owned()),
            // A buffer in memory takes every line.
            Sink::Kept(_) if self.keeps_notes => drop(self.line(line)),
            _ => {
                // An answer that cannot be written is told of when it ends.
                let _ = self.flush();
                to_stderr(line.as_ref());
            }
        }
    }

    /// Says what to type next.
    pub(crate) fn help(&mut self, argv: &[&str]) {
        let argv = self.to_paste(argv);
        let lines = self.error_width.map(|width| layout::command("help: ", &argv, width, self.ascii));
        for line in lines.unwrap_or_else(|| vec![format!("help: {}", shell(&argv))]) {
            self.say_as_it_is(line);
        }
    }

    /// Writes down what to type next, so that it asks the store or the bundles that were asked.
    pub(crate) fn to_paste(&self, argv: &[&str]) -> Vec<String> {
        self.pasted(argv.iter().map(|word| (*word).to_owned()).collect())
    }

    fn pasted(&self, argv: Vec<String>) -> Vec<String> {
        let in_bundles = |argv, (path, runs): &(String, Vec<RunName>)| in_bundle(argv, path, runs);
        in_store(self.bundles.iter().fold(argv, in_bundles), self.store.as_deref())
    }

    /// Hands over to the system what was written so far.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let flushed = match &mut self.sink {
            _ if self.gone => return Ok(()),
            Sink::Stdout(writer) => writer.flush(),
            Sink::Pager(pager) => pager.flush(),
            Sink::File(answer) => answer.file.as_mut().map_or(Ok(()), Write::flush),
            Sink::Kept(_) => Ok(()),
        };
        let flushed = flushed.map_err(closed);
        self.outlive(flushed)
    }

    /// What a verb does, and the exit code that it ends with, do not depend on whether somebody still reads the answer.
    fn outlive(&mut self, written: Result<()>) -> Result<()> {
        match written {
            Err(failure) if is_closed_pipe(&failure) && self.outlives => {
                self.gone = true;
                Ok(())
            }
            written => written,
        }
    }

    /// Ends the answer, and waits for whoever still reads it. What did not go well is no answer: no file is made of it.
    pub(crate) fn finish(mut self, is_answer: bool) -> Result<()> {
        self.flush()?;
        if let Sink::File(answer) = self.sink {
            return answer.finish(is_answer);
        }
        if let Sink::Pager(pager) = &mut self.sink {
            let finished = pager.finish().map_err(closed);
            self.after.iter().for_each(|line| to_stderr(line));
            return self.outlive(finished);
        }
        Ok(())
    }

    /// Whether nothing of the answer was written yet.
    pub(crate) fn is_untouched(&self) -> bool {
        self.untouched
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.untouched = false;
        let written = match &mut self.sink {
            _ if self.gone => return Ok(()),
            Sink::Stdout(writer) => writer.write_all(bytes).map_err(closed),
            Sink::Pager(pager) => pager.write_all(bytes).map_err(closed),
            Sink::File(answer) => answer.write(bytes),
            Sink::Kept(answer) => {
                answer.borrow_mut().extend_from_slice(bytes);
                Ok(())
            }
        };
        self.outlive(written)
    }
}

impl AnswerFile {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = if self.grows { Whole::growing(&self.path) } else { Whole::create(&self.path) };
                self.file.insert(file.map_err(|error| files::cannot_write(&self.path, &error))?)
            }
        };
        file.write_all(bytes).map_err(|error| files::cannot_write(&self.path, &error))
    }

    fn finish(self, is_answer: bool) -> Result<()> {
        let file = self.file.filter(|_| is_answer || self.grows);
        files::refuse_late(&self.path)?;
        file.map_or(Ok(()), Whole::finish).map_err(|error| files::cannot_write(&self.path, &error))
    }
}

/// Turns a "not found" in a log that is not whole into the fault of the log: what is asked for may be in the missing part.
fn not_found_in(failure: Failure, code: Code) -> Failure {
    if failure.exit() != 3 {
        return failure;
    }
    failure.of_damaged_log(code)
}

/// Writes a line with the colours of its spans, if there are any.
pub(crate) fn painted(line: &Line, colored: bool) -> String {
    let span = |span: &TextSpan| match span.style.filter(|_| colored) {
        None => span.text.clone(),
        Some(style) => {
            let code = match style {
                Style::Bad => "38;5;208",
                Style::Good => "34",
                Style::Warn => "33",
                Style::Added => "32",
                Style::Removed => "31",
                Style::Dim => "2",
                Style::Strong => "1",
            };
            format!("\x1b[{code}m{}\x1b[0m", span.text)
        }
    };
    line.spans.iter().map(span).chain(line.command.iter().map(|argv| shell(argv))).collect()
}

/// Returns the width of a page: `--width`, else the columns of the terminal, if it is one.
pub(crate) fn page_width(
    asked: Option<usize>,
    is_terminal: bool,
    screen: impl FnOnce() -> Option<(terminal_size::Width, terminal_size::Height)>,
) -> Option<usize> {
    let columns = || std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let of_terminal = || columns().or_else(|| screen().map(|(width, _)| usize::from(width.0)));
    let width = asked.or_else(|| is_terminal.then(of_terminal).flatten());
    width.map(|width| width.max(layout::WIDTH_MIN))
}

/// The size of the terminal that stderr is.
pub(crate) fn error_screen() -> Option<(terminal_size::Width, terminal_size::Height)> {
    terminal_size::terminal_size_of(io::stderr())
}

fn to_stderr(line: &str) {
    // Ignored: there is no other place to report a closed stderr.
    let _ = writeln!(io::stderr(), "{line}");
}

/// A reader that went away ends the program quietly; anything else is a failure.
pub(crate) fn closed(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::new(Code::E0801, "");
    }
    Failure::new(Code::E0801, "cannot write the answer").at("cause", error.to_string())
}

/// Whether the reader closed the pipe: print nothing, exit 0. Such a problem has no message.
pub(crate) fn is_closed_pipe(failure: &Failure) -> bool {
    failure.message.is_empty()
}

fn set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Whether colour is used at a place, by the switches in their order.
pub(crate) fn decide_color(choice: ColorChoice, terminal: bool) -> bool {
    let choice = match (choice, std::env::var("DENDRER_COLOR").as_deref()) {
        (ColorChoice::Auto, Ok("always")) => ColorChoice::Always,
        (ColorChoice::Auto, Ok("never")) => ColorChoice::Never,
        (choice, _) => choice,
    };
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR") => false,
        ColorChoice::Auto if is_on("CLICOLOR_FORCE") => true,
        ColorChoice::Auto => terminal && !dumb(),
    }
}

fn dumb() -> bool {
    std::env::var("TERM").as_deref() == Ok("dumb")
}

/// Whether the user asked for what a screen reader can follow: no repaint, ASCII, lists instead of tables.
pub(crate) fn accessible() -> bool {
    is_on("DENDRER_ACCESSIBLE") || is_on("ACCESSIBLE")
}

/// Whether a switch of the environment is on; `0` is off.
fn is_on(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| !matches!(value.as_str(), "" | "0"))
}

/// Whether the terminal takes UTF-8, as far as the environment says. Where it says nothing, it most likely does.
fn utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}
