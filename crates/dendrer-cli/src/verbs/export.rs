//! `dendrer export`

use std::io::{IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::address::{Address, Position};
use dendrer::ask::steps::each_datum;
use dendrer::care::export::{ExportError, ExportTerms, WithholdTerms, newest_note, plan, withheld};
use dendrer::repo::Repo;
use dendrer::run::frontier::graph_run;
use dendrer::run::witness::{EXACT, exact_of};
use dendrer_chain::EXTENSION;
use dendrer_object::{Code, RunName};
use dendrer_view::export::{ExportAnswer, WithheldAnswer};
use dendrer_view::graphs::frontier_file;
use dendrer_view::html::{HtmlTerms, MAX_BYTES, one_file};
use dendrer_view::quote;
use dendrer_view::steps::DatumObject;
use dendrer_wire::foreign::{Format, WriteError, WrittenPart};
use dendrer_wire::format::{self, FORMATS};

use crate::context;
use crate::context::care::Follower;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::offers;
use crate::out::Out;
use crate::out::files;
use crate::out::files::Whole;

mod parquet;

/// `export`
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The runs; none for a checkpoint
    #[arg(required_unless_present_any = ["format", "check"], add = ArgValueCompleter::new(offers::runs))]
    pub(crate) runs: Vec<String>,
    /// Withhold the value at this place of every record, or of one tick, with its copies and the digests over it
    #[arg(long, value_name = "[TICK:]PLACE")]
    pub(crate) withhold: Vec<String>,
    /// Withhold this place as well: PLACE, TICK:PLACE or RUN@TICK:PLACE
    #[arg(long, value_name = "PLACE", requires = "withhold")]
    pub(crate) also: Vec<String>,
    /// Let this place stay, although it may follow from a value that is withheld; the bundle lists it
    #[arg(long, value_name = "PLACE", requires = "withhold")]
    pub(crate) although: Vec<String>,
    /// Withhold copies before the tick and in other runs of the file as well
    #[arg(long, requires = "withhold")]
    pub(crate) everywhere: bool,
    /// Say what would be withheld, and write nothing
    #[arg(short = 'n', long, requires = "withhold")]
    pub(crate) dry_run: bool,
    /// For carl: the bytes of the file that was imported, from the vault
    #[arg(long)]
    pub(crate) exact: bool,
    /// For html: another run, which each run is compared with. For carl: also steps that are not of the sixteen, but of this
    /// extension
    #[arg(long, value_name = "RUN|EXTENSION", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) with: Option<String>,
    /// For html: the ticks that are shown; the bundle has all
    #[arg(long, value_name = "A..B", value_parser = range_arg, allow_hyphen_values = true)]
    pub(crate) range: Option<(Position, Position)>,
    /// For html: an expression that must be true; repeatable
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) holds: Vec<String>,
    /// For html: a registered predicate; repeatable
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(offers::predicates))]
    pub(crate) predicate: Vec<String>,
    /// For html: the title; the names of the runs if not given
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// For html: the size of the file at most
    #[arg(long, value_name = "N", default_value_t = MAX_BYTES)]
    pub(crate) max_bytes: u64,
    /// For html: leave the bundle out, so that nothing in the file can be checked
    #[arg(long)]
    pub(crate) no_bundle: bool,
    /// For parquet: the directory that is written
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: Option<String>,
    /// For parquet: places of the state, or of counters, that are typed columns; all single values if not given
    #[arg(long, value_name = "P,..", value_delimiter = ',', requires = "dir")]
    pub(crate) columns: Vec<String>,
    /// For parquet: the state of each row as well
    #[arg(long, requires = "dir")]
    pub(crate) states: bool,
    /// For parquet: no ids, roots and entries, which show that no record is missing
    #[arg(long, requires = "dir")]
    pub(crate) no_proof: bool,
    /// Check the export as Parquet in this directory; with --store also what was erased since
    #[arg(long, value_name = "DIR", conflicts_with_all = ["dir", "runs"], value_hint = clap::ValueHint::DirPath)]
    pub(crate) check: Option<String>,
}

impl Export {
    /// The values that are withheld.
    fn withheld(&self) -> WithholdTerms {
        WithholdTerms {
            places: self.withhold.clone(),
            also: self.also.clone(),
            although: self.although.clone(),
            everywhere: self.everywhere,
        }
    }

    /// The first flag of a page that is given.
    fn flag_of_page(&self) -> Option<&'static str> {
        let flags = [
            ("--range", self.range.is_some()),
            ("--holds", !self.holds.is_empty()),
            ("--predicate", !self.predicate.is_empty()),
            ("--title", self.title.is_some()),
            ("--max-bytes", self.max_bytes != MAX_BYTES),
            ("--no-bundle", self.no_bundle),
        ];
        flags.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }
}

/// Reads a range of ticks.
fn range_arg(text: &str) -> std::result::Result<(Position, Position), String> {
    let ends = text.split_once("..").map(|(from, to)| (Position::parse(from), Position::parse(to)));
    match ends {
        Some((Some(from), Some(to))) => Ok((from, to)),
        _ => Err("a range is two ticks, like 20..47 or 20..tip".to_owned()),
    }
}

/// The form of an export.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// One file that proves itself.
    Bundle,
    /// The newest signed checkpoint of the log.
    Checkpoint,
    /// A file of another program.
    Foreign(&'static Format),
    /// The recorded edge values of a graph's run.
    Frontier,
    /// A page that is read without a program, with its bundle inside.
    Html,
    /// A test in Python that replays the run: the bundle in it, and no model or tool.
    Pytest,
    /// A step for training a line, with the tick to which its run is replayed.
    Training,
}

/// The values of `--format`: a bundle, the foreign formats that are written, and the other forms.
pub(crate) fn forms() -> Vec<&'static str> {
    let foreign = FORMATS.iter().filter(|format| format.is_written()).map(|format| format.name);
    ["bundle", "checkpoint", "html"]
        .into_iter()
        .chain(foreign)
        .chain(["frontier", "parquet", "pytest", "training"])
        .collect()
}

fn form_of(global: &Global) -> Form {
    match global.format.as_deref() {
        Some("checkpoint") => Form::Checkpoint,
        Some("frontier") => Form::Frontier,
        Some("html") => Form::Html,
        Some("pytest") => Form::Pytest,
        Some("training") => Form::Training,
        other => other.and_then(format::named).map_or(Form::Bundle, Form::Foreign),
    }
}

pub(crate) fn run(global: &Global, args: &Export, out: &mut Out) -> Result {
    if args.check.is_some() || args.dir.is_some() || global.format.as_deref() == Some("parquet") {
        return parquet::run(global, args, out);
    }
    let form = form_of(global);
    match (form, args.runs.is_empty()) {
        (Form::Checkpoint, false) => {
            let message = "a checkpoint is that of the whole log: name no run";
            return Err(Failure::new(Code::E0106, message));
        }
        (Form::Checkpoint, true) | (_, false) => {}
        (_, true) => {
            let failure = Failure::new(Code::E0106, "export needs a run");
            return Err(failure.help(&["dendrer", "export", "RUN", "-o", "RUN.dnd"]));
        }
    }
    if global.output.is_none() && !args.dry_run {
        out.takes_bytes()?;
        refuse_terminal(global, args)?;
    }
    refuse_flags(form, args)?;
    let revs = args.runs.iter().map(|text| Ok(Address::parse(text)?)).collect::<Result<Vec<_>>>()?;
    if let Some((rev, text)) = revs.iter().zip(&args.runs).find(|(rev, _)| rev.pos.is_some()) {
        let run = rev.run.as_deref().or(rev.bundle.as_deref()).unwrap_or_default();
        return Err(Failure::new(
            Code::E0106,
            format!("an export is of a whole run, and {text} names a place in one"),
        )
        .note("what stands up to a tick is listed by log, whole with --full")
        .help(&["dendrer", "export", run])
        .help(&["dendrer", "log", text, "--full", "--json"]));
    }
    if args.dry_run {
        return dry_run(global, form, revs, args, out);
    }
    let Some(path) = &global.output else {
        write(global, form, &revs, args, out, &mut |out, bytes| out.bytes(bytes))?;
        return Ok(0);
    };
    let (file, mut whole) = (Path::new(path), None);
    let mut bytes = 0;
    write(global, form, &revs, args, out, &mut |_, line| {
        bytes += line.len() as u64;
        let mut put = || {
            let whole = match &mut whole {
                Some(whole) => whole,
                // Nothing is begun before there is something to write.
                none => none.insert(Whole::create(file)?),
            };
            whole.write_all(line)
        };
        put().map_err(|error| files::cannot_write(file, &error))
    })?;
    whole.map_or(Ok(()), Whole::finish).map_err(|error| files::cannot_write(file, &error))?;
    let path = file.display().to_string();
    let format = global.format.as_deref().unwrap_or("bundle");
    out.answer(&ExportAnswer { path: &path, format, bytes, runs: &args.runs })
}

/// Says what a bundle would be made without.
fn dry_run(global: &Global, form: Form, revs: Vec<Address>, args: &Export, out: &mut Out) -> Result {
    let mut revs = revs;
    if let (Form::Html, Some(with)) = (form, &args.with) {
        revs.push(Address::parse(with)?);
    }
    let (repo, _) = context::read_repo(global)?;
    let mut follower = Follower::new(global, "export", out);
    let found = withheld(&repo, &revs, &args.withheld(), &mut follower);
    let (found, _progress) = follower.go_on(found)?;
    out.answer(&WithheldAnswer { runs: &args.runs, withheld: &found })
}

/// Refuses flags of another form.
fn refuse_flags(form: Form, args: &Export) -> Result<()> {
    let is_page = matches!(form, Form::Html);
    let is_exact = matches!(form, Form::Foreign(format) if format.is_exact());
    let with = args.with.as_deref().filter(|with| !is_page && *with != EXTENSION);
    if !is_exact && (args.exact || args.with.is_some() && !is_page) {
        let exact: Vec<&str> =
            FORMATS.iter().filter(|format| format.is_exact()).map(|format| format.name).collect();
        let message = format!("--exact is for --format {0}, and --with for html or {0}", exact.join(" or "));
        return Err(Failure::new(Code::E0106, message));
    }
    if let Some(with) = with {
        return Err(Failure::new(Code::E0106, format!("there is no extension {with}"))
            .note(format!("the extension is {EXTENSION}")));
    }
    if !matches!(form, Form::Bundle | Form::Html) && !args.withhold.is_empty() {
        return Err(Failure::new(
            Code::E0106,
            "--withhold is for bundles, where what is left still verifies",
        ));
    }
    if let Some(flag) = args.flag_of_page().filter(|_| !is_page) {
        return Err(Failure::new(Code::E0106, format!("{flag} is for --format html")));
    }
    Ok(())
}

/// Takes what is to be written, a line at a time.
type Sink<'s> = &'s mut dyn FnMut(&mut Out, &[u8]) -> Result<()>;

fn write(
    global: &Global,
    form: Form,
    revs: &[Address],
    args: &Export,
    out: &mut Out,
    sink: Sink<'_>,
) -> Result<()> {
    match form {
        Form::Foreign(format) => foreign(global, format, revs, args, out, sink),
        Form::Training => training(global, revs, out, sink),
        Form::Bundle => bundle(global, revs, args, out, sink),
        Form::Checkpoint => {
            let (repo, unwritable) = signing(global, out)?;
            let mut follower = Follower::new(global, "export", out);
            let (note, unsigned) = newest_note(&repo, unwritable, &mut follower)?;
            if let Some(error) = unsigned {
                out.say(format!("WARN the log was not signed now: {error}"));
            }
            sink(out, note.to_string().as_bytes())
        }
        Form::Html => html(global, revs, args, out, sink),
        Form::Frontier => {
            let [rev] = revs else {
                return Err(Failure::new(Code::E0106, "a frontier is that of one run: export one at a time"));
            };
            let source = context::sound(global, rev, out)?;
            let run = graph_run(&source.trace(rev)?)?;
            frontier_file(&run)
                .iter()
                .try_for_each(|line| sink(out, format!("{}\n", quote::json(line)).as_bytes()))
        }
        Form::Pytest => {
            let [rev] = revs else {
                return Err(Failure::new(Code::E0106, "a test replays one run: export one at a time"));
            };
            let mut bytes = Vec::new();
            bundle(global, revs, args, out, &mut |_, part| {
                bytes.extend_from_slice(part);
                Ok(())
            })?;
            sink(out, pytest(rev.run.as_deref().unwrap_or("run"), &bytes).as_bytes())
        }
    }
}

/// Refuses to print an export on a terminal, unless it was asked for with `-o -`.
fn refuse_terminal(global: &Global, args: &Export) -> Result<()> {
    if global.is_stdout_named || !std::io::stdout().is_terminal() {
        return Ok(());
    }
    let run = args.runs.first().map_or("@", String::as_str);
    let name: String =
        run.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.+".contains(c) { c } else { '_' }).collect();
    let (form, end) = match global.format.as_deref() {
        None | Some("bundle") => (None, "dnd"),
        Some("pytest") => (global.format.as_deref(), "py"),
        Some("html") => (global.format.as_deref(), "html"),
        Some(form) => (Some(form), "jsonl"),
    };
    let file = format!("{}.{end}", name.trim_end_matches(".dnd").trim_end_matches(".html"));
    let format = form.map(|form| ["--format", form]);
    let argv = ["dendrer", "export"].into_iter().chain(args.runs.iter().map(String::as_str));
    let argv = argv.chain(format.into_iter().flatten()).chain(["-o", &file]).collect::<Vec<_>>();
    Err(Failure::new(Code::E0106, "export needs a file, as standard output is a terminal")
        .note("-o - prints it here all the same")
        .help(&argv))
}

/// Writes runs in the format of another program.
fn foreign(
    global: &Global,
    format: &Format,
    revs: &[Address],
    args: &Export,
    out: &mut Out,
    sink: Sink<'_>,
) -> Result<()> {
    if let Some(single) = format.single.filter(|_| revs.len() > 1) {
        let message = format!("{single} is that of one run: export one at a time");
        return Err(Failure::new(Code::E0106, message));
    }
    for rev in revs {
        let source = context::sound(global, rev, out)?;
        let trace = source.trace(rev)?;
        if let Some(found) = trace.unfinished()? {
            out.say(format!("WARN {}: {}; the file has no mark of it", trace.name(), found.words()));
        }
        let fail = |error: WriteError| match error {
            WriteError::Run(error) => error.into(),
            WriteError::Extension { .. } => Failure::new(error.code(), error.to_string()).help(&[
                "dendrer",
                "export",
                trace.name().as_str(),
                "--format",
                format.name,
                "--with",
                EXTENSION,
            ]),
            error => Failure::new(error.code(), error.to_string()),
        };
        if args.exact {
            let known = exact_of(&trace).ok_or_else(|| fail(WriteError::NotExact(trace.name().clone())))?;
            let exact = context::write_store(global)?.vault()?.get_as(trace.name(), EXACT, &known);
            let exact = exact.map_err(|error| Failure::new(error.code(), error.to_string()))?;
            return sink(out, &exact);
        }
        let write = &mut |line: WrittenPart<'_>| match line {
            WrittenPart::Value(value) => sink(out, format!("{}\n", quote::json_as_it_is(value)).as_bytes()),
            WrittenPart::Text(text) => sink(out, text.as_bytes()),
        };
        format.write(&trace, args.with.is_some(), write).map_err(fail)??;
    }
    Ok(())
}

/// Writes the steps of runs that are data for training, each with the place to which its run is replayed.
fn training(global: &Global, revs: &[Address], out: &mut Out, sink: Sink<'_>) -> Result<()> {
    for rev in revs {
        let source = context::sound(global, rev, out)?;
        let trace = source.trace(rev)?;
        let mut result = Ok(());
        each_datum((&trace, trace.tip()), &mut |datum| {
            let datum = DatumObject::of(trace.name(), &datum).into();
            result = sink(out, format!("{}\n", quote::json(&datum)).as_bytes());
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        result?;
    }
    Ok(())
}

/// Writes a test for pytest. It needs the program and nothing else; `DENDRER` names another one than that of the path.
fn pytest(run: &str, bundle: &[u8]) -> String {
    let text = STANDARD.encode(bundle);
    let lines = text.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).into_owned());
    let lines: Vec<String> = lines.collect();
    // The characters that a run's name and a Python name share.
    let name: String = run.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!(
        "\"\"\"Replays the recorded run {run}. No model and no tool is called.\"\"\"\n\n\
         import base64\nimport os\nimport subprocess\n\n\
         BUNDLE = \"\"\"\n{}\n\"\"\"\n\n\n\
         def test_{name}(tmp_path):\n    \
         path = tmp_path / \"recorded.dnd\"\n    \
         path.write_bytes(base64.b64decode(BUNDLE))\n    \
         program = os.environ.get(\"DENDRER\", \"dendrer\")\n    \
         ran = subprocess.run([program, \"replay\", str(path)], capture_output=True, text=True)\n    \
         assert ran.returncode == 0, ran.stdout + ran.stderr\n",
        lines.join("\n")
    )
}

/// Writes a page of runs, with their bundle inside.
fn html(global: &Global, revs: &[Address], args: &Export, out: &mut Out, sink: Sink<'_>) -> Result<()> {
    if revs.iter().any(|rev| rev.bundle.is_some()) {
        return Err(ExportError::OfBundle.into());
    }
    let with = args.with.as_deref().map(Address::parse).transpose()?;
    if with.as_ref().is_some_and(|with| with.bundle.is_some() || with.pos.is_some()) {
        return Err(Failure::new(Code::E0106, "--with names another run of the same store"));
    }
    let store = context::read_store(global)?;
    let mut runs: Vec<RunName> = Vec::new();
    for rev in revs {
        let run = rev.run_in(&store, &[])?;
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    let with = with.map(|with| with.run_in(&store, &[])).transpose()?;
    if let Some(same) = with.as_ref().filter(|with| runs.contains(with)) {
        return Err(Failure::new(Code::E0106, format!("--with names {same}, which is compared with itself")));
    }
    let all: Vec<Address> = runs.iter().chain(&with).map(|run| Address::of(run, None)).collect();
    let mut bytes = Vec::new();
    bundle(global, &all, args, out, &mut |_, part| {
        bytes.extend_from_slice(part);
        Ok(())
    })?;
    let terms = HtmlTerms {
        runs,
        with,
        range: args.range.clone(),
        holds: args.holds.clone(),
        predicate: args.predicate.clone(),
        title: args.title.clone(),
        has_bundle: !args.no_bundle,
        max_bytes: args.max_bytes,
    };
    sink(out, &one_file(&bytes, &terms)?)
}

/// Opens the store to sign it. One that cannot be written can still be exported as far as it was signed before.
fn signing(global: &Global, out: &mut Out) -> Result<(Repo, Option<dendrer::Error>)> {
    let path = context::find(global)?;
    let (repo, unwritable) = match context::write_at(global, &path) {
        Ok(repo) => (repo, None),
        Err(error) => (context::read_repo(global)?.0, Some(error)),
    };
    context::warn(repo.warnings(), &path, out);
    Ok((repo, unwritable))
}

/// Signs the store, and writes a bundle.
fn bundle(global: &Global, revs: &[Address], args: &Export, out: &mut Out, sink: Sink<'_>) -> Result<()> {
    if revs.iter().any(|rev| rev.bundle.is_some()) {
        return Err(ExportError::OfBundle.into());
    }
    let (repo, unwritable) = signing(global, out)?;
    let mut follower = Follower::new(global, "export", out);
    let planned = plan(&repo, revs, ExportTerms { withheld: args.withheld(), unwritable }, &mut follower);
    let (planned, _progress) = follower.go_on(planned)?;
    planned.write(&mut |line| sink(out, line))
}
