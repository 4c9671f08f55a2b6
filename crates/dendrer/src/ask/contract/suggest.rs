//! Fields that decide what happens and that no contract names, found in recorded runs (dendrer paper 4.4 and 11.2).
//!
//! A transition is decided again on the state it was decided on with one field as it was elsewhere: in another run, or at
//! another tick. Where the door, a rule or a predicate then says something else, that field decides, and an import that
//! does not compare it may let a disaster in. No model and no tool is called. What is found is an aid to whoever writes
//! contracts: a field that nothing reads and nobody names cannot be found in this way, and `left_out` says what was not
//! tried.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::contract::DECLARED;
use dendrer_kernel::expr::Expr;
use dendrer_kernel::pack::{Pack, PackEngine, extend};
use dendrer_kernel::predicate::{Predicate, Verdict, Window};
use dendrer_kernel::reduce::{ReduceError, Reducer};
use dendrer_kernel::replay;
use dendrer_kernel::step::{COUNTERS, KERNEL_PATHS};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::{Digest, Intent, Pointer, RunName, TypeName, Value};

use crate::error::Error;
use crate::run::pack;
use crate::run::trace::Trace;

/// How many transitions of a type are looked at in one run, at most twice this many.
const SAMPLES: usize = 32;

/// How many values of a field are tried.
const VALUES: usize = 12;

/// How many pairs of a type and a field are tried.
const PAIRS_MAX: usize = 2000;

/// How many flips are told of one field; the others are counted.
const SHOWN: usize = 3;

/// How many names of a `declared_deps` are looked at.
const NAMED_MAX: usize = 256;

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct SuggestQuestion<'a> {
    /// Only transitions of this type.
    pub only: Option<&'a TypeName>,
    /// How many times a transition is decided again, at most.
    pub tries: u64,
}

/// A field that decides what becomes of transitions of a type and that its contract does not require.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggested {
    /// The type.
    pub type_name: TypeName,
    /// The field.
    pub place: Pointer,
    /// Whether the type has a contract, which lacks it.
    pub has_contract: bool,
    /// How many transitions a predicate or a policy rule judges otherwise with another value of it.
    pub flips: u64,
    /// How many transitions the rules refuse with another value of it, or would not refuse any more.
    pub refusals: u64,
    /// How many transitions change the state otherwise with another value of it.
    pub changes: u64,
    /// How many transitions a model said it decided on it.
    pub named: u64,
    /// How many transitions were decided again.
    pub tried: u64,
    /// Some of the flips and refusals, in order of runs and ticks.
    pub shown: Vec<Flip>,
    /// What reads it.
    pub readers: Vec<String>,
}

/// A transition that would have been judged otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Flip {
    /// Its run.
    pub run: RunName,
    /// Its tick.
    pub tick: u64,
    /// What is otherwise.
    pub what: String,
    /// The value that was tried.
    pub value: Value,
    /// Where that value stood: the state before this tick of this run.
    pub from: (RunName, u64),
}

/// What was not looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Transitions of the runs that were not among those looked at.
    pub transitions: u64,
    /// Other values of fields that were not tried.
    pub values: u64,
    /// Combinations for which there were no tries left.
    pub tries: u64,
    /// Pairs of type and field beyond the limit.
    pub pairs: u64,
    /// Predicates that look at the state before a transition: no transition decides them.
    pub before: Vec<String>,
    /// Runs without a pack.
    pub without: Vec<RunName>,
    /// Where a run could not be read on, and why.
    pub unreadable: Vec<(RunName, u64, String)>,
}

/// What was found.
#[derive(Debug)]
pub struct SuggestFound {
    /// The fields, the most telling first.
    pub items: Vec<Suggested>,
    /// How many transitions were looked at.
    pub transitions: u64,
    /// How many times one was decided again.
    pub tries: u64,
    /// How many pairs of a type and a field that something reads were tried and made no difference.
    pub silent: u64,
    /// How many were not tried: no try was left for them, or the field had no other value anywhere.
    pub untried: u64,
    /// What was not looked at.
    pub left_out: LeftOut,
}

/// What a transition was decided on, and under which rules.
struct Decided {
    run: RunName,
    tick: u64,
    before: Value,
    intent: Intent,
    rules: usize,
}

/// The rules in force for some ticks of a run.
struct Rules {
    pack: Pack,
    reducer: Box<dyn Reducer + Send + Sync>,
    policy: Vec<Predicate>,
}

/// A type and a field.
#[derive(Default)]
struct Pair {
    readers: BTreeSet<String>,
    has_contract: bool,
    /// The transitions to try, by index.
    decided: Vec<usize>,
    named: u64,
}

/// What became of a transition.
struct Outcome {
    /// The predicates that were not violated before, and whether they are after, each by its index.
    brought: BTreeMap<usize, bool>,
    error: Option<String>,
    /// The state after; nothing where the rules met an error.
    after: Option<Value>,
}

/// Looks in runs for fields that decide and that no contract requires.
pub fn suggest(traces: &[Trace], asked: SuggestQuestion<'_>) -> Result<SuggestFound, Error> {
    let mut search = Search { rules: Vec::new(), decided: Vec::new(), left_out: LeftOut::default() };
    for trace in traces {
        search.read(trace, asked.only)?;
    }
    if let (true, Some(first)) = (search.rules.is_empty(), search.left_out.without.first()) {
        return Err(Error::NoContracts { run: first.clone() });
    }
    let mut pairs = search.pairs();
    let beyond = pairs.len().saturating_sub(PAIRS_MAX);
    search.left_out.pairs = beyond as u64;
    while pairs.len() > PAIRS_MAX {
        pairs.pop_last();
    }
    search.run(pairs, asked.tries)
}

struct Search {
    rules: Vec<Rules>,
    decided: Vec<Decided>,
    left_out: LeftOut,
}

impl Search {
    /// Takes a sample of the transitions of a run, each with the state it was decided on.
    fn read(&mut self, trace: &Trace, only: Option<&TypeName>) -> Result<(), Error> {
        let policy: Vec<Predicate> = trace.head(0)?.policy().to_vec();
        let packs = (0..trace.lineage().len()).map(|segment| pack::of_segment(trace, segment));
        let packs: Vec<Option<Pack>> = packs.collect::<Result<_, _>>()?;
        if packs.iter().all(Option::is_none) {
            self.left_out.without.push(trace.name().clone());
            return Ok(());
        }
        let mut samples: BTreeMap<TypeName, Sample> = BTreeMap::new();
        let mut moment = trace.genesis()?;
        let mut stopped = None;
        // The rules of the tick before, with the segment and how many extensions held in it.
        let mut last: Option<((usize, usize), usize)> = None;
        let read = trace.for_each(1, trace.tip(), &mut |tick, record| {
            let segment = trace.segment(tick);
            if let Some(pack) = &packs[segment] {
                let held = (segment, extend::holding(pack.value(), &moment.state, tick).count());
                let known = last.filter(|(of, _)| *of == held).map(|(_, rules)| rules);
                let rules = match known.map_or_else(|| self.rules_at(trace, tick, &moment.state, &policy), Ok)
                {
                    Ok(rules) => rules,
                    Err(error) => {
                        stopped = Some((tick, error.to_string()));
                        return ControlFlow::Break(());
                    }
                };
                last = Some((held, rules));
                match replay::intent(&record, self.rules[rules].reducer.takes_delta()) {
                    Ok(Some(intent)) if only.is_none_or(|only| *only == intent.type_name) => {
                        let (run, before) = (trace.name().clone(), moment.state.clone());
                        let sample = samples.entry(intent.type_name.clone()).or_default();
                        sample.take(Decided { run, tick, before, intent, rules });
                    }
                    Ok(_) => {}
                    Err(error) => {
                        stopped = Some((tick, error.to_string()));
                        return ControlFlow::Break(());
                    }
                }
            }
            match moment.advance(&record) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    stopped = Some((tick, error.to_string()));
                    ControlFlow::Break(())
                }
            }
        });
        read?;
        if let Some((tick, why)) = stopped {
            self.left_out.unreadable.push((trace.name().clone(), tick, why));
        }
        for sample in samples.into_values() {
            self.left_out.transitions += sample.seen - sample.kept.len() as u64;
            self.decided.extend(sample.kept);
        }
        Ok(())
    }

    /// Takes in the rules of a tick, with what extensions add to them there.
    fn rules_at(
        &mut self,
        trace: &Trace,
        tick: u64,
        before: &Value,
        policy: &[Predicate],
    ) -> Result<usize, Error> {
        let pack = pack::in_force(trace, tick, before)?.expect("its segment has a pack");
        let (reducer, policy) = (pack.reducer(), policy.to_vec());
        self.rules.push(Rules { pack, reducer, policy });
        Ok(self.rules.len() - 1)
    }

    /// Every type with every field that something reads, or a model named, and that its contract does not require.
    fn pairs(&mut self) -> BTreeMap<(TypeName, Pointer), Pair> {
        let mut pairs: BTreeMap<(TypeName, Pointer), Pair> = BTreeMap::new();
        let mut known: BTreeMap<(usize, TypeName), Vec<(Pointer, String)>> = BTreeMap::new();
        for (index, one) in self.decided.iter().enumerate() {
            let rules = &self.rules[one.rules];
            let type_name = &one.intent.type_name;
            let contract = rules.pack.contracts.types.get(type_name);
            let is_required = |place: &Pointer| {
                contract.is_some_and(|contract| {
                    contract.required.iter().any(|field| Pointer::of(field.name.split('.')).contains(place))
                })
            };
            let reads =
                known.entry((one.rules, type_name.clone())).or_insert_with(|| reads(rules, type_name));
            let named = named(&one.intent, &one.before);
            let named_too = named.iter().map(|place| (place.clone(), None));
            let places = reads.iter().map(|(place, reader)| (place.clone(), Some(reader))).chain(named_too);
            for (place, reader) in places.filter(|(place, _)| is_ours(place) && !is_required(place)) {
                let pair = pairs.entry((type_name.clone(), place)).or_default();
                pair.has_contract |= contract.is_some();
                pair.named += u64::from(reader.is_none());
                pair.readers.extend(reader.cloned());
                if pair.decided.last() != Some(&index) {
                    pair.decided.push(index);
                }
            }
        }
        let before = self.rules.iter().flat_map(|rules| &rules.pack.predicates);
        let before = before.filter(|declared| declared.predicate.window() == Window::Before);
        let before: BTreeSet<String> = before.map(|declared| declared.predicate.name().to_owned()).collect();
        self.left_out.before = before.into_iter().collect();
        pairs
    }

    /// Tries every pair with as many values as there are tries, one more of each in turn.
    fn run(mut self, pairs: BTreeMap<(TypeName, Pointer), Pair>, tries: u64) -> Result<SuggestFound, Error> {
        let mut values: BTreeMap<Pointer, Vec<(Value, usize)>> = BTreeMap::new();
        for (_, place) in pairs.keys() {
            if !values.contains_key(place) {
                let found = self.values(place);
                values.insert(place.clone(), found);
            }
        }
        let mut trials: Vec<Trial<'_>> = pairs
            .iter()
            .map(|((type_name, place), pair)| Trial::new(type_name, place, pair, &values[place]))
            .collect();
        let mut outcomes: Vec<Option<Outcome>> = self.decided.iter().map(|_| None).collect();
        let (mut left, mut round, mut more) = (tries, 0, true);
        while more && left > 0 {
            more = false;
            for trial in &mut trials {
                if round >= trial.combinations() {
                    continue;
                }
                if left == 0 {
                    break;
                }
                more = true;
                left -= u64::from(trial.try_one(round, &self.decided, &self.rules, &mut outcomes)?);
            }
            round += 1;
        }
        let spent = tries - left;
        let whole: u64 = trials.iter().map(|trial| trial.combinations() as u64).sum();
        let done: u64 = trials.iter().map(|trial| trial.done).sum();
        self.left_out.tries = whole - done;
        let (items, rest): (Vec<_>, Vec<_>) = trials
            .into_iter()
            .map(|trial| trial.finish(&self.decided))
            .partition(|one| one.flips + one.refusals + one.changes + one.named > 0);
        let (silent, untried): (Vec<_>, Vec<_>) = rest.into_iter().partition(|one| one.tried > 0);
        let mut items = items;
        let rank = |one: &Suggested| {
            let weight = [one.flips, one.refusals, one.named, one.changes];
            (std::cmp::Reverse(weight), one.type_name.clone(), one.place.clone())
        };
        items.sort_by_key(rank);
        Ok(SuggestFound {
            items,
            transitions: self.decided.len() as u64,
            tries: spent,
            silent: silent.len() as u64,
            untried: untried.len() as u64,
            left_out: self.left_out,
        })
    }

    /// The values that a place had before the transitions looked at, each once, of as many runs as there are.
    fn values(&mut self, place: &Pointer) -> Vec<(Value, usize)> {
        let mut seen: BTreeSet<Digest> = BTreeSet::new();
        let mut by_run: BTreeMap<&RunName, Vec<(Value, usize)>> = BTreeMap::new();
        for (index, one) in self.decided.iter().enumerate() {
            if let Some(value) = place.get(&one.before)
                && seen.insert(value.digest())
            {
                by_run.entry(&one.run).or_default().push((value.clone(), index));
            }
        }
        let longest = by_run.values().map(Vec::len).max().unwrap_or(0);
        let in_turn =
            (0..longest).flat_map(|nth| by_run.values().filter_map(move |values| values.get(nth).cloned()));
        let mut values: Vec<(Value, usize)> = in_turn.collect();
        self.left_out.values += values.len().saturating_sub(VALUES) as u64;
        values.truncate(VALUES);
        values
    }
}

/// Some of the transitions of a type in a run, evenly spread.
struct Sample {
    kept: Vec<Decided>,
    every: u64,
    seen: u64,
}

impl Default for Sample {
    fn default() -> Sample {
        Sample { kept: Vec::new(), every: 1, seen: 0 }
    }
}

impl Sample {
    fn take(&mut self, one: Decided) {
        if self.seen.is_multiple_of(self.every) {
            if self.kept.len() == 2 * SAMPLES {
                let mut nth = 0;
                self.kept.retain(|_| {
                    nth += 1;
                    nth % 2 == 1
                });
                self.every *= 2;
            }
            if self.seen.is_multiple_of(self.every) {
                self.kept.push(one);
            }
        }
        self.seen += 1;
    }
}

/// What is ours to require: a field, and not what the kernel writes.
fn is_ours(place: &Pointer) -> bool {
    place.tokens().next().is_some_and(|top| *top != *COUNTERS && !KERNEL_PATHS.contains(&&*top))
}

/// The places that rules for a type, predicates and policy rules look at, each with what does.
fn reads(rules: &Rules, type_name: &TypeName) -> Vec<(Pointer, String)> {
    let mut reads: Vec<(Pointer, String)> = Vec::new();
    let declared = rules.pack.predicates.iter().map(|declared| (&declared.predicate, "predicate"));
    let policy = rules.policy.iter().map(|rule| (rule, "policy rule"));
    for (predicate, what) in declared.chain(policy) {
        let reader = format!("{what} {}", predicate.name());
        let places = predicate.expr().into_iter().flat_map(Expr::read_set);
        reads.extend(places.map(|place| (place.clone(), reader.clone())));
    }
    for place in rules.pack.may_read(type_name, None).unwrap_or_default() {
        reads.push((place, format!("rules for {type_name}")));
    }
    // A module may look at everything: what it looks at is found by trying.
    let modules = rules.pack.predicates.iter().map(|declared| &declared.predicate);
    let modules = modules.filter(|predicate| predicate.expr().is_none());
    let modules = modules.map(|predicate| format!("predicate {}", predicate.name()));
    let module = (rules.pack.engine == PackEngine::Wasm).then(|| format!("the module for {type_name}"));
    for reader in modules.chain(module) {
        reads.extend(rules.pack.fields.iter().map(|field| (Pointer::of([&*field.stored()]), reader.clone())));
    }
    reads
}

/// The fields that a model said it looked at, as far as they are there.
fn named(intent: &Intent, before: &Value) -> BTreeSet<Pointer> {
    let declared = intent.member("intent").and_then(|intent| intent.get(DECLARED)).and_then(Value::as_array);
    let names = declared.into_iter().flat_map(|names| names.iter().take(NAMED_MAX)).filter_map(Value::as_str);
    names.map(|name| Pointer::of(name.split('.'))).filter(|place| place.get(before).is_some()).collect()
}

/// A pair on its way through the combinations of transitions and values.
struct Trial<'s> {
    type_name: &'s TypeName,
    place: &'s Pointer,
    pair: &'s Pair,
    values: &'s [(Value, usize)],
    done: u64,
    tried: BTreeSet<usize>,
    flips: BTreeMap<usize, Vec<(String, usize)>>,
    refusals: BTreeMap<usize, Vec<(String, usize)>>,
    changes: BTreeSet<usize>,
}

impl<'s> Trial<'s> {
    fn new(
        type_name: &'s TypeName,
        place: &'s Pointer,
        pair: &'s Pair,
        values: &'s [(Value, usize)],
    ) -> Trial<'s> {
        let (flips, refusals) = (BTreeMap::new(), BTreeMap::new());
        let (done, tried, changes) = (0, BTreeSet::new(), BTreeSet::new());
        Trial { type_name, place, pair, values, done, tried, flips, refusals, changes }
    }

    fn combinations(&self) -> usize {
        self.pair.decided.len() * self.values.len()
    }

    /// Tries the next combination, and tells whether anything had to be decided again.
    fn try_one(
        &mut self,
        round: usize,
        decided: &[Decided],
        rules: &[Rules],
        outcomes: &mut [Option<Outcome>],
    ) -> Result<bool, Error> {
        self.done += 1;
        let many = self.pair.decided.len();
        let index = self.pair.decided[round % many];
        // Each transition begins with another value, so that few tries see many.
        let value_at = (round / many + round % many) % self.values.len();
        let (value, _) = &self.values[value_at];
        let one = &decided[index];
        if self.place.get(&one.before) == Some(value) {
            return Ok(false);
        }
        let Ok(before) = Delta(vec![Op::set(self.place.clone(), value.clone())]).apply(&one.before) else {
            // What it would lie in is not there.
            return Ok(false);
        };
        let rules = &rules[one.rules];
        let there = |error: Error| error.stopped_at(&one.run, one.tick);
        if outcomes[index].is_none() {
            outcomes[index] = Some(decide(rules, &one.before, &one.intent).map_err(there)?);
        }
        let other = decide(rules, &before, &one.intent).map_err(there)?;
        self.tried.insert(index);
        if let Some(recorded) = &outcomes[index] {
            self.note(index, value_at, rules, recorded, &other);
        }
        Ok(true)
    }

    fn note(&mut self, index: usize, value: usize, rules: &Rules, recorded: &Outcome, other: &Outcome) {
        match (&recorded.error, &other.error) {
            (None, Some(why)) => {
                self.refusals.entry(index).or_default().push((format!("the rules refuse it: {why}"), value));
                return;
            }
            (Some(why), None) => {
                self.refusals
                    .entry(index)
                    .or_default()
                    .push((format!("the rules do not refuse it: {why}"), value));
                return;
            }
            (Some(_), Some(_)) => return,
            (None, None) => {}
        }
        let names: Vec<&Predicate> = judges(rules).collect();
        for (at, brought) in &recorded.brought {
            let Some(now) = other.brought.get(at).filter(|now| *now != brought) else { continue };
            let name = names[*at].name();
            let what = match now {
                true => format!("it brings about {name}"),
                false => format!("it does not bring about {name}"),
            };
            debug_assert_ne!(now, brought);
            self.flips.entry(index).or_default().push((what, value));
        }
        // Whatever stands in the field itself differs by what was tried.
        if let (Some(recorded), Some(other)) = (&recorded.after, &other.after)
            && without(recorded, self.place) != without(other, self.place)
        {
            self.changes.insert(index);
        }
    }

    fn finish(self, decided: &[Decided]) -> Suggested {
        let mut shown: Vec<Flip> = Vec::new();
        for (index, flips) in self.flips.iter().chain(&self.refusals) {
            let (one, (what, value)) = (&decided[*index], &flips[0]);
            let (value, source) = &self.values[*value];
            if shown.len() < SHOWN {
                shown.push(Flip {
                    run: one.run.clone(),
                    tick: one.tick,
                    what: what.clone(),
                    value: value.clone(),
                    from: (decided[*source].run.clone(), decided[*source].tick),
                });
            }
        }
        Suggested {
            type_name: self.type_name.clone(),
            place: self.place.clone(),
            has_contract: self.pair.has_contract,
            flips: self.flips.len() as u64,
            refusals: self.refusals.len() as u64,
            changes: self.changes.len() as u64,
            named: self.pair.named,
            tried: self.tried.len() as u64,
            shown,
            readers: self.pair.readers.iter().cloned().collect(),
        }
    }
}

/// The predicates and policy rules that look at the state after a transition.
fn judges(rules: &Rules) -> impl Iterator<Item = &Predicate> {
    let declared = rules.pack.predicates.iter().map(|declared| &declared.predicate);
    declared.chain(&rules.policy).filter(|predicate| predicate.window() == Window::After)
}

/// Decides a transition on a state: what the rules make of it, and what is then violated that was not. Fails where a limit
/// ended a module: what it would have decided is not known.
fn decide(rules: &Rules, before: &Value, intent: &Intent) -> Result<Outcome, Error> {
    let reduced = rules.reducer.reduce(before, intent);
    let reduced = reduced.and_then(|delta| Ok(delta.apply(before)?));
    let after = match reduced {
        Ok(reduced) => reduced,
        Err(ReduceError::Stopped(stopped)) => return Err(stopped.into()),
        Err(error) => {
            return Ok(Outcome { brought: BTreeMap::new(), error: Some(error.to_string()), after: None });
        }
    };
    let mut brought = BTreeMap::new();
    for (at, predicate) in judges(rules).enumerate() {
        // What is violated already is not decided by this transition, and what cannot be judged is not known.
        let is_asked = predicate.is_for(Some(&intent.type_name));
        let judge = |state: &Value| {
            let judged = predicate.judge(state, None);
            judged.map_err(|stopped| Error::from(stopped).asked_as(predicate.name()))
        };
        if !is_asked || judge(before)? != Verdict::Ok {
            continue;
        }
        match judge(&after)? {
            Verdict::Ok => drop(brought.insert(at, false)),
            Verdict::Violation => drop(brought.insert(at, true)),
            Verdict::Uncertain(_) => {}
        }
    }
    Ok(Outcome { brought, error: None, after: Some(after) })
}

/// The digest of a state but for one place.
fn without(state: &Value, place: &Pointer) -> Digest {
    let left = Delta(vec![Op { path: place.clone(), action: Action::Remove, value: None }]).apply(state);
    left.unwrap_or_else(|_| state.clone()).digest()
}

/// The words for a place as a contract names it.
pub fn field_name(place: &Pointer) -> String {
    let names: Vec<Arc<str>> = place.tokens().map(|token| Arc::from(&*token)).collect();
    names.iter().map(|name| &**name).collect::<Vec<_>>().join(".")
}
