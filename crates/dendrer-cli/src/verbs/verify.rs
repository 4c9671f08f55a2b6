//! `dendrer verify`

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use dendrer::Trace;
use dendrer::store::embedded::{Embedded, Options as OpenOptions, VerifyOptions};
use dendrer::store::{DamageKind, Report as Structure, Store, StoreInfo};
use dendrer::trace::ReadHandle;
use dendrer::trust::Stamp;
use dendrer::verify::{self, Finding, Options, Report, Verdict};
use dendrer_object::note::{SignedNote, VerifierKey};
use dendrer_object::{Digest, RunName, StoreId, Value};
use dendrer_view::verify::{MEANING, UNWITNESSED, log_lines, part_words, run_lines, word};
use dendrer_view::{document, quote};

use crate::address::Pos;
use crate::address::Rev;
use crate::context;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Format;
use crate::global::Global;
use crate::global::tick_arg;
use crate::keys;
use crate::mark;
use crate::offers;
use crate::out::Out;
use crate::out::Style;
use crate::progress::Progress;

mod profile;
mod suite;

/// `verify`
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Runs or bundle files; with none, the whole store
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) targets: Vec<String>,
    /// Every run of the store
    #[arg(long, conflicts_with = "targets")]
    pub(crate) all: bool,
    /// Make every transition again, too
    #[arg(long)]
    pub(crate) replay: bool,
    /// A file that cannot be read at all does not keep the others from being verified
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// How many bundles are verified at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub(crate) jobs: u64,
    /// Run a suite: a JSON file that lists traces, and which of them must be rejected
    #[arg(long, value_name = "FILE", conflicts_with_all = ["targets", "all", "tip", "verifier", "require_witness"],
        value_hint = ValueHint::FilePath)]
    pub(crate) suite: Option<String>,
    /// Check files of `export --format paper` or `cfd` against the hashes of that document
    #[arg(long, value_name = "paper|cfd", requires = "targets", conflicts_with_all = ["replay", "tip", "verifier", "require_witness", "from"])]
    pub(crate) profile: Option<profile::ProfileChoice>,
    /// Open the records from this tick on, and take what stands before it as it is
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true, requires = "targets")]
    pub(crate) from: Option<Pos>,
    /// A tip kept elsewhere, which the run must have
    #[arg(long, value_name = "HASH")]
    pub(crate) tip: Option<String>,
    /// A verifier key kept elsewhere, under which the log must be signed
    #[arg(long, value_name = "KEY")]
    pub(crate) verifier: Option<String>,
    /// Not to be called intact where nobody outside agrees
    #[arg(long)]
    pub(crate) require_witness: bool,
}

/// One thing that was verified, and what came out.
struct Answer {
    name: String,
    report: Report,
    is_bundle: bool,
    /// The log: its store, and the key that signs it.
    log: (StoreId, VerifierKey),
}

/// What became of one thing that was to be verified.
enum Outcome {
    Verified(Box<Answer>),
    /// It could not even be read, and the others were to be verified all the same.
    Unreadable(String, Failure),
}

pub(crate) fn run(global: &Global, args: &Verify, out: &mut Out) -> Result {
    if let Some(path) = &args.suite {
        return suite::run(global, path, out);
    }
    if let Some(choice) = args.profile {
        return profile::run(choice, &args.targets, out);
    }
    let given = args.verifier.as_deref().map(parse_key).transpose()?;
    let options = Options {
        replay: args.replay,
        tip: args.tip.as_deref().map(parse_tip).transpose()?,
        ..Options::default()
    };
    let mut bundles = Vec::new();
    let mut runs = Vec::new();
    for target in &args.targets {
        let rev = Rev::parse(target)?;
        if rev.pos.is_some() {
            return Err(Failure::new(
                "E0106",
                format!("{target} names a tick, and a run is verified as a whole"),
            )
            .note("where to begin is said with --from"));
        }
        match &rev.bundle {
            Some(path) => bundles.push((path.clone(), rev.clone())),
            None => runs.push(rev),
        }
    }
    if args.tip.is_some() && args.targets.len() != 1 {
        return Err(Failure::new("E0106", "a tip is that of one run; name that run and no other"));
    }
    let mut outcomes = verify_bundles(global, args, &bundles, &options, given.as_ref())?;
    if !runs.is_empty() || args.targets.is_empty() {
        let answer = verify_store(global, &runs, options, args.from.as_ref(), given.as_ref())?;
        outcomes.push(Outcome::Verified(Box::new(answer)));
    }
    compare_histories(&mut outcomes);
    for outcome in &mut outcomes {
        let Outcome::Verified(answer) = outcome else { continue };
        let report = &mut answer.report;
        if !args.replay && report.verdict <= Verdict::Intact {
            report.not_checked.push("replay (--replay)".to_owned());
        }
        // Asked for and not there: as little to be verified as what was withheld.
        if args.require_witness && report.verdict == Verdict::Intact {
            report.verdict = Verdict::Unverifiable;
            report.not_checked.push(NO_WITNESS.to_owned());
        }
    }
    let mut code = 0;
    for outcome in &outcomes {
        let exit = match outcome {
            Outcome::Verified(answer) => word(answer.report.verdict).1,
            Outcome::Unreadable(_, failure) => failure.exit(),
        };
        // 4 is worse than 7, 7 than what could not be read, that than 6: the order of the verdicts, not of the numbers.
        let rank = |code: u8| [0, 6, 8, 3, 2, 7, 4].iter().position(|known| *known == code).unwrap_or(7);
        if rank(exit) > rank(code) {
            code = exit;
        }
    }
    match (out.format(), outcomes.as_slice()) {
        (Format::Text, _) => {
            for outcome in &outcomes {
                match outcome {
                    Outcome::Verified(answer) => print(answer, out)?,
                    Outcome::Unreadable(name, failure) => {
                        let line = format!("error[{}]: {}", failure.code, quote::escape(&failure.message));
                        let line = out.paint(Style::Bad, &line);
                        out.line(line)?;
                        for (what, value) in &failure.place {
                            out.line(format!("  | {what:<8} {}", quote::escape(value)))?;
                        }
                        out.line(format!("NOT READ   {}", quote::escape(name)))?;
                    }
                }
            }
        }
        (Format::Json, [Outcome::Verified(answer)]) => out.document(&to_json(answer))?,
        _ => {
            let items = Value::array(outcomes.iter().map(|outcome| match outcome {
                Outcome::Verified(answer) => to_json(answer),
                Outcome::Unreadable(name, failure) => {
                    let mut item = failure.to_json().as_object().cloned().unwrap_or_default();
                    item.set("name", Value::from(name.as_str()));
                    Value::Object(item)
                }
            }));
            out.document(&document("verify-all", [("items", items)]))?;
        }
    }
    Ok(code)
}

/// Verifies bundles, some at a time, and returns what became of each in the order they were named.
fn verify_bundles(
    global: &Global,
    args: &Verify,
    paths: &[(String, Rev)],
    options: &Options,
    given: Option<&VerifierKey>,
) -> Result<Vec<Outcome>> {
    // Of one alone it is told how much of it is read.
    let alone = (paths.len() == 1).then_some(global);
    let progress =
        alone.is_none().then(|| Progress::start(global, "verify", "bundles", Some(paths.len() as u64)));
    let done = progress.as_ref().map(Progress::counter).unwrap_or_default();
    let next = AtomicUsize::new(0);
    let found: Vec<Mutex<Option<Result<Answer>>>> = paths.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some(((path, rev), place)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            paths.get(at).zip(found.get(at))
        } {
            let answer = verify_bundle(alone, path, rev, options, args.from.as_ref(), given);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    let threads = usize::try_from(args.jobs).unwrap_or(1).min(paths.len());
    std::thread::scope(|scope| {
        // Where no thread is to be had, fewer do the work.
        let help = || std::thread::Builder::new().spawn_scoped(scope, work).is_ok();
        let _ = (1..threads).take_while(|_| help()).count();
        work();
    });
    let mut outcomes = Vec::new();
    for ((path, _), place) in paths.iter().zip(found) {
        match place.into_inner().unwrap_or_else(PoisonError::into_inner).expect("each place was filled") {
            Ok(answer) => outcomes.push(Outcome::Verified(Box::new(answer))),
            Err(failure) if args.keep_going => outcomes.push(Outcome::Unreadable(path.clone(), failure)),
            Err(failure) if paths.len() > 1 => {
                return Err(failure.note("--keep-going verifies the others all the same"));
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(outcomes)
}

fn log_of(store: &dyn Store) -> (StoreId, VerifierKey) {
    let info = store.info();
    (info.id, info.key.clone())
}

/// Holds what is of the same log against each other: each may be what was signed, and they still be two histories. Of logs of
/// different sizes only the roots at their ends are known, so nothing is said but that.
fn compare_histories(outcomes: &mut [Outcome]) {
    let answers = || {
        outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Verified(answer) => Some(&**answer),
            Outcome::Unreadable(..) => None,
        })
    };
    let ends: Vec<_> = answers()
        .filter(|answer| {
            answer.report.signed == Some(answer.report.log.0) && answer.report.findings.is_empty()
        })
        .filter_map(|answer| {
            Some((answer.name.clone(), answer.log.clone(), answer.report.log.0, answer.report.log.1?))
        })
        .collect();
    for outcome in outcomes {
        let Outcome::Verified(answer) = outcome else { continue };
        let report = &mut answer.report;
        let (size, Some(root)) = report.log else { continue };
        let twins = || ends.iter().filter(|(name, log, ..)| *log == answer.log && *name != answer.name);
        let elsewhere: Vec<_> = twins().filter(|(_, _, other, _)| *other != size).collect();
        match elsewhere.as_slice() {
            [] => {}
            [(name, _, other, _)] => report.not_checked.push(format!(
                "whether {} and {name} are of one history: their logs end at {size} and {other} records",
                answer.name
            )),
            several => report.not_checked.push(format!(
                "whether {} and {} others of the same log are of one history: their logs end elsewhere",
                answer.name,
                several.len()
            )),
        }
        for (name, _, other, found) in twins() {
            if *other == size && *found != root && report.signed == Some(size) && report.findings.is_empty() {
                report.verdict = Verdict::Equivocation;
                // Which of the two is the one that was recorded, nothing here can tell.
                report.runs.iter_mut().for_each(|run| run.line.last_good = None);
                report.findings.push(Finding {
                    code: keys::ANOTHER_LOG,
                    run: None,
                    tick: None,
                    position: None,
                    message: format!(
                        "the same key signed {name}, another log of as many records: there are two histories"
                    ),
                    stored: Some(root.short()),
                    computed: Some(found.short()),
                });
            }
        }
    }
}

/// Finds the tick that `--from` means, which is that of one run.
fn first_tick(from: Option<&Pos>, store: &impl ReadHandle, runs: &[RunName]) -> Result<u64> {
    match (from, runs) {
        (None, _) => Ok(0),
        (Some(from), [run]) => Ok(from.tick(&Trace::open(store, run)?)?),
        (Some(_), _) => Err(Failure::new("E0106", "--from is a tick of one run; name that run")),
    }
}

fn verify_bundle(
    alone: Option<&Global>,
    path: &str,
    rev: &Rev,
    options: &Options,
    from: Option<&Pos>,
    given: Option<&VerifierKey>,
) -> Result<Answer> {
    let opened = context::open_bundle(alone, path)?;
    let _progress = alone.map(|global| Progress::start(global, "verify", "bundles", Some(1)));
    let runs = &opened.runs;
    let in_bundle = |failure: Failure| failure.help_in(path, runs);
    let named = match rev.run {
        Some(_) => Some(vec![rev.run_in(&opened.store, runs).map_err(|error| in_bundle(error.into()))?]),
        None => None,
    };
    let from = first_tick(from, &opened.store, named.as_ref().unwrap_or(runs)).map_err(in_bundle)?;
    let (pinned, unknown) = pinned(opened.store.info());
    let options = Options { runs: named, pinned, from, ..options.clone() };
    let mut report = verify::bundle(&opened, &options)?;
    take_unknown(&mut report, unknown);
    let note = SignedNote::parse(opened.bundle.checkpoint.as_bytes()).ok();
    judge_keys(&mut report, opened.store.info(), note.as_ref(), given);
    Ok(Answer { name: path.to_owned(), report, is_bundle: true, log: log_of(&*opened.store) })
}

/// What was last signed here, or why that is not known.
fn pinned(info: &StoreInfo) -> (Option<(u64, Digest)>, Option<Failure>) {
    match keys::head(info.id) {
        Ok(head) => (head.map(|head| (head.size, head.root)), None),
        Err(failure) => (None, Some(failure)),
    }
}

/// Takes into the verdict that something which is kept here, and would speak against the log if need be, cannot be read.
fn take_unknown(report: &mut Report, unknown: Option<Failure>) {
    if let Some(failure) = unknown {
        report.not_checked.push(format!("what is kept here of this log: {}", failure.told()));
        report.verdict = report.verdict.max(Verdict::Unverifiable);
    }
}

/// Takes into the verdict what is known of the key of the log.
///
/// Two cases look alike and are not. The key that *somebody gave* is not the log's: then nothing that was signed
/// can be checked with it. The record may be what it was; whoever asks just does not know this key, which is
/// UNVERIFIABLE ("unknown key", design 3). The key that *this user's own store* was made with is another than the
/// log names now: the id of a store is chance and its key never changes, so somebody put another key there. That
/// is TAMPERED, as a head that was pinned here and is no longer extended is.
fn judge_keys(report: &mut Report, info: &StoreInfo, note: Option<&SignedNote>, given: Option<&VerifierKey>) {
    let (own, unknown) = match keys::own(info.id) {
        Ok(own) => (own, None),
        Err(failure) => (None, Some(failure)),
    };
    take_unknown(report, unknown);
    if let Some(own) = own.filter(|own| *own != info.key) {
        let message = "the log names another key than the one its store was made with here";
        key_finding(report, message, &info.key.to_string(), &own.to_string());
    }
    let Some(given) = given.filter(|given| **given != info.key) else { return };
    // Not the log's own key, but whoever holds it may have signed beside the log: then it is a witness.
    match note.map(|note| note.verify(std::slice::from_ref(given))) {
        Some(Ok(agreed)) if !agreed.is_empty() && report.signed < Some(report.reach) => {
            let line = format!("whether {} knows what stands behind what it signed", given.name());
            report.not_checked.push(line);
        }
        Some(Ok(agreed)) if !agreed.is_empty() => {
            report.witnesses.push(format!("the key given, {}", given.name()));
            if report.verdict == Verdict::Intact {
                report.verdict = Verdict::Verified;
            }
        }
        Some(Err(dendrer_object::note::NoteError::WrongSignature { .. })) => {
            let message = "a signature in the name of the key that was given is not that key's";
            key_finding(report, message, &info.key.to_string(), &given.to_string());
        }
        _ => {
            let line = format!("a signature under the key that was given: the log is signed by {}", info.key);
            report.not_checked.push(line);
            report.verdict = report.verdict.max(Verdict::Unverifiable);
        }
    }
}

fn key_finding(report: &mut Report, message: &str, stored: &str, computed: &str) {
    report.verdict = Verdict::Tampered;
    report.findings.push(Finding {
        code: "E0308",
        run: None,
        tick: None,
        position: None,
        message: message.to_owned(),
        stored: Some(stored.to_owned()),
        computed: Some(computed.to_owned()),
    });
}

fn parse_tip(text: &str) -> Result<Digest> {
    let with_tag = if text.starts_with("sha256:") { text.to_owned() } else { format!("sha256:{text}") };
    with_tag.parse().map_err(|_| {
        Failure::new("E0304", format!("\"{text}\" is not a whole tip, so no run can have it"))
            .note("a tip is sha256: and 64 hex digits; `dendrer runs --json` prints them whole")
    })
}

fn parse_key(text: &str) -> Result<VerifierKey> {
    text.parse().map_err(|error: dendrer_object::note::NoteError| {
        Failure::new("E0106", format!("not a verifier key: {error}"))
    })
}

fn verify_store(
    global: &Global,
    revs: &[Rev],
    options: Options,
    from: Option<&Pos>,
    given: Option<&VerifierKey>,
) -> Result<Answer> {
    let path = context::find(global)?;
    let stamp = Stamp::of(&path);
    let mut store = Arc::new(context::embedded(global, &path, global.reads())?);
    let mut names = Vec::new();
    for rev in revs {
        names.push(rev.run_in(&store, &[]).map_err(|error| context::not_found(error.into(), &*store))?);
    }
    // A key file that is named speaks for whoever named it, as a verifier key does.
    let file = global.key.as_deref().map(keys::read_verifier).transpose()?;
    let given = given.or(file.as_ref());
    let (pinned, unknown) = pinned(store.info());
    // What was signed here meanwhile is of what others have written since this handle read the log.
    let size = Arc::get_mut(&mut store).expect("no trace is open yet").refresh()?;
    // A backup says itself how far it goes, and the store it was made of has gone on.
    let is_older = |(seen, _): &(u64, Digest)| *seen > size;
    let mark = store.mark()?;
    let (later, pinned) = match &mark {
        Some(mark) if !mark.in_store && pinned.as_ref().is_some_and(is_older) => (pinned, None),
        _ => (None, pinned),
    };
    let from = first_tick(from, &store, &names)?;
    let options = Options { runs: (!revs.is_empty()).then_some(names), pinned, from, ..options };
    let (mut report, structure) = both(global, &store, &options)?;
    take_unknown(&mut report, unknown);
    if let Some(message) = mark.as_ref().and_then(mark::hides) {
        report.verdict = report.verdict.max(Verdict::Tampered);
        report.findings.push(Finding {
            code: keys::ANOTHER_LOG,
            run: None,
            tick: None,
            position: None,
            message,
            stored: None,
            computed: None,
        });
    }
    let aside = mark.as_ref().and_then(|mark| mark::closes(mark).or_else(|| mark::unfinished(mark)));
    report.not_checked.extend(aside);
    if let Some((seen, _)) = later {
        let line =
            format!("the log of {seen} records that was signed here since this backup of {size} was made");
        report.not_checked.push(line);
    }
    let note = store.checkpoint().ok().flatten();
    judge_keys(&mut report, store.info(), note.as_ref(), given);
    if structure.unfinished {
        report.not_checked.push("bytes behind the last group, which were never acknowledged".to_owned());
    }
    for damage in structure.findings {
        if (damage.kind, damage.what) == (DamageKind::Index, "index") {
            // Nothing of the answer rests on it.
            report.not_checked.push(format!(
                "the index, which is damaged ({}); dendrer doctor --fix makes it anew",
                damage.found
            ));
            continue;
        }
        let known = report
            .findings
            .iter()
            .any(|finding| finding.position.is_some() && finding.position == damage.place.position);
        if known {
            continue;
        }
        report.verdict = Verdict::Tampered;
        let line = report.runs.iter_mut().find(|line| Some(&line.run) == damage.place.run.as_ref());
        if let (Some(run), Some(tick)) = (line, damage.place.tick) {
            run.line.last_good = run.line.last_good.min(tick.checked_sub(1));
        }
        report.findings.push(Finding {
            code: damage.code(),
            run: damage.place.run.clone(),
            tick: damage.place.tick,
            position: damage.place.position,
            message: damage.to_string(),
            stored: Some(damage.expected),
            computed: Some(damage.found),
        });
    }
    let log = log_of(&*store);
    // Windows lets nobody move an index that is open, not even here.
    drop(store);
    // Nothing but the index is wrong: it follows from the log, so it is made again. One that knows more than the log is
    // evidence of a loss, and stays.
    let of_index = |finding: &Finding| finding.code == "E0309";
    if !report.findings.is_empty() && report.findings.iter().all(of_index) && report.findings_left_out == 0 {
        let made = match Embedded::open(&path, OpenOptions::write()) {
            Ok(mut store) => store.rebuild_index(false),
            Err(error) => Err(error),
        };
        let said = match made {
            Ok(()) => {
                "the index was made again from the log, so the next verification finds it right".to_owned()
            }
            Err(error) => format!("the index could not be made again: {error}"),
        };
        report
            .findings
            .iter_mut()
            .for_each(|finding| finding.message = format!("{}; {said}", finding.message));
    }
    note_seen(&path, log.0, stamp, &report);
    Ok(Answer { name: path.display().to_string(), report, is_bundle: false, log })
}

/// Notes which runs were found intact. A look at a part of a run takes nothing back.
fn note_seen(path: &Path, store: StoreId, before: Option<Stamp>, report: &Report) {
    let is_intact = report.verdict <= Verdict::Intact;
    let runs = report.runs.iter().filter_map(|run| match (is_intact && run.passed == 0, run.line.tip) {
        (true, Some(tip)) => Some((run.run.clone(), Some(tip))),
        (false, _) if is_intact => None,
        _ => Some((run.run.clone(), None)),
    });
    if let Some(seen) = keys::seen(store) {
        seen.note(path, before, runs);
    }
}

/// Verifies the records, and what records cannot show: frames, commit frames, files beside the log. Of a sound store, all of
/// which is asked for, each record is read once for both.
fn both(global: &Global, store: &Arc<Embedded>, options: &Options) -> Result<(Report, Structure)> {
    let progress = Progress::start(global, "verify", "records", Some(work(&**store, options)?));
    let counted = progress.watch().over(store);
    let everything =
        VerifyOptions { index: true, done: Some(progress.counter()), ..VerifyOptions::default() };
    if options.runs.is_none() {
        let mut reading = verify::Reading::new(&counted, options)?;
        let mut take = |position, record| reading.take(position, record);
        let structure = store.verify_handing_over(&everything, Some(&mut take))?;
        let is_sound = structure.findings.iter().all(|damage| damage.kind == DamageKind::Index);
        if is_sound && let Some(report) = reading.finish()? {
            return Ok((report, structure));
        }
        // What is wrong is looked for record by record.
        progress.set(0);
        return Ok((verify::store(&counted, options)?, structure));
    }
    let report = verify::store(&counted, options)?;
    drop(progress);
    let size = store.tree().size;
    let watched = Progress::start(global, "verify", "records in the files of the store", Some(size));
    let everything = VerifyOptions { done: Some(watched.counter()), ..everything };
    Ok((report, store.verify(&everything)?))
}

/// How many records a verification reads, so that the remaining time can be told.
fn work(store: &dyn Store, options: &Options) -> Result<u64> {
    let mut records = 0;
    let mut ticks = 0;
    for run in context::all_runs(store)? {
        let wanted = options.runs.as_ref().is_none_or(|wanted| wanted.contains(&run.name));
        records += if wanted { run.transitions + run.refusals + 1 } else { 0 };
        ticks += if wanted { run.head.tick.unwrap_or(0) + run.refusals } else { 0 };
    }
    let read = if options.runs.is_some() { records } else { store.tree().size };
    Ok(read + if options.replay { ticks } else { 0 })
}

/// What is missing where `--require-witness` finds none, and how one comes to be.
const NO_WITNESS: &str = "a witness, which --require-witness asks for: nothing kept elsewhere is known to agree with all of it \
                          (a tip is given with --tip, a key with --verifier)";

fn to_json(answer: &Answer) -> Value {
    let mut document = dendrer_view::verify::to_json(&answer.report).as_object().cloned().unwrap_or_default();
    document.set("name", Value::from(answer.name.as_str()));
    Value::Object(document)
}

fn print(answer: &Answer, out: &mut Out) -> Result<()> {
    let report = &answer.report;
    let many = report.runs.len() > 1;
    for run in &report.runs {
        if many {
            let name = out.paint(Style::Strong, run.run.as_str());
            out.line(name)?;
        }
        for line in run_lines(report, run) {
            let style = if line.contains("  FAIL  ") { Some(Style::Bad) } else { None };
            let line = style.map_or(line.clone(), |style| out.paint(style, &line));
            out.line(line)?;
        }
    }
    for line in log_lines(report) {
        out.line(line)?;
    }
    for finding in &report.findings {
        let place = match (&finding.run, finding.tick) {
            (Some(run), Some(tick)) => format!("{run}@{tick}: "),
            (Some(run), None) => format!("{run}: "),
            _ => String::new(),
        };
        let line = format!("error[{}]: {place}{}", finding.code, quote::escape(&finding.message));
        let line = out.paint(Style::Bad, &line);
        out.line(line)?;
        if let (Some(stored), Some(computed)) = (&finding.stored, &finding.computed) {
            let (one, other) = finding.sides();
            out.line(format!(
                "  | {one:<8}  {}        {other:<8}  {}",
                quote::escape(stored),
                quote::escape(computed)
            ))?;
        }
        let line_of = report.runs.iter().find(|run| Some(&run.run) == finding.run.as_ref());
        let good = line_of.and_then(|run| run.line.last_good);
        if let (Some(tick), Some(good), Some(line)) = (finding.tick, good, line_of) {
            let rest = if tick < line.line.tick {
                format!(
                    "    ticks {}..{} rest on tick {tick} and are not trustworthy",
                    tick + 1,
                    line.line.tick
                )
            } else {
                String::new()
            };
            out.line(format!("  | last good tick: {good}{rest}"))?;
        }
        if finding.code == "E0304" {
            out.line(
                "      note: this is what a run looks like that was rewritten with its hashes computed anew",
            )?;
        }
        out.line(format!("      see: dendrer explain {}", finding.code))?;
    }
    if report.findings_left_out > 0 {
        out.line(format!("({} more findings)", report.findings_left_out))?;
    }
    for item in &report.not_checked {
        out.line(format!("not checked: {}", quote::escape(item)))?;
    }
    let (word, code) = word(report.verdict);
    let style = if code == 0 { Style::Good } else { Style::Bad };
    let word = out.paint(style, word);
    let meaning = if code == 0 { format!("   ({MEANING})") } else { String::new() };
    // A part that is sound is no word about the whole.
    let part = part_words(report);
    out.line(format!("{word}   {}{part}{meaning}", quote::escape(&answer.name)))?;
    if code == 0 {
        match report.witnesses.as_slice() {
            [] => out.line(UNWITNESSED)?,
            witnesses => out.line(format!("witnessed by {}", quote::escape(&witnesses.join(", "))))?,
        }
    }
    if answer.is_bundle
        && code == 4
        && let Some((run, good)) = report.runs.iter().find_map(|run| Some((&run.run, run.line.last_good?)))
    {
        let sound = format!("{}#{run}", answer.name);
        out.say(format!("note: up to tick {good} it is still sound"));
        out.help(&["dendrer", "log", &sound, "--to", "tick", &good.to_string()]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use dendrer::recorder::{Fixed, begin_log};
    use dendrer::store::{Memory, Shared};
    use dendrer::watch::Watch;

    use super::*;
    use crate::demo;

    /// The remaining time rests on this: what is said to be read is what is read.
    #[test]
    fn as_many_records_are_read_as_were_foretold() {
        let mut store = Shared::new(Box::new(Memory::new(demo::store_info())));
        begin_log(&mut store, &mut Fixed::new("demo", 0, 1)).unwrap();
        demo::fill(&store).unwrap();
        let one = Some(vec!["hostile-1".parse().unwrap()]);
        for (runs, replay) in [(None, false), (None, true), (one.clone(), false), (one, true)] {
            let options = Options { runs, replay, ..Options::default() };
            let foretold = work(&store, &options).unwrap();
            let count = Arc::new(AtomicU64::new(0));
            verify::store(&Watch::counting(Arc::clone(&count)).over(&store), &options).unwrap();
            let read = count.load(Ordering::Relaxed);
            // Opening one of the runs, twice where it is replayed, reads where it begins, and of the four forks where they branched
            // off and where their parents begin; that is all that may come on top.
            assert!(read >= foretold && read <= foretold + 2 * (10 + 4 * 4), "{foretold} {read} {options:?}");
        }
    }
}
