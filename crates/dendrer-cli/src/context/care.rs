//! Follows work on a store: prints notes as they come, and shows progress.

use std::path::Path;

use dendrer::care::{CareNote, Follow};
use dendrer::store::Embedded;
use dendrer::watch::Watch;
use dendrer_view::care::{doubt_words, note_line};

use super::speak;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::{Out, files};
use crate::progress::Progress;

/// Prints what is known before the result of a verb.
pub(crate) struct Follower<'a> {
    global: &'a Global,
    verb: &'static str,
    out: &'a mut Out,
    progress: Option<Progress>,
    /// Why a file may not be made.
    refused: Option<Failure>,
}

impl<'a> Follower<'a> {
    pub(crate) fn new(global: &'a Global, verb: &'static str, out: &'a mut Out) -> Follower<'a> {
        Follower { global, verb, out, progress: None, refused: None }
    }

    /// Ends the work.
    pub(crate) fn end<T, E: Into<Failure>>(self, result: std::result::Result<T, E>) -> Result<T> {
        Ok(self.go_on(result)?.0)
    }

    /// Ends the work, and lets its last stage go on until the progress is dropped.
    pub(crate) fn go_on<T, E: Into<Failure>>(
        self,
        result: std::result::Result<T, E>,
    ) -> Result<(T, Option<Progress>)> {
        match result {
            Ok(done) => Ok((done, self.progress)),
            Err(error) => Err(self.refused.unwrap_or_else(|| error.into())),
        }
    }
}

impl Follow for Follower<'_> {
    fn opened(&mut self, store: &Embedded) {
        speak(self.global, store, store.dir());
    }

    fn note(&mut self, note: &CareNote) {
        self.progress = None;
        match note {
            CareNote::Warning(warning) => self.out.warn(warning.code(), &doubt_words(warning)),
            CareNote::NotRemembered(error) => self.out.warn(error.code(), &error.to_string()),
            note => self.out.say(note_line(note).text()),
        }
    }

    fn stage(&mut self, unit: &'static str, total: Option<u64>) -> Watch {
        // The line of the stage before is wiped first.
        self.progress = None;
        self.progress.insert(Progress::start(self.global, self.verb, unit, total)).watch()
    }

    fn may_make(&mut self, path: &Path) -> bool {
        self.refused = files::makes(path).err();
        self.refused.is_none()
    }
}
