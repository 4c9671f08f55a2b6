//! The runs that use one budget: a delegated run, its forks, its children, what was reduced from it, and theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::commitment::{CONTRACT, Used};
use dendrer_object::record::Author;
use dendrer_object::{ORIGIN, Record, RunName, TypeName, Value};
use dendrer_store::{Head, Store};

use crate::error::Error;
use crate::run::trace::{Trace, read};

/// How many runs are read from the store at once.
const BATCH: usize = 256;

/// How a run branched off another one.
#[derive(Debug, Clone, Copy)]
enum Branch {
    /// A fork, at a tick of the run.
    Fork(u64),
    /// A delegated run.
    Child,
    /// A run with the transitions of the run.
    Reduced,
}

/// The forks and children of the runs of a store, as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct Family {
    /// Up to which position the log was read.
    upto: u64,
    /// For each run, those that branched off it.
    branches: BTreeMap<RunName, Vec<(RunName, Branch)>>,
    /// The use by a run itself up to a tick.
    used: BTreeMap<RunName, (u64, Used)>,
}

/// The use by a family.
#[derive(Debug, Default)]
pub(crate) struct FamilyUsed {
    pub(crate) used: Used,
    /// The runs that were counted, with their heads at that moment.
    pub(crate) heads: BTreeMap<RunName, Head>,
}

impl Family {
    /// Returns what a run used together with its forks, its children and what was reduced from it, without what one of them used after
    /// it began.
    pub(crate) fn used_but(
        &mut self,
        store: &Arc<dyn Store>,
        run: &RunName,
        but: Option<&RunName>,
    ) -> Result<FamilyUsed, Error> {
        self.scan(store)?;
        let (mut total, mut open) = (FamilyUsed::default(), vec![(run.clone(), Branch::Child)]);
        let mut seen = BTreeSet::new();
        while let Some((run, branch)) = open.pop() {
            if !seen.insert(run.clone()) {
                continue;
            }
            // The head is read first: if the run continues meanwhile, the append that watches it fails.
            if Some(&run) != but
                && let Some(summary) = store.run(&run)?
            {
                total.heads.insert(run.clone(), summary.head);
                total.used = total.used.and(self.own(store, &run, (branch, summary.head.tick))?);
            }
            open.extend(self.branches.get(&run).cloned().unwrap_or_default());
        }
        Ok(total)
    }

    /// The use by a run after it branched off, up to its head.
    fn own(
        &mut self,
        store: &Arc<dyn Store>,
        run: &RunName,
        (branch, tip): (Branch, Option<u64>),
    ) -> Result<Used, Error> {
        if let Some((_, used)) = self.used.get(run).filter(|(tick, _)| Some(*tick) == tip) {
            return Ok(*used);
        }
        let trace = Trace::open(store, run)?;
        let all = trace.at(trace.tip())?.commitments.used();
        let used = match branch {
            Branch::Fork(tick) => all.without(trace.at(tick.min(trace.tip()))?.commitments.used()),
            Branch::Reduced => all.without(retold(&trace)?),
            Branch::Child => all,
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
                        // A fork from the `run` record has nothing of the run.
                        let branch = Branch::Fork(tick.unwrap_or(0));
                        self.branches.entry(run).or_default().push((summary.name.clone(), branch));
                    }
                    continue;
                }
                let start = read(&**store, summary.begin)?;
                let Some(contract) = start.body().value(&format!("/{CONTRACT}")) else { continue };
                let parent =
                    contract.get("parent").and_then(|parent| parent.get("run")?.as_str()?.parse().ok());
                let source = reduced_from(&start).filter(|source| *source != summary.name);
                let branch = if source.is_some() { Branch::Reduced } else { Branch::Child };
                if let Some(run) = source.or(parent) {
                    self.branches.entry(run).or_default().push((summary.name.clone(), branch));
                }
            }
        }
    }
}

/// The run from which a run was reduced.
pub(super) fn reduced_from(start: &Record) -> Option<RunName> {
    start.body().value("/inputs")?.get("reduced_from")?.get("run")?.as_str()?.parse().ok()
}

/// The use by the transitions that a reduced run has of its source: the run that it was reduced from used it.
pub(super) fn retold(trace: &Trace) -> Result<Used, Error> {
    let mut used = Used::default();
    if reduced_from(trace.start()).is_none() {
        return Ok(used);
    }
    trace.for_each(1, trace.tip(), &mut |_, record| {
        let header = record.header();
        if header.author == Author::Kernel || header.author == Author::Institution {
            return ControlFlow::Continue(());
        }
        let content = record.content();
        if content.get(ORIGIN).and_then(Value::as_str).is_none() {
            return ControlFlow::Break(());
        }
        let type_name = header.type_name.as_ref().map_or("", TypeName::as_str);
        used = used.and(Used::of(header.author, type_name, &content));
        ControlFlow::Continue(())
    })?;
    Ok(used)
}
