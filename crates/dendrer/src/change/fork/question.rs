//! The question of `fork` as data.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_kernel::pack::Bound;
use dendrer_kernel::unknown::{self, Since};
use dendrer_object::document::{Shape, any_of};
use dendrer_object::question::QuestionMember;
use dendrer_object::{Code, Delta, Object, Pointer, RunName, Value, json, question};

use super::{Carried, ForkTerms, Forked, ReplacedAnswer, What, carry_on};
use crate::address::{Address, MADE, Position, state_path};
use crate::change::selection::Selection;
use crate::error::Error;
use crate::problem::Problem;
use crate::record::redacted::beside;
use crate::redact::Redactor;
use crate::repo::Repo;
use crate::repo::new_run::{first_free, is_name_taken, new_name};
use crate::run::pack::reducer_of;
use crate::run::trace::Trace;
use crate::source::{Asked, Desk};

question! {
    /// Asks for a run that continues from an earlier tick of another
    pub struct ForkQuestion: "fork-question" {
        /// The run, as an address
        pub run: String,
        /// The last tick that both share
        pub from: Option<Position>,
        /// The reason
        pub reason: Option<String>,
        /// The values that are enforced, each by a constant of the pack or a place that a policy rule reads; texts of a list are
        /// guidance for the agent, or NAME=JSON
        pub policy: ForkPairs,
        /// Guidance for the agent on its tools
        pub tool_policy: Vec<String>,
        /// Guidance for readers
        pub note: Vec<String>,
        /// Other answers of tools, by the tick of the parent: the output; in a run without rules, "output" and "delta"
        pub tool_output: ForkPairs,
        /// The values that the fork begins with, by their places in the state; a text of a list is PATH=JSON
        pub set: ForkPairs,
        /// The reason why the fork begins although what it sets breaks a rule that the parent keeps
        pub although: Option<String>,
        /// The text of the pack that is in force from here on
        pub contract: Option<String>,
        /// The agent whose state is restored
        pub restore: Option<String>,
        /// The name of the new run; RUN+2 and so on if not given
        pub r#as: Option<String>,
        /// Whether the later intents of the parent are applied again, until one was decided on something else
        pub replay_rest: bool,
        /// Whether an intent that does not fit is left out
        pub skip: bool,
        /// The types of the intents that are applied again; all if not given
        pub only: Vec<String>,
        /// Whether nothing is written
        pub dry_run: bool,
    }
}

/// Names with a value each, in the order in which they were given; a name without a value is a text that the flag takes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForkPairs(pub Vec<(String, Option<Value>)>);

impl Shape for ForkPairs {
    fn schema() -> Value {
        any_of([Object::schema(), Value::record([("type", Value::from("array"))])])
    }

    fn to_value(&self) -> Value {
        let is_object = self.0.iter().all(|(_, value)| value.is_some());
        let pairs = self.0.iter().map(|(name, value)| match value {
            Some(value) => Value::record([(name.as_str(), value.clone())]),
            None => Value::from(name.as_str()),
        });
        match is_object {
            true => {
                Value::record(self.0.iter().filter_map(|(name, value)| Some((name.as_str(), value.clone()?))))
            }
            false => Value::array(pairs),
        }
    }
}

impl QuestionMember for ForkPairs {
    fn kind() -> String {
        "an object, or a list of texts and objects".to_owned()
    }

    fn read(value: &Value) -> Option<ForkPairs> {
        let members = |object: &Object| -> Vec<(String, Option<Value>)> {
            object.iter().map(|(name, value)| (name.to_string(), Some(value.clone()))).collect()
        };
        if let Some(object) = value.as_object() {
            return Some(ForkPairs(members(object)));
        }
        let items = value.as_array()?.iter().map(|item| match item {
            Value::String(text) => Some(vec![(text.to_string(), None)]),
            item => item.as_object().map(members),
        });
        Some(ForkPairs(items.collect::<Option<Vec<_>>>()?.concat()))
    }

    fn absent() -> Option<ForkPairs> {
        Some(ForkPairs::default())
    }

    fn is_absent(&self) -> bool {
        self.0.is_empty()
    }
}

/// A fork that was made, or would be.
#[derive(Debug, Clone)]
pub struct ForkReply {
    /// The run that was forked.
    pub parent: RunName,
    /// The last tick of that run.
    pub parent_tip: u64,
    /// The changes that were asked for.
    pub terms: ForkTerms,
    /// The branch point.
    pub forked: Forked,
    /// The later intents of the parent that were applied again; `None` if that was not asked for.
    pub carried: Option<Carried>,
    /// The extensions of the parent under another pack, each with whether it stays in force.
    pub extensions: Vec<(Value, bool)>,
    /// The last tick of the fork.
    pub tip: u64,
    /// The ticks of the parent whose answer was given as JSON and is put in as a text, as the record holds it.
    pub as_text: Vec<u64>,
    /// The places that are unknown at the end of the fork, and known in the parent.
    pub unknown: Vec<(Pointer, Since)>,
    /// Whether nothing was to be written.
    pub dry_run: bool,
}

impl Asked for ForkQuestion {
    type Reply = ForkReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<ForkReply, Problem> {
        let (reply, repo) = self.make(desk)?;
        if !self.dry_run {
            desk.close(repo)?;
        }
        Ok(reply)
    }
}

impl ForkQuestion {
    /// Makes the fork, and returns it with the store in which it is: a caller that continues the fork closes the store later.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if a member does not fit, or the run cannot be forked.
    pub fn make(&self, desk: &mut dyn Desk) -> Result<(ForkReply, Repo), Problem> {
        self.make_after(desk, &mut |_, _, _| Ok(()))
    }

    /// As [`ForkQuestion::make`], once `check` has looked at the parent, at the tick and at the terms.
    ///
    /// # Errors
    ///
    /// As [`ForkQuestion::make`], and those of `check`; nothing was made then.
    pub fn make_after(
        &self,
        desk: &mut dyn Desk,
        check: ForkCheck<'_>,
    ) -> Result<(ForkReply, Repo), Problem> {
        if !self.tool_output.0.is_empty() && !self.replay_rest {
            return Err(refused("--tool-output is for --replay-rest"));
        }
        let selection = Selection::of(self.skip, &self.only)?;
        let address = Address::parse(&self.run)?;
        if address.bundle.is_some() {
            return Err(refused("a run of a bundle is read; a fork is made of a run of the store"));
        }
        // The parent is read through a handle of its own; the fork is written through another.
        let source = desk.open(&address)?;
        let asked = desk.run_in(source, &address, "fork")?;
        let parent = &asked.trace;
        let tick = asked.one_tick(self.from.as_ref(), "fork needs one tick: --from tick N, or RUN@N")?;
        let name = new_name(self.r#as.as_deref(), parent.name().as_str(), &*asked.source.store)?;
        let (mut terms, as_text) = self.terms(name, parent, desk)?;
        if selection != Selection::default() && !self.replay_rest {
            return Err(refused("--skip and --only choose what --replay-rest takes"));
        }
        terms.selection = selection;
        check(parent, tick, &mut terms)?;
        let repo = desk.target(&asked.source, self.dry_run)?;
        let redactor = terms.redactor_over(repo.redactor(None)?, parent)?;
        terms.redactor = Some(Arc::clone(&redactor));
        let made = match &self.r#as {
            Some(_) => self.make_named(&repo, parent, tick, &terms)?,
            // Another process may take the name meanwhile.
            None => {
                let number = made_number(&terms.run);
                first_free(parent.name(), number, is_name_taken, |run| {
                    terms.run = run;
                    self.make_named(&repo, parent, tick, &terms)
                })?
            }
        };
        let MadeFork { mut forked, carried, extensions, tip, unknown } = made;
        without_secrets(&redactor, &mut terms, &mut forked);
        let (parent, parent_tip, dry_run) = (parent.name().clone(), parent.tip(), self.dry_run);
        let reply = ForkReply {
            parent,
            parent_tip,
            terms,
            forked,
            carried,
            extensions,
            tip,
            as_text,
            unknown,
            dry_run,
        };
        Ok((reply, repo))
    }

    /// Makes the fork under the name of its terms.
    fn make_named(
        &self,
        repo: &Repo,
        parent: &Trace,
        tick: u64,
        terms: &ForkTerms,
    ) -> Result<MadeFork, Error> {
        let (mut recorder, forked) = repo.fork(parent, tick, terms)?;
        let carried = match self.replay_rest {
            true => Some(carry_on(&mut recorder, parent, &forked, terms, !self.dry_run)?),
            false => None,
        };
        let tip = recorder.head().tick();
        let extensions = forked.extensions(&parent.state(forked.tick)?, terms, recorder.head());
        // A place that is unknown in the parent, too, is no consequence of the fork.
        let known = parent.state(if self.replay_rest { parent.tip() } else { tick })?;
        let before = [unknown::listed(&known), unknown::listed(&parent.state(tick)?)].concat();
        let is_new = |place: &Pointer| !before.iter().any(|(known, _)| known == place);
        let mut unknown = unknown::listed(recorder.head().state());
        unknown.retain(|(place, _)| is_new(place));
        match self.dry_run {
            true => drop(recorder.discard()),
            false => drop(recorder.commit()?),
        }
        Ok(MadeFork { forked, carried, extensions, tip, unknown })
    }

    fn terms(
        &self,
        name: RunName,
        parent: &Trace,
        desk: &dyn Desk,
    ) -> Result<(ForkTerms, Vec<u64>), Problem> {
        let mut terms = ForkTerms::new(name);
        terms.reason = self.reason.as_deref().map(Into::into);
        terms.although = self.although.as_deref().map(Into::into);
        terms.restored = self.restore.as_deref().map(Into::into);
        let mut words: Vec<&str> = Vec::new();
        for (text, value) in &self.policy.0 {
            let enforced = match value {
                Some(value) => Some((text.as_str(), value.clone())),
                None => enforced(text)?,
            };
            match enforced {
                Some((name, value)) => {
                    terms.enforce.push((name.strip_prefix("state.").unwrap_or(name).to_owned(), value));
                }
                None => words.push(text),
            }
        }
        let guidance = [
            ("policy", words.join("\n")),
            ("tool_policy", self.tool_policy.join("\n")),
            ("note", self.note.join("\n")),
        ];
        let guidance = guidance.into_iter().filter(|(_, text)| !text.is_empty());
        terms.guidance.extend(guidance.map(|(name, text)| (name, text.into())));
        terms.set = self.set.0.iter().map(|(text, value)| setting(text, value)).collect::<Result<_, _>>()?;
        if let Some(text) = &self.contract {
            let source = desk.pack("contract", text)?;
            terms.pack = Some(Bound { value: source.pack.value().clone(), text: source.text });
        }
        let as_text;
        (terms.replace, as_text) = self.replacements(parent, desk)?;
        refuse_two_values(&terms)?;
        Ok((terms, as_text))
    }

    /// Reads each answer of a tool that is replaced, and returns the ticks of those that are put in as a text.
    fn replacements(
        &self,
        parent: &Trace,
        desk: &dyn Desk,
    ) -> Result<(BTreeMap<u64, ReplacedAnswer>, Vec<u64>), Problem> {
        let takes_delta = reducer_of(parent)?.takes_delta();
        let read = |(tick, value): &(String, Option<Value>)| {
            let (Some(position), Some(value)) = (Position::parse(tick), value) else {
                return Err(refused(format!("--tool-output is an answer by its tick, and not \"{tick}\"")));
            };
            let name = || desk.name_of(&format!("tool_output.{tick}"));
            Ok((position.tick(parent)?, answer(value, takes_delta, name)?))
        };
        let mut replace = self.tool_output.0.iter().map(read).collect::<Result<BTreeMap<_, _>, Problem>>()?;
        let mut as_text = Vec::new();
        for (tick, answer) in &mut replace {
            if as_recorded(parent, *tick, answer)? {
                as_text.push(*tick);
            }
        }
        match replace.len() < self.tool_output.0.len() {
            true => Err(refused("--tool-output names one tick twice")),
            false => Ok((replace, as_text)),
        }
    }
}

/// Looks at a fork before it is made: the parent, the last tick that both share, and the terms.
pub type ForkCheck<'c> = &'c mut dyn FnMut(&Trace, u64, &mut ForkTerms) -> Result<(), Problem>;

/// A fork as it was made.
struct MadeFork {
    forked: Forked,
    carried: Option<Carried>,
    extensions: Vec<(Value, bool)>,
    tip: u64,
    unknown: Vec<(Pointer, Since)>,
}

/// Returns the number of a name that the program made.
fn made_number(run: &RunName) -> u64 {
    run.as_str().rsplit_once(MADE).and_then(|(_, number)| number.parse().ok()).unwrap_or(2)
}

/// Puts an object or a list in as a text if the record holds a text of JSON there. Returns whether it did.
fn as_recorded(parent: &Trace, tick: u64, answer: &mut ReplacedAnswer) -> Result<bool, Problem> {
    if !matches!(answer.output, Value::Object(_) | Value::Array(_)) || tick == 0 || tick > parent.tip() {
        return Ok(false);
    }
    let record = parent.record(tick)?;
    let content = record.content();
    let output = ["result", "intent"].iter().find_map(|member| content.get(member)?.get("output").cloned());
    let Some(Value::String(text)) = output else { return Ok(false) };
    let is_json = json::parse_door(text.as_bytes())
        .is_ok_and(|value| matches!(value, Value::Object(_) | Value::Array(_)));
    if !is_json {
        let run = parent.name();
        let what = format!(
            "the output of {run}@{tick} is a text that holds no JSON, and the answer for it is {}",
            answer.output.described()
        );
        return Err(refused(what)
            .note("an answer is of the kind of the recorded one: a text is written as '\"text\"'"));
    }
    let text = String::from_utf8(json::to_vec(&answer.output)).expect("JSON is text");
    answer.output = Value::from(text);
    Ok(true)
}

/// Takes out of the terms what the record does not have either: the answer is shown and logged like the record.
fn without_secrets(redactor: &Redactor, terms: &mut ForkTerms, forked: &mut Forked) {
    let clean = |text: &str| Arc::from(redactor.text(text).0);
    terms.reason = terms.reason.as_deref().map(clean);
    terms.although = terms.although.as_deref().map(clean);
    terms.guidance.values_mut().for_each(|text| *text = clean(text));
    for changed in &mut forked.changed {
        changed.after = match &changed.what {
            What::State(path) => beside(redactor, path, changed.after.clone()),
            _ => redactor.value(&changed.after).0,
        };
    }
}

fn refused(what: impl Into<String>) -> Problem {
    Problem::new(Code::E0106, what).note("nothing was changed")
}

/// Reads a place of the state and its value: a pair, or `PATH=JSON`.
fn setting(text: &str, value: &Option<Value>) -> Result<(Pointer, Value), Problem> {
    if let Some(value) = value {
        return Ok((state_path(text)?, value.clone()));
    }
    let Some((path, value)) = text.split_once('=') else {
        return Err(Problem::new(Code::E0106, format!("--set takes PATH=JSON, and not \"{text}\"")));
    };
    let value = json::parse_door(value.as_bytes()).map_err(|error| {
        Problem::new(error.code(), format!("--set {path}: {error}")).note("a text is written as '\"text\"'")
    })?;
    Ok((state_path(path)?, value))
}

/// Refuses a place of the state that two members give a value.
fn refuse_two_values(terms: &ForkTerms) -> Result<(), Problem> {
    let enforced =
        |path: &Pointer| terms.enforce.iter().any(|(name, _)| Pointer::of(name.split('.')).overlaps(path));
    match terms.set.iter().find(|(path, _)| enforced(path)) {
        None => Ok(()),
        Some((path, _)) => Err(refused(format!("--set and --policy both say what {} is", path.dotted()))),
    }
}

/// Reads `KEY=VALUE`, which is enforced; any other text is guidance for the agent.
fn enforced(text: &str) -> Result<Option<(&str, Value)>, Problem> {
    let Some((key, value)) = text.split_once('=') else { return Ok(None) };
    let (key, value) = (key.trim(), value.trim());
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    if key.is_empty() || !key.chars().all(is_name) {
        return Ok(None);
    }
    match json::parse_door(value.as_bytes()) {
        Ok(value) => Ok(Some((key, value))),
        Err(_) => Err(Problem::new(Code::E0106, format!("--policy {key}: \"{value}\" is not JSON"))
            .note("KEY=VALUE is enforced, with VALUE in JSON; words for the agent hold no \"name =\"")
            .note("nothing was changed")),
    }
}

/// Reads another answer of a tool: the output, and in a run without rules the delta of the state.
fn answer(value: &Value, takes_delta: bool, name: impl Fn() -> String) -> Result<ReplacedAnswer, Problem> {
    let both = value.as_object().filter(|members| takes_delta && members.len() == 2);
    let Some((output, delta)) =
        both.and_then(|members| Some((members.get("output")?, members.get("delta")?)))
    else {
        return Ok(ReplacedAnswer { output: value.clone(), delta: None });
    };
    let delta = Delta::from_value(delta)
        .map_err(|error| Problem::new(Code::E0209, error.to_string()).at("file", name()))?;
    Ok(ReplacedAnswer { output: output.clone(), delta: Some(delta) })
}
