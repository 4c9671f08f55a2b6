//! The store or the bundle that is served, and the questions that it is asked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dendrer::address::Address;
use dendrer::problem::Problem;
use dendrer::source::{QuestionPlace, StoreDesk};
use dendrer::store::{RunSummary, Store};
use dendrer::trace::Trace;
use dendrer::trust::Trust;
use dendrer::watch::Watch;
use dendrer_object::{Digest, Value};
use dendrer_view::ask::{AnsweredQuestion, ask, draw};
use dendrer_view::quote;

/// The store or the bundle of a server.
#[derive(Debug)]
pub struct Served {
    place: QuestionPlace,
    trust: Arc<dyn Trust>,
}

impl Served {
    /// Opens a store by its directory, or a bundle by its file, for reading.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the path is neither, or cannot be read.
    pub fn open(path: &Path, trust: Arc<dyn Trust>) -> Result<Served, Problem> {
        // The path of a bundle is printed as it was given.
        let place = match path.is_file() {
            true => path.to_owned(),
            false => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        };
        Ok(Served { place: QuestionPlace::open_untouched(&place, &trust)?, trust })
    }

    /// Asks a question that is given as its document. `watch` counts and stops what is read.
    ///
    /// # Errors
    ///
    /// The [`Problem`] of the command that asks the same.
    pub(crate) fn ask(&self, question: &Value, watch: Watch) -> Result<AnsweredQuestion, Problem> {
        let mut desk = StoreDesk::new(&self.place, &self.trust).confined(watch);
        ask(question, &mut desk).map_err(|problem| self.placed(problem))
    }

    /// Draws the answer of a question that is given as its document.
    ///
    /// # Errors
    ///
    /// The [`Problem`] of the command that draws the same.
    pub(crate) fn draw(&self, question: &Value, watch: Watch) -> Result<String, Problem> {
        let mut desk = StoreDesk::new(&self.place, &self.trust).confined(watch);
        draw(question, &mut desk).map_err(|problem| self.placed(problem))
    }

    /// Names the bundle in the commands of a problem.
    fn placed(&self, problem: Problem) -> Problem {
        match &self.place {
            QuestionPlace::Bundle(opened) => {
                problem.help_in(&opened.path.display().to_string(), &opened.runs)
            }
            QuestionPlace::Store(_) => problem,
        }
    }

    /// Returns a handle that has everything committed so far.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the store cannot be read.
    pub(crate) fn reader(&self) -> Result<Arc<dyn Store>, Problem> {
        match &self.place {
            QuestionPlace::Store(repo) => Ok(repo.reader()?),
            QuestionPlace::Bundle(opened) => Ok(Arc::clone(&opened.store)),
        }
    }

    /// Returns a run by its name, with its last tick.
    ///
    /// # Errors
    ///
    /// The problem of a run that is not there.
    pub(crate) fn run(&self, store: &Arc<dyn Store>, name: &str) -> Result<(RunSummary, u64), Problem> {
        let address = Address::parse(name)?;
        let trace = Trace::open(store, &address.run_in(store, &[])?)?;
        Ok((trace.summary().clone(), trace.tip()))
    }

    /// Returns the tag of an answer: another one once anything was committed.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the store cannot be read.
    pub(crate) fn tag(&self, question: &Value) -> Result<String, Problem> {
        let tree = self.reader()?.tree();
        let text = format!("{}\n{}\n{}", tree.size, tree.root, quote::json(question));
        Ok(format!("\"{}\"", &Digest::of(text.as_bytes()).hex()[..32]))
    }

    /// The directory of the store; `None` for a bundle.
    pub(crate) fn dir(&self) -> Option<PathBuf> {
        match &self.place {
            QuestionPlace::Store(repo) => repo.dir().map(Path::to_owned),
            QuestionPlace::Bundle(_) => None,
        }
    }

    /// Keys and remembered heads.
    pub(crate) fn trust(&self) -> &Arc<dyn Trust> {
        &self.trust
    }
}
