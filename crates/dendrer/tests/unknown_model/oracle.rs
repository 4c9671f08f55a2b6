//! The slow oracle: values, expressions, rules and deltas over a state whose unknown places are a plain list.
//!
//! Written from the sentences of the design (section 7, (a) to (d)) and of `docs/packs.md`. Shares no code with the kernel:
//! it has its own values, its own evaluator of a tree that is printed as text for the product, and its own marks.

use std::collections::BTreeMap;
use std::fmt;

/// A place, name by name.
pub(crate) type Place = Vec<String>;

/// A value. Numbers are small integers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum V {
    Bool(bool),
    Int(i64),
    Text(String),
    List(Vec<V>),
    Map(BTreeMap<String, V>),
    /// A value that is not on record.
    Gap,
}

impl V {
    pub(crate) fn map(members: impl IntoIterator<Item = (&'static str, V)>) -> V {
        V::Map(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub(crate) fn text(text: &str) -> V {
        V::Text(text.to_owned())
    }

    /// Reads a value of the product.
    pub(crate) fn read(value: &dendrer_object::Value) -> V {
        use dendrer_object::Value;
        match value {
            Value::Bool(value) => V::Bool(*value),
            Value::String(text) => V::text(text),
            Value::Array(items) => V::List(items.iter().map(V::read).collect()),
            Value::Object(members) if members.get("$gap").is_some() => V::Gap,
            Value::Object(members) => {
                V::Map(members.iter().map(|(name, value)| (name.to_string(), V::read(value))).collect())
            }
            Value::Number(number) => V::Int(number.as_i64().expect("small integers alone")),
            Value::Null => V::Gap,
        }
    }
}

impl fmt::Display for V {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            V::Bool(value) => write!(f, "{value}"),
            V::Int(value) => write!(f, "{value}"),
            V::Text(text) => write!(f, "\"{text}\""),
            V::Gap => write!(f, r#"{{"$gap":{{"path":"","reason":"lost"}}}}"#),
            V::List(items) => {
                let items: Vec<String> = items.iter().map(V::to_string).collect();
                write!(f, "[{}]", items.join(","))
            }
            V::Map(members) => {
                let members: Vec<String> =
                    members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                write!(f, "{{{}}}", members.join(","))
            }
        }
    }
}

/// A state, with the places that are unknown and since which tick.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub(crate) value: V,
    pub(crate) marks: Vec<(Place, u64)>,
}

/// Whether two places are equal or one lies above the other.
pub(crate) fn meet(a: &[String], b: &[String]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

/// Whether a place is `above` or lies below it.
fn within(place: &[String], above: &[String]) -> bool {
    place.len() >= above.len() && meet(place, above)
}

impl State {
    /// The earliest tick since which something of a place is unknown.
    pub(crate) fn unknown(&self, place: &[String]) -> Option<u64> {
        self.marks.iter().filter(|(mark, _)| meet(mark, place)).map(|(_, tick)| *tick).min()
    }

    pub(crate) fn mark(&mut self, place: Place, tick: u64) {
        if !self.marks.iter().any(|(mark, _)| within(&place, mark)) {
            self.marks.push((place, tick));
        }
    }

    /// A `set` of a place makes it and what is below it known.
    pub(crate) fn clear(&mut self, place: &[String]) {
        self.marks.retain(|(mark, _)| mark.is_empty() || !within(mark, place));
    }

    /// The marks without those that say nothing of their own.
    pub(crate) fn normal_marks(&self) -> Vec<(Place, u64)> {
        let says_more = |(place, tick): &&(Place, u64)| {
            !self.marks.iter().any(|(above, since)| above != place && within(place, above) && since <= tick)
        };
        let mut marks: Vec<_> = self.marks.iter().filter(says_more).cloned().collect();
        marks.sort();
        marks
    }
}

/// Why an expression has no value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Stop {
    /// Something is missing or of the wrong kind.
    Error,
    /// An unknown place was read; unknown since this tick.
    Unknown(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    State,
    Before,
    T,
    /// A name of `let`, `each` or `first`.
    Name(&'static str),
}

#[derive(Debug, Clone)]
pub(crate) enum Seg {
    Name(&'static str),
    Key(Box<E>),
    Index(usize),
}

#[derive(Debug, Clone)]
pub(crate) enum E {
    Lit(V),
    Path(Root, Vec<Seg>),
    Has(Root, Vec<Seg>),
    Not(Box<E>),
    All(Box<E>, Box<E>),
    Any(Box<E>, Box<E>),
    If(Box<E>, Box<E>, Box<E>),
    Compare(&'static str, Box<E>, Box<E>),
    Add(Box<E>, Box<E>),
    Div(Box<E>, Box<E>),
    Size(Box<E>),
    In(Box<E>, Box<E>),
}

fn path_text(root: Root, segs: &[Seg]) -> String {
    let root = match root {
        Root::State => "state",
        Root::Before => "before",
        Root::T => "t",
        Root::Name(name) => name,
    };
    segs.iter().fold(root.to_owned(), |text, seg| match seg {
        Seg::Name(name) => format!("{text}.{name}"),
        Seg::Key(e) => format!("{text}[{e}]"),
        Seg::Index(at) => format!("{text}[{at}]"),
    })
}

impl fmt::Display for E {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A text of a pack is in double quotes, so an expression has single ones.
            E::Lit(value) => write!(f, "{}", value.to_string().replace('"', "'")),
            E::Path(root, segs) => write!(f, "{}", path_text(*root, segs)),
            E::Has(root, segs) => write!(f, "has({})", path_text(*root, segs)),
            E::Not(e) => write!(f, "!({e})"),
            E::All(a, b) => write!(f, "({a} && {b})"),
            E::Any(a, b) => write!(f, "({a} || {b})"),
            E::If(c, a, b) => write!(f, "(({c}) ? ({a}) : ({b}))"),
            E::Compare(op, a, b) => write!(f, "({a} {op} {b})"),
            E::Add(a, b) => write!(f, "({a} + {b})"),
            E::Div(a, b) => write!(f, "div({a}, {b})"),
            E::Size(e) => write!(f, "size({e})"),
            E::In(a, b) => write!(f, "({a} in {b})"),
        }
    }
}

/// What an expression sees.
#[derive(Clone, Copy)]
pub(crate) struct Sees<'a> {
    pub(crate) state: &'a State,
    pub(crate) before: &'a State,
    pub(crate) t: &'a V,
    pub(crate) names: &'a [(&'static str, V)],
}

impl Sees<'_> {
    /// Follows a path. Gives the place that it leads to, cut at an index of a list, and what is there; an index that has no
    /// value ends it. Where the way is blocked, a later index is not computed and the place is cut there.
    fn follow(&self, root: Root, segs: &[Seg]) -> Result<(Place, Result<Option<V>, Stop>), Stop> {
        let mut place = Vec::new();
        let mut is_cut = false;
        let start = match root {
            Root::State => Some(self.state.value.clone()),
            Root::Before => Some(self.before.value.clone()),
            Root::T => Some(self.t.clone()),
            Root::Name(wanted) => {
                self.names.iter().rev().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone())
            }
        };
        let mut found: Result<Option<V>, Stop> = Ok(start);
        for seg in segs {
            let here = found.and_then(|found| found.ok_or(Stop::Error));
            let key = match seg {
                Seg::Name(name) => V::text(name),
                Seg::Index(at) => V::Int(*at as i64),
                Seg::Key(e) if here.is_err() && !matches!(**e, E::Lit(_)) => {
                    return Ok((place, here.map(Some)));
                }
                Seg::Key(e) => self.value(e)?,
            };
            is_cut |= !matches!(key, V::Text(_));
            if let (V::Text(name), false) = (&key, is_cut) {
                place.push(name.clone());
            }
            found = here.and_then(|value| match (value, key) {
                (V::Map(members), V::Text(name)) => Ok(members.get(&name).cloned()),
                (V::List(items), V::Int(at)) => {
                    Ok(usize::try_from(at).ok().and_then(|at| items.get(at).cloned()))
                }
                _ => Err(Stop::Error),
            });
        }
        Ok((place, found))
    }

    fn look(&self, root: Root, segs: &[Seg], below: Option<&str>) -> Result<Option<V>, Stop> {
        let (mut place, found) = self.follow(root, segs)?;
        place.extend(below.map(str::to_owned));
        let unknown = match root {
            Root::State => self.state.unknown(&place),
            Root::Before => self.before.unknown(&place),
            _ => None,
        };
        match unknown {
            Some(tick) => Err(Stop::Unknown(tick)),
            None => found,
        }
    }

    fn read(&self, root: Root, segs: &[Seg], below: Option<&str>) -> Result<V, Stop> {
        match self.look(root, segs, below)? {
            None | Some(V::Gap) => Err(Stop::Error),
            Some(value) => Ok(value),
        }
    }

    pub(crate) fn value(&self, e: &E) -> Result<V, Stop> {
        Ok(match e {
            E::Lit(value) => value.clone(),
            E::Path(root, segs) => self.read(*root, segs, None)?,
            E::Has(root, segs) => V::Bool(self.look(*root, segs, None)?.is_some()),
            E::Not(e) => V::Bool(!self.truth(e)?),
            E::All(a, b) => V::Bool(self.all(a, b, true)?),
            E::Any(a, b) => V::Bool(!self.all(a, b, false)?),
            E::If(c, a, b) => return self.value(if self.truth(c)? { a } else { b }),
            E::Compare(op, a, b) => V::Bool(self.compare(op, a, b)?),
            E::Add(a, b) => match (self.value(a)?, self.value(b)?) {
                (V::Int(a), V::Int(b)) => V::Int(a + b),
                (V::Text(a), V::Text(b)) => V::Text(a + &b),
                (V::List(a), V::List(b)) => V::List(a.into_iter().chain(b).collect()),
                _ => return Err(Stop::Error),
            },
            E::Div(a, b) => match (self.value(a)?, self.value(b)?) {
                (V::Int(a), V::Int(b)) if b != 0 => V::Int(a / b),
                _ => return Err(Stop::Error),
            },
            E::Size(e) => match self.value(e)? {
                V::Text(text) => V::Int(text.chars().count() as i64),
                V::List(items) => V::Int(items.len() as i64),
                V::Map(members) => V::Int(members.len() as i64),
                _ => return Err(Stop::Error),
            },
            E::In(a, b) => V::Bool(self.within(a, b)?),
        })
    }

    fn within(&self, a: &E, b: &E) -> Result<bool, Stop> {
        let item = self.value(a)?;
        let whole = match (b, &item) {
            // Of a map only whether it has this member is looked at.
            (E::Path(root, segs), V::Text(name)) => self.read(*root, segs, Some(name))?,
            _ => self.value(b)?,
        };
        match whole {
            V::List(items) => Ok(items.contains(&item)),
            V::Map(members) => Ok(matches!(item, V::Text(name) if members.contains_key(&name))),
            _ => Err(Stop::Error),
        }
    }

    pub(crate) fn truth(&self, e: &E) -> Result<bool, Stop> {
        match self.value(e)? {
            V::Bool(value) => Ok(value),
            _ => Err(Stop::Error),
        }
    }

    /// Whether both are `wanted`. One that is not decides it, whatever error the other is; an unknown place may have decided it,
    /// so it wins over an error.
    fn all(&self, a: &E, b: &E, wanted: bool) -> Result<bool, Stop> {
        match (self.truth(a), self.truth(b)) {
            (Ok(found), _) | (_, Ok(found)) if found != wanted => Ok(false),
            (Ok(_), Ok(_)) => Ok(true),
            (Err(Stop::Unknown(a)), _) => Err(Stop::Unknown(a)),
            (_, Err(Stop::Unknown(b))) => Err(Stop::Unknown(b)),
            _ => Err(Stop::Error),
        }
    }

    fn compare(&self, op: &str, a: &E, b: &E) -> Result<bool, Stop> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        if op == "==" || op == "!=" {
            return Ok((a == b) == (op == "=="));
        }
        let order = match (&a, &b) {
            (V::Int(a), V::Int(b)) => a.cmp(b),
            (V::Text(a), V::Text(b)) => a.cmp(b),
            (V::Bool(a), V::Bool(b)) => a.cmp(b),
            _ => return Err(Stop::Error),
        };
        Ok(match op {
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            _ => order.is_ge(),
        })
    }
}

/// The places of the state that a text may look at: each path up to its first index or computed name.
fn read_set(e: &E, found: &mut Vec<Place>) {
    let path = |root: &Root, segs: &[Seg], found: &mut Vec<Place>| {
        if *root == Root::State {
            let names = segs.iter().map_while(|seg| match seg {
                Seg::Name(name) => Some((*name).to_owned()),
                Seg::Key(e) => match &**e {
                    E::Lit(V::Text(name)) => Some(name.clone()),
                    _ => None,
                },
                Seg::Index(_) => None,
            });
            found.push(names.collect());
        }
        for seg in segs {
            if let Seg::Key(e) = seg {
                read_set(e, found);
            }
        }
    };
    match e {
        E::Lit(_) => {}
        E::Path(root, segs) | E::Has(root, segs) => path(root, segs, found),
        E::Not(e) | E::Size(e) => read_set(e, found),
        E::All(a, b) | E::Any(a, b) | E::Compare(_, a, b) | E::Add(a, b) | E::Div(a, b) | E::In(a, b) => {
            read_set(a, found);
            read_set(b, found);
        }
        E::If(c, a, b) => [c, a, b].into_iter().for_each(|e| read_set(e, found)),
    }
}

#[derive(Debug, Clone)]
pub(crate) enum TSeg {
    Name(&'static str),
    Index(E),
    /// The first item `x` with this condition.
    First(E),
}

#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) field: &'static str,
    pub(crate) segs: Vec<TSeg>,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.field)?;
        self.segs.iter().try_for_each(|seg| match seg {
            TSeg::Name(name) => write!(f, ".{name}"),
            TSeg::Index(e) => write!(f, "[{e}]"),
            TSeg::First(e) => write!(f, "[first x: {e}]"),
        })
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Act {
    Let(&'static str, E),
    Each(E, Vec<Step>),
    Set(Target, E),
    Append(Target, E),
    Add(Target, E),
    Remove(Target),
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) when: Option<E>,
    pub(crate) optional: bool,
    pub(crate) act: Act,
}

#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) types: Vec<&'static str>,
    pub(crate) when: Option<E>,
    pub(crate) steps: Vec<Step>,
}

impl Step {
    pub(crate) fn text(&self) -> String {
        let quoted = |e: &dyn fmt::Display| V::Text(e.to_string()).to_string();
        let mut members = match &self.act {
            Act::Let(name, e) => vec![format!("\"let\":{{\"{name}\":{}}}", quoted(e))],
            Act::Each(list, steps) => {
                let steps: Vec<String> = steps.iter().map(Step::text).collect();
                let each = format!("\"each\":{{\"as\":\"item\",\"in\":{}}}", quoted(list));
                vec![each, format!("\"steps\":[{}]", steps.join(","))]
            }
            Act::Set(target, e) => vec![format!("\"set\":{},\"value\":{}", quoted(target), quoted(e))],
            Act::Append(target, e) => vec![format!("\"append\":{},\"value\":{}", quoted(target), quoted(e))],
            Act::Add(target, e) => vec![format!("\"add\":{},\"value\":{}", quoted(target), quoted(e))],
            Act::Remove(target) => vec![format!("\"remove\":{}", quoted(target))],
        };
        members.extend(self.when.iter().map(|e| format!("\"if\":{}", quoted(e))));
        members.extend(self.optional.then(|| "\"optional\":true".to_owned()));
        format!("{{{}}}", members.join(","))
    }

    fn targets<'s>(&'s self, found: &mut Vec<&'s Target>) {
        match &self.act {
            Act::Let(..) => {}
            Act::Each(_, steps) => steps.iter().for_each(|step| step.targets(found)),
            Act::Set(target, _) | Act::Append(target, _) | Act::Add(target, _) | Act::Remove(target) => {
                found.push(target);
            }
        }
    }
}

impl Rule {
    pub(crate) fn text(&self) -> String {
        let types: Vec<String> = self.types.iter().map(|name| format!("\"{name}\"")).collect();
        let steps: Vec<String> = self.steps.iter().map(Step::text).collect();
        let when = self.when.as_ref().map(|e| format!("\"when\":{},", V::Text(e.to_string())));
        let (types, steps) = (types.join(","), steps.join(","));
        format!("{{\"when_type\":[{types}],{}\"steps\":[{steps}]}}", when.unwrap_or_default())
    }

    /// The targets, each cut at the first computed segment or at a list.
    fn targets(&self, state: &V) -> Vec<Place> {
        let mut targets = Vec::new();
        self.steps.iter().for_each(|step| step.targets(&mut targets));
        let cut = |target: &Target| {
            let mut place = vec![target.field.to_owned()];
            for seg in &target.segs {
                match seg {
                    TSeg::Name(name) if !matches!(at(state, &place), Some(V::List(_))) => {
                        place.push((*name).to_owned());
                    }
                    // A name in quotes is no computed one.
                    TSeg::Index(E::Lit(V::Text(name))) if !matches!(at(state, &place), Some(V::List(_))) => {
                        place.push(name.to_string());
                    }
                    _ => break,
                }
            }
            place
        };
        targets.into_iter().map(cut).collect()
    }
}

/// What is at a place that goes through maps alone.
fn at(state: &V, place: &[String]) -> Option<V> {
    place.iter().try_fold(state.clone(), |value, name| match value {
        V::Map(members) => members.get(name).cloned(),
        _ => None,
    })
}

/// One operation of a delta.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    Set(Place, V),
    Append(Place, V),
    Add(Place, V),
    Remove(Place),
}

impl Op {
    pub(crate) fn place(&self) -> &Place {
        match self {
            Op::Set(place, _) | Op::Append(place, _) | Op::Add(place, _) | Op::Remove(place) => place,
        }
    }

    pub(crate) fn text(&self) -> String {
        let place = format!("/{}", self.place().join("/"));
        match self {
            Op::Set(_, value) => format!("{{\"set\":\"{place}\",\"value\":{value}}}"),
            Op::Append(_, value) => format!("{{\"append\":\"{place}\",\"value\":{value}}}"),
            Op::Add(_, value) => format!("{{\"add\":\"{place}\",\"value\":{value}}}"),
            Op::Remove(_) => format!("{{\"remove\":\"{place}\"}}"),
        }
    }
}

/// Does an operation; `None` where it does not fit, and the value is then of no use.
fn apply(value: &mut V, place: &[String], op: &Op) -> Option<()> {
    let [name, rest @ ..] = place else { return None };
    let makes = matches!(op, Op::Set(..) | Op::Append(..));
    match value {
        V::Map(members) => {
            if rest.is_empty() && matches!(op, Op::Remove(_)) {
                return members.remove(name).map(|_| ());
            }
            if !members.contains_key(name) {
                if !makes {
                    return None;
                }
                let new = match (rest.is_empty(), op) {
                    (true, Op::Append(..)) => V::List(Vec::new()),
                    _ => V::Map(BTreeMap::new()),
                };
                members.insert(name.clone(), new);
            }
            let inner = members.get_mut(name)?;
            if rest.is_empty() { change(inner, op) } else { apply(inner, rest, op) }
        }
        V::List(items) => {
            let index: usize = name.parse().ok().filter(|index| *index < items.len())?;
            if rest.is_empty() && matches!(op, Op::Remove(_)) {
                items.remove(index);
                return Some(());
            }
            if rest.is_empty() { change(&mut items[index], op) } else { apply(&mut items[index], rest, op) }
        }
        _ => None,
    }
}

fn change(value: &mut V, op: &Op) -> Option<()> {
    match (op, &mut *value) {
        (Op::Set(_, new), _) => *value = new.clone(),
        (Op::Append(_, new), V::List(items)) => items.push(new.clone()),
        (Op::Add(_, V::Int(more)), V::Int(sum)) => *sum += more,
        _ => return None,
    }
    Some(())
}

/// What happened, as both programs are given it.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) type_name: &'static str,
    /// What rules see as `t`.
    pub(crate) t: V,
    pub(crate) delta: Vec<Op>,
    /// The kind of note that an importer made, if it did.
    pub(crate) note: Option<&'static str>,
}

impl State {
    /// The state after an event under `delta/1`.
    pub(crate) fn after_delta(&self, event: &Event, tick: u64) -> State {
        let mut after = self.clone();
        let fits = event.delta.iter().all(|op| apply(&mut after.value, op.place(), op).is_some());
        if fits {
            for op in &event.delta {
                if let Op::Set(place, _) = op {
                    after.clear(place);
                }
            }
            return after;
        }
        let mut after = self.clone();
        for op in &event.delta {
            // The whole list, where it is an index of one.
            let place = op.place();
            let list =
                (0..place.len()).find(|depth| matches!(at(&self.value, &place[..*depth]), Some(V::List(_))));
            after.mark(place[..list.unwrap_or(place.len())].to_vec(), tick);
        }
        after
    }

    /// The state after an event under the rules of a pack.
    pub(crate) fn after_rules(&self, rules: &[Rule], event: &Event, tick: u64) -> State {
        let fitting: Vec<&Rule> = rules.iter().filter(|rule| rule.types.contains(&event.type_name)).collect();
        let mut after = self.after_fitting(&fitting, event, tick);
        match event.note {
            Some("call_without_result") => {
                let t = result_of(&event.t);
                // What the state will be when the result would have come is not known; only `t` can decide.
                let nothing = State { value: V::Map(BTreeMap::new()), marks: vec![(Vec::new(), tick)] };
                let sees = Sees { state: &nothing, before: &nothing, t: &t, names: &[] };
                for rule in rules.iter().filter(|rule| rule.types.contains(&"action.result")) {
                    if rule.when.as_ref().is_none_or(|when| sees.truth(when) != Ok(false)) {
                        for place in rule.targets(&after.value) {
                            after.mark(place, tick);
                        }
                    }
                }
            }
            Some("message_unreadable") => {
                let places: Vec<Place> = rules.iter().flat_map(|rule| rule.targets(&after.value)).collect();
                places.into_iter().for_each(|place| after.mark(place, tick));
            }
            _ => {}
        }
        after
    }

    fn after_fitting(&self, fitting: &[&Rule], event: &Event, tick: u64) -> State {
        let mut now = self.clone();
        for rule in fitting {
            let mut run = Run { state: now.clone(), before: self, t: &event.t, names: Vec::new() };
            match run.rule(rule) {
                Ok(()) => now = run.state,
                // Of a result that may answer several calls, what a rule cannot read is of the call.
                Err(stop) if stop != Stop::Error || event.note == Some("result_ambiguous") => {
                    for place in rule.targets(&now.value) {
                        now.mark(place, tick);
                    }
                }
                Err(_) => return self.after_error(fitting, event, tick),
            }
        }
        now
    }

    /// (a): no rule writes, and what those would have written that may apply is unknown.
    fn after_error(&self, fitting: &[&Rule], event: &Event, tick: u64) -> State {
        let sees = Sees { state: self, before: self, t: &event.t, names: &[] };
        let mut applies: Vec<bool> = fitting
            .iter()
            .map(|rule| rule.when.as_ref().is_none_or(|when| sees.truth(when) != Ok(false)))
            .collect();
        loop {
            let written: Vec<Place> = fitting
                .iter()
                .zip(&applies)
                .filter(|(_, applies)| **applies)
                .flat_map(|(rule, _)| rule.targets(&self.value))
                .collect();
            let reads_written = |rule: &Rule| {
                let mut reads = Vec::new();
                rule.when.iter().for_each(|when| read_set(when, &mut reads));
                reads.iter().any(|read| written.iter().any(|place| meet(place, read)))
            };
            let more: Vec<bool> =
                fitting.iter().zip(&applies).map(|(rule, applies)| *applies || reads_written(rule)).collect();
            if more == applies {
                let mut after = self.clone();
                written.into_iter().for_each(|place| after.mark(place, tick));
                return after;
            }
            applies = more;
        }
    }
}

/// The result that a call of a request would have had.
fn result_of(request: &V) -> V {
    let action = match request {
        V::Map(members) => members.get("action").cloned(),
        _ => None,
    };
    let mut members = BTreeMap::from([("result".to_owned(), V::Gap)]);
    members.extend(action.map(|action| ("action".to_owned(), action)));
    V::Map(members)
}

struct Run<'a> {
    state: State,
    before: &'a State,
    t: &'a V,
    names: Vec<(&'static str, V)>,
}

impl Run<'_> {
    fn sees(&self) -> Sees<'_> {
        Sees { state: &self.state, before: self.before, t: self.t, names: &self.names }
    }

    fn rule(&mut self, rule: &Rule) -> Result<(), Stop> {
        let applies = rule.when.as_ref().map_or(Ok(true), |when| self.sees().truth(when))?;
        if applies { self.steps(&rule.steps) } else { Ok(()) }
    }

    fn steps(&mut self, steps: &[Step]) -> Result<(), Stop> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Result<(), Stop> {
        let wanted = step.when.as_ref().map_or(Ok(true), |when| self.sees().truth(when))?;
        match &step.act {
            Act::Let(name, e) => {
                let value = self.sees().value(e)?;
                self.names.push((name, value));
                Ok(())
            }
            _ if !wanted => Ok(()),
            Act::Each(list, steps) => {
                let V::List(items) = self.sees().value(list)? else { return Err(Stop::Error) };
                for item in items {
                    let outer = self.names.len();
                    self.names.push(("item", item));
                    self.steps(steps)?;
                    self.names.truncate(outer);
                }
                Ok(())
            }
            Act::Set(target, e) => {
                let Some(place) = self.find(target, step.optional)? else { return Ok(()) };
                let value = self.sees().value(e)?;
                let unknown = self.state.unknown(&place);
                self.state.clear(&place);
                self.write(Op::Set(place, value), unknown)
            }
            Act::Append(target, e) => {
                let Some(place) = self.find(target, step.optional)? else { return Ok(()) };
                let value = self.sees().value(e)?;
                let unknown = self.state.unknown(&place);
                self.write(Op::Append(place, value), unknown)
            }
            // The sum is computed from what is there, and so is whether there is something.
            Act::Add(target, e) => {
                let Some(place) = self.find(target, step.optional)? else { return Ok(()) };
                self.known(&place)?;
                if self.found(&place).is_none() {
                    return if step.optional { Ok(()) } else { Err(Stop::Error) };
                }
                let value = self.sees().value(e)?;
                self.write(Op::Add(place, value), None)
            }
            Act::Remove(target) => {
                let Some(place) = self.find(target, step.optional)? else { return Ok(()) };
                self.known(&place)?;
                if self.found(&place).is_none() {
                    return if step.optional { Ok(()) } else { Err(Stop::Error) };
                }
                self.write(Op::Remove(place), None)
            }
        }
    }

    fn known(&self, place: &[String]) -> Result<(), Stop> {
        self.state.unknown(place).map_or(Ok(()), |tick| Err(Stop::Unknown(tick)))
    }

    /// Writes. What is in the way of an unknown place may not be there.
    fn write(&mut self, op: Op, unknown: Option<u64>) -> Result<(), Stop> {
        let mut value = self.state.value.clone();
        match (apply(&mut value, op.place(), &op), unknown) {
            (Some(()), _) => self.state.value = value,
            (None, Some(tick)) => return Err(Stop::Unknown(tick)),
            (None, None) => return Err(Stop::Error),
        }
        Ok(())
    }

    fn found(&self, place: &[String]) -> Option<V> {
        place.iter().try_fold(self.state.value.clone(), |value, name| match value {
            V::Map(members) => members.get(name).cloned(),
            V::List(items) => name.parse::<usize>().ok().and_then(|at| items.get(at).cloned()),
            _ => None,
        })
    }

    /// Finds the place of a target; `None` where it is missing and that is allowed.
    fn find(&self, target: &Target, optional: bool) -> Result<Option<Place>, Stop> {
        let mut place = vec![target.field.to_owned()];
        let missing = || if optional { Ok(None) } else { Err(Stop::Error) };
        for seg in &target.segs {
            let found = self.found(&place);
            match seg {
                TSeg::Name(name) => {
                    if matches!(found, Some(V::List(_))) {
                        self.known(&place)?;
                        return Err(Stop::Error);
                    }
                    place.push((*name).to_owned());
                }
                TSeg::Index(e) => match self.sees().value(e)? {
                    V::Text(name) => {
                        if matches!(found, Some(V::List(_))) {
                            self.known(&place)?;
                            return Err(Stop::Error);
                        }
                        place.push(name);
                    }
                    V::Int(at) => {
                        self.known(&place)?;
                        match found {
                            Some(V::List(items)) if usize::try_from(at).is_ok_and(|at| at < items.len()) => {
                                place.push(at.to_string());
                            }
                            Some(V::List(_)) | None => return missing(),
                            Some(_) => return Err(Stop::Error),
                        }
                    }
                    _ => return Err(Stop::Error),
                },
                TSeg::First(condition) => {
                    self.known(&place)?;
                    let items = match found {
                        Some(V::List(items)) => items,
                        None => return missing(),
                        Some(_) => return Err(Stop::Error),
                    };
                    let mut names = self.names.clone();
                    let mut first = None;
                    for (index, item) in items.into_iter().enumerate() {
                        names.push(("x", item));
                        let sees = Sees { names: &names, ..self.sees() };
                        let holds = sees.truth(condition)?;
                        names.pop();
                        if holds {
                            first = Some(index);
                            break;
                        }
                    }
                    let Some(index) = first else { return missing() };
                    place.push(index.to_string());
                }
            }
        }
        Ok(Some(place))
    }
}
