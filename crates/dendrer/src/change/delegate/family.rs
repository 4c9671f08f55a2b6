//! The runs that use one budget: a delegated run, its forks and its children, and theirs.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_kernel::commitment::{CONTRACT, Used};
use dendrer_object::RunName;
use dendrer_store::Store;

use crate::error::Error;
use crate::run::trace::{Trace, read};

/// How many runs are read from the store at once.
const BATCH: usize = 256;

/// The forks and children of the runs of a store, as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct Family {
    /// Up to which position the log was read.
    upto: u64,
    /// For each run, those that branched off it: a fork with the tick of the run, a child without.
    branches: BTreeMap<RunName, Vec<(RunName, Option<u64>)>>,
    /// What a run used by itself up to a tick.
    used: BTreeMap<RunName, (u64, Used)>,
}

impl Family {
    /// Returns what a run used together with its forks and its children, without what one of them used after it began.
    pub(crate) fn used_but(
        &mut self,
        store: &Arc<dyn Store>,
        run: &RunName,
        but: &RunName,
    ) -> Result<Used, Error> {
        self.scan(store)?;
        let (mut total, mut open) = (Used::default(), vec![(run.clone(), None)]);
        while let Some((run, forked)) = open.pop() {
            if run != *but {
                total = total.and(self.own(store, &run, forked)?);
            }
            open.extend(self.branches.get(&run).cloned().unwrap_or_default());
        }
        Ok(total)
    }

    /// What a run used after it branched off.
    fn own(&mut self, store: &Arc<dyn Store>, run: &RunName, forked: Option<u64>) -> Result<Used, Error> {
        let tip = store.run(run)?.and_then(|summary| summary.head.tick);
        if let Some((_, used)) = self.used.get(run).filter(|(tick, _)| Some(*tick) == tip) {
            return Ok(*used);
        }
        let trace = Trace::open(store, run)?;
        let all = trace.at(trace.tip())?.commitments.used();
        let used = match forked {
            Some(tick) => all.without(trace.at(tick.min(trace.tip()))?.commitments.used()),
            None => all,
        };
        self.used.insert(run.clone(), (trace.tip(), used));
        Ok(used)
    }

    /// Reads the runs that began since.
    fn scan(&mut self, store: &Arc<dyn Store>) -> Result<(), Error> {
        loop {
            let runs = store.runs(self.upto, BATCH)?;
            let Some(last) = runs.last() else { return Ok(()) };
            self.upto = last.begin + 1;
            for summary in &runs {
                if let Some(parent) = summary.parent {
                    let at = store.find(&parent)?.map(|position| read(&**store, position)).transpose()?;
                    let at = at.and_then(|record| Some((record.header().run.clone()?, record.header().tick)));
                    if let Some((run, tick)) = at {
                        self.branches.entry(run).or_default().push((summary.name.clone(), tick));
                    }
                    continue;
                }
                let contract = read(&**store, summary.begin)?.body().value(&format!("/{CONTRACT}"));
                let parent =
                    contract.and_then(|contract| contract.get("parent")?.get("run")?.as_str()?.parse().ok());
                if let Some(parent) = parent {
                    self.branches.entry(parent).or_default().push((summary.name.clone(), None));
                }
            }
        }
    }
}
