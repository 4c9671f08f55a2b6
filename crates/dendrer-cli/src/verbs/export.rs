//! `dendrer export`

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::address::Address;
use dendrer::ask::steps::each_datum;
use dendrer::care::export::{ExportError, ExportTerms, plan};
use dendrer::run::frontier::graph_run;
use dendrer::run::witness::{EXACT, exact_of};
use dendrer_chain::EXTENSION;
use dendrer_object::pointer::PointerError;
use dendrer_object::{Code, Pointer, Value};
use dendrer_view::export::ExportAnswer;
use dendrer_view::graphs::frontier_file;
use dendrer_view::quote;
use dendrer_view::steps::DatumObject;
use dendrer_wire::carl::{self, CarlError};
use dendrer_wire::profile::{self, Profile};

use crate::context;
use crate::context::care::Follower;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::offers;
use crate::out::Out;
use crate::out::files;
use crate::out::files::Whole;

/// `export`
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The runs
    #[arg(required = true, add = ArgValueCompleter::new(offers::runs))]
    pub(crate) runs: Vec<String>,
    /// Withhold the values at or below this place of every record, like /result/output
    #[arg(long, value_name = "POINTER")]
    pub(crate) withhold: Vec<String>,
    /// For carl: the bytes of the file that was imported, from the vault
    #[arg(long)]
    pub(crate) exact: bool,
    /// For carl: also steps that are not of the sixteen, but of this extension
    #[arg(long, value_name = "EXTENSION", value_parser = [EXTENSION])]
    pub(crate) with: Option<String>,
}

/// In which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One file that proves itself.
    Bundle,
    /// One event a line, as the dendrer paper spells it.
    Jsonl,
    /// One transition a line, in the spelling of a source document and with its hashes.
    Profile(Profile),
    /// The recorded edge values of a graph's run.
    Frontier,
    /// A test in Python that replays the run: the bundle in it, and no model or tool.
    Pytest,
    /// A row for each step, as carl-core keeps a chain.
    Carl,
    /// A step for training a line, with the tick to which its run is replayed.
    Training,
}

pub(crate) fn run(global: &Global, args: &Export, out: &mut Out) -> Result {
    let form = match global.format.as_deref() {
        Some("jsonl") => Form::Jsonl,
        Some("paper") => Form::Profile(Profile::Paper),
        Some("cfd") => Form::Profile(Profile::Cfd),
        Some("frontier") => Form::Frontier,
        Some("pytest") => Form::Pytest,
        Some("carl") => Form::Carl,
        Some("training") => Form::Training,
        _ => Form::Bundle,
    };
    if global.output.is_none() {
        out.takes_bytes()?;
    }
    if form != Form::Carl && (args.exact || args.with.is_some()) {
        return Err(Failure::new(Code::E0106, "--exact and --with are for --format carl"));
    }
    if form != Form::Bundle && !args.withhold.is_empty() {
        return Err(Failure::new(
            Code::E0106,
            "--withhold is for bundles, where what is left still verifies",
        ));
    }
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
    let withhold = &args.withhold;
    match form {
        Form::Carl => chain(global, revs, args, out, sink),
        Form::Training => training(global, revs, out, sink),
        Form::Bundle => bundle(global, revs, withhold, out, sink),
        Form::Jsonl => lines(global, revs, None, out, sink),
        Form::Profile(profile) => lines(global, revs, Some(profile), out, sink),
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
            bundle(global, revs, withhold, out, &mut |_, part| {
                bytes.extend_from_slice(part);
                Ok(())
            })?;
            sink(out, pytest(rev.run.as_deref().unwrap_or("run"), &bytes).as_bytes())
        }
    }
}

/// Writes a run as the file of a chain.
fn chain(global: &Global, revs: &[Address], args: &Export, out: &mut Out, sink: Sink<'_>) -> Result<()> {
    let [rev] = revs else {
        return Err(Failure::new(Code::E0106, "a chain is that of one run: export one at a time"));
    };
    let source = context::sound(global, rev, out)?;
    let trace = source.trace(rev)?;
    let fail = |error: CarlError| Failure::new(error.code(), error.to_string());
    if args.exact {
        let known = exact_of(&trace);
        let known = known.ok_or_else(|| fail(CarlError::NotExact(trace.name().to_string())))?;
        let repo = context::write_store(global)?;
        let exact = repo.vault()?.get_as(trace.name(), EXACT, &known);
        let exact = exact.map_err(|error| Failure::new(error.code(), error.to_string()))?;
        return sink(out, &exact);
    }
    // All is looked at before a line is written: a file that ends early would be taken for the chain.
    let seen = carl::lines(&trace, args.with.is_some(), &mut |_| ControlFlow::Continue(()));
    seen.map_err(|error| match error {
        CarlError::Extension { .. } => {
            let run = trace.name().as_str();
            let failure = Failure::new(error.code(), error.to_string());
            failure.help(&["dendrer", "export", run, "--format", "carl", "--with", EXTENSION])
        }
        error => fail(error),
    })?;
    let (mut result, mut is_first) = (Ok(()), true);
    carl::lines(&trace, args.with.is_some(), &mut |line| {
        let before = if std::mem::take(&mut is_first) { "" } else { "\n" };
        result = sink(out, format!("{before}{line}").as_bytes());
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .map_err(fail)?;
    result?;
    if carl::ends_with_newline(&trace) { sink(out, b"\n") } else { Ok(()) }
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

/// Signs the store, and writes a bundle.
fn bundle(
    global: &Global,
    revs: &[Address],
    withhold: &[String],
    out: &mut Out,
    sink: Sink<'_>,
) -> Result<()> {
    if revs.iter().any(|rev| rev.bundle.is_some()) {
        return Err(ExportError::OfBundle.into());
    }
    let pointer = |text: &String| {
        Pointer::of_written(text).map_err(|error: PointerError| Failure::new(Code::E0106, error.to_string()))
    };
    let withheld = withhold.iter().map(pointer).collect::<Result<Vec<_>>>()?;
    let path = context::find(global)?;
    let (repo, unwritable) = match context::write_at(global, &path) {
        Ok(repo) => (repo, None),
        // A store that cannot be written can still be exported as far as it was signed before.
        Err(error) => (context::read_repo(global)?.0, Some(error)),
    };
    context::warn(repo.warnings(), &path, out);
    let mut follower = Follower::new(global, "export", out);
    let planned = plan(&repo, revs, ExportTerms { withheld, unwritable }, &mut follower);
    let (planned, _progress) = follower.go_on(planned)?;
    planned.write(&mut |line| sink(out, line))
}

/// Writes the transitions of runs, one a line, as the paper spells them or in the spelling of a profile.
fn lines(
    global: &Global,
    revs: &[Address],
    profile: Option<Profile>,
    out: &mut Out,
    sink: Sink<'_>,
) -> Result<()> {
    if profile.is_some() && revs.len() > 1 {
        return Err(Failure::new(Code::E0106, "a chain of hashes is that of one run: export one at a time"));
    }
    for rev in revs {
        let source = context::sound(global, rev, out)?;
        let trace = source.trace(rev)?;
        let mut line = |value: Value| sink(out, format!("{}\n", quote::json_as_it_is(&value)).as_bytes());
        match profile {
            Some(profile) => profile.lines(&trace, &mut line)?,
            None => profile::events(&trace, &mut line)?,
        }
    }
    Ok(())
}
