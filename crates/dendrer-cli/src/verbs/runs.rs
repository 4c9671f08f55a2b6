//! `dendrer runs`

use std::collections::BTreeMap;

use dendrer::ask_runs::{self, RunsOrder, RunsQuestion};
use dendrer_view::runs::unclear_line;

use crate::address::Rev;
use crate::args::{Global, RunSort, Runs};
use crate::failure::{Failure, Result};
use crate::open::{self, Source};
use crate::out::Out;
use crate::verified;

pub(crate) fn run(global: &Global, args: &Runs, out: &mut Out) -> Result {
    // A file that does not look like a bundle is read as one all the same: an answer about the store would answer another
    // question.
    let rev = Rev { bundle: args.file.clone(), run: None, pos: None };
    let source = open::source(global, &rev, out)?;
    let store = source.store();
    let question = RunsQuestion {
        filter: args.filter.clone(),
        stage: args.stage,
        unverified: args.unverified,
        order: match args.sort {
            RunSort::Updated => RunsOrder::Updated,
            RunSort::Ticks => RunsOrder::Ticks,
            RunSort::Name => RunsOrder::Name,
        },
        tree: args.tree,
        limit: args.limit,
        verified: match &source {
            Source::Store(_) => verified::known(&open::find(global)?, store.info().id),
            Source::Bundle(_) => BTreeMap::new(),
        },
    };
    let answer = ask_runs::runs(store, &question)?;
    // A condition that cannot be judged for any run is no condition on runs.
    if let Some((run, why)) = answer.unclear.first().filter(|_| answer.unclear.len() == answer.total) {
        let what = format!("the condition cannot be judged for any run, such as {run}");
        return Err(Failure::new("E0509", what)
            .at("why", why.clone())
            .note("a condition is true or false, like ticks > 100"));
    }
    // The document has the list; a reader of stderr is told as well.
    if let Some(line) = unclear_line(&answer).filter(|_| !out.is_text()) {
        out.say(line);
    }
    out.answer(&answer)
}
