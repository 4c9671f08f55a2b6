//! Threads of a database, each imported as a run of its own.
//!
//! All threads are planned before one is recorded: of a database that is refused nothing is recorded.

use std::path::Path;
use std::sync::Arc;

use dendrer::repo::Repo;
use dendrer::store::Store;
use dendrer_object::{Code, RunName};
use dendrer_view::import::{ImportAnswer, ImportExplainAnswer, ImportsAnswer};
use dendrer_view::quote;
use dendrer_wire::foreign::Format;
use dendrer_wire::format;
use dendrer_wire::import::threads::{ThreadOptions, ThreadPlan, plan_thread, record_thread};
use dendrer_wire::import::{self, ImportError, OnGap};
use dendrer_wire::langgraph::database::{Database, ThreadRows};

use super::{AUTO, GapChoice, Import, failure, known};
use crate::context;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::Out;
use crate::out::files;
use crate::progress::Progress;

/// How many numbers are tried for the name of a run.
const NUMBERS: u64 = 1_000;

/// How many threads an error names.
const NAMED: usize = 10;

/// Returns the format of a file that is a database.
pub(super) fn format_of(args: &Import, named: Option<&'static Format>) -> Result<Option<&'static Format>> {
    if let Some(format) = named {
        return Ok(Some(format).filter(|format| format.database.is_some()));
    }
    if args.map.is_some() || !Path::new(&args.file).is_file() {
        return Ok(None);
    }
    let found = format::of_source(&mut files::open(&args.file)?, false);
    let found = found.map_err(|error| files::cannot_read(&args.file, &error))?;
    Ok(Some(found).filter(|format| format.database.is_some()))
}

/// Returns whether a file is a log of a database next to it, and not a trace of its own.
pub(super) fn is_of_database(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let database = ["-wal", "-shm", "-journal"].iter().find_map(|end| name.strip_suffix(end));
    let opened = database.and_then(|database| std::fs::File::open(database).ok());
    let found = opened.and_then(|mut file| format::of_source(&mut file, false).ok());
    found.is_some_and(|format| format.database.is_some())
}

/// Imports a database: one thread is one answer, several are those of a directory.
pub(super) fn run(global: &Global, args: &Import, format: &'static Format, out: &mut Out) -> Result {
    let args = Import { dry_run: args.dry_run || args.explain, ..args.clone() };
    let mut made = import_threads(global, &args, format, false, out)?;
    if args.explain {
        let mut all = Vec::new();
        for one in made {
            all.push(one?);
        }
        return out.answer(&ImportExplainAnswer(joined(all)));
    }
    if made.len() == 1 {
        return out.answer(&made.remove(0)?);
    }
    let mut answer = ImportsAnswer { dry_run: args.dry_run, ..ImportsAnswer::default() };
    for one in made {
        add(&mut answer, &args.file, one);
    }
    out.answer(&answer)
}

/// Adds the import of a thread to those of a directory or of a database.
pub(super) fn add(answer: &mut ImportsAnswer, file: &str, made: Result<ImportAnswer>) {
    match made {
        Ok(made) => answer.made.push((file.to_owned(), made)),
        Err(failure) if failure.code == Code::E0214 => answer.there += 1,
        Err(failure) => answer.failed.push((file.to_owned(), failure.code, failure.message.into())),
    }
}

/// The account of several threads as one.
fn joined(all: Vec<ImportAnswer>) -> ImportAnswer {
    let mut all = all.into_iter();
    let mut whole = all.next().expect("a database has threads");
    for one in all {
        whole.ticks += one.ticks;
        for (place, read, kept, not_read, may) in one.places {
            match whole.places.iter_mut().find(|known| known.0 == place) {
                Some(known) => {
                    (known.1, known.2, known.3) = (known.1 + read, known.2 + kept, known.3 + not_read);
                    known.4 = if known.4.is_empty() { may } else { known.4 };
                }
                None => whole.places.push((place, read, kept, not_read, may)),
            }
        }
    }
    whole.places.sort_by(|a, b| a.0.cmp(&b.0));
    whole
}

/// Imports the threads of a database, or the one with the index that is given. A thread of several, or of a file of a directory, has
/// a number if another run has its name.
pub(super) fn import_threads(
    global: &Global,
    args: &Import,
    format: &'static Format,
    is_of_many: bool,
    out: &mut Out,
) -> Result<Vec<Result<ImportAnswer>>> {
    refuse_flags(args, format)?;
    let fail = |error: ImportError| failure(args, &error, 0);
    files::refuse_answer(&args.file)?;
    let open = format.database.expect("the format of a database");
    let database = open(Path::new(&args.file)).map_err(fail)?;
    let chosen = chosen(args, &database).map_err(fail)?;
    let is_numbered = is_of_many || chosen.len() > 1;
    let repo = match args.dry_run {
        // A dry run works without a store, too.
        true => context::read_repo(global).ok().map(|(repo, _)| repo),
        false => Some(context::write_store(global)?),
    };
    let mut planned = Vec::new();
    for thread in chosen {
        let plan = planned_thread(args, &database, thread, repo.as_ref(), is_numbered);
        match plan {
            Err(failure) if !is_there(failure.code) => return Err(failure),
            plan => planned.push((thread, plan)),
        }
    }
    let mut made = Vec::new();
    if args.dry_run {
        let answers = planned.into_iter().map(|(thread, plan)| Ok(answer(args, &database, thread, &plan?)));
        return Ok(answers.collect());
    }
    let repo = repo.expect("a store that is written");
    context::say_no_key(&repo, out)?;
    for (thread, plan) in planned {
        made.push(match plan {
            Ok(plan) => recorded(global, args, &repo, &database, thread, &plan),
            Err(failure) => Err(failure),
        });
    }
    context::close(repo)?;
    Ok(made)
}

/// Whether a thread is refused for a run that is there, so that the other threads of its database are not.
fn is_there(code: Code) -> bool {
    matches!(code, Code::E0111 | Code::E0214)
}

/// Refuses flags of other formats.
fn refuse_flags(args: &Import, format: &Format) -> Result<()> {
    let given = [
        ("--map", args.map.is_some()),
        ("--messages", args.messages.is_some()),
        ("--kept", !args.kept.is_empty()),
        ("--state", args.state.is_some()),
        ("--pack", args.pack.is_some()),
        ("--policy", args.policy.is_some()),
        ("--redact", args.redaction.redact.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => {
            let text =
                format!("{flag} is not for --kind {}: a thread is recorded as its saver does", format.name);
            Err(Failure::new(Code::E0106, text).note("nothing was imported"))
        }
        None => Ok(()),
    }
}

/// The threads that are to be imported.
fn chosen<'d>(
    args: &Import,
    database: &'d Database,
) -> std::result::Result<Vec<&'d ThreadRows>, ImportError> {
    let threads = database.threads();
    let count = threads.len() as u64;
    match args.index {
        Some(index) => {
            let found = usize::try_from(index).ok().and_then(|index| threads.get(index));
            Ok(vec![found.ok_or(ImportError::NoRun { index, count })?])
        }
        None if count > 1 && args.run.is_some() => {
            let line =
                |(index, thread): (u64, &ThreadRows)| (index, thread.id().to_owned(), thread.counts().0);
            let runs = (0..).zip(threads).take(NAMED).map(line).collect();
            Err(ImportError::SeveralThreads { count, runs, why: "--run names one run" })
        }
        None => Ok(threads.iter().collect()),
    }
}

/// Plans a thread, under the first free name if its own is taken and it may have another one.
fn planned_thread(
    args: &Import,
    database: &Database,
    thread: &ThreadRows,
    repo: Option<&Repo>,
    is_numbered: bool,
) -> Result<ThreadPlan> {
    let fail = |error: ImportError| known(args, error);
    let given = args.run.as_deref().map(|name| name.parse::<RunName>()).transpose();
    let given = given.map_err(|error| Failure::new(error.code(), error.to_string()))?;
    given.as_ref().map_or(Ok(()), dendrer::repo::new_run::refuse_made)?;
    let name = Path::new(&args.file).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let profile = repo.map_or_else(|| Ok(Default::default()), Repo::profile)?;
    let on_gap = if args.on_gap == GapChoice::Stop { OnGap::Stop } else { OnGap::Mark };
    let goal = args.goal.as_deref().map(Into::into);
    let mut options = ThreadOptions { run: given, name, goal, on_gap, profile };
    let mut plan = plan_thread(database, thread, &options).map_err(fail)?;
    let Some(repo) = repo else { return Ok(plan) };
    let store: Arc<dyn Store> = repo.reader()?;
    let may_number = args.run.is_none() && (is_numbered || args.again);
    let own = plan.run.clone();
    for number in 2..NUMBERS {
        match plan.check_new(&*store, args.again) {
            Err(ImportError::Exists(_)) if may_number => {
                let name = import::clean_name(&format!("{own}-{number}"));
                options.run = Some(name.parse().map_err(|_| {
                    Failure::new(Code::E0106, "no run id can be made from this thread; give one with --run")
                })?);
                plan = plan_thread(database, thread, &options).map_err(fail)?;
            }
            checked => return checked.map_err(fail).map(|()| plan),
        }
    }
    plan.check_new(&*store, args.again).map_err(fail).map(|()| plan)
}

fn recorded(
    global: &Global,
    args: &Import,
    repo: &Repo,
    database: &Database,
    thread: &ThreadRows,
    plan: &ThreadPlan,
) -> Result<ImportAnswer> {
    let progress = Progress::start(global, "import", "transitions", Some(plan.tally.ticks));
    let mut settled = 0;
    let recorded = record_thread(repo, database, thread, plan, &mut |more| {
        settled += more;
        progress.set(settled);
    });
    drop(progress);
    let recorded = recorded.map_err(|error| match settled {
        0 => failure(args, &error, 0),
        _ => failure(args, &error, settled).help(&["dendrer", "log", plan.run.as_str()]),
    })?;
    let answer = answer(args, database, thread, plan);
    Ok(ImportAnswer { tip: Some(recorded.tip), forks: recorded.others, ..answer })
}

/// The answer on a thread; nothing was written.
fn answer(args: &Import, database: &Database, thread: &ThreadRows, plan: &ThreadPlan) -> ImportAnswer {
    let found = if args.kind == AUTO { "detected: " } else { "" };
    let count = database.threads().len();
    let at = database.threads().iter().position(|one| one.id() == thread.id()).unwrap_or(0);
    let which = if count > 1 { format!(", {at} of {count} from 0") } else { String::new() };
    let why = format!("{found}thread {}{which}", quote::escape(thread.id()));
    ImportAnswer {
        kind: "langgraph",
        why,
        branches: plan.others.len() as u64,
        ..super::counted(args, &plan.run, &plan.tally, (plan.sha256, plan.bytes))
    }
}
