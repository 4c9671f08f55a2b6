//! The problems of backups, restores, exports and erasures: code, sentence, notes and help.

use std::collections::BTreeMap;
use std::path::Path;

use dendrer_object::text::{count, escape, list};
use dendrer_object::{Code, Pointer, RunName};

use super::backup::BackupError;
use super::erase::{EraseError, ErasePlace, EraseReason};
use super::export::{ExportError, WithholdError};
use super::restore::erasures::{ErasedAgain, ErasedAgainError};
use super::restore::{NewerRecords, OldPlace, PlacedStore, RestoreError, UnsoundBackup};
use super::{HiddenLog, mark_places};
use crate::address::RecordAt;
use crate::error::{Error, TrustError};
use crate::problem::Problem;
use crate::repo::mark::{self, MARK_FILE};

/// Open places that a message lists at most.
const SHOWN: usize = 12;

impl From<BackupError> for Problem {
    fn from(error: BackupError) -> Problem {
        let fsck = ["dendrer", "fsck"];
        let plain = |error: &BackupError| Problem::new(error.code(), error.to_string());
        match error {
            BackupError::StoreName { .. } => plain(&error).note("nothing was made; name another directory"),
            BackupError::Overlaps => {
                plain(&error).note("name a directory beside the store, better one on another disk")
            }
            BackupError::IsLink { .. } => {
                plain(&error).note("nothing was changed; a backup has files and directories of its own")
            }
            BackupError::Hidden(ref hidden) => hidden_log(error.code(), hidden, "nothing was copied"),
            BackupError::Damaged(error) => Problem::from(error).help(&fsck),
            BackupError::NotBegun(error) => {
                let problem = Problem::of(&error);
                match problem.code {
                    // The place, and not the store, is refused.
                    Code::E0113 | Code::E0110 | Code::E0115 => {
                        problem.note("nothing was changed; name a directory that is new or empty")
                    }
                    _ => problem,
                }
            }
            BackupError::Incomplete(error) => {
                let problem = Problem::of(&error)
                    .note("what is there does not count as a backup of the store as it is now");
                if problem.code == Code::E0801 { problem } else { problem.help(&fsck) }
            }
            BackupError::Unreadable(error) => error.into(),
            error => plain(&error),
        }
    }
}

const NOT_RESTORED: &str = "nothing was restored";
const NOT_CHANGED: &str = "nothing was changed";

impl From<RestoreError> for Problem {
    fn from(error: RestoreError) -> Problem {
        let plain = |error: &RestoreError| Problem::new(error.code(), error.to_string());
        let again = |problem: Problem, backup: &Path| {
            problem.help(&["dendrer", "restore", &backup.display().to_string(), "DIR"])
        };
        match error {
            RestoreError::Unopened(error) => Problem::of(&error).note(NOT_RESTORED),
            RestoreError::Hidden(ref hidden) => hidden_log(error.code(), hidden, NOT_RESTORED),
            RestoreError::Unsound { backup, why } => {
                let path = backup.display().to_string();
                let problem = match *why {
                    UnsoundBackup::Unreadable(error) => error.into(),
                    why => unsound(&why),
                };
                problem.note(NOT_RESTORED).help(&["dendrer", "fsck", "--store", &path])
            }
            RestoreError::Unknown(error) => Problem::from(error).note(NOT_RESTORED),
            RestoreError::LockNotAFile { ref place, .. } | RestoreError::NotEmpty(ref place) => {
                move_aside(plain(&error).note(NOT_CHANGED), place)
            }
            RestoreError::IsStore { ref backup, .. } => again(
                plain(&error)
                    .note("nothing was changed; --replace moves it aside, or name another directory"),
                backup,
            ),
            RestoreError::Busy { .. } => {
                plain(&error).note("nothing was changed; stop what writes there first")
            }
            RestoreError::OldUnreadable { error, place } => {
                move_aside(Problem::from(*error).note(NOT_CHANGED), &place)
            }
            RestoreError::OtherStore { .. } => {
                plain(&error).note("nothing was changed; restore into another directory")
            }
            RestoreError::Newer { ref path, ref backup, ref why, ref erased } => {
                again(newer(error.code(), path, why, erased), backup)
            }
            RestoreError::NotErased(error) => not_erased(*error).note(NOT_RESTORED),
            RestoreError::CopyNotADirectory { .. } => {
                plain(&error).note("nothing was restored; a restore makes its copy there first")
            }
            RestoreError::InCopyPlace { .. } => plain(&error)
                .note("nothing was restored; move what is there somewhere else, and restore it from there"),
            RestoreError::NotRemembered(error) => not_remembered(error).note(NOT_RESTORED),
            RestoreError::Failed(error) => error.into(),
            RestoreError::NotSynced { error, placed } => {
                let problem = Problem::from(*error);
                took_place(problem.note("whether its name outlasts a power cut is not known"), &placed)
            }
            RestoreError::RestoredNotRemembered { error, placed } => {
                took_place(not_remembered(*error), &placed)
            }
            error => plain(&error),
        }
    }
}

/// Returns the problem of a backup that is not what was written.
pub fn unsound(why: &UnsoundBackup) -> Problem {
    let problem = Problem::new(why.code(), why.to_string());
    match why {
        UnsoundBackup::OtherLog { made, found, .. } => problem
            .at("made", format!("{} records, root {}", made.size, made.root))
            .at("found", format!("{} records, root {}", found.size, found.root)),
        UnsoundBackup::OtherKey { backup, here } => {
            problem.at("backup", backup.to_string()).at("here", here.to_string())
        }
        UnsoundBackup::Unreadable(_) | UnsoundBackup::Damaged(_) => problem,
    }
}

/// Adds the command that moves away what is in the place.
fn move_aside(problem: Problem, place: &OldPlace) -> Problem {
    problem.help(&["mv", &place.path.display().to_string(), &place.aside.display().to_string()])
}

fn newer_words(why: &NewerRecords) -> String {
    match why {
        NewerRecords::Hidden(found) => {
            format!("may have more than the backup: {}", mark::hides(found).unwrap_or_default())
        }
        NewerRecords::More(more) => {
            format!("has {} that the backup does not have", count(*more, "record", "records"))
        }
        NewerRecords::Other => "has other records than the backup".to_owned(),
        NewerRecords::Unreadable(error) => format!(
            "may have more than the backup, since not all of it can be read: {}",
            Problem::of_error(error).told()
        ),
    }
}

/// Returns the problem of a store that has more than a backup.
fn newer(code: Code, path: &Path, why: &NewerRecords, erased: &[ErasedAgain]) -> Problem {
    let shown = path.display().to_string();
    let problem = Problem::new(code, format!("{shown} {}", newer_words(why))).note(NOT_CHANGED);
    let problem = erased_since(erased).into_iter().fold(problem, Problem::note);
    problem.help(&["dendrer", "backup", "DIR", "--store", &shown])
}

/// Returns the problem of a value that is not erased again.
fn not_erased(error: ErasedAgainError) -> Problem {
    match error {
        ErasedAgainError::Failed(error) => error.into(),
        vault @ ErasedAgainError::Vault(_) => Problem::new(vault.code(), vault.to_string()),
    }
}

/// Notes which values were erased since a backup was made: they come back with it, and are erased again.
fn erased_since(erased: &[ErasedAgain]) -> Option<String> {
    let places: Vec<String> = erased.iter().map(ErasedAgain::words).collect();
    let shown = list(&places, SHOWN)?;
    let erasures = count(erased.len() as u64, "erasure", "erasures");
    Some(format!("among them {erasures}, which a restore does again: {shown}"))
}

/// Returns the problem of a checkpoint that is not remembered.
fn not_remembered(error: Error) -> Problem {
    let is_turn = matches!(&error, Error::Trust(TrustError::Busy { .. } | TrustError::NoLock { .. }));
    let problem = Problem::from(error);
    if is_turn { problem.note("what the store says was signed is not remembered here") } else { problem }
}

/// Adds that the restore took place, and where both stores are.
fn took_place(problem: Problem, placed: &PlacedStore) -> Problem {
    let shown = placed.path.display().to_string();
    let problem = problem.note(format!("{shown} is the restored store"));
    let problem = placed.aside.iter().fold(problem, |problem, aside| {
        problem.note(format!("the store that was there is in {}", aside.display()))
    });
    problem.help(&["dendrer", "verify", "--all", "--store", &shown])
}

impl From<ExportError> for Problem {
    fn from(error: ExportError) -> Problem {
        let plain = Problem::new(error.code(), error.to_string());
        match error {
            ExportError::OfBundle => {
                plain.note("copy the file; one of fewer runs is made where the store is")
            }
            ExportError::SignedMeanwhile => plain.note("nothing was written; ask again"),
            ExportError::NothingSigned => plain,
            ExportError::LastNotSigned(missing) => {
                let is = if missing == 1 { "is" } else { "are" };
                let missing = count(missing, "record", "records");
                let message = format!("the last {missing} {is} not signed, and the key of the log is not here");
                Problem::new(plain.code, message).note(
                    "nothing was written; the signing key is due, and no writer's secret: name it with --key FILE",
                )
            }
            ExportError::Withhold(error) => of_withhold(error),
            ExportError::Unsound { .. } => plain
                .note("nothing was written; what is left of the run as lines, which prove nothing: --format jsonl")
                .help(&["dendrer", "verify", "--all"]),
            ExportError::Failed(error) => error.into(),
        }
    }
}

/// As for an erasure, with the words of a bundle.
fn of_withhold(error: WithholdError) -> Problem {
    let plain = Problem::new(error.code(), error.to_string());
    let plain = match error {
        WithholdError::NothingThere { around, .. } => around.iter().fold(plain, |plain, field| {
            plain.note(format!("a field is withheld as a whole: --withhold {field} takes it"))
        }),
        WithholdError::Search(EraseError::Failed(error)) => return error.into(),
        WithholdError::Search(EraseError::NotAPlace { .. }) => {
            plain.note("write result.output, /action/params/token or state.a.b, or TICK:PLACE, RUN@TICK:PLACE; refused:N for the tick of a refusal")
        }
        WithholdError::Search(EraseError::Open { open }) => listed(plain, &open)
            .note("--also PLACE withholds a place as well, --although PLACE lets it stay, and the bundle lists it")
            .note(format!("the places: {}", named(&open).join(" "))),
        WithholdError::Search(_) => plain,
    };
    plain.note("nothing was written")
}

/// Adds the open places of a search to a problem.
fn listed(problem: Problem, open: &[ErasePlace]) -> Problem {
    let lines = grouped(open);
    let more = lines.len().saturating_sub(SHOWN);
    let mut shown: Vec<String> = lines.into_iter().take(SHOWN).collect();
    if more > 0 {
        shown.push(format!("and {}", count(more as u64, "line more", "lines more")));
    }
    problem.at("open", shown.join("\n"))
}

/// Returns the command that takes the mark out of a directory.
pub fn unmark(dir: &Path) -> [String; 3] {
    let [from, to] = mark_places(dir).map(|path| path.display().to_string());
    ["mv".to_owned(), from, to]
}

/// Adds to a problem the command that takes the mark out of the store that it met.
pub fn explain(problem: Problem, dir: &Path) -> Problem {
    problem
        .note(format!("with {MARK_FILE} out of the way it is a store again, with all of its records; dendrer fsck looks at them"))
        .help(&unmark(dir).each_ref().map(String::as_str))
}

/// Returns the problem of a log that a mark cuts short; `nothing` is the note on what was not done.
fn hidden_log(code: Code, hidden: &HiddenLog, nothing: &str) -> Problem {
    let why = mark::hides(&hidden.mark).unwrap_or_default();
    let message = format!("{}: {why}", hidden.dir.display());
    explain(Problem::new(code, message).note(nothing), &hidden.dir)
}

/// Why a field is listed.
fn words(reason: EraseReason) -> &'static str {
    match reason {
        EraseReason::Asked => "the place",
        EraseReason::Copy => "contains the value",
        EraseReason::Digest => "digest over the value",
        EraseReason::Part => "contains a part of the value",
        EraseReason::MayFollow => "written after the value",
    }
}

/// Writes places as lines, one for each run, field and reason.
pub fn grouped(places: &[ErasePlace]) -> Vec<String> {
    // A record without a tick, as the beginning of a fork, has a line of its own.
    type Group<'p> = (EraseReason, Option<&'p RunName>, AtKind, &'p Pointer);
    let mut groups: BTreeMap<Group<'_>, Vec<u64>> = BTreeMap::new();
    for place in places {
        let (kind, number) = match place.at {
            Some(RecordAt::Tick(tick)) => (AtKind::Ticks, Some(tick)),
            Some(RecordAt::Refusal(number)) => (AtKind::Refusals, Some(number)),
            None => (AtKind::NoTick, None),
        };
        let group = (place.reason, place.run.as_ref(), kind, &place.place);
        groups.entry(group).or_default().extend(number);
    }
    let line = |((reason, run, kind, place), numbers): (&Group<'_>, &Vec<u64>)| {
        let run = run.map_or("(no run)", |run| run.as_str());
        let at = numbers_words(*kind, numbers);
        format!("{run}  {at}  {}  ({})", escape(&place.dotted()), words(*reason))
    };
    groups.iter().map(line).collect()
}

/// Counter of the numbers in a group of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AtKind {
    NoTick,
    Ticks,
    Refusals,
}

fn numbers_words(kind: AtKind, numbers: &[u64]) -> String {
    let (one, many) = match kind {
        AtKind::NoTick => return "no tick".to_owned(),
        AtKind::Ticks => ("tick", "ticks"),
        AtKind::Refusals => ("refusal", "refusals"),
    };
    match numbers {
        [] => "no tick".to_owned(),
        [only] => format!("{one} {only}"),
        [first, .., last] if last - first + 1 == numbers.len() as u64 => format!("{many} {first}..{last}"),
        [first, .., last] => format!("{} {many} of {first}..{last}", numbers.len()),
    }
}

impl From<EraseError> for Problem {
    fn from(error: EraseError) -> Problem {
        let plain = Problem::new(error.code(), error.to_string());
        match error {
            EraseError::Failed(error) => error.into(),
            EraseError::OfBundle => plain.note("nothing was changed; export the run again after the erasure"),
            EraseError::NoTick => plain.note("nothing was changed"),
            EraseError::NotAPlace { .. } => {
                plain.note("nothing was changed; write result.output, /action/params/token or state.a.b; elsewhere also TICK:PLACE or RUN@TICK:PLACE, and refused:N for the tick of a refusal")
            }
            EraseError::Nothing { run, at, fields, .. } => {
                let fields: Vec<String> = fields.iter().map(Pointer::dotted).collect();
                plain
                    .at("fields", fields.join(", "))
                    .note("nothing was changed")
                    .help(&["dendrer", "show", &format!("{run}@{at}")])
            }
            EraseError::Already { run, at, .. } => {
                plain.note("nothing was changed").help(&["dendrer", "show", &format!("{run}@{at}")])
            }
            EraseError::InReason => plain.note("nothing was changed; the reason stays on record"),
            EraseError::Idle { .. } => plain.note("nothing was changed"),
            EraseError::Open { open } => listed(plain, &open)
                .note("nothing was erased; --also PLACE erases a place as well, --although PLACE lets it stay")
                .note(format!("the places: {}", named(&open).join(" "))),
            EraseError::Vault(_) => plain,
        }
    }
}

/// Returns the note on a place that the caller let stay, and that goes.
pub fn goes_anyway(place: &str) -> String {
    format!("note: --although {}: it goes anyway, with the value", escape(place))
}

/// Returns each open field once, as `--also` and `--although` take it.
fn named(open: &[ErasePlace]) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for place in open {
        // A copy may be in a run that a place without a run does not name.
        let text = match place.reason {
            EraseReason::MayFollow | EraseReason::Part => place.place.dotted(),
            _ => place.address(),
        };
        if !named.contains(&text) {
            named.push(text);
        }
    }
    named
}
