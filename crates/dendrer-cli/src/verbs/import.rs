//! `dendrer import`: a trace that another program wrote, as a run.
//!
//! The source is read to plan the run, and again to record it: its faults are reported before anything is written.

mod source;
mod threads;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use dendrer::Trace;
use dendrer::address::is_bundle_name;
use dendrer::kernel::pack::digest;
use dendrer::kernel::step::Start;
use dendrer::kernel::unknown;
use dendrer::recorder::World;
use dendrer::redact::Redactor;
use dendrer::repo::new_run::refuse_made;
use dendrer::run::pack::RuleNotes;
use dendrer_object::{Code, Digest, Pointer, RunName, Value};
use dendrer_view::foreign::ForeignAnswer;
use dendrer_view::import::{ImportAnswer, ImportExplainAnswer, ImportNoteShown, ImportsAnswer};
use dendrer_view::{count, quote};
use dendrer_wire::foreign::{CfdTerms, Format};
use dendrer_wire::format::{self, FORMATS};
use dendrer_wire::import::{
    self, Choice, ImportError, ImportOptions, ImportPlan, ImportTally, KeptPlace, Map, OnGap, Top,
};

use self::source::Source;
use crate::context;
use crate::context::packs;
use crate::context::packs::load;
use crate::context::redaction::RedactionArgs;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::global::index_arg;
use crate::out::Out;
use crate::out::files;

/// `import`
#[derive(Debug, Clone, Args)]
pub(crate) struct Import {
    /// The trace; - for standard input
    pub(crate) file: String,
    /// What it is
    #[arg(long, value_parser = kinds(), default_value = AUTO)]
    pub(crate) kind: String,
    /// The name of the run; made from the name of the file if not given
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// For jsonl: a JSON file that says where in a line each part of an intent stands
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<String>,
    /// For a bundle: the name of its store in the names of its runs; the first digits of its id if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) from: Option<String>,
    /// Where the list of messages stands, as a JSON pointer like /messages
    #[arg(long, value_name = "POINTER")]
    pub(crate) messages: Option<String>,
    /// Which of several runs in the file, from 0
    #[arg(long, value_parser = index_arg, value_name = "N", allow_hyphen_values = true)]
    pub(crate) index: Option<u64>,
    /// For cfd: the first `seq` of a branch; 0 or 1 without it
    #[arg(long, value_name = "N")]
    pub(crate) s0: Option<u64>,
    /// For cfd: the `prev_hash` of a node without parents; empty without it
    #[arg(long, value_name = "TEXT")]
    pub(crate) genesis: Option<String>,
    /// For cfd: the `schema_version` of nodes that have none
    #[arg(long, value_name = "TEXT")]
    pub(crate) schema_version: Option<String>,
    /// What to do where something is missing: mark it and go on, or import nothing
    #[arg(long, value_enum, default_value = "mark")]
    pub(crate) on_gap: GapChoice,
    /// A place that no table has and that states nothing, as a JSON pointer in which * is any name or number
    #[arg(long, value_name = "PLACE")]
    pub(crate) kept: Vec<String>,
    /// Show what would be read, kept and not read of this file, and record nothing
    #[arg(long)]
    pub(crate) explain: bool,
    /// A JSON file with the state before the first message
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<String>,
    /// A pack whose rules make the states: import and reduce in one go
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: Option<String>,
    /// A JSON file with policy rules [{"id": ..., "holds": ...}]
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<String>,
    /// What the run was to achieve
    #[arg(long)]
    pub(crate) goal: Option<String>,
    #[command(flatten)]
    pub(crate) redaction: RedactionArgs,
    /// Import although the same trace is in the store already
    #[arg(long)]
    pub(crate) again: bool,
    /// Say what would be imported, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

impl Import {
    /// Whether it imports all files of a directory.
    pub(crate) fn is_of_many(&self) -> bool {
        format::named(&self.kind).is_some_and(|format| format.find.is_some())
            && Path::new(&self.file).is_dir()
    }
}

/// The note on a thread that was imported before it went on.
const WENT_ON: &str = "nothing was changed; --again imports the thread as it is now, under another name";

/// The kind of a trace whose format is not named.
const AUTO: &str = "auto";

/// The values of `--kind`: the foreign formats.
fn kinds() -> PossibleValuesParser {
    let auto = PossibleValue::new(AUTO).help("Found out from its shape");
    let foreign = FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.about));
    [auto].into_iter().chain(foreign).collect::<Vec<_>>().into()
}

/// The handling of gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GapChoice {
    /// Mark them.
    Mark,
    /// Import nothing.
    Stop,
}

pub(crate) fn run(global: &Global, args: &Import, out: &mut Out) -> Result {
    let named = format::named(&args.kind);
    let of_nodes = args.s0.is_some() || args.genesis.is_some() || args.schema_version.is_some();
    if of_nodes && args.kind != "cfd" {
        let message = "--s0, --genesis and --schema-version are for --kind cfd";
        return Err(Failure::new(Code::E0106, message));
    }
    if is_bundle(&args.file) {
        return import_bundle(global, args, out);
    }
    if args.from.is_some() {
        return Err(Failure::new(Code::E0106, "--from is for a bundle"));
    }
    if args.is_of_many() && (args.run.is_some() || args.index.is_some()) {
        return Err(Failure::new(Code::E0106, "--run and --index are for one file, and this is a directory"));
    }
    if let Some((format, find)) = named.and_then(|format| Some((format, format.find?))) {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let paths = find(&args.file, &home).map_err(|error| failure(args, &error, 0))?;
        let mut files = paths.iter().map(|path| Import { file: path.display().to_string(), ..args.clone() });
        let Some(file) = files.next().filter(|_| !args.is_of_many()) else {
            return import_all(global, args, format, &paths, out);
        };
        let made = import_one(global, &file, Some(format), None, out)?;
        return out.answer(&made);
    }
    if Path::new(&args.file).is_dir() {
        return import_tree(global, args, named, out);
    }
    if let Some(format) = threads::format_of(args, named)? {
        return threads::run(global, args, format, out);
    }
    let map = args.map.as_deref().map(|path| {
        let map = Map::from_value(&files::json(path)?);
        map.map_err(|error| failure(args, &error, 0).at("file", path))
    });
    let map = map.transpose()?;
    if args.explain {
        let made = import_one(global, &Import { dry_run: true, ..args.clone() }, named, map, out)?;
        return out.answer(&ImportExplainAnswer(made));
    }
    let made = import_one(global, args, named, map, out)?;
    out.answer(&made)
}

/// Whether a file is a bundle, by its name.
fn is_bundle(path: &str) -> bool {
    is_bundle_name(path) && !Path::new(path).is_dir()
}

/// Records the runs of a bundle as foreign runs.
fn import_bundle(global: &Global, args: &Import, out: &mut Out) -> Result {
    let others = [
        ("--run", args.run.is_some()),
        ("--map", args.map.is_some()),
        ("--messages", args.messages.is_some()),
        ("--index", args.index.is_some()),
        ("--kept", !args.kept.is_empty()),
        ("--explain", args.explain),
        ("--state", args.state.is_some()),
        ("--pack", args.pack.is_some()),
        ("--policy", args.policy.is_some()),
        ("--goal", args.goal.is_some()),
        ("--kind", args.kind != AUTO),
    ];
    if let Some((flag, _)) = others.iter().find(|(_, is_given)| *is_given) {
        let message = format!("{flag} is for the trace of another program, and {} is a bundle", args.file);
        return Err(
            Failure::new(Code::E0106, message).note("--from NAME names the store that its runs are of")
        );
    }
    let sha256 =
        Digest::of(&std::fs::read(&args.file).map_err(|error| files::cannot_read(&args.file, &error))?);
    let opened = context::open_bundle(Some(global), &args.file)?;
    let repo = context::write_store(global)?;
    context::say_no_key(&repo, out)?;
    let taken = repo.take_in(&opened, args.from.as_deref(), sha256, args.dry_run);
    let closed = context::close(repo);
    let taken = taken.map_err(|error| Failure::from(error).at("file", args.file.as_str()))?;
    closed?;
    out.answer(&ForeignAnswer { taken, dry_run: args.dry_run })
}

/// Imports each file below a directory that is recognised, and names the others. Links are not followed.
fn import_tree(global: &Global, args: &Import, named: Option<&'static Format>, out: &mut Out) -> Result {
    if args.run.is_some() || args.index.is_some() || args.map.is_some() {
        let text = "--run, --index and --map are for one file, and this is a directory";
        return Err(Failure::new(Code::E0106, text));
    }
    let top = Path::new(&args.file);
    let mut paths = Vec::new();
    files_below(top, &mut paths).map_err(|error| files::cannot_read(&args.file, &error))?;
    paths.sort();
    // Files whose items are in the run of another file make no run of their own.
    let gather = |path: &PathBuf| FORMATS.iter().find_map(|format| format.gather?(path).ok().flatten());
    let parts: BTreeSet<PathBuf> = paths.iter().filter_map(gather).flat_map(|all| all.files).collect();
    let mut answer = ImportsAnswer { dry_run: args.dry_run, ..ImportsAnswer::default() };
    for path in paths {
        if parts.contains(&path) || threads::is_of_database(&path) {
            continue;
        }
        let shown = path.strip_prefix(top).unwrap_or(&path).display().to_string();
        let mut args = Import { file: path.display().to_string(), ..args.clone() };
        let made = match threads::format_of(&args, named) {
            Ok(None) => import_free(global, &mut args, named, out),
            Ok(Some(format)) => match threads::import_threads(global, &args, format, true, out) {
                Ok(all) => {
                    all.into_iter().for_each(|one| threads::add(&mut answer, &shown, one));
                    continue;
                }
                Err(failure) => Err(failure),
            },
            Err(failure) => Err(failure),
        };
        match made {
            Ok(made) => answer.made.push((shown, made)),
            Err(failure) if failure.code == Code::E0214 => answer.there += 1,
            Err(failure) if is_no_trace(failure.code) => {
                let why =
                    failure.message.strip_prefix(&format!("{}: ", args.file)).unwrap_or(&failure.message);
                answer.left.push((shown, why.to_owned()));
            }
            Err(failure) => answer.failed.push((shown, failure.code, failure.message.into())),
        }
    }
    out.answer(&answer)
}

/// Whether the code of an error is that of a file of another kind than a trace.
fn is_no_trace(code: Code) -> bool {
    matches!(code, Code::E0201 | Code::E0203 | Code::E0206)
}

/// The files below a directory, without links and hidden ones.
fn files_below(top: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(top)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        match () {
            // A store, settings: hidden files are no traces of a person.
            () if entry.file_name().as_encoded_bytes().starts_with(b".") => {}
            () if kind.is_dir() => files_below(&entry.path(), paths)?,
            () if kind.is_file() => paths.push(entry.path()),
            () => {}
        }
    }
    Ok(())
}

/// Imports a file under its own name, or under the first free one if another run has it.
fn import_free(
    global: &Global,
    args: &mut Import,
    format: Option<&'static Format>,
    out: &mut Out,
) -> Result<ImportAnswer> {
    let stem = Path::new(&args.file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut made = import_one(global, args, format, None, out);
    for number in 2..1_000 {
        if made.as_ref().err().is_none_or(|failure| failure.code != Code::E0111) {
            break;
        }
        args.run = Some(import::clean_name(&format!("{stem}-{number}")));
        made = import_one(global, args, format, None, out);
    }
    made
}

/// Imports all files of a directory, each under another name if another run has the name of the file.
fn import_all(
    global: &Global,
    args: &Import,
    format: &'static Format,
    paths: &[PathBuf],
    out: &mut Out,
) -> Result {
    let mut answer = ImportsAnswer::default();
    for path in paths {
        let mut args = Import { file: path.display().to_string(), ..args.clone() };
        match import_free(global, &mut args, Some(format), out) {
            Ok(made) => answer.made.push((args.file, made)),
            // A source that is in the store already is passed over.
            Err(failure) if failure.code == Code::E0214 => answer.there += 1,
            Err(failure) => answer.failed.push((args.file, failure.code, failure.message.into())),
        }
    }
    out.answer(&answer)
}

/// Imports one source; without a format by what its beginning shows.
fn import_one(
    global: &Global,
    args: &Import,
    format: Option<&'static Format>,
    map: Option<Map>,
    out: &mut Out,
) -> Result<ImportAnswer> {
    let fail = |error: ImportError| failure(args, &error, 0);
    let given = args.run.as_deref().map(|name| name.parse::<RunName>()).transpose();
    let given = given.map_err(|error| Failure::new(error.code(), error.to_string()))?;
    given.as_ref().map_or(Ok(()), refuse_made)?;
    let pack = args.pack.as_deref().map(load).transpose()?;
    let mut source = Source::open(&args.file)?;
    let found = format.map_or_else(|| format::of_source(&mut source, map.is_some()), Ok);
    let format = found.map_err(|error| fail(ImportError::Io(error)))?;
    let mut gathered = Vec::new();
    if let Some(gather) = format.gather.filter(|_| source.name.is_some())
        && let Some(mut all) = gather(Path::new(&args.file)).map_err(fail)?
    {
        source.replace(&mut all.lines)?;
        gathered = all.files;
    }
    (format.accept)(map.as_ref(), pack.as_ref().map(|pack| pack.pack.engine)).map_err(fail)?;
    let start = start_of(args, given.clone())?;
    let options = options_of(args, format, map, source.name.clone())?;
    let progress = source.watched(global, "bytes looked through");
    let mut plan = import::plan(&mut source, options, start).map_err(fail)?;
    drop(progress);
    if given.is_none() {
        plan.start.run = plan.made_name().ok_or_else(|| {
            Failure::new(Code::E0106, "no run id can be made from this name; give one with --run")
        })?;
    }
    if let Some(pack) = &pack {
        plan.start = pack.bind(plan.start.clone())?;
    }
    let of_pack = pack.as_ref().map(|pack| pack.pack.value());
    if args.dry_run {
        // A dry run works without a store, too.
        if let Ok(store) = context::read_store(global) {
            plan.check_new(&store, args.again).map_err(|error| known(args, error))?;
        }
        let plan = plan.redacted(args.redaction.redactor_alone(of_pack)?, &mut source).map_err(fail)?;
        let mut answer = ImportAnswer { gathered, ..answer(args, &plan, None) };
        if let Some(pack) = &pack {
            let _progress = source.watched(global, "bytes tried");
            answer.rules = import::rehearse(&mut source, &plan, &*pack.pack.reducer()).map_err(fail)?;
        }
        return Ok(answer);
    }
    let mut answer = record_planned(global, args, plan, of_pack, &mut source, out)?;
    answer.gathered = gathered;
    // Without rules nothing is written, and no place is unknown.
    if pack.is_some() {
        let trace = Trace::open(&context::read_store(global)?, &answer.run)?;
        answer.rules = RuleNotes::of(&trace)?;
        answer.unknown = unknown::listed(&trace.state(trace.tip())?);
    }
    Ok(answer)
}

/// A fault of a store is that of the store, and no fault of the source.
fn known(args: &Import, error: ImportError) -> Failure {
    match error {
        ImportError::Repository(error) => error.into(),
        error => failure(args, &error, 0),
    }
}

/// Refuses a name of a run that is a secret: no erasure reaches it.
fn refuse_secret_name(redactor: &Redactor, run: &RunName) -> Result {
    match redactor.name(run.as_str()) {
        (clean, _) if clean == *run.as_str() => Ok(0),
        (clean, _) => {
            let what = format!("the name of the run holds what looks like a secret: {clean}");
            Err(Failure::new(Code::E0106, what)
                .note("nothing was recorded")
                .note("--run gives it another name"))
        }
    }
}

/// Records what was planned, and the branches as forks.
fn record_planned(
    global: &Global,
    args: &Import,
    plan: ImportPlan,
    of_pack: Option<&Value>,
    source: &mut Source,
    out: &mut Out,
) -> Result<ImportAnswer> {
    let fail = |error: ImportError| failure(args, &error, 0);
    let repo = context::write_store(global)?;
    let store = repo.writer()?;
    plan.check_new(store, args.again).map_err(|error| known(args, error))?;
    context::say_no_key(&repo, out)?;
    let redactor = args.redaction.redactor(&repo, of_pack)?;
    refuse_secret_name(&redactor, &plan.start.run)?;
    let mut plan = plan.redacted(redactor, source).map_err(fail)?;
    plan.keep_exact(&repo, source).map_err(fail)?;
    let progress = source.watched(global, "bytes recorded");
    let mut settled = 0;
    let result = import::record(store, source, &plan, Box::new(World::default()), &mut |more| {
        settled += more;
    });
    drop(progress);
    let forks = match &result {
        Ok(_) => import::record_branches(store, source, &plan, &|| Box::new(World::default())),
        Err(_) => Ok(Vec::new()),
    };
    let closed = context::close(repo);
    let tip = result.map_err(|error| match settled {
        0 => fail(error),
        _ => failure(args, &error, settled).help(&["dendrer", "log", plan.start.run.as_str()]),
    })?;
    closed?;
    let mut answer = answer(args, &plan, Some(tip));
    answer.forks = forks.map_err(|error| failure(args, &error, settled))?;
    Ok(answer)
}

/// The start of a run, as far as the arguments give it.
fn start_of(args: &Import, given: Option<RunName>) -> Result<Start> {
    Ok(Start {
        goal: args.goal.as_deref().map(Into::into),
        state: args.state.as_deref().map(files::json).transpose()?.unwrap_or_else(Value::object),
        policy: args.policy.as_deref().map(packs::policy).transpose()?.unwrap_or_default(),
        ..Start::new(given.unwrap_or_else(|| "import".parse().expect("a run id")))
    })
}

/// The options of an import.
fn options_of(
    args: &Import,
    format: &'static Format,
    map: Option<Map>,
    name: Option<String>,
) -> Result<ImportOptions> {
    Ok(ImportOptions {
        format,
        map,
        choice: Choice {
            index: args.index,
            list: args.messages.as_deref().map(names_of).transpose()?,
            cfd: CfdTerms {
                s0: args.s0,
                genesis: args.genesis.clone().unwrap_or_default(),
                schema_version: args.schema_version.clone(),
            },
        },
        on_gap: if args.on_gap == GapChoice::Stop { OnGap::Stop } else { OnGap::Mark },
        name,
        kept: args.kept.iter().map(|text| kept_place(text)).collect::<Result<_>>()?,
    })
}

fn kept_place(text: &str) -> Result<KeptPlace> {
    KeptPlace::new(text).ok_or_else(|| {
        Failure::new(Code::E0106, format!("--kept takes a JSON pointer like /*/usage, not {text:?}"))
    })
}

fn names_of(text: &str) -> Result<Vec<String>> {
    let pointer: Pointer = text.parse().map_err(|_| {
        Failure::new(Code::E0106, format!("--messages takes a JSON pointer like /messages, not {text:?}"))
    })?;
    Ok(pointer.tokens().map(|name| name.into_owned()).collect())
}

fn failure(args: &Import, error: &ImportError, settled: u64) -> Failure {
    // A text of the source may be a secret, also if it is refused.
    let clean = |text: &str| match args.redaction.redactor_alone(None) {
        Ok(redactor) => redactor.text(text).0,
        Err(_) => text.to_owned(),
    };
    let plain = || Failure::new(error.code(), error.to_string());
    let mut failure = match error {
        ImportError::Unfit { note, .. } => return note.iter().fold(plain(), |plain, note| plain.note(*note)),
        ImportError::Session(_) => return plain().at("file", args.file.as_str()),
        ImportError::Exists(_) => {
            return plain().note("nothing was changed; --run gives the import another name");
        }
        ImportError::WentOn { .. } => return plain().note(WENT_ON),
        ImportError::Twin { run, sha256, .. } => {
            return plain()
                .at("sha256", sha256.to_string())
                .note("nothing was changed; --again imports it once more, under another name")
                .help(&["dendrer", "log", run.as_str()]);
        }
        ImportError::Vault(_) => plain(),
        ImportError::Repository(_) | ImportError::Io(_) => plain().at("file", args.file.as_str()),
        _ => Failure::new(error.code(), clean(&format!("{}: {error}", args.file))),
    };
    for (name, value) in error.place().into_iter().filter(|(_, value)| !value.is_empty()) {
        failure = failure.at(name, value);
    }
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        failure = failure.at("cause", inner.to_string());
        source = inner.source();
    }
    let mut failure = way_on(failure, error, args.file.as_str(), settled);
    failure.changed = settled > 0;
    let is = if settled == 1 { "is" } else { "are" };
    match settled {
        0 => failure.note("nothing was imported"),
        _ => failure.note(format!("{} of it {is} recorded", count(settled, "transition", "transitions"))),
    }
}

/// Adds the next step to the failure of an import.
fn way_on(failure: Failure, error: &ImportError, file: &str, settled: u64) -> Failure {
    let (alone, mapped) = (format::detected(false), format::detected(true).name);
    match error {
        ImportError::Unknown(_) => failure
            .note(format!("looked for {}: {}; {mapped} needs a --map", alone.name, alone.shape))
            .help(&["dendrer", "import", file, "--kind", mapped, "--map", "map.json"]),
        ImportError::OtherKind { kind, .. } => failure.help(&["dendrer", "import", file, "--kind", kind]),
        ImportError::SeveralLists(lists) => lists.iter().take(1).fold(failure, |failure, list| {
            failure.help(&["dendrer", "import", file, "--messages", &list.pointer()])
        }),
        ImportError::SeveralRuns { runs, .. } => runs.iter().take(1).fold(failure, |failure, (index, _)| {
            failure.help(&["dendrer", "import", file, "--index", &index.to_string()])
        }),
        ImportError::SeveralTraces { .. }
        | ImportError::SeveralSamples { .. }
        | ImportError::SeveralThreads { .. } => failure.help(&["dendrer", "import", file, "--index", "0"]),
        ImportError::Stopped { .. } if settled > 0 => failure.note(
            "what is on record stays; once the module does less, import it again with --again and another --run",
        ),
        ImportError::Stopped { .. } => failure
            .note("make the module do less, or give it less: smaller messages, or a state that grows less"),
        _ => failure,
    }
}

/// The reason for the format of a source, and the place of its items.
fn why(plan: &ImportPlan, args: &Import) -> String {
    let place = match (plan.layout.top, plan.layout.index) {
        (Top::Lines, None) => "one item a line".to_owned(),
        (Top::Array, None) => "the file is one list".to_owned(),
        _ => format!("the list at {}", quote::escape(&import::pointer(&plan.layout.path))),
    };
    let run = plan.layout.index.map(|index| format!(" of run {index}")).unwrap_or_default();
    let chosen = match (args.kind.as_str(), args.map.is_some()) {
        (AUTO, false) => "detected: ",
        (AUTO, true) => "because of --map: ",
        _ => "",
    };
    format!("{chosen}{place}{run}")
}

/// A note of an import with its tick.
fn note_shown((tick, note): &(u64, import::ImportNote)) -> ImportNoteShown {
    ImportNoteShown {
        tick: *tick,
        kind: note.kind.as_str(),
        is_gap: note.kind.is_gap(),
        may: note.may(),
        message: note.message.clone(),
        path: note.path.clone(),
    }
}

/// The places of a source, with how often each was read, kept and not read.
fn places_of(tally: &ImportTally) -> Vec<(String, u64, u64, u64, &'static [&'static str])> {
    let all = tally.places.iter();
    all.map(|(place, one)| (place.clone(), one.read, one.kept, one.not_read, one.may)).collect()
}

/// The answer on an import without what the rules of a pack met; `tip` is `None` if nothing was written.
fn answer(args: &Import, plan: &ImportPlan, tip: Option<Digest>) -> ImportAnswer {
    let meta = plan.start.meta.as_ref().and_then(Value::as_object);
    ImportAnswer {
        kind: plan.format().name,
        why: why(plan, args),
        meta: meta.map(|meta| meta.iter().map(|(name, _)| name.to_string()).collect()),
        tip,
        pack: plan.start.pack.as_ref().map(|bound| digest(&bound.value)),
        rows: plan.rows(),
        branches: plan.branches() as u64,
        ..counted(args, &plan.start.run, &plan.tally, (plan.sha256, plan.bytes))
    }
}

/// The counts of an import of a source, as an answer without anything else.
fn counted(
    args: &Import,
    run: &RunName,
    tally: &ImportTally,
    (sha256, bytes): (Digest, u64),
) -> ImportAnswer {
    ImportAnswer {
        run: run.clone(),
        dry_run: args.dry_run,
        kind: AUTO,
        why: String::new(),
        ticks: tally.ticks,
        gaps: tally.gaps(),
        calls: (tally.calls, tally.paired, tally.errors),
        types: tally.types.iter().map(|(name, count)| (name.clone(), *count)).collect(),
        agents: tally.agents.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
        noted: tally.notes.iter().map(|(kind, count)| (kind.as_str(), *count)).collect(),
        notes: tally.first_notes.iter().map(note_shown).collect(),
        meta: None,
        sha256,
        bytes,
        tip: None,
        pack: None,
        rules: RuleNotes::default(),
        unknown: Vec::new(),
        first: tally.first.clone(),
        rows: None,
        gathered: Vec::new(),
        branches: 0,
        forks: Vec::new(),
        places: places_of(tally),
    }
}
