//! Gates: whether an expression over the steps of a run holds, and which steps the answer reads (witness-log paper 3.3).
//!
//! A step that is not taken for what it claims ([`StepDoubt`]) is unknown. A gate passes or fails only where it does whatever
//! such steps were: any asked type, succeeded or failed, or none at all. Else it is open.
//!
//! Rule: a gate never passes on nothing; test `a_gate_over_no_steps_never_passes`.

use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use dendrer_chain::ActionType;
use dendrer_kernel::expr::{Budget, Env, Expr, ExprError, Scope, Truth};
use dendrer_kernel::step::COUNTERS;
use dendrer_object::record::Author;
use dendrer_object::{Code, Pointer, Value, tag};
use regex::Regex;

use crate::ask::prose::{count, results_under};
use crate::ask::steps::each_step;
use crate::error::Error;
use crate::run::trace::Trace;
use crate::run::witness::{StepDoubt, WitnessStep};

pub mod question;

/// The root of all steps.
const STEPS: &str = "steps";

/// A type in quotes is what `by_action` takes.
static BY_ACTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\bby_action\s*\(\s*(?:"([^"\\]*)"|'([^'\\]*)'|)"#).expect("a pattern of this file")
});

/// How many steps an expression may look at: a number of evaluation steps for each recorded step.
const BUDGET: u64 = 100_000_000;

/// An expression that is asked of a run.
#[derive(Debug, Clone)]
pub struct Gate {
    expr: Expr,
    /// Whether it names what must be true; else what must not.
    holds: bool,
    /// The types of steps that it asks for.
    actions: Vec<ActionType>,
    /// Whether it looks at all steps.
    reads_all: bool,
}

/// An expression that cannot be asked of steps.
#[derive(Debug, Clone, thiserror::Error)]
pub enum GateError {
    /// It is no expression.
    #[error("{}", .0.message)]
    Expr(ExprError),
    /// `by_action` has no type in quotes, or an unknown one.
    #[error("by_action takes the type of a step in quotes, like by_action(\"eval_phase\"){0}")]
    Action(String),
}

impl GateError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            GateError::Expr(error) => error.code,
            GateError::Action(_) => Code::E0502,
        }
    }
}

/// What came of a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateVerdict {
    /// The expression holds.
    Passed,
    /// It does not.
    Failed,
    /// It would pass on nothing: no step is of this type, or it asks something of all of none.
    NoSteps(String),
    /// It met something that it cannot judge.
    Uncertain(String),
}

/// A gate that was asked.
#[derive(Debug, Clone)]
pub struct JudgedGate {
    /// The expression.
    pub expression: String,
    /// What came of it.
    pub verdict: GateVerdict,
    /// The steps that it asks for, in the order of ticks.
    pub steps: Vec<GateStep>,
    /// The tick whose state it reads.
    pub tick: u64,
    /// The places of the state that it reads, each with its value there; `None` if it has none.
    pub places: Vec<(Pointer, Option<Value>)>,
    /// How many results have a status that was read from prose, if the expression uses it.
    pub from_text: u64,
}

/// A step that a gate reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateStep {
    /// The tick.
    pub tick: u64,
    /// Its type; `None` if it is not known.
    pub action: Option<ActionType>,
    /// Its name.
    pub name: String,
    /// Whether it succeeded; `None` where nothing says it.
    pub success: Option<bool>,
    /// The author; `None` for an imported row, which does not state one.
    pub author: Option<Author>,
    /// The agent.
    pub agent: Option<Arc<str>>,
    /// Why it is not taken for what it claims.
    pub doubt: Option<StepDoubt>,
}

impl GateStep {
    /// Whether the step may be of a type.
    fn may_be(&self, action: ActionType) -> bool {
        self.doubt == Some(StepDoubt::HashWrong) || self.action.is_none_or(|own| own == action)
    }
}

impl Gate {
    /// Reads an expression. `holds` says that it names what must be true.
    pub fn new(text: &str, holds: bool, allow_empty: bool) -> Result<Gate, GateError> {
        let expr = Expr::parse_condition(text, &scope(allow_empty).map_err(GateError::Expr)?)
            .map_err(GateError::Expr)?;
        let mut actions = Vec::new();
        for found in BY_ACTION.captures_iter(text) {
            let Some(name) = found.get(1).or(found.get(2)) else {
                return Err(GateError::Action(String::new()));
            };
            let action =
                ActionType::read(name.as_str()).map_err(|error| GateError::Action(format!("; {error}")))?;
            if !actions.contains(&action) {
                actions.push(action);
            }
        }
        // Names of definitions are written out in the text, so what is left of `steps` was written by the caller.
        let reads_all = Regex::new(r"\bsteps\b").expect("a pattern").is_match(text);
        Ok(Gate { expr, holds, actions, reads_all })
    }

    /// The places of the state that the expression reads, with their values.
    fn places(&self, (state, counters): (&Value, &Value)) -> Vec<(Pointer, Option<Value>)> {
        let served = Value::record([(COUNTERS, counters.clone())]);
        let read = self.expr.read_set().iter().filter(|path| !path.as_str().is_empty());
        let read = read.map(|path| (path.clone(), path.get(state).cloned()));
        let counted = self.expr.counters_read().map(|name| {
            let path = Pointer::of([COUNTERS, name]);
            let value = path.get(&served).cloned();
            (path, value)
        });
        read.chain(counted).collect()
    }

    fn asks_for(&self, step: &WitnessStep) -> bool {
        // A row that is not sound may have been of any type.
        self.reads_all
            || step.doubt == Some(StepDoubt::HashWrong) && !self.actions.is_empty()
            || step.action().is_none_or(|action| self.actions.contains(&action))
    }
}

fn scope(allow_empty: bool) -> Result<Scope, ExprError> {
    // Steps of which it is not known do not count, as in `steps --stats`. The rate of no steps is 1 in a chain; a gate that asks for it
    // is uncertain.
    let known = "list.filter(s, s.success == true || s.success == false)";
    let rate = format!("double(size(list.filter(s, s.success == true))) / double(size({known}))");
    let rate = if allow_empty { format!("size({known}) == 0 ? 1.0 : {rate}") } else { rate };
    Scope::new().root(STEPS).define("by_action", &["action"], "steps.filter(s, s.action == action)")?.define(
        "success_rate",
        &["list"],
        &rate,
    )
}

/// Asks gates of a run up to a tick.
pub fn judge(
    (trace, upto): (&Trace, u64),
    gates: &[Gate],
    allow_empty: bool,
) -> Result<Vec<JudgedGate>, Error> {
    let mut read: Vec<ReadStep> = Vec::new();
    let mut known: Vec<GateStep> = Vec::new();
    let mut asked: Vec<Vec<GateStep>> = vec![Vec::new(); gates.len()];
    each_step((trace, upto), &mut |recorded| {
        let step = GateStep {
            tick: recorded.tick,
            action: recorded.action(),
            name: recorded.step.name.clone(),
            success: recorded.success,
            author: recorded.author,
            agent: recorded.agent.clone(),
            doubt: recorded.doubt,
        };
        for (gate, asked) in gates.iter().zip(&mut asked) {
            asked.extend(gate.asks_for(&recorded).then(|| step.clone()));
        }
        read.extend(ReadStep::before(&recorded));
        read.push(ReadStep::of(&recorded));
        known.push(step);
        ControlFlow::Continue(())
    })?;
    let moment = trace.at(upto)?;
    let counters = moment.served();
    let unfinished = trace.missing_to(upto)?;
    let texts = gates.iter().map(|gate| match gate.reads_all || !gate.actions.is_empty() {
        // Whether a step succeeded is the status of its result.
        true => count(trace, upto),
        false => results_under(trace, [&gate.expr], gate.expr.read_set(), upto),
    });
    let texts = texts.collect::<Result<Vec<u64>, Error>>()?;
    let judged = gates.iter().zip(asked).zip(texts).map(|((gate, steps), from_text)| {
        let (truth, is_vacuous) = gate.truth(&read, (&moment.state, &counters));
        let missing = gate.actions.iter().find(|action| !known.iter().any(|step| step.may_be(**action)));
        let is_passed =
            |value: bool| if value == gate.holds { GateVerdict::Passed } else { GateVerdict::Failed };
        let hidden = gate.expr.hidden_counter(&moment.counters);
        let verdict = match (&truth, missing) {
            _ if let Some(hidden) = hidden => {
                GateVerdict::Uncertain(missing_words(hidden.tick, &hidden.pointer))
            }
            _ if let Some(found) = unfinished => GateVerdict::Uncertain(found.words()),
            (_, Some(action)) if !allow_empty => GateVerdict::NoSteps(format!("no step is a {action}")),
            (_, None) if gate.reads_all && known.is_empty() && !allow_empty => {
                GateVerdict::NoSteps("there is no step".to_owned())
            }
            (Ok(holds), _) if is_vacuous && !allow_empty && is_passed(*holds) == GateVerdict::Passed => {
                GateVerdict::NoSteps("it would pass on an empty list".to_owned())
            }
            (Ok(holds), _) => is_passed(*holds),
            (Err(why), _) => GateVerdict::Uncertain(why.clone()),
        };
        let (places, tick) = (gate.places((&moment.state, &counters)), upto);
        JudgedGate { expression: gate.expr.text().to_owned(), verdict, steps, tick, places, from_text }
    });
    Ok(judged.collect())
}

/// Names a value that is erased or withheld.
fn missing_words(tick: u64, place: &Pointer) -> String {
    format!("{} of tick {tick} was erased or withheld", place.dotted())
}

/// How many ways of reading the steps in doubt are tried. With more of them, they are unknown in one reading.
const READINGS_MAX: usize = 1_000;

/// A step as expressions see it.
struct ReadStep {
    value: Value,
    action: Option<ActionType>,
    doubt: Option<StepDoubt>,
}

impl ReadStep {
    fn of(recorded: &WitnessStep) -> ReadStep {
        let row = recorded.step.to_row_as_is();
        let mut members = row.to_value().ok().and_then(|row| row.as_object().cloned()).unwrap_or_default();
        members.set("tick", Value::from(recorded.tick));
        members.set("derived", Value::from(recorded.derived));
        members.set("success", recorded.success.map_or(Value::Null, Value::from));
        members.set("author", Value::from(recorded.author.map_or(UNSTATED, Author::as_str)));
        members.set("agent", recorded.agent.as_deref().map_or(Value::Null, Value::from));
        // A member that is not known makes an expression that looks at it uncertain.
        for name in &recorded.unknown {
            members.set(name, tag::gap("withheld", ""));
        }
        ReadStep { value: Value::Object(members), action: recorded.action(), doubt: recorded.doubt }
    }

    /// A step in the place of rows that are missing before the first: they may have been of any type.
    fn before(recorded: &WitnessStep) -> Option<ReadStep> {
        let value = recorded.is_behind.then(|| ReadStep::of(recorded).unknown())?;
        Some(ReadStep { value, action: None, doubt: Some(StepDoubt::HashWrong) })
    }

    /// The step with nothing known of it but where it is and who recorded it.
    fn unknown(&self) -> Value {
        let mut members = self.value.as_object().cloned().unwrap_or_default();
        let names: Vec<Arc<str>> = members.iter().map(|(name, _)| Arc::clone(name)).collect();
        let is_known = |name: &str| KNOWN_ALWAYS.contains(&name);
        for name in names.iter().filter(|name| !is_known(name)) {
            members.set(name, tag::gap("withheld", ""));
        }
        Value::Object(members)
    }

    /// Every way of reading the step, given the types that a gate asks for; `None` is that there was no such step.
    fn readings(&self, asked: &[ActionType]) -> Vec<Option<Value>> {
        let Some(doubt) = self.doubt else { return vec![Some(self.value.clone())] };
        // A header of another chain is a line and no step.
        if doubt == StepDoubt::OtherChain && self.action.is_none() {
            return vec![None];
        }
        if matches!(doubt, StepDoubt::Repeated | StepDoubt::OtherChain) {
            return vec![Some(self.value.clone()), None];
        }
        let words: Vec<Value> = match (doubt, self.action) {
            (StepDoubt::Claimed, Some(action)) => vec![Value::from(action.as_str())],
            _ => asked.iter().map(|action| Value::from(action.as_str())).chain([Value::from("")]).collect(),
        };
        let mut readings = vec![None];
        for word in &words {
            for success in [true, false] {
                let mut members = self.unknown().as_object().cloned().unwrap_or_default();
                members.set("action", word.clone());
                members.set("success", Value::from(success));
                readings.push(Some(Value::Object(members)));
            }
        }
        readings
    }
}

/// The author of an imported row.
const UNSTATED: &str = "unstated";

/// The members of a step that are known with any content of its row.
const KNOWN_ALWAYS: [&str; 4] = ["tick", "derived", "author", "agent"];

impl Gate {
    /// Evaluates the expression, and returns whether it looked at an empty list alone. With steps in doubt, it is true or false only
    /// if it is so in each way of reading them.
    fn truth(&self, steps: &[ReadStep], (state, counters): (&Value, &Value)) -> (Result<bool, String>, bool) {
        let evaluate = |steps: Value| {
            let env = Env { state, counters: Some(counters), others: &[(STEPS, &steps)] };
            let mut budget = Budget::new(BUDGET);
            (said(self.expr.holds(&env, &mut budget)), budget.is_vacuous())
        };
        let readings: Vec<Vec<Option<Value>>> =
            steps.iter().map(|step| step.readings(&self.actions)).collect();
        let count = readings.iter().try_fold(1usize, |count, one| {
            count.checked_mul(one.len()).filter(|count| *count <= READINGS_MAX)
        });
        let in_doubt = || {
            let doubted = steps.iter().filter(|step| step.doubt.is_some());
            let ticks = doubted.filter_map(|step| step.value.get("tick")?.as_u64());
            let ticks: Vec<String> = ticks.take(8).map(|tick| tick.to_string()).collect();
            Err::<bool, String>(format!("it depends on steps in doubt, at tick {}", ticks.join(", ")))
        };
        let Some(count) = count else {
            let unknown = |step: &ReadStep| match step.doubt {
                Some(_) => step.unknown(),
                None => step.value.clone(),
            };
            let (truth, is_vacuous) = evaluate(Value::array(steps.iter().map(unknown)));
            return (truth.or_else(|_| in_doubt()), is_vacuous);
        };
        let reading = |mut number: usize| {
            let chosen = readings.iter().filter_map(|ways| {
                let way = &ways[number % ways.len()];
                number /= ways.len();
                way.clone()
            });
            Value::array(chosen.collect::<Vec<_>>())
        };
        let mut found: Option<(Result<bool, String>, bool)> = None;
        for number in 0..count {
            let (truth, is_vacuous) = evaluate(reading(number));
            match &found {
                None => found = Some((truth, is_vacuous)),
                Some((first, _)) if *first == truth => {}
                Some(_) => return (in_doubt(), false),
            }
            if count > 1 && !matches!(found, Some((Ok(_), _))) {
                return (in_doubt(), false);
            }
        }
        found.unwrap_or_else(|| (in_doubt(), false))
    }
}

/// The value of an expression; an error is why it has no value.
fn said(truth: Truth) -> Result<bool, String> {
    match truth {
        Truth::True => Ok(true),
        Truth::False => Ok(false),
        Truth::Uncertain(why) => Err(why.to_string()),
        Truth::Exhausted => Err("it takes too many steps".to_owned()),
    }
}
