//! `dendrer record`: a program that dendrer has never seen is run as it is, and what it asks of models is recorded.

use std::ffi::OsString;
use std::path::Path;
use std::thread;

use clap::{Args, ValueHint};
use dendrer::kernel::step::{Stage, Start};
use dendrer::repo::new_run::{first_free, refuse_made, refuse_unreachable};
use dendrer::repo::{Mode, Repo};
use dendrer_capture::proxy::Copies;
use dendrer_capture::tape::{self, ProgramEnd};
use dendrer_capture::{AroundPeer, AroundWatch, Base, Proxy, Tape, bases};
use dendrer_object::{Code, RunName};
use dendrer_view::recording::{RecordedAnswer, WentAround};
use dendrer_wire::import::clean_name;

use crate::context;
use crate::context::keys;
use crate::context::packs;
use crate::context::program::{self, Started, of_tape};
use crate::context::redaction::RedactionArgs;
use crate::context::shims::{self, Shims};
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

/// `record`
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// The program, and its arguments
    #[arg(last = true, required = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<String>,
    /// The run; the name of the program if not given
    #[arg(long = "as", visible_alias = "run", value_name = "RUN")]
    pub(crate) name: Option<String>,
    /// The goal of the run
    #[arg(long)]
    pub(crate) goal: Option<String>,
    /// A pack, whose rules make the states; nothing is enforced
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: Option<String>,
    #[command(flatten)]
    pub(crate) redaction: RedactionArgs,
    /// Another API: the variable that the program reads its address from, and the address
    #[arg(long = "base", value_name = "VARIABLE=URL")]
    pub(crate) bases: Vec<String>,
    /// A place of requests that differs each time, which replays leave out: openai-chat:/messages/0/content
    #[arg(long, value_name = "API:POINTER")]
    pub(crate) volatile: Vec<String>,
    /// Programs that start servers of MCP: what passes between them and the program is recorded
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = "npx,uvx")]
    pub(crate) mcp: Vec<String>,
    /// The program gets the end of an answer once the answer is durable
    #[arg(long, value_name = "answer", value_parser = ["answer"])]
    pub(crate) sync: Option<String>,
    /// Keep no exact bytes in the vault: the program cannot be served again
    #[arg(long)]
    pub(crate) no_exact: bool,
}

pub(crate) fn run(global: &Global, args: &Record, out: &mut Out) -> Result {
    if !out.is_text() && global.output.is_none() {
        return Err(Failure::new(Code::E0106, "standard output is the program's own")
            .note("the program was not started; name a file for the answer")
            .help(&["dendrer", "record", "--jsonl", "-o", "FILE", "--", "CMD"]));
    }
    let variable = |name: &str| std::env::var(name).ok();
    let named = args.bases.iter().map(|text| Base::parse(text)).collect::<std::result::Result<Vec<_>, _>>();
    let bases = named.and_then(|named| bases::all(named, variable)).map_err(not_started)?;
    let servers = shims::names(&args.mcp).map_err(not_started)?;
    let repo = store(global, out)?;
    context::say_no_key(&repo, out)?;
    let mut tape = begin(&repo, args, &bases, &servers)?;
    let started = if args.sync.is_some() { Proxy::start_synced(bases) } else { Proxy::start(bases) };
    let (proxy, copies) = started.map_err(not_started)?;
    let shims = Shims::record(&servers, proxy.tap()).map_err(not_started)?;
    shims.order(&mut tape);
    let mut variables = shims.variables();
    let of_bases = bases::variables(proxy.bases(), proxy.address(), variable);
    variables.extend(of_bases.into_iter().map(|(name, value)| (name, value.into())));
    if out.is_stream() {
        out.has_no_end();
    }
    let mut answer = RecordedAnswer::new(tape.recorder().head().run().clone());
    let waiter = start(args, variables, (proxy, shims))?;
    let failed = record(copies, &mut tape, &mut answer, out);
    let (status, refused, around) =
        waiter.join().map_err(|_| not_started("the program's thread ended early"))?;
    finish(Finish { tape, repo, failed, status, refused, around }, answer, out)
}

fn not_started(error: impl ToString) -> Failure {
    Failure::new(Code::E0106, error.to_string()).note("the program was not started")
}

/// Opens the store, or makes one here.
fn store(global: &Global, out: &mut Out) -> Result<Repo> {
    let failure = match context::write_store(global) {
        Err(failure) if failure.code == Code::E0103 && global.store.is_none() => failure,
        opened => return opened,
    };
    // A store that was named, and is not there, is a mistake.
    if std::env::var_os("DENDRER_STORE").is_some_and(|named| !named.is_empty()) {
        return Err(failure);
    }
    let repo = Repo::init(Path::new(context::STORE_DIR), keys::trust(global))?;
    out.say(format!("note: a store was made in {}", context::STORE_DIR));
    drop(repo);
    Ok(Repo::open(Path::new(context::STORE_DIR), keys::trust(global), Mode::Write)?)
}

/// Begins the run.
fn begin(repo: &Repo, args: &Record, bases: &[Base], servers: &[String]) -> Result<Tape> {
    let volatile = program::volatile(&args.volatile)?;
    let recorder = concat!("dendrer ", env!("CARGO_PKG_VERSION"));
    let meta = tape::meta(&args.command, bases, servers, &volatile, recorder);
    let make = |run: RunName| -> Result<Tape> {
        let goal = args.goal.as_deref().map(Into::into);
        let start = Start { meta: Some(meta.clone()), goal, stage: Some(Stage::Observe), ..Start::new(run) };
        let start = match &args.pack {
            Some(path) => packs::load(path)?.bind(start)?,
            None => start,
        };
        let redactor = args.redaction.redactor(repo, start.pack.as_ref().map(|bound| &bound.value))?;
        let mut recorder = repo.begin_redacted(&start, redactor)?;
        recorder.commit()?;
        let vault = if args.no_exact { None } else { Some(repo.vault()?) };
        Ok(Tape::new(recorder, vault).without(volatile.clone()))
    };
    let is_taken = |failure: &Failure| failure.code == Code::E0111;
    let read = |name: &str| {
        name.parse().map_err(|error: dendrer_object::name::NameError| {
            Failure::new(error.code(), error.to_string()).note("the program was not started")
        })
    };
    match &args.name {
        Some(name) => {
            let run: RunName = read(name)?;
            refuse_unreachable(&run)?;
            refuse_made(&run)?;
            make(run).map_err(|failure| failure.note("the program was not started"))
        }
        None => first_free(&read(&own_name(&args.command))?, 1, is_taken, make),
    }
}

/// Programs that run another one, which the run is named by.
const RUNNERS: [&str; 14] = [
    "python", "python3", "node", "deno", "bun", "ruby", "sh", "bash", "zsh", "npx", "uv", "uvx", "env", "tsx",
];

/// The name of a run, by its program: `python agent.py` is `agent-py`.
fn own_name(command: &[String]) -> String {
    let file = |word: &str| Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned());
    // A text of a program is no name.
    let text =
        command.iter().position(|word| matches!(word.as_str(), "-c" | "-e" | "--eval" | "-lc" | "-ec"));
    let command = &command[..text.unwrap_or(command.len())];
    let mut words = command.iter().filter(|word| !word.starts_with('-')).filter_map(|word| file(word));
    let is_runner = |word: &String| {
        let stem = word.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.');
        RUNNERS.contains(&word.as_str()) || RUNNERS.contains(&stem)
    };
    let first = words.next().unwrap_or_default();
    let named = if is_runner(&first) { words.find(|word| !is_runner(word) && word != "run") } else { None };
    let name = clean_name(&named.unwrap_or(first).replace('.', "-"));
    if name.is_empty() { "program".to_owned() } else { name }
}

/// Waits for the program, and then ends the server.
type Waiter = thread::JoinHandle<(Started, u64, Option<Vec<AroundPeer>>)>;

/// Starts the program in a thread.
fn start(args: &Record, variables: Vec<(String, OsString)>, servers: (Proxy, Shims)) -> Result<Waiter> {
    let (proxy, shims) = servers;
    let mut command = program::command(&args.command);
    command.envs(variables);
    let signals = proxy.hold_signals().map_err(not_started)?;
    let waiting = thread::Builder::new().name("program".to_owned()).spawn(move || {
        let mut watch = None;
        let started = program::run(command, |process| {
            watch = AroundWatch::start(process, proxy.address());
            proxy.forward(signals, process);
        });
        let around = watch.and_then(AroundWatch::end);
        shims.end();
        (started, proxy.end(), around)
    });
    waiting.map_err(not_started)
}

/// Records what passes, until the server has ended. The first failure ends the record, and nothing else.
fn record(copies: Copies, tape: &mut Tape, answer: &mut RecordedAnswer, out: &mut Out) -> Option<Failure> {
    let mut failed = None;
    for seen in copies {
        if failed.is_some() {
            continue;
        }
        let taken = tape.take(seen).map_err(of_tape).and_then(|records| {
            records.iter().try_for_each(|record| out.take(answer, record))?;
            out.flush()
        });
        failed = taken.err();
    }
    failed
}

/// The parts that are left once the program has ended.
struct Finish {
    tape: Tape,
    repo: Repo,
    failed: Option<Failure>,
    status: Started,
    refused: u64,
    around: Option<Vec<AroundPeer>>,
}

fn finish(end: Finish, mut answer: RecordedAnswer, out: &mut Out) -> Result {
    let Finish { mut tape, repo, mut failed, status, refused, around } = end;
    let program::Exit { code: exit, signal, why } = status.exit();
    answer.exit = exit;
    let peer = |one: &AroundPeer| WentAround { peer: one.peer.clone(), connections: one.connections };
    answer.around = around.as_ref().map(|peers| peers.iter().map(peer).collect());
    if failed.is_none() {
        let exit = Some(exit).filter(|_| signal.is_none());
        let ended = tape.end(&ProgramEnd { exit, signal, refused, around }).map_err(of_tape);
        failed = ended
            .and_then(|records| records.iter().try_for_each(|record| out.take(&mut answer, record)))
            .err();
    }
    // Copies that waited are taken at the end.
    let tally = tape.tally();
    (answer.agents, answer.calls) = (tally.agents, tally.calls);
    (answer.failed, answer.gaps) = (tally.failed, tally.gaps);
    drop(tape);
    let closed = context::close(repo);
    if let Some(why) = why {
        out.say(format!("error: {} was not started: {why}", answer.run));
    }
    for failure in failed.into_iter().chain(closed.err()) {
        out.warn(failure.code, &format!("recording stopped, and the program went on: {}", failure.told()));
    }
    out.end(&mut answer)?;
    if answer.calls == 0 {
        out.warn(Code::W0468, "no call was captured");
        out.help(&["dendrer", "record", "--base", "VARIABLE=URL", "--", "CMD"]);
    }
    Ok(exit)
}
