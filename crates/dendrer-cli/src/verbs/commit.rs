//! `dendrer commit`: intents as JSON lines, through the kernel, onto a run.

use std::io::{IsTerminal, Read};
use std::ops::ControlFlow;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use dendrer::kernel::step::{self, ENDED_BY, Inputs, Seeds, Stage, Start};
use dendrer::lines::{self, Authors, LineOptions, LinesTally, Recording, Reply};
use dendrer::record::chain::meta_of_context;
use dendrer::record::redacted;
use dendrer::run::pack::of_run;
use dendrer::store::prelude::*;
use dendrer::{Recorder, Repo};
use dendrer_object::Code;
use dendrer_object::record::Record;
use dendrer_object::{REDACTION, RunName, TypeName, Value};
use dendrer_view::commit::CommitAnswer;

use crate::context;
use crate::context::packs;
use crate::context::redaction::RedactionArgs;
use crate::context::replies::{self, Heard};
use crate::context::runs::refuse_unreachable;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::AuthorChoice;
use crate::global::Global;
use crate::offers;
use crate::out::Out;
use crate::out::files;
use crate::progress::Progress;
use dendrer::repo::new_run::{Resume, first_free, given_name};

/// The type of the end of a run, in the view of an agent.
const COMPLETE: &str = "goal.complete";

/// `commit`
#[derive(Debug, Clone, Args)]
pub(crate) struct Commit {
    /// The run; it begins if the store has no run of this name
    #[arg(long, add = ArgValueCompleter::new(offers::runs))]
    pub(crate) run: String,
    /// Where the intents are; - for standard input. `dendrer schema intent` lists types and members
    #[arg(long, default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) file: String,
    /// The agent of lines that do not name one
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Who writes. Without it: agents, and an action.result is by the runtime. With runtime,user a line may name the user
    #[arg(long = "as", value_enum, value_delimiter = ',', value_name = "AUTHOR")]
    pub(crate) author: Vec<AuthorChoice>,
    /// With --as runtime: the scope of the calls. Commitments of other scopes are not asked about them
    #[arg(long, value_name = "NAME")]
    pub(crate) scope: Option<String>,
    /// Names that begin with $ are dendrer's tagged forms
    #[arg(long)]
    pub(crate) tagged: bool,
    /// Several agents record into the run: a line is stale only if another agent wrote, behind its base, at, above or below a
    /// place that it writes or has in `reads`. Without `base` that is the newest tick that this process has read
    #[arg(long)]
    pub(crate) causal: bool,
    #[command(flatten)]
    pub(crate) redaction: RedactionArgs,
    /// Judge, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Fail if the run exists already
    #[arg(long)]
    pub(crate) new: bool,
    /// For a new run: its goal
    #[arg(long)]
    pub(crate) goal: Option<String>,
    /// For a new run: a JSON file with the initial state
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<String>,
    /// For a new run: a JSON file with policy rules [{"id": ..., "holds": ...}]
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<String>,
    /// For a new run: a JSON file with an object, the context of its chain (`export --format carl`)
    #[arg(long, value_name = "FILE")]
    pub(crate) context: Option<String>,
    /// For a new run: the pack that is in force; with it, --state is what its init is given
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: Option<String>,
    /// As `state`, for a program that has the value.
    #[arg(skip)]
    pub(crate) state_value: Option<Value>,
    /// Whether the program made the name, as `RUN+2`.
    #[arg(skip)]
    pub(crate) is_made: bool,
    /// For a new run: the stage it is recorded at; 2 if pack or policy ask for enforcement, else 1
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=3))]
    pub(crate) stage: Option<u64>,
}

pub(crate) fn run(global: &Global, args: &Commit, out: &mut Out) -> Result {
    refuse_authors(args)?;
    let name = name(args)?;
    replies::expect_on_terminal(&args.file, out);
    let mut lines = lines::read(input(&args.file)?).map_err(|error| replies::no_thread(&error))?;
    let repo = context::write_store(global)?;
    let (mut recorder, is_new) = open(&repo, args, || context::say_no_key(&repo, out))?;
    // A line that is no intent begins no run, and neither does an input without a line.
    let is_file = is_whole_file(&args.file);
    let (reading, mut begun, mut first) = (args.reading()?, None, None);
    if is_new && !is_file && !args.dry_run {
        first = lines.first();
        if matches!(&first, Some(Ok(line)) if reading.begins_run(line)) {
            begun = begin(&repo, args, &mut recorder)?.map(Reply::Begun);
        }
    }
    let is_made = begun.is_some();
    if !is_new && let Some(tick) = completed_at(&repo, &name)? {
        out.say(format!("note: {name} was completed at tick {tick} ({COMPLETE}); these lines go on with it"));
    }
    let not_enforced = recorder.head().not_enforced();
    let answer = CommitAnswer::new(name.clone(), recorder.head().tick(), args.dry_run);
    let mut answer = answer.without_enforcing(not_enforced);
    // Acknowledgements on the same terminal say the same, and better.
    let progress = (!std::io::stdout().is_terminal() || global.output.is_some())
        .then(|| Progress::start(global, "commit", "intents", None));
    let heard = Heard { progress: progress.as_ref().map(Progress::counter), ..Heard::default() };
    let recording = Recording::new(&mut recorder, lines, reading, args.dry_run).after(first);
    let result = begun.iter().try_for_each(|begun| {
        replies::print_one(begun, &mut answer, &heard, out)?;
        out.flush()
    });
    let result = result.and_then(|()| replies::print(recording, &mut answer, &heard, &name, false, out));
    drop(recorder);
    drop(progress);
    let closed = if args.dry_run { Ok(()) } else { context::close(repo) };
    let is_late = |failure: &Failure| failure.code == Code::E0111 && !args.new && is_file;
    if result.as_ref().err().is_some_and(is_late) && answer.tally() == &LinesTally::default() {
        // Nothing was committed or said: the run is there now, and the file is read again.
        closed?;
        return run(global, args, out);
    }
    // The first error is the cause: lines that were not taken may keep the log from being signed, too.
    result.map_err(|failure| {
        let failure = begun_meanwhile(args.new, &name, failure);
        let failure = replies::precede(failure, answer.tally(), args.dry_run, out);
        Failure { changed: failure.changed || is_made, ..failure }
    })?;
    closed?;
    if is_new && answer.tally() == &LinesTally::default() {
        out.say(format!("note: no line came, so {name} was not begun"));
    }
    out.end(&mut answer)
}

/// Refuses authors that no input has, and a scope that the authors cannot give.
fn refuse_authors(args: &Commit) -> Result<()> {
    if args.author.contains(&AuthorChoice::System) {
        return Err(Failure::new(Code::E0408, "system transitions are made by the kernel alone")
            .note("nothing was committed"));
    }
    authors(&args.author)?;
    if args.scope.is_some() && !args.author.contains(&AuthorChoice::Runtime) {
        return Err(Failure::new(Code::E0408, "only the runtime says of which scope a call is")
            .note("nothing was committed; add --as runtime"));
    }
    Ok(())
}

fn name(args: &Commit) -> Result<RunName> {
    let name = args.run.parse();
    name.map_err(|error: dendrer_object::name::NameError| Failure::new(error.code(), error.to_string()))
}

/// Continues the run, or prepares to begin it; the second value says that it is new.
fn open(repo: &Repo, args: &Commit, checked: impl FnOnce() -> Result<()>) -> Result<(Recorder, bool)> {
    let name = name(args)?;
    let exists = repo.writer()?.run(&name)?.is_some();
    if !exists && !args.is_made {
        refuse_unreachable(&name)?;
    }
    if exists && args.new {
        return Err(Failure::new(Code::E0111, format!("{name} exists already")).note("nothing was changed"));
    }
    if exists && args.says_how_it_begins() && !began_so(repo, args, &start(&name, args)?)? {
        return Err(Failure::new(
            Code::E0106,
            format!("{name} exists already, and began otherwise; --goal, --state, --policy, --context and --pack are for a new run"),
        )
        .note("nothing was committed"));
    }
    if exists && let Some(asked) = args.stage {
        let has = dendrer::contract::stage(&repo.run(&name)?);
        if has != Some(asked) {
            return Err(other_stage(&name, args, asked, has.unwrap_or(0)));
        }
    }
    checked()?;
    if exists {
        return Ok((goes_on_as(repo, &name, args)?, false));
    }
    let given = [
        ("--pack", args.pack.as_deref()),
        ("--goal", args.goal.as_deref()),
        ("--state", args.state.as_deref()),
        ("--policy", args.policy.as_deref()),
        ("--context", args.context.as_deref()),
        ("--file", Some(args.file.as_str()).filter(|file| *file != "-")),
    ];
    let start = start(&name, args)?;
    let redactor = args.redaction.redactor(repo, start.pack.as_ref().map(|bound| &bound.value))?;
    match repo.begin_redacted(&start, redactor) {
        Ok(recorder) => Ok((recorder, true)),
        Err(error) if error.code() == Code::E0111 && !args.new => {
            Ok((goes_on(repo, &name, args, &start)?, false))
        }
        Err(error) => Err(not_begun(&name, given, error)),
    }
}

/// Begins the run, and returns its first record. Continues it if another process has begun it meanwhile.
fn begin(repo: &Repo, args: &Commit, recorder: &mut Recorder) -> Result<Option<Record>> {
    match recorder.commit() {
        Ok(records) => Ok(records.into_iter().next()),
        Err(error) if error.code() == Code::E0111 && !args.new => {
            let name = name(args)?;
            *recorder = goes_on(repo, &name, args, &start(&name, args)?)?;
            Ok(None)
        }
        Err(error) => Err(Failure::from(error)),
    }
}

/// Opens the store and the run for a program that records into it: the run exists when this returns.
pub(crate) fn record(global: &Global, args: Commit, resume: Resume) -> Result<(Repo, Recorder, LineOptions)> {
    let repo = context::write_store(global)?;
    let recorder = match resume {
        Resume::Never => begin_new(&repo, &args)?,
        Resume::Must => {
            repo.run(&name(&args)?)?;
            goes_on_or_begins(&repo, &args)?
        }
        Resume::Auto => goes_on_or_begins(&repo, &args)?,
    };
    Ok((repo, recorder, args.reading()?))
}

/// Continues the run, or begins it.
fn goes_on_or_begins(repo: &Repo, args: &Commit) -> Result<Recorder> {
    let (mut recorder, is_new) = open(repo, args, || repo.signing_key().map(drop).map_err(Failure::from))?;
    if is_new {
        begin(repo, args, &mut recorder)?;
    }
    Ok(recorder)
}

/// Begins a run under the given name, or under the first free one of `RUN+2`, `RUN+3` and so on.
fn begin_new(repo: &Repo, args: &Commit) -> Result<Recorder> {
    let given = name(args)?;
    let is_taken = |failure: &Failure| failure.code == Code::E0111;
    first_free(&given, 1, is_taken, |name| {
        let is_made = name != given;
        goes_on_or_begins(repo, &Commit { run: name.to_string(), is_made, new: true, ..args.clone() })
    })
}

impl Commit {
    /// Whether a flag is given that a new run alone takes.
    fn says_how_it_begins(&self) -> bool {
        let files = [&self.goal, &self.state, &self.policy, &self.pack, &self.context];
        self.state_value.is_some() || files.iter().any(|given| given.is_some())
    }

    /// How lines are read.
    fn reading(&self) -> Result<LineOptions> {
        Ok(LineOptions {
            agent: self.agent.clone(),
            authors: authors(&self.author)?,
            tagged: self.tagged,
            causal: self.causal,
            scope: self.scope.as_deref().map(Into::into),
        })
    }
}

/// How a new run begins.
fn start(name: &RunName, args: &Commit) -> Result<Start> {
    let state = match (&args.state_value, &args.state) {
        (Some(state), _) => state.clone(),
        (None, Some(file)) => files::json(file)?,
        (None, None) => Value::object(),
    };
    let context = args.context.as_deref().map(context_of).transpose()?;
    let start = Start {
        meta: context.map(meta_of_context),
        goal: args.goal.as_deref().map(Into::into),
        stage: args.stage.and_then(Stage::from_number),
        policy: args.policy.as_deref().map(packs::policy).transpose()?.unwrap_or_default(),
        state,
        ..Start::new(name.clone())
    };
    match &args.pack {
        Some(path) => Ok(packs::load(path)?.bind(start)?),
        None => Ok(start),
    }
}

/// Reads the context of a chain.
/// The member of the context of a chain in which an export has the beginning of the run, and which an import believes.
const OF_EXPORT: &str = "dendrer";

fn context_of(file: &str) -> Result<Value> {
    let context = files::json(file)?;
    match context {
        Value::Object(members) if members.contains_key(OF_EXPORT) => {
            let message = format!("the member {OF_EXPORT} of a context is for what an export adds to it");
            Err(Failure::new(Code::E0209, message).at("file", file))
        }
        Value::Object(_) => Ok(context),
        other => {
            let message = format!("the context of a chain is an object, not {}", other.described());
            Err(Failure::new(Code::E0209, message).at("file", file))
        }
    }
}

/// Goes on with a run that another process began meanwhile, if it began as it was to begin here.
fn goes_on(repo: &Repo, name: &RunName, args: &Commit, start: &Start) -> Result<Recorder> {
    repo.writer()?.clone().refresh().map_err(dendrer::Error::from)?;
    if args.says_how_it_begins() && !began_so(repo, args, start)? {
        let what = format!("{name} was begun by another process meanwhile, and otherwise");
        return Err(Failure::new(Code::E0106, what).note("nothing was committed"));
    }
    goes_on_as(repo, name, args)
}

/// Goes on with a run, under the rules of redaction that were asked for.
fn goes_on_as(repo: &Repo, name: &RunName, args: &Commit) -> Result<Recorder> {
    let pack = of_run(&repo.run(name)?)?;
    let redactor = args.redaction.redactor(repo, pack.as_ref().map(|pack| pack.value()))?;
    Ok(repo.recorder_redacted(name, redactor)?)
}

/// Reports E0407 (moved), not E0111 (exists), if another process began the run first.
fn begun_meanwhile(must_be_new: bool, run: &RunName, failure: Failure) -> Failure {
    if failure.code != Code::E0111 || must_be_new {
        return failure;
    }
    Failure::new(Code::E0407, format!("{run} was begun by another process meanwhile"))
        .note("nothing was committed; the same command goes on with it")
}

/// Adds to the failure of a run that needs a higher stage the command with that stage.
fn not_begun(run: &RunName, given: [(&str, Option<&str>); 6], error: dendrer::Error) -> Failure {
    let is_stage = error.code() == Code::E0604;
    let failure = Failure::from(error);
    if !is_stage {
        return failure;
    }
    let mut argv = vec!["dendrer", "commit", "--run", run.as_str(), "--stage", "2"];
    argv.extend(given.iter().filter_map(|(flag, value)| Some([*flag, (*value)?])).flatten());
    failure.help(&argv)
}

/// The failure of `--stage` for a run that is recorded at another stage, with the command that raises it.
fn other_stage(run: &RunName, args: &Commit, asked: u64, has: u64) -> Failure {
    let what = format!("{run} exists already, at stage {has}; --stage {asked} is for a new run");
    let failure = Failure::new(Code::E0106, what).note("nothing was committed");
    if asked < has {
        return failure;
    }
    let (asked, new) = (asked.to_string(), given_name(run.as_str(), &format!("-at-{asked}")));
    let pack = args.pack.as_deref().unwrap_or("PACK");
    let failure = failure.note("a run at a higher stage is made from its records");
    failure.help(&["dendrer", "reduce", run.as_str(), "--pack", pack, "--stage", &asked, "--as", &new])
}

/// Whether a run began with these terms: then a whole command can be repeated.
fn began_so(repo: &Repo, args: &Commit, start: &Start) -> Result<bool> {
    let trace = repo.run(&start.run)?;
    let recorded = trace.start();
    // Without its seed, of which an erasure leaves none, the record cannot be made again.
    let Some(seed) = recorded.body().seed() else { return Ok(false) };
    let inputs = Inputs { clock: recorded.header().ts, seeds: Seeds::recorded(seed) };
    // The version of the rules by which secrets were taken out is not how a run begins.
    let redactor = args.redaction.redactor(repo, start.pack.as_ref().map(|bound| &bound.value))?;
    let redaction = recorded.content().get(REDACTION).cloned();
    let start = Start { redaction, ..redacted::start(&redactor, start) };
    let (again, _) = step::begin(repo.info().id, &start, inputs).map_err(dendrer::Error::from)?;
    Ok(again.id() == recorded.id())
}

fn authors(choice: &[AuthorChoice]) -> Result<Authors> {
    use AuthorChoice::{Agent, Runtime, User};
    match choice {
        [] => Ok(Authors::Pipe),
        [Agent] => Ok(Authors::Agent),
        [Runtime] => Ok(Authors::Runtime),
        [User] => Ok(Authors::User),
        [Runtime, User] | [User, Runtime] => Ok(Authors::RuntimeAndUser),
        _ => {
            Err(Failure::new(Code::E0106, "--as takes one author, or runtime,user")
                .note("nothing was committed"))
        }
    }
}

/// How many of the newest ticks are looked at for the end of a run.
const COMPLETED_LOOK: u64 = 256;

/// Returns the newest tick at which the run was completed, of its newest ticks.
fn completed_at(repo: &Repo, name: &RunName) -> Result<Option<u64>> {
    let trace = repo.run(name)?;
    let (tip, mut found) = (trace.tip(), None);
    let from = tip.saturating_sub(COMPLETED_LOOK).max(1);
    trace.for_each(from, tip, &mut |tick, record| {
        let type_name = record.header().type_name.as_ref().map(TypeName::as_str);
        found = if type_name == Some(COMPLETE) { Some(tick) } else { found };
        let is_ended = record.body().value("/anomalies").is_some_and(|noted| {
            let kind = |one: &Value| one.get("kind").and_then(Value::as_str) == Some(ENDED_BY);
            noted.as_array().is_some_and(|noted| noted.iter().any(kind))
        });
        found = found.filter(|_| !is_ended);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Whether the intents are in a file that is whole: no client is writing it line by line.
fn is_whole_file(path: &str) -> bool {
    path != "-" && std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// Opens the input.
fn input(path: &str) -> Result<Box<dyn Read + Send>> {
    match path {
        "-" => Ok(Box::new(std::io::stdin())),
        path => Ok(Box::new(files::open(path)?)),
    }
}
