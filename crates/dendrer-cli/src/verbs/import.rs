//! `dendrer import`: a trace that another program wrote, as a run.
//!
//! The source is read twice: once to find out what would be recorded, once to record it. So whatever is wrong
//! with it is said before anything is written.

mod carl;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use clap::{Args, ValueEnum};
use dendrer::Trace;
use dendrer::kernel::pack::{PackEngine, digest};
use dendrer::kernel::step::Start;
use dendrer::kernel::unknown::{self, Since};
use dendrer::recorder::World;
use dendrer::run::pack::errors_of_rules;
use dendrer::store::Store;
use dendrer::watch::Watch;
use dendrer_object::{Code, Digest, Pointer, RunName, Value};
use dendrer_view::import::{ImportAnswer, ImportNoteShown};
use dendrer_view::{count, quote};
use dendrer_wire::import::{
    self, Choice, ImportError, ImportOptions, ImportPlan, Map, OnGap, SourceKind, Top,
};

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
use crate::progress::Progress;

/// `import`
#[derive(Debug, Clone, Args)]
pub(crate) struct Import {
    /// The trace; - for standard input
    pub(crate) file: String,
    /// What it is
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) kind: ImportKind,
    /// The name of the run; made from the name of the file if not given
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// For jsonl: a JSON file that says where in a line each part of an intent stands
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<String>,
    /// Where the list of messages stands, as a JSON pointer like /messages
    #[arg(long, value_name = "POINTER")]
    pub(crate) messages: Option<String>,
    /// Which of several runs in the file, from 0
    #[arg(long, value_parser = index_arg, value_name = "N", allow_hyphen_values = true)]
    pub(crate) index: Option<u64>,
    /// What to do where something is missing: mark it and go on, or import nothing
    #[arg(long, value_enum, default_value = "mark")]
    pub(crate) on_gap: GapChoice,
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
    /// Whether it is of all sources of a directory.
    pub(crate) fn is_of_many(&self) -> bool {
        self.kind == ImportKind::Carl && Path::new(&self.file).is_dir()
    }
}

/// What a trace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportKind {
    /// Found out from its shape.
    Auto,
    /// Messages with roles and tool calls.
    OpenaiChat,
    /// One JSON object a line, read by --map.
    Jsonl,
    /// Events of the dendrer paper, as export --format paper writes them.
    Paper,
    /// Nodes of the forensic debugger specification, as export --format cfd writes them.
    Cfd,
    /// A chain of carl-core, a session of it, or a directory with both; the id of one is enough.
    Carl,
}

/// What to do about gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GapChoice {
    /// Mark them.
    Mark,
    /// Import nothing.
    Stop,
}

/// The longest name that is made from a file's.
const NAME_SIZE_MAX: usize = 100;

pub(crate) fn run(global: &Global, args: &Import, out: &mut Out) -> Result {
    if args.kind != ImportKind::Carl {
        let made = import_one(global, args, choose_kind(args)?, out)?;
        return out.answer(&made);
    }
    carl::import(global, args, out)
}

/// Imports one source of a kind that is known.
fn import_one(global: &Global, args: &Import, kind: SourceKind, out: &mut Out) -> Result<ImportAnswer> {
    let given = args.run.as_deref().map(|name| name.parse::<RunName>()).transpose();
    let given = given.map_err(|error| Failure::new(error.code(), error.to_string()))?;
    let pack = args.pack.as_deref().map(load).transpose()?;
    if let (Some(pack), SourceKind::Mapped(_)) = (&pack, &kind)
        && pack.pack.engine != PackEngine::Delta
        && args.map.as_deref().map(files::json).transpose()?.is_some_and(|map| map.get("delta").is_some())
    {
        return Err(Failure::new(Code::E0106, "the pack makes the states; leave `delta` out of the map"));
    }
    if let (Some(pack), SourceKind::Cfd) = (&pack, &kind)
        && pack.pack.engine != PackEngine::Delta
    {
        return Err(Failure::new(
            Code::E0106,
            "nodes bring their changes of state, and the rules of the pack make others",
        )
        .note("a pack with `reducer: delta/1` says how its agents are merged"));
    }
    let mut source = Source::open(&args.file)?;
    let start = Start {
        goal: args.goal.as_deref().map(Into::into),
        state: args.state.as_deref().map(files::json).transpose()?.unwrap_or_else(Value::object),
        policy: args.policy.as_deref().map(packs::policy).transpose()?.unwrap_or_default(),
        ..Start::new(given.clone().unwrap_or_else(|| "import".parse().expect("a run id")))
    };
    let options = ImportOptions {
        choice: Choice {
            index: args.index,
            list: args.messages.as_deref().map(names_of).transpose()?,
            any_items: !matches!(kind, SourceKind::Chat),
        },
        kind,
        on_gap: if args.on_gap == GapChoice::Stop { OnGap::Stop } else { OnGap::Mark },
        name: source.name.clone(),
    };
    let progress = source.watched(global, "bytes looked through");
    let mut plan = import::plan(&mut source, options, start).map_err(|error| failure(args, &error, 0))?;
    drop(progress);
    if given.is_none() {
        plan.start.run = made_name(args, &source, &plan)?;
    }
    if let Some(pack) = &pack {
        plan.start = pack.bind(plan.start.clone())?;
    }
    if args.dry_run {
        // A dry run says what it can without a store, too.
        if let Ok(store) = context::read_store(global) {
            check_new(args, &*store, &plan)?;
        }
        plan = plan.redacted(args.redaction.redactor_alone(pack.as_ref().map(|pack| pack.pack.value()))?);
        let changed = plan.changed_lines(&mut source).map_err(|error| failure(args, &error, 0))?;
        let errors = match &pack {
            None => Vec::new(),
            Some(pack) => {
                let _progress = source.watched(global, "bytes tried");
                let rehearsed = import::rehearse(&mut source, &plan, &*pack.pack.reducer());
                rehearsed.map_err(|error| failure(args, &error, 0))?
            }
        };
        let faults = RuleFaults { errors, ..RuleFaults::default() };
        return Ok(answer(args, &plan, None, faults, changed));
    }
    let name = plan.start.run.clone();
    let repo = context::write_store(global)?;
    let store = repo.writer()?;
    check_new(args, store, &plan)?;
    context::say_no_key(&repo, out)?;
    let of_pack = pack.as_ref().map(|pack| pack.pack.value());
    let mut plan = plan.redacted(args.redaction.redactor(&repo, &name, of_pack)?);
    let changed = plan.changed_lines(&mut source).map_err(|error| failure(args, &error, 0))?;
    if !changed.is_empty() || !plan.is_exact(&mut source).map_err(|error| failure(args, &error, 0))? {
        plan = plan.with_exact(carl::keep_exact(&repo, &name, &mut source)?);
    }
    let progress = source.watched(global, "bytes recorded");
    let mut settled = 0;
    let result = import::record(store, &mut source, &plan, Box::new(World::default()), &mut |more| {
        settled += more;
    });
    drop(progress);
    let closed = context::close(repo);
    let tip = result.map_err(|error| match settled {
        0 => failure(args, &error, 0),
        _ => failure(args, &error, settled).help(&["dendrer", "log", plan.start.run.as_str()]),
    })?;
    closed?;
    let found = match pack {
        // Without rules nothing is written, and no place is unknown.
        None => RuleFaults::default(),
        Some(_) => {
            let trace = Trace::open(&context::read_store(global)?, &plan.start.run)?;
            RuleFaults {
                errors: errors_of_rules(&trace)?,
                unknown: unknown::listed(&trace.state(trace.tip())?),
            }
        }
    };
    Ok(answer(args, &plan, Some(tip), found, changed))
}

fn choose_kind(args: &Import) -> Result<SourceKind> {
    let map = args.map.as_deref().map(|path| {
        let map = Map::from_value(&files::json(path)?);
        map.map_err(|error| failure(args, &error, 0).at("file", path))
    });
    match (args.kind, map.transpose()?) {
        (ImportKind::Auto | ImportKind::Jsonl, Some(map)) => Ok(SourceKind::Mapped(map)),
        (ImportKind::Auto | ImportKind::OpenaiChat, None) => Ok(SourceKind::Chat),
        (ImportKind::Jsonl, None) => {
            Err(Failure::new(Code::E0106, "--kind jsonl needs --map FILE, which says what stands where"))
        }
        (ImportKind::Paper, None) if args.pack.is_some() => {
            Err(Failure::new(Code::E0106, "events bring their changes of state; leave --pack out"))
        }
        (ImportKind::Paper, None) => Ok(SourceKind::Paper),
        (ImportKind::Cfd, None) => Ok(SourceKind::Cfd),
        (ImportKind::Carl, _) => Ok(SourceKind::Chain),
        (ImportKind::OpenaiChat | ImportKind::Paper | ImportKind::Cfd, Some(_)) => {
            Err(Failure::new(Code::E0106, "--map is for --kind jsonl"))
        }
    }
}

fn names_of(text: &str) -> Result<Vec<String>> {
    let pointer: Pointer = text.parse().map_err(|_| {
        Failure::new(Code::E0106, format!("--messages takes a JSON pointer like /messages, not {text:?}"))
    })?;
    Ok(pointer.tokens().map(|name| name.into_owned()).collect())
}

/// What is imported: a file, or what came through a pipe, kept where it can be read more than once.
struct Source {
    file: File,
    name: Option<String>,
    /// How many bytes were read of it.
    read: Arc<AtomicU64>,
}

impl Source {
    fn open(path: &str) -> Result<Source> {
        if path == "-" {
            return Ok(Source { file: spool(&mut io::stdin())?, name: None, read: Arc::default() });
        }
        let mut file = files::open(path)?;
        let about = file.metadata().map_err(|error| files::cannot_read(path, &error))?;
        if about.is_dir() {
            return Err(Failure::new(Code::E0108, format!("{path} is a directory; name one file of it")));
        }
        if !about.is_file() {
            file = spool(&mut file)?;
        }
        let name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Source { file, name, read: Arc::default() })
    }

    /// Tells from now on how much of it was read.
    fn watched(&mut self, global: &Global, unit: &'static str) -> Progress {
        let size = self.file.metadata().map(|about| about.len()).ok();
        let progress = Progress::start(global, "import", unit, size);
        self.read = progress.counter();
        progress
    }
}

fn spool(input: &mut dyn Read) -> Result<File> {
    let spooled = tempfile::tempfile().and_then(|mut file| io::copy(input, &mut file).map(|_| file));
    spooled.map_err(|error| {
        Failure::new(Code::E0801, "cannot keep the source to read it twice").at("cause", error.to_string())
    })
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Watch::counting(Arc::clone(&self.read)).reader(&mut self.file).read(buffer)
    }
}

impl Seek for Source {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// The text as far as a run can be named by it.
fn clean_name(text: &str) -> String {
    let clean: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect();
    let mut name = clean.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
    name.truncate(NAME_SIZE_MAX);
    name
}

/// Makes a run id from the name of the file, or from its digest where it has none.
fn made_name(args: &Import, source: &Source, plan: &ImportPlan) -> Result<RunName> {
    let stem = source.name.as_deref().map(|name| Path::new(name).file_stem().unwrap_or_default());
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut name = clean_name(&stem);
    if name.is_empty() {
        name = format!("import-{}", plan.sha256.short());
    }
    if let Some(index) = args.index {
        name = format!("{name}-{index}");
    }
    name.parse()
        .map_err(|_| Failure::new(Code::E0106, "no run id can be made from this name; give one with --run"))
}

/// Refuses what is in the store already: the run, or the same trace under another name.
fn check_new(args: &Import, store: &dyn Store, plan: &ImportPlan) -> Result<()> {
    let name = &plan.start.run;
    if let Some(twin) = import::find_twin(store, plan)?.filter(|_| !args.again) {
        let there = store.run(&twin)?.map_or(0, |run| run.transitions);
        let all = plan.tally.ticks;
        let message = match there < all {
            true => format!(
                "this trace was imported as {twin}, and interrupted: {there} of {all} ticks are there"
            ),
            false => format!("this trace was imported already, as {twin}"),
        };
        return Err(Failure::new(Code::E0214, message)
            .at("sha256", plan.sha256.to_string())
            .note("nothing was changed; --again imports it once more, under another name")
            .help(&["dendrer", "log", twin.as_str()]));
    }
    if store.run(name)?.is_some() {
        return Err(Failure::new(Code::E0111, format!("{name} exists already"))
            .note("nothing was changed; --run gives the import another name"));
    }
    Ok(())
}

fn failure(args: &Import, error: &ImportError, settled: u64) -> Failure {
    // What a source says may be a secret, also where it is refused.
    let clean = |text: &str| match args.redaction.redactor_alone(None) {
        Ok(redactor) => redactor.text(text).0,
        Err(_) => text.to_owned(),
    };
    let mut failure = match error {
        ImportError::Repository(_) | ImportError::Io(_) => {
            Failure::new(error.code(), error.to_string()).at("file", args.file.as_str())
        }
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
    let file = args.file.as_str();
    failure = match error {
        ImportError::Unknown(_) => failure
            .note("looked for openai-chat: a list of messages with `role` and `content`; jsonl needs a --map")
            .help(&["dendrer", "import", file, "--kind", "jsonl", "--map", "map.json"]),
        ImportError::OtherKind { .. } => failure
            .note("jsonl reads such items by a mapping; docs/import.md has one for items of the Responses API")
            .help(&["dendrer", "import", file, "--kind", "jsonl", "--map", "map.json"]),
        ImportError::SeveralLists(lists) => lists.iter().take(1).fold(failure, |failure, list| {
            failure.help(&["dendrer", "import", file, "--messages", &list.pointer()])
        }),
        ImportError::SeveralRuns { runs, .. } => runs.iter().take(1).fold(failure, |failure, (index, _)| {
            failure.help(&["dendrer", "import", file, "--index", &index.to_string()])
        }),
        ImportError::Stopped { .. } if settled > 0 => failure.note(
            "what is on record stays; once the module does less, import it again with --again and another --run",
        ),
        ImportError::Stopped { .. } => failure
            .note("make the module do less, or give it less: smaller messages, or a state that grows less"),
        _ => failure,
    };
    failure.changed = settled > 0;
    let is = if settled == 1 { "is" } else { "are" };
    match settled {
        0 => failure.note("nothing was imported"),
        _ => failure.note(format!("{} of it {is} recorded", count(settled, "transition", "transitions"))),
    }
}

/// Says what a source was taken for, and why.
fn why(plan: &ImportPlan, args: &Import) -> String {
    let place = match (plan.layout.top, plan.layout.index) {
        (Top::Lines, None) => "one item a line".to_owned(),
        (Top::Array, None) => "the file is one list".to_owned(),
        _ => format!("the list at {}", quote::escape(&import::pointer(&plan.layout.path))),
    };
    let run = plan.layout.index.map(|index| format!(" of run {index}")).unwrap_or_default();
    let chosen = match (args.kind, args.map.is_some()) {
        (ImportKind::Auto, false) => "detected: ",
        (ImportKind::Auto, true) => "because of --map: ",
        _ => "",
    };
    format!("{chosen}{place}{run}")
}

/// What the rules of the pack met: errors with their ticks, and the places that are unknown at the end.
#[derive(Default)]
struct RuleFaults {
    errors: Vec<(u64, String)>,
    unknown: Vec<(Pointer, Since)>,
}

/// The answer on an import; `tip` is `None` if nothing was written.
fn answer(
    args: &Import,
    plan: &ImportPlan,
    tip: Option<Digest>,
    faults: RuleFaults,
    changed: Vec<u64>,
) -> ImportAnswer {
    let tally = &plan.tally;
    let note = |(tick, note): &(u64, import::ImportNote)| ImportNoteShown {
        tick: *tick,
        kind: note.kind.as_str(),
        is_gap: note.kind.is_gap(),
        message: note.message.clone(),
        path: note.path.clone(),
    };
    let meta = plan.start.meta.as_ref().and_then(Value::as_object);
    ImportAnswer {
        run: plan.start.run.clone(),
        dry_run: args.dry_run,
        kind: plan.kind_name(),
        why: why(plan, args),
        ticks: tally.ticks,
        gaps: tally.gaps(),
        calls: (tally.calls, tally.paired, tally.errors),
        types: tally.types.iter().map(|(name, count)| (name.clone(), *count)).collect(),
        agents: tally.agents.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
        noted: tally.notes.iter().map(|(kind, count)| (kind.as_str(), *count)).collect(),
        notes: tally.first_notes.iter().map(note).collect(),
        meta: meta.map(|meta| meta.iter().map(|(name, _)| name.to_string()).collect()),
        sha256: plan.sha256,
        bytes: plan.bytes,
        tip,
        pack: plan.start.pack.as_ref().map(|bound| digest(&bound.value)),
        errors: faults.errors,
        unknown: faults.unknown,
        first: tally.first.clone(),
        rows: plan.is_chain().then(|| (tally.bad_hash.clone(), changed)),
    }
}
