//! The question of `diff` as data.

use std::ops::ControlFlow;

use dendrer_object::{Code, question};

use super::place::{ignored_place, place};
use super::{DiffAlign, DiffKind, DiffReport, DiffTerms, Pair, STATE, diff};
use crate::address::{Address, Position};
use crate::ask::named::resolve;
use crate::ask::predicates::PredicateTested;
use crate::ask::steps::{CoherenceSummary, coherence_summary};
use crate::ask::thread::thread_name;
use crate::casebook::Place;
use crate::error::Error;
use crate::problem::Problem;
use crate::run::frontier::is_graph;
use crate::run::trace::Trace;
use crate::source::{Asked, Desk, exclude, in_order};

question! {
    /// Asks how two runs differ
    pub struct DiffQuestion: "diff-question" {
        /// One run, as an address that may end it; called a in the answer
        pub run_a: String,
        /// The other, called b
        pub run_b: String,
        /// The first tick of a
        pub from: Option<Position>,
        /// The last tick of a; transitions of b after the one that is lined up with it are left out
        pub to: Option<Position>,
        /// The kinds of difference; all if not given
        pub r#type: Vec<DiffKind>,
        /// The way in which transitions are lined up; two threads by step if not given, any others by tick
        pub align: Option<DiffAlign>,
        /// The places that are left out
        pub ignore: Vec<String>,
        /// The only place that is compared
        pub path: Option<String>,
        /// A predicate whose verdicts on both runs are listed: a name, or an expression that names the violation
        pub predicate: Option<String>,
        /// Whether the coherence of their steps is compared instead
        pub coherence: bool,
        /// Whether pairs are counted by type of transition, and not listed
        pub stat: bool,
        /// Whether only counts are listed
        pub summary: bool,
        /// Whether the answer, without its pairs, is written into the casebook
        pub record: bool,
        /// The number of pairs at most; 0 for all, 1000 if not given
        pub limit: Option<u64>,
    }
}

/// The number of pairs if none is given.
const LIMIT: u64 = 1000;

/// The answer to a diff.
#[derive(Debug, Clone)]
pub enum DiffReply {
    /// Two runs that are compared pair by pair.
    Runs(Box<ComparedRuns>),
    /// The coherence of both.
    Coherence([CoherenceSummary; 2]),
}

/// Two runs, and the terms on which they are compared.
#[derive(Debug, Clone)]
pub struct ComparedRuns {
    /// The left run and the right one.
    pub runs: [Trace; 2],
    /// The terms.
    pub terms: DiffTerms,
    /// The verdicts of a predicate on both runs, if they were asked for.
    pub tested: Option<[PredicateTested; 2]>,
}

impl ComparedRuns {
    /// Compares the runs, and hands over each pair that differs or cannot be compared in full.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if a run cannot be read, or that of `take`.
    pub fn each(&self, take: &mut dyn FnMut(&Pair) -> Result<(), Problem>) -> Result<DiffReport, Problem> {
        let [a, b] = &self.runs;
        let mut taken = Ok(());
        let report = diff(a, b, &self.terms, &mut |pair| {
            taken = take(pair);
            if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        taken.map(|()| report)
    }

    /// Returns the moments at which both runs end.
    ///
    /// # Errors
    ///
    /// An error if a record there cannot be read.
    pub fn places(&self) -> Result<[Place; 2], Error> {
        let ([a, b], ends) = (&self.runs, self.terms.ends);
        Ok([Place::of(a, Some(ends.0))?, Place::of(b, Some(ends.1))?])
    }
}

impl Asked for DiffQuestion {
    type Reply = DiffReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<DiffReply, Problem> {
        self.check()?;
        if self.coherence {
            let [a, b] = [desk.judged_up_to(&self.run_a)?, desk.judged_up_to(&self.run_b)?];
            return Ok(DiffReply::Coherence([
                coherence_summary((&a.0, a.1))?,
                coherence_summary((&b.0, b.1))?,
            ]));
        }
        let (rev_a, rev_b) = (Address::parse(&self.run_a)?, Address::parse(&self.run_b)?);
        if self.record && (rev_a.bundle.is_some() || rev_b.bundle.is_some()) {
            return Err(Problem::new(Code::E0601, "a bundle has no casebook to write into")
                .note("--record writes into the store that both runs are recorded in"));
        }
        let source_a = desk.judged(&rev_a)?;
        // Two runs of one place are read from one handle.
        let other = (rev_a.bundle != rev_b.bundle).then(|| desk.judged(&rev_b)).transpose()?;
        let source_b = other.unwrap_or_else(|| source_a.clone());
        let (rev_a, rev_b) = (rev_a.resolve(&source_a.store)?, rev_b.resolve(&source_b.store)?);
        let a = desk.run_in(source_a, &rev_a, "diff")?;
        let b = source_b.trace_through(&a.watch.over(&source_b.store), &rev_b)?;
        desk.reads_run(&b);
        let a = a.trace;
        desk.asks(&a);
        desk.asks(&b);
        let terms = self.terms((&a, end(&a, &rev_a)?), (&b, end(&b, &rev_b)?))?;
        let tested = self
            .predicate
            .as_deref()
            .map(|text| Ok::<_, Problem>([tested(text, &a, terms.ends.0)?, tested(text, &b, terms.ends.1)?]));
        Ok(DiffReply::Runs(Box::new(ComparedRuns { tested: tested.transpose()?, runs: [a, b], terms })))
    }
}

impl DiffQuestion {
    /// Returns the number of pairs that are listed at most.
    pub fn listed(&self) -> usize {
        match self.limit.unwrap_or(LIMIT) {
            0 => usize::MAX,
            limit => usize::try_from(limit).unwrap_or(usize::MAX),
        }
    }

    /// Refuses members that do not go together.
    fn check(&self) -> Result<(), Problem> {
        let predicate = ("--predicate", self.predicate.is_some());
        let (stat, summary) = (("--stat", self.stat), ("--summary", self.summary));
        let record = ("--record", self.record);
        let parts = [
            ("--from", self.from.is_some()),
            ("--type", !self.r#type.is_empty()),
            ("--ignore", !self.ignore.is_empty()),
            ("--path", self.path.is_some()),
        ];
        exclude(predicate, &[record])?;
        exclude(
            ("--coherence", self.coherence),
            &[&parts[..], &[predicate, stat, summary, record]].concat(),
        )?;
        exclude(stat, &[summary])
    }

    /// Resolves ticks and places.
    fn terms(&self, (a, end_a): (&Trace, u64), (b, end_b): (&Trace, u64)) -> Result<DiffTerms, Problem> {
        let tick = |position: &Option<Position>| position.as_ref().map(|at| at.tick(a)).transpose();
        let (from, to) = (tick(&self.from)?, tick(&self.to)?);
        in_order(from.unwrap_or(0), to.unwrap_or(end_a))?;
        let to = to.map(|to| to.min(end_a));
        in_order(from.unwrap_or(0), to.unwrap_or(end_a))?;
        let mut terms = DiffTerms {
            ends: (end_a, end_b),
            from,
            to,
            align: DiffAlign::default(),
            kinds: if self.r#type.is_empty() { DiffKind::ALL.to_vec() } else { self.r#type.clone() },
            ignore: self.ignore.iter().map(|text| ignored_place(text)).collect::<Result<_, _>>()?,
            path: self.path.as_deref().map(place).transpose()?,
        };
        terms.check(a, b)?;
        let are_threads = thread_name(a).is_some() && thread_name(b).is_some();
        let are_graphs = is_graph(a) && is_graph(b);
        // A place of a transition itself is compared with that of the other transition.
        let is_of_state = terms.path.as_ref().is_none_or(|path| path.as_str().starts_with(STATE));
        terms.align = match self.align {
            Some(DiffAlign::Step) if !are_threads => {
                return Err(Problem::new(Code::E0106, "--align step compares two threads of checkpoints"));
            }
            Some(DiffAlign::Edge) if !are_graphs => {
                return Err(Problem::new(Code::E0106, "--align edge compares two runs of graphs"));
            }
            Some(align) => align,
            None if are_threads && is_of_state => DiffAlign::Step,
            None if are_graphs => DiffAlign::Edge,
            None => DiffAlign::Tick,
        };
        Ok(terms)
    }
}

/// Returns the tick that an address names; the last one if it names none.
fn end(trace: &Trace, address: &Address) -> Result<u64, Error> {
    address.pos.as_ref().map_or(Ok(trace.tip()), |position| position.tick(trace))
}

/// Judges one run up to its end; a name is resolved for each run by itself.
fn tested(text: &str, trace: &Trace, end: u64) -> Result<PredicateTested, Problem> {
    Ok(PredicateTested::of(trace, resolve(trace, text)?.predicate, 0, end, None)?)
}
