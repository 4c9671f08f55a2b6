//! Reading rules: when they apply, their steps, the places they write to. And the tools: what they do, and when they failed.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::text::nearest;
use dendrer_object::{Code, TypeName, Value, tag};

use super::read::{At, Faults, ReadField, Types, known_type};
use super::scopes::{Place, is_variable};
use super::{DECLARATIONS_MAX, EACH_DEPTH_MAX, Effect, STEPS_MAX, Tool};
use crate::commitment::is_file_place;
use crate::expr::Expr;
use crate::fold::target::{Segment, Target, Written, split};
use crate::fold::{Act, Rule, Step, Template, Write, kind};

/// The actions of a step, by the member that names them.
const ACTS: [&str; 6] = ["let", "each", "set", "remove", "append", "add"];

/// Reads a value that is computed: text is an expression, everything else is a literal.
pub(super) fn read_template(faults: &mut Faults, at: &At<'_>, place: &Place) -> Option<Template> {
    match at.value {
        Value::String(text) => at.parse(faults, 0, text, place, false).map(Template::Expr),
        value if is_literal(value) => Some(Template::Literal(value.clone())),
        Value::Array(_) => {
            let items: Vec<_> = at.items().iter().map(|item| read_template(faults, item, place)).collect();
            items.into_iter().collect::<Option<_>>().map(Template::List)
        }
        _ => {
            let members: Vec<_> = at
                .members()
                .into_iter()
                .map(|(name, member)| Some((name.into(), read_template(faults, &member, place)?)))
                .collect();
            members.into_iter().collect::<Option<_>>().map(Template::Map)
        }
    }
}

fn is_literal(value: &Value) -> bool {
    match value {
        Value::String(_) => false,
        Value::Array(items) => items.iter().all(is_literal),
        Value::Object(members) => members.iter().all(|(_, member)| is_literal(member)),
        _ => true,
    }
}

struct Rules<'r, 'f> {
    faults: &'r mut Faults,
    fields: &'f [ReadField<'f>],
    types: &'f Types,
    /// The names that constants and definitions have.
    taken: &'f BTreeSet<String>,
    steps: usize,
}

/// Position of a step in a rule: what it sees, and the names before it.
#[derive(Clone)]
struct Inside {
    place: Place,
    named: BTreeSet<String>,
    /// The numbers of the steps around it, like `2.`.
    number: String,
    depth: usize,
}

pub(super) fn read_rules(
    faults: &mut Faults,
    root: &At<'_>,
    place: &Place,
    fields: &[ReadField<'_>],
    types: &Types,
    taken: &BTreeSet<String>,
) -> Vec<Rule> {
    let items = root.list(faults, "rules");
    let mut rules = Rules { faults, fields, types, taken, steps: 0 };
    let read: Vec<_> = items.iter().enumerate().map(|(index, at)| rules.rule(index + 1, at, place)).collect();
    let steps = rules.steps;
    if let Some(at) = root.member("rules")
        && (steps > STEPS_MAX || items.len() > DECLARATIONS_MAX)
    {
        let message = format!(
            "there are {} rules with {steps} steps; a pack has at most {DECLARATIONS_MAX} rules and {STEPS_MAX} steps",
            items.len()
        );
        at.fault_of(faults, Code::E0904, message, "");
    }
    read.into_iter().flatten().collect()
}

/// Reads what the tools of the task do, and how they fail.
pub(super) fn read_tools(faults: &mut Faults, root: &At<'_>, place: &Place) -> Vec<Tool> {
    let mut tools = Vec::new();
    for (name, at) in root.named(faults, "tools", "what they do") {
        if at.object(faults, "a tool", &["effect", "failed", "files", "output", "timeout", "words"]).is_none()
        {
            continue;
        }
        let words = at.shared(faults, "words");
        let files = read_files(faults, &at);
        let timeout = read_timeout(faults, &at);
        let output = at.member("output");
        if let Some(other) = output.as_ref().filter(|output| output.value.as_str() != Some("json")) {
            other.fault(faults, "an output is declared as json, or not at all", "like `output: json`");
        }
        let failed = at.condition(faults, "failed", place);
        if let (Some(expr), Some(at)) = (&failed, at.member("failed")) {
            if ["state", "before"].iter().any(|root| !expr.reads_of(root).is_empty())
                || !expr.read_set().is_empty()
                || expr.reads_counters()
            {
                let message = "a result fails by itself, and not by the state".to_owned();
                at.fault(faults, message, "like `t.result.output.startsWith('Error:')`");
                continue;
            }
            if super::reads_status(expr) {
                let message = "`failed` makes the status of a result, and cannot read it".to_owned();
                at.fault(faults, message, "like `t.result.output.startsWith('Error:')`");
                continue;
            }
        }
        let choices = Effect::WORDS.join(", ");
        let effect = match at.member("effect") {
            // Declared for how it fails alone.
            None if at.member("failed").is_some() || at.member("files").is_some() => None,
            None => {
                let message = format!("{name} does not say what it does to the world");
                at.fault(faults, message, &format!("add `effect:`, one of {choices}"));
                continue;
            }
            Some(named) => match named.value.as_str().and_then(Effect::from_word) {
                Some(effect) => Some(effect),
                None => {
                    named.fault(faults, format!("an effect is one of {choices}, not {}", named.value), "");
                    continue;
                }
            },
        };
        tools.push(Tool {
            name: name.into(),
            effect,
            words,
            failed,
            files,
            timeout,
            is_json: output.is_some() || effect == Some(Effect::Host),
        });
    }
    tools
}

/// How many answers a graph may wait for at once, without a number in its pack.
pub(super) const CONCURRENCY: u64 = 64;

/// Reads how many effects of a graph are asked at once.
pub(super) fn read_concurrency(faults: &mut Faults, root: &At<'_>) -> u64 {
    let Some(at) = root.member("concurrency") else { return CONCURRENCY };
    at.value.as_u64().filter(|count| (1..=1_024).contains(count)).unwrap_or_else(|| {
        at.fault(faults, "concurrency is a number from 1 to 1024", "like `concurrency: 8`");
        CONCURRENCY
    })
}

/// Reads how long a tool may take, in milliseconds.
fn read_timeout(faults: &mut Faults, at: &At<'_>) -> Option<u64> {
    let at = at.member("timeout")?;
    let read = at.value.as_str().and_then(crate::expr::milliseconds).filter(|ms| *ms > 0);
    if read.is_none() {
        at.fault(faults, "a timeout is a duration above zero", "like `timeout: 30s`");
    }
    read
}

/// Reads the places where calls of a tool name files.
fn read_files(faults: &mut Faults, at: &At<'_>) -> Option<Vec<Arc<str>>> {
    let files = at.member("files")?;
    let places = files.value.as_array().map(|places| places.iter().map(Value::as_str).collect::<Vec<_>>());
    let is_place = |place: &Option<&str>| place.is_some_and(is_file_place);
    match places {
        Some(places) if places.iter().all(is_place) => {
            Some(places.into_iter().flatten().map(Arc::from).collect())
        }
        _ => {
            let message = "files is a list of places of a call".to_owned();
            files.fault(
                faults,
                message,
                "like `files: [/params/path]`, or `files: []` for a tool that names none",
            );
            None
        }
    }
}

impl Rules<'_, '_> {
    fn rule(&mut self, number: usize, at: &At<'_>, place: &Place) -> Option<Rule> {
        at.object(self.faults, "a rule", &["words", "when_type", "when", "steps"])?;
        let words =
            at.text(self.faults, "words").map(|words| words.split_whitespace().collect::<Vec<_>>().join(" "));
        let place_name = match words {
            Some(words) => format!("rule {number} \"{words}\""),
            None => format!("rule {number}"),
        };
        let types = self.types(at);
        let when = self.condition(at, "when", place);
        at.needed(self.faults, "steps", "a rule has steps", "add `steps:` with a list");
        let inside = Inside { place: place.clone(), named: BTreeSet::new(), number: String::new(), depth: 0 };
        let steps = self.steps(at, inside);
        Some(Rule::new(place_name, types, when, steps))
    }

    fn types(&mut self, rule: &At<'_>) -> Option<BTreeSet<TypeName>> {
        let at = rule.member("when_type")?;
        let items: Vec<At<'_>> = match at.value {
            Value::Array(_) => at.items(),
            _ => vec![at],
        };
        let mut types = BTreeSet::new();
        for item in items {
            let Some(name) = item.value.as_str() else {
                item.fault(self.faults, format!("a type is named by text, not by {}", kind(item.value)), "");
                continue;
            };
            let hint = "a type of your own is registered under `types`";
            types.extend(known_type(self.faults, &item, self.types, name, hint));
        }
        Some(types)
    }

    fn steps(&mut self, parent: &At<'_>, mut inside: Inside) -> Vec<Step> {
        let items = parent.list(self.faults, "steps");
        self.steps += items.len();
        let mut steps = Vec::with_capacity(items.len());
        for (index, at) in items.iter().enumerate() {
            steps.extend(self.step(index + 1, at, &mut inside));
        }
        steps
    }

    fn step(&mut self, number: usize, at: &At<'_>, inside: &mut Inside) -> Option<Step> {
        let given: Vec<&str> = ACTS.into_iter().filter(|act| at.member(act).is_some()).collect();
        let act = match (&given[..], at.value) {
            ([act], _) => *act,
            (_, Value::Object(members)) => {
                let near = members.iter().find_map(|(name, _)| nearest(name, ACTS));
                let hint = near.filter(|_| given.is_empty()).map(|near| format!("did you mean {near}?"));
                let message = format!("a step is exactly one of {}", ACTS.join(", "));
                return at.refuse(self.faults, message, &hint.unwrap_or_default());
            }
            (_, other) => {
                let message = format!("a step has named members, and this is {}", kind(other));
                let hint = "like `- set: status` with `value: ...` on the next line";
                return at.refuse(self.faults, message, hint);
            }
        };
        let known: &[&str] = match act {
            "let" => &["let", "if"],
            "each" => &["each", "steps", "if"],
            "remove" => &["remove", "if", "optional"],
            _ => &[act, "value", "if", "optional"],
        };
        at.object(self.faults, &format!("a step with `{act}`"), known)?;
        // The condition of a `let` does not see what it names.
        let condition = self.condition(at, "if", &inside.place);
        let number = format!("{}{number}", inside.number);
        let act = match act {
            "let" => self.let_values(at, inside),
            "each" => self.each(at, inside, &number),
            _ => self.write(act, at, inside),
        }?;
        Some(Step { number, condition, act })
    }

    fn name(&mut self, at: &At<'_>, name: &str, named: &BTreeSet<String>) {
        let message = if !is_variable(name) {
            format!("`{name}` cannot be a name in expressions")
        } else if self.taken.contains(name) || named.contains(name) {
            format!("`{name}` has a meaning already")
        } else {
            return;
        };
        let hint = "letters, digits and _, and not what is named before it";
        at.fault_of(self.faults, Code::E0903, message, hint);
    }

    fn let_values(&mut self, step: &At<'_>, inside: &mut Inside) -> Option<Act> {
        let at = step.member("let")?;
        if at.value.as_object().is_none_or(dendrer_object::Object::is_empty) {
            return at.refuse(self.faults, "let is a map from names to values", "");
        }
        let before = inside.clone();
        let mut values = Vec::new();
        for (name, member) in at.members() {
            self.name(&member.name(), name, &before.named);
            let value = self.template(&member, &before.place);
            inside.place = inside.place.with_root(name);
            inside.named.insert(name.to_owned());
            values.push(value.map(|value| (Arc::from(name), value)));
        }
        values.into_iter().collect::<Option<_>>().map(Act::Let)
    }

    fn each(&mut self, step: &At<'_>, inside: &Inside, number: &str) -> Option<Act> {
        let at = step.member("each")?;
        if inside.depth == EACH_DEPTH_MAX {
            let hint = "flatten the list in a definition first";
            at.fault_of(self.faults, Code::E0904, format!("each stands at most {EACH_DEPTH_MAX} deep"), hint);
            return None;
        }
        at.object(self.faults, "each", &["as", "in"])?;
        step.needed(self.faults, "steps", "each has steps", "add `steps:` beside `each:`");
        let mut inner = inside.clone();
        inner.number = format!("{number}.");
        inner.depth += 1;
        let hint = "each: {as: item, in: state.items}";
        at.needed(self.faults, "as", "each does not say what an item is called", hint);
        let name = at.text(self.faults, "as").inspect(|name| {
            self.name(&at.member_or_self("as"), name, &inside.named);
            inner.place = inner.place.with_root(name);
            inner.named.insert((*name).to_owned());
        });
        at.needed(self.faults, "in", "each does not say which list it goes through", hint);
        let list = at.member("in").and_then(|list| match list.value {
            Value::String(text) => self.expr(&list, 0, text, &inside.place, false),
            _ => list.refuse(self.faults, "`in` is an expression that gives a list", ""),
        });
        let steps = self.steps(step, inner);
        Some(Act::Each { name: name?.into(), list: list?, steps })
    }

    fn write(&mut self, act: &str, step: &At<'_>, inside: &Inside) -> Option<Act> {
        let optional = match step.member("optional") {
            None => Some(false),
            Some(at) => at.truth(self.faults, format!("optional is true or false, not {}", at.value)),
        };
        let value = match step.member("value") {
            Some(at) => self.template(&at, &inside.place),
            None => {
                if act != "remove" {
                    step.fault(
                        self.faults,
                        format!("a step with `{act}` has a value"),
                        "add `value:`, an expression; text stands in quotes of its own, like \"'paid'\"",
                    );
                }
                None
            }
        };
        let target = self.target(&step.member(act)?, inside);
        let kind = match act {
            "remove" => Write::Remove,
            "set" => Write::Set(value?),
            "append" => Write::Append(value?),
            _ => Write::Add(value?),
        };
        let target = target?;
        let has_init = || self.fields.iter().any(|f| *f.name == *target.field && f.init.is_some());
        if matches!(kind, Write::Remove) && target.segments.is_empty() && has_init() {
            let at = step.member(act)?;
            let hint = "set it to null, remove what is in it, or declare it without `init`";
            at.fault(self.faults, "a field with an `init` is always there", hint);
        }
        Some(Act::Write { kind, target, optional: optional? })
    }

    fn target(&mut self, at: &At<'_>, inside: &Inside) -> Option<Target> {
        let Some(text) = at.value.as_str() else {
            return at.refuse(self.faults, format!("a path is text, not {}", kind(at.value)), "");
        };
        let written = match split(text) {
            Ok(written) => written,
            Err((start, why)) => {
                at.text_fault(self.faults, start, why);
                return None;
            }
        };
        let mut field = None;
        let mut segments = Vec::new();
        for part in &written {
            let segment = match part {
                Written::Name(_, name) if field.is_none() => {
                    field = Some(Arc::from(*name));
                    self.check_field(at, name);
                    continue;
                }
                Written::Name(_, name) => Some(Segment::Name(tag::stored_name(name))),
                // A name in quotes is that name, and not one that is computed.
                Written::Index(_, text) if literal(text).is_some() => {
                    literal(text).map(|name| Segment::Name(tag::stored_name(name)))
                }
                Written::Index(start, text) => {
                    self.expr(at, *start, text, &inside.place, false).map(Segment::Index)
                }
                Written::First { name, condition_at, condition, .. } => {
                    self.name(at, name, &inside.named);
                    let place = inside.place.with_root(name);
                    let condition = self.expr(at, *condition_at, condition, &place, true);
                    condition.map(|condition| Segment::First { name: Arc::from(*name), condition })
                }
            };
            segments.push(segment);
        }
        let segments = segments.into_iter().collect::<Option<_>>()?;
        Some(Target { field: field?, segments })
    }

    fn check_field(&mut self, at: &At<'_>, name: &str) {
        if self.fields.iter().any(|field| field.name == name) {
            return;
        }
        let hint = match nearest(name, self.fields.iter().map(|field| field.name)) {
            _ if name == "state" => "a path begins below the state: leave out `state.`".to_owned(),
            Some(near) => format!("did you mean {near}?"),
            None => "declare it under `state`, with what it begins with".to_owned(),
        };
        at.fault_of(self.faults, Code::E0903, format!("the pack declares no field {name}"), &hint);
    }

    fn condition(&mut self, parent: &At<'_>, name: &str, place: &Place) -> Option<Expr> {
        let expr = parent.condition(self.faults, name, place)?;
        self.check_counters(&parent.member(name)?, expr)
    }

    fn expr(
        &mut self,
        at: &At<'_>,
        offset: usize,
        text: &str,
        place: &Place,
        condition: bool,
    ) -> Option<Expr> {
        let expr = at.parse(self.faults, offset, text, place, condition)?;
        self.check_counters(at, expr)
    }

    fn template(&mut self, at: &At<'_>, place: &Place) -> Option<Template> {
        let template = read_template(self.faults, at, place)?;
        let mut counters = false;
        template.for_each_expr(&mut |expr| counters |= expr.reads_counters());
        self.refuse_counters(at, counters);
        Some(template)
    }

    fn check_counters(&mut self, at: &At<'_>, expr: Expr) -> Option<Expr> {
        self.refuse_counters(at, expr.reads_counters());
        Some(expr)
    }

    /// Counters are derived from the trace and outside the state root, so a state must not rest on them.
    fn refuse_counters(&mut self, at: &At<'_>, reads: bool) {
        if reads {
            let message = "a rule cannot read state.counters";
            at.fault(self.faults, message, "count in a field of the state with `add`");
        }
    }
}

/// The text of a literal without escapes.
fn literal(text: &str) -> Option<&str> {
    let text = text.trim();
    let mark = text.chars().next().filter(|mark| matches!(mark, '"' | '\''))?;
    let inner = text.strip_prefix(mark)?.strip_suffix(mark)?;
    inner.chars().all(|c| c != mark && c != '\\' && !c.is_control()).then_some(inner)
}
