//! A store that was restored, or was not.

use std::path::Path;

use dendrer::Error;
use dendrer::care::restore::{NewerRecords, OldPlace, PlacedStore, RestoreError, Restored, UnsoundBackup};
use dendrer::error::TrustError;
use dendrer_object::Value;

use crate::answer::{Answer, Line, Page, Style};
use crate::care::path_json;
use crate::problem::Problem;
use crate::{count, document, mark, quote};

impl Answer for Restored {
    fn document(&self) -> Value {
        document(
            "restore",
            [
                ("path", path_json(&self.path)),
                ("records", Value::from(self.copied.tree.size)),
                ("root", Value::from(self.copied.tree.root)),
                ("signed", Value::from(self.copied.signed)),
                ("last_signed_here", Value::from(self.last_signed_here)),
                ("writable", Value::from(self.refused.is_none())),
                ("aside", self.aside.as_deref().map_or(Value::Null, path_json)),
            ],
        )
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let shown = |path: &Path| quote::escape(&path.display().to_string());
        let place = shown(&self.path);
        let records = count(self.copied.tree.size, "record", "records");
        let root = self.copied.tree.root.short();
        let mut lines = vec![
            Line::styled(Style::Good, "RESTORED")
                .then(format!("  {place}: {records}, root {root}, every one verified")),
        ];
        lines.extend(
            self.aside
                .iter()
                .map(|aside| Line::from(format!("aside     {} is the store that was there", shown(aside)))),
        );
        match &self.refused {
            Some(error) => {
                let problem = Problem::of_error(error);
                let why = problem.place.first().map_or("", |(_, why)| why);
                let why = quote::escape(why);
                lines.push(format!("older     {why}: it is read, and not written to").into());
                lines.push(Line::note(
                    "note: what is written behind an older log would be a second history under one key, so no verb does it",
                ));
            }
            None if !self.has_key => lines.push(Line::note(
                "note: the key of the log is not here; records can be written, and no checkpoint is signed (E0804)",
            )),
            None => {}
        }
        let path = self.path.display().to_string();
        lines.push(Line::help(["dendrer", "verify", "--all", "--store", &path]));
        lines
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
            RestoreError::Hidden(ref hidden) => mark::problem(error.code(), hidden, NOT_RESTORED),
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
            RestoreError::Newer { ref path, ref backup, ref why } => {
                let shown = path.display().to_string();
                let message = format!("{shown} {}", newer_words(why));
                let problem = Problem::new(error.code(), message)
                    .note(NOT_CHANGED)
                    .help(&["dendrer", "backup", "DIR", "--store", &shown]);
                again(problem, backup)
            }
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
pub(crate) fn unsound(why: &UnsoundBackup) -> Problem {
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
