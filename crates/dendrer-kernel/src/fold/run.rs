//! Running rules: one transition, one state, one delta.

use dendrer_object::delta::{Action, Delta, DeltaErrorKind, Op};
use dendrer_object::number::Number;
use dendrer_object::record::Author;
use dendrer_object::{Intent, Pointer, Value, tag};

use super::target::{Segment, Target};
use super::{
    Act, EACH_ITEMS_MAX, EVALUATION_STEPS_MAX, Fold, Rule, STATE_SIZE_MAX, Step, Template, WRITES_MAX,
    WRITTEN_SIZE_MAX, Write, is_finer, kind, quantize, transition, transition_for,
};
use crate::asked::AskedOf;
use crate::calls;
use crate::expr::{Budget, Env, EvalError, Expr, Truth};
use crate::names::UNKNOWN;
use crate::reduce::{ReduceError, ReducedDelta, Rounding};
use crate::sealed::{self, Met};
use crate::unknown::{
    self, NO_RESULT, NOT_READ, READS_UNKNOWN, RESULT_AMBIGUOUS, RULE_FAILED, UnknownPlaces,
};

/// Returns what the rules write for this transition on this state, and reports each rule that writes by its index.
///
/// A rule that reads an unknown place writes nothing, and the places it writes to are unknown from then on, for the rules
/// after it as well (design, section 7).
pub(super) fn reduce(
    fold: &Fold,
    before: &Value,
    intent: &Intent,
    tick: u64,
    wrote: &mut dyn FnMut(usize),
) -> Result<ReducedDelta, ReduceError> {
    Run::new(fold, before, intent, Budget::new(EVALUATION_STEPS_MAX)).every(intent, tick, wrote)
}

/// As [`reduce`] by the rules of version 2 of the kernel: of a line with several calls, a rule that reads `t.action` runs once for
/// each call, in order; the others run with the last one (design, 14.1).
pub(super) fn reduce_each(
    fold: &Fold,
    before: &Value,
    intent: &Intent,
    tick: u64,
    wrote: &mut dyn FnMut(usize),
) -> Result<ReducedDelta, ReduceError> {
    let mut run = Run::new(fold, before, intent, Budget::new(EVALUATION_STEPS_MAX));
    run.rounds = true;
    let calls = calls::each(intent);
    if calls.is_empty() {
        return run.every(intent, tick, wrote);
    }
    let line = run.t.clone();
    let mut states = Vec::with_capacity(calls.len());
    for (at, call) in calls.iter().enumerate() {
        states.push(run.state.clone());
        let alone = transition(call);
        for (index, rule) in fold.rules_for(intent) {
            run.t = match rule.asked_of {
                AskedOf::EachCall => alone.clone(),
                AskedOf::Line if at + 1 == calls.len() => line.clone(),
                AskedOf::Line => continue,
            };
            run.one(index, rule, tick, wrote)?;
        }
    }
    Ok(ReducedDelta { before_calls: states, ..run.finish()? })
}

/// Returns what is unknown after a transition for which a rule gave an error. No rule of the transition writes, so the
/// targets of every rule are unknown that wrote, or may have: its `when` is true, cannot be judged, or reads what such a
/// rule writes.
pub(super) fn unknown_after_error(fold: &Fold, before: &Value, intent: &Intent, tick: u64) -> UnknownPlaces {
    let mut run = Run::new(fold, before, intent, Budget::new(EVALUATION_STEPS_MAX));
    let (mut wrote, mut rest): (Vec<&Rule>, Vec<&Rule>) = fold
        .rules_for(intent)
        .map(|(_, rule)| rule)
        .partition(|rule| rule.when.as_ref().is_none_or(|when| run.holds(when) != Ok(false)));
    let places = |rules: &[&Rule]| rules.iter().flat_map(|rule| targets(rule, before)).collect::<Vec<_>>();
    loop {
        let written = places(&wrote);
        let reads = |rule: &&Rule| {
            let read_set = rule.when.iter().flat_map(|when| when.read_set());
            read_set.into_iter().any(|read| written.iter().any(|place| place.overlaps(read)))
        };
        let (more, others) = rest.into_iter().partition::<Vec<_>, _>(reads);
        rest = others;
        if more.is_empty() {
            break;
        }
        wrote.extend(more);
    }
    let mut unknown = UnknownPlaces::of(before);
    for place in places(&wrote) {
        unknown.mark(place, tick, RULE_FAILED);
    }
    unknown
}

/// Returns the targets of rules that would have applied to what is missing in a transition: to the result of each of its
/// calls, whatever it was, or to an item that could not be read. `state` is that after the transition.
///
/// The state at the tick at which a result would have come is not known, so a `when` that reads the state cannot be judged.
pub(super) fn unknown_by_gap(fold: &Fold, state: &Value, intent: &Intent) -> Vec<Pointer> {
    match unknown::gap(intent) {
        Some(NOT_READ) => return fold.rules.iter().flat_map(|rule| targets(rule, state)).collect(),
        // Rules that read of which call it is meet that while they run.
        Some(RESULT_AMBIGUOUS) => return Vec::new(),
        _ => {}
    }
    let Some(action) = intent.member("action") else { return Vec::new() };
    let calls = action.get("calls").and_then(Value::as_array);
    let calls: Vec<Value> =
        calls.map_or_else(|| vec![action.clone()], |calls| calls.iter().cloned().collect());
    places_of_results(fold, state, &intent.agent, calls)
}

/// The targets of rules that apply to results of some calls, if nothing of the result and of the state is known.
fn places_of_results(
    fold: &Fold,
    state: &Value,
    agent: &str,
    calls: impl IntoIterator<Item = Value>,
) -> Vec<Pointer> {
    let mut everything = UnknownPlaces::default();
    everything.mark(Pointer::root(), 0, NO_RESULT);
    let later = Value::record(everything.to_value().map(|marks| (UNKNOWN, marks)));
    let result_of = |call: Value| {
        let type_name = "action.result".parse().expect("a type of the ontology");
        let members = vec![("action".into(), call), ("result".into(), tag::gap("no_result", ""))];
        Intent { author: Author::Runtime, members, ..Intent::new(type_name, agent) }
    };
    let mut places = Vec::new();
    for result in calls.into_iter().map(result_of) {
        let mut run = Run::new(fold, &later, &result, Budget::new(EVALUATION_STEPS_MAX));
        for (_, rule) in fold.rules_for(&result) {
            if rule.when.as_ref().is_none_or(|when| run.holds(when) != Ok(false)) {
                places.extend(targets(rule, state));
            }
        }
    }
    places
}

/// Returns the places that rules may write for the results of the calls of a request, of which the tool alone is known: a request
/// counts as writing them (design, 14.1).
pub(super) fn may_write(fold: &Fold, state: &Value, request: &Intent) -> Vec<Pointer> {
    let tool = |call: &Value| {
        let tool = call.get("tool").cloned();
        Value::record(tool.map(|tool| ("tool", tool)))
    };
    let written = request.member(calls::ACTION).map(calls::written).unwrap_or_default();
    places_of_results(fold, state, &request.agent, written.into_iter().map(tool))
}

/// The places that a rule writes to, each cut at its first computed segment and at a list.
fn targets(rule: &Rule, state: &Value) -> Vec<Pointer> {
    let mut found = Vec::new();
    rule.for_each_target(&mut |target| {
        let top = tag::stored_name(&target.field);
        let mut tokens: Vec<&str> = vec![&top];
        let mut value = state.get(&top);
        for segment in &target.segments {
            match segment {
                Segment::Name(name) if !matches!(value, Some(Value::Array(_))) => {
                    tokens.push(name);
                    value = value.and_then(|value| value.get(name));
                }
                _ => break,
            }
        }
        found.push(Pointer::of(tokens));
    });
    found
}

/// Runs the rules again and returns the places of the state that those which applied looked at: their conditions, and the steps
/// that ran. With a field, only of rules that wrote below it. Places that rules wrote themselves on the way are among them.
pub(crate) fn reads(fold: &Fold, before: &Value, intent: &Intent, field: Option<&str>) -> Vec<Pointer> {
    let mut run = Run::new(fold, before, intent, Budget::new(EVALUATION_STEPS_MAX).watching());
    let mut found = Vec::new();
    for (_, rule) in fold.rules_for(intent) {
        let written = run.delta.len();
        let applied = run.rule(rule);
        let seen = run.budget.take_seen();
        let in_field = |op: &Op| op.path.tokens().next().as_deref() == field;
        if !matches!(applied, Ok(false)) && (field.is_none() || run.delta[written..].iter().any(in_field)) {
            found.extend(seen);
        }
        if applied.is_err() {
            break;
        }
    }
    found
}

/// Why a step gave nothing, and where.
struct Failed {
    step: Option<String>,
    met: Met,
}

impl Failed {
    fn within(self, index: usize, rule: &str) -> ReduceError {
        let place = match &self.step {
            Some(step) => format!("{rule}, step {step}"),
            None => rule.to_owned(),
        };
        ReduceError::Rule { place, rule: Some(index + 1), step: self.step, met: Box::new(self.met) }
    }

    fn at(self, step: &str) -> Failed {
        Failed { step: Some(self.step.unwrap_or_else(|| step.to_owned())), ..self }
    }
}

impl From<Met> for Failed {
    fn from(met: Met) -> Failed {
        Failed { step: None, met }
    }
}

struct Run<'a> {
    fold: &'a Fold,
    before: &'a Value,
    state: Value,
    t: Value,
    /// The values that steps named, innermost last.
    names: Vec<(&'a str, Value)>,
    delta: Vec<Op>,
    /// The bytes of the values in the delta.
    written: u64,
    budget: Budget,
    /// The places of the state that are unknown.
    unknown: UnknownPlaces,
    /// Whether the rule met an unknown place.
    met_unknown: bool,
    /// Whether it is not known which call the transition answers: what rules read of the call is a gap.
    is_ambiguous: bool,
    /// Whether numbers that are finer than their field are reported, as by version 2 of the kernel's rules.
    rounds: bool,
    /// The values that a `set` rounded.
    rounded: Vec<Rounding>,
    /// The fields to which a finer number was added.
    finer: Vec<Pointer>,
}

/// The place that a target resolves to in the current state.
struct Place {
    pointer: Pointer,
    /// The value at this place.
    found: Option<Value>,
}

impl<'a> Run<'a> {
    fn new(fold: &'a Fold, before: &'a Value, intent: &Intent, budget: Budget) -> Run<'a> {
        let is_ambiguous = unknown::is_ambiguous(intent);
        let of = |intent: &Intent| transition_for(intent, fold.reads_calls());
        Run {
            fold,
            before,
            state: before.clone(),
            t: if is_ambiguous { without_call(of(intent)) } else { of(intent) },
            names: Vec::new(),
            delta: Vec::new(),
            written: 0,
            budget,
            unknown: UnknownPlaces::of(before),
            met_unknown: false,
            is_ambiguous,
            rounds: false,
            rounded: Vec::new(),
            finer: Vec::new(),
        }
    }

    /// Runs each rule for a transition once, and returns what they wrote.
    fn every(
        mut self,
        intent: &Intent,
        tick: u64,
        wrote: &mut dyn FnMut(usize),
    ) -> Result<ReducedDelta, ReduceError> {
        for (index, rule) in self.fold.rules_for(intent) {
            self.one(index, rule, tick, wrote)?;
        }
        self.finish()
    }

    /// Runs a rule, and marks its targets as unknown if it read an unknown place.
    fn one(
        &mut self,
        index: usize,
        rule: &'a Rule,
        tick: u64,
        wrote: &mut dyn FnMut(usize),
    ) -> Result<(), ReduceError> {
        let already = (self.delta.len(), self.written);
        let (state, unknown) = (self.state.clone(), self.unknown.clone());
        self.met_unknown = false;
        match self.rule(rule) {
            Ok(_) => {}
            // If the call that is answered is not known, a rule that cannot be run counts as one that looked at the call.
            Err(_) if self.met_unknown || self.is_ambiguous => {
                self.delta.truncate(already.0);
                (self.state, self.unknown, self.written) = (state, unknown, already.1);
                let code = if self.is_ambiguous { RESULT_AMBIGUOUS } else { READS_UNKNOWN };
                for place in targets(rule, &self.state) {
                    self.unknown.mark(place, tick, code);
                }
                self.show_unknown();
            }
            Err(error) => return Err(error.within(index, &rule.place)),
        }
        if self.delta.len() > already.0 {
            wrote(index);
        }
        Ok(())
    }

    /// Returns what the rules wrote, if the state after it is not too large.
    fn finish(self) -> Result<ReducedDelta, ReduceError> {
        let size = self.state.size();
        if !self.delta.is_empty() && size > STATE_SIZE_MAX {
            let message = format!("the state would have {size} bytes; at most {STATE_SIZE_MAX} are allowed");
            let met = Met { word: sealed::LARGE, at: Some("state".to_owned()), message };
            let (place, rule, step) = ("the rules".to_owned(), None, None);
            return Err(ReduceError::Rule { place, rule, step, met: Box::new(met) });
        }
        let (delta, unknown) = (Delta(self.delta), self.unknown);
        Ok(ReducedDelta {
            delta,
            unknown,
            rounded: self.rounded,
            finer: self.finer,
            ..ReducedDelta::default()
        })
    }

    /// Runs a rule and tells whether it applied.
    fn rule(&mut self, rule: &'a Rule) -> Result<bool, Failed> {
        if let Some(when) = &rule.when
            && !self.holds(when).map_err(|met| met.within("when"))?
        {
            return Ok(false);
        }
        let outer = self.names.len();
        let result = self.steps(&rule.steps);
        self.names.truncate(outer);
        result.map(|()| true)
    }

    fn steps(&mut self, steps: &'a [Step]) -> Result<(), Failed> {
        steps.iter().try_for_each(|step| self.step(step).map_err(|error| error.at(&step.number)))
    }

    fn step(&mut self, step: &'a Step) -> Result<(), Failed> {
        let wanted = match &step.condition {
            None => true,
            Some(condition) => self.holds(condition).map_err(|met| met.within("if"))?,
        };
        match &step.act {
            Act::Let(values) => {
                // All are computed before any is named, so that their order in the file means nothing.
                let mut computed = Vec::with_capacity(values.len());
                for (name, value) in values {
                    computed.push((&**name, if wanted { self.named(value)? } else { Value::Null }));
                }
                self.names.extend(computed);
                Ok(())
            }
            _ if !wanted => Ok(()),
            Act::Each { name, list, steps } => self.each(name, list, steps),
            Act::Write { kind, target, optional } => Ok(self.write(kind, target, *optional)?),
        }
    }

    fn each(&mut self, name: &'a str, list: &'a Expr, steps: &'a [Step]) -> Result<(), Failed> {
        let list = self.listed(list)?;
        let Some(items) = list.as_array() else {
            let message = format!("each goes through a list, and `in` gives {}", kind(&list));
            return Err(Met { word: sealed::KIND, at: None, message }.into());
        };
        if items.len() > EACH_ITEMS_MAX {
            let message =
                format!("each goes through at most {EACH_ITEMS_MAX} items, and there are {}", items.len());
            return Err(Met { word: sealed::LARGE, at: None, message }.into());
        }
        let outer = self.names.len();
        for item in items.iter() {
            self.names.push((name, item.clone()));
            self.steps(steps)?;
            self.names.truncate(outer);
        }
        Ok(())
    }

    fn write(&mut self, kind: &'a Write, target: &'a Target, optional: bool) -> Result<(), Met> {
        let missing = |why: Met| if optional { Ok(()) } else { Err(why) };
        let place = match self.find(target)? {
            Ok(place) => place,
            Err(why) => return missing(why),
        };
        let is_unknown = self.unknown.meets(&place.pointer).is_some();
        if is_unknown && matches!(kind, Write::Remove | Write::Add(_)) {
            // Whether there is something, and what, is read here.
            return Err(self.meet_unknown(&place.pointer));
        }
        let op = |action, value| Op { action, path: place.pointer.clone(), value };
        let nothing = || nothing_at(&place.pointer);
        let op = match kind {
            Write::Set(value) => {
                let exact = self.written(value)?;
                let value = self.quantized(target, exact.clone())?;
                if self.rounds && self.is_finer(target, &exact) {
                    self.rounded.push(Rounding {
                        path: place.pointer.clone(),
                        from: exact,
                        to: value.clone(),
                    });
                }
                if is_unknown {
                    self.unknown.clear(&place.pointer);
                    self.show_unknown();
                }
                if place.found.as_ref() == Some(&value) {
                    return Ok(());
                }
                op(Action::Set, Some(value))
            }
            Write::Append(value) => op(Action::Append, Some(self.written(value)?)),
            Write::Remove if place.found.is_none() => return missing(nothing()),
            Write::Remove => op(Action::Remove, None),
            Write::Add(value) => {
                let Some(found) = &place.found else { return missing(nothing()) };
                let value = self.written(value)?;
                if self.rounds && self.is_finer(target, &value) {
                    self.finer.push(place.pointer.clone());
                }
                let at = Some(place.pointer.dotted());
                let plain = sum(found, &value).map_err(|met| Met { at, ..met })?;
                let rounded = self.quantized(target, plain.clone())?;
                if rounded == *found {
                    return Ok(());
                }
                // The change is the number that was added; the rounded sum only if the field's decimals make a
                // difference.
                match rounded == plain {
                    true => op(Action::Add, Some(value)),
                    false => op(Action::Set, Some(rounded)),
                }
            }
        };
        match self.apply(op) {
            // The value in the way may be a stale one.
            Err(_) if is_unknown => Err(self.meet_unknown(&place.pointer)),
            applied => applied,
        }
    }

    /// Notes that the rule met an unknown place, and says which.
    fn meet_unknown(&mut self, place: &Pointer) -> Met {
        self.met_unknown = true;
        Met::new(sealed::UNKNOWN, place, format!("{} is unknown", place.dotted()))
    }

    /// Lets expressions see which places are unknown.
    fn show_unknown(&mut self) {
        let change = self.unknown.change_of(&self.state);
        self.state = change.apply(&self.state).expect("a member that only the kernel writes");
    }

    fn apply(&mut self, op: Op) -> Result<(), Met> {
        if self.delta.len() == WRITES_MAX {
            let message = format!("the rules write at most {WRITES_MAX} times for one transition");
            return Err(Met { word: sealed::STEPS, at: None, message });
        }
        let place = op.path.clone();
        let one = Delta(vec![op]);
        self.state = one.apply(&self.state).map_err(|error| {
            let word = match error.why {
                DeltaErrorKind::Missing => sealed::MISSING,
                DeltaErrorKind::TooDeep => sealed::DEEP,
                DeltaErrorKind::Overflow => sealed::NOT_FINITE,
                _ => sealed::KIND,
            };
            Met::new(word, &place, format!("at {}: {}", place.dotted(), error.why))
        })?;
        self.delta.extend(one.0);
        Ok(())
    }

    fn quantized(&self, target: &Target, value: Value) -> Result<Value, Met> {
        let rule = self.fold.decimals.iter().find(|(field, _)| *field == target.field);
        match rule {
            Some((_, decimals)) if target.segments.is_empty() => Ok(quantize(value, *decimals)?),
            _ => Ok(value),
        }
    }

    /// Whether a number is finer than the decimals of the field that it is written to.
    fn is_finer(&self, target: &Target, value: &Value) -> bool {
        let rule = self.fold.decimals.iter().find(|(field, _)| *field == target.field);
        rule.is_some_and(|(_, decimals)| target.segments.is_empty() && is_finer(value, *decimals))
    }

    /// Follows a target through the state as it is. The inner error is a place that is not there.
    fn find(&mut self, target: &'a Target) -> Result<Result<Place, Met>, Met> {
        let top = tag::stored_name(&target.field);
        let mut tokens = vec![top.to_string()];
        let mut found = self.state.get(&top).cloned();
        let place_of = |tokens: &[String]| Pointer::of(tokens.iter().map(String::as_str));
        for segment in &target.segments {
            let (token, next) = match segment {
                Segment::Name(name) => match &found {
                    Some(Value::Array(_)) => {
                        let place = place_of(&tokens);
                        if self.unknown.meets(&place).is_some() {
                            return Err(self.meet_unknown(&place));
                        }
                        let message = format!("{} is a list; it has no member {name}", place.dotted());
                        return Err(Met::new(sealed::KIND, &place, message));
                    }
                    Some(value) => (name.to_string(), value.get(name).cloned()),
                    None => (name.to_string(), None),
                },
                Segment::Index(expr) => {
                    let index = self.evaluate(expr)?;
                    let place = place_of(&tokens);
                    if matches!(index, Value::Number(_)) && self.unknown.meets(&place).is_some() {
                        return Err(self.meet_unknown(&place));
                    }
                    match self.index(&index, found.as_ref(), &place) {
                        Ok(Ok(step)) => step,
                        Ok(Err(why)) => return Ok(Err(why)),
                        // The list that is in the way may be a stale one.
                        Err(_)
                            if matches!(index, Value::String(_)) && self.unknown.meets(&place).is_some() =>
                        {
                            return Err(self.meet_unknown(&place));
                        }
                        Err(why) => return Err(why),
                    }
                }
                Segment::First { name, condition } => {
                    let place = place_of(&tokens);
                    if self.unknown.meets(&place).is_some() {
                        return Err(self.meet_unknown(&place));
                    }
                    let list = match found {
                        Some(Value::Array(list)) => list,
                        None => return Ok(Err(nothing_at(&place))),
                        Some(other) => {
                            let what = kind(&other);
                            let message =
                                format!("{} is {what}; `first` looks through a list", place.dotted());
                            return Err(Met::new(sealed::KIND, &place, message));
                        }
                    };
                    // Which one is the first is known from all before it.
                    self.budget.look(|| Pointer::of(tokens.iter().map(String::as_str)));
                    let mut first = None;
                    for (index, item) in list.iter().enumerate() {
                        self.names.push((name, item.clone()));
                        let holds = self.holds(condition);
                        self.names.pop();
                        if holds? {
                            first = Some((index.to_string(), Some(item.clone())));
                            break;
                        }
                    }
                    match first {
                        Some(step) => step,
                        None => {
                            let text = condition.text().trim();
                            let message = format!("no item of {} has {text}", place.dotted());
                            return Ok(Err(Met::new(sealed::MISSING, &place, message)));
                        }
                    }
                }
            };
            tokens.push(token);
            found = next;
        }
        Ok(Ok(Place { pointer: Pointer::of(tokens.iter().map(String::as_str)), found }))
    }

    /// Goes down by a computed name or index. The inner error is a place that is not there.
    fn index(
        &self,
        index: &Value,
        found: Option<&Value>,
        place: &Pointer,
    ) -> Result<Result<(String, Option<Value>), Met>, Met> {
        let here = place.dotted();
        let kind_of = |message: String| Err(Met::new(sealed::KIND, place, message));
        match (index, found) {
            (Value::String(_), Some(Value::Array(_))) => {
                kind_of(format!("{here} is a list; its items are found by number or by [first x: ...]"))
            }
            (Value::String(name), _) => {
                let name = tag::stored_name(name);
                Ok(Ok((name.to_string(), found.and_then(|value| value.get(&name)).cloned())))
            }
            (Value::Number(_), Some(Value::Array(list))) => {
                let item = index.as_u64().and_then(|at| list.get(usize::try_from(at).ok()?));
                Ok(match item {
                    Some(item) => Ok((index.to_string(), Some(item.clone()))),
                    None => {
                        let message = format!("{here} has {} items, there is no item {index}", list.len());
                        Err(Met::new(sealed::MISSING, place, message))
                    }
                })
            }
            (Value::Number(_), None) => Ok(Err(nothing_at(place))),
            (Value::Number(_), Some(other)) => kind_of(format!(
                "{here} is {}, not a list; a member is named by text, not by {index}",
                kind(other)
            )),
            (other, _) => {
                kind_of(format!("a place below {here} is named by text or a number, not by {}", kind(other)))
            }
        }
    }

    /// Computes a value that is to be written. Its size is looked at before anything walks it: a few definitions,
    /// each of which contains the one before it twice, make a value that no memory holds.
    fn written(&mut self, template: &Template) -> Result<Value, Met> {
        let value = self.value(template)?;
        self.written = self.written.saturating_add(value.size());
        if self.written > WRITTEN_SIZE_MAX {
            let message = format!("the rules write at most {WRITTEN_SIZE_MAX} bytes for one transition");
            return Err(Met { word: sealed::LARGE, at: None, message });
        }
        Ok(value)
    }

    fn value(&mut self, template: &Template) -> Result<Value, Met> {
        let env = env(&self.state, self.before, &self.t, &self.names);
        let value = compute(template, &env.env(), &mut self.budget);
        self.note_unknown(value)
    }

    /// Computes a value that is named and not written: times and declared moments stay what they are.
    fn named(&mut self, template: &Template) -> Result<Value, Met> {
        let env = env(&self.state, self.before, &self.t, &self.names);
        let value = compute_by(template, &env.env(), &mut self.budget, Expr::evaluate_for_rules);
        self.note_unknown(value)
    }

    /// Computes the list whose items are named.
    fn listed(&mut self, expr: &Expr) -> Result<Value, Met> {
        let env = env(&self.state, self.before, &self.t, &self.names);
        let value = expr.evaluate_for_rules(&env.env(), &mut self.budget);
        self.note_unknown(value)
    }

    fn evaluate(&mut self, expr: &Expr) -> Result<Value, Met> {
        let env = env(&self.state, self.before, &self.t, &self.names);
        let value = expr.evaluate(&env.env(), &mut self.budget);
        self.note_unknown(value)
    }

    /// Notes whether an error is that of an unknown place.
    fn note_unknown<T>(&mut self, found: Result<T, EvalError>) -> Result<T, Met> {
        if let Err(EvalError::Uncertain(why)) = &found {
            self.met_unknown |= why.unknown.is_some();
        }
        found.map_err(say)
    }

    fn holds(&mut self, expr: &Expr) -> Result<bool, Met> {
        let env = env(&self.state, self.before, &self.t, &self.names);
        match expr.holds(&env.env(), &mut self.budget) {
            Truth::True => Ok(true),
            Truth::False => Ok(false),
            Truth::Uncertain(why) => self.note_unknown(Err(EvalError::Uncertain(why))),
            Truth::Exhausted => Err(say(EvalError::Exhausted)),
        }
    }
}

/// A transition whose call is not known: each member of its action that the call would give is a gap.
fn without_call(t: Value) -> Value {
    let Value::Object(mut members) = t else { return t };
    let mut action = members.get("action").and_then(Value::as_object).cloned().unwrap_or_default();
    if action.iter().any(|(name, _)| tag::is_tag_name(name)) {
        return Value::Object(members);
    }
    for name in ["call_id", "params", "tool"] {
        if !action.contains_key(name) {
            action.set(name, tag::gap(RESULT_AMBIGUOUS, ""));
        }
    }
    members.set("action", Value::Object(action));
    Value::Object(members)
}

/// The environment of an expression of a rule.
struct RuleEnv<'e> {
    state: &'e Value,
    others: Vec<(&'e str, &'e Value)>,
}

fn env<'e>(state: &'e Value, before: &'e Value, t: &'e Value, names: &'e [(&str, Value)]) -> RuleEnv<'e> {
    let named = names.iter().map(|(name, value)| (*name, value));
    RuleEnv { state, others: [("t", t), ("before", before)].into_iter().chain(named).collect() }
}

impl RuleEnv<'_> {
    fn env(&self) -> Env<'_> {
        Env { others: &self.others, ..Env::of(self.state) }
    }
}

/// Computes a template.
pub(crate) fn compute(template: &Template, env: &Env<'_>, budget: &mut Budget) -> Result<Value, EvalError> {
    compute_by(template, env, budget, Expr::evaluate)
}

type Evaluate = fn(&Expr, &Env<'_>, &mut Budget) -> Result<Value, EvalError>;

fn compute_by(
    template: &Template,
    env: &Env<'_>,
    budget: &mut Budget,
    evaluate: Evaluate,
) -> Result<Value, EvalError> {
    match template {
        Template::Literal(value) => Ok(value.clone()),
        Template::Expr(expr) => evaluate(expr, env, budget),
        Template::List(items) => {
            let items = items.iter().map(|item| compute_by(item, env, budget, evaluate));
            Ok(Value::array(items.collect::<Result<Vec<_>, _>>()?))
        }
        Template::Map(members) => {
            let members = members
                .iter()
                .map(|(name, member)| Ok((name.clone(), compute_by(member, env, budget, evaluate)?)));
            Ok(Value::record(members.collect::<Result<Vec<_>, EvalError>>()?))
        }
    }
}

pub(crate) fn say(error: EvalError) -> Met {
    match error {
        EvalError::Exhausted => {
            let message = format!("the rules take more than {EVALUATION_STEPS_MAX} evaluation steps");
            Met { word: sealed::STEPS, at: None, message }
        }
        uncertain => uncertain.into(),
    }
}

fn nothing_at(place: &Pointer) -> Met {
    Met::new(sealed::MISSING, place, format!("there is nothing at {}", place.dotted()))
}

/// One IEEE double addition, as `add` of a delta does it.
fn sum(a: &Value, b: &Value) -> Result<Value, Met> {
    let number = |value: &Value| {
        value.as_f64().ok_or_else(|| {
            let message = DeltaErrorKind::NotNumber(value.type_name()).to_string();
            Met { word: sealed::KIND, at: None, message }
        })
    };
    let sum = number(a)? + number(b)?;
    Number::from_f64(sum).map(Value::Number).ok_or_else(|| Met {
        word: sealed::NOT_FINITE,
        at: None,
        message: DeltaErrorKind::Overflow.to_string(),
    })
}
