//! What one contract asks that another does not: stricter, looser, or neither.
//!
//! Stricter means that something is refused or found that was not; looser the opposite. What cannot be ranked is said to be
//! other, and nothing is passed over but words and tests. A newcomer would break one rule: a change is called looser or
//! stricter only where that is known.

use std::collections::BTreeSet;

use dendrer_kernel::contract::{Contract, Match, Required, ValueKind};
use dendrer_kernel::expr::Expr;
use dendrer_kernel::pack::members::Member;
use dendrer_kernel::pack::{Declared, Effect, Pack, Tool};
use dendrer_kernel::predicate::{Asking, Polarity, Window};
use dendrer_object::{TypeName, Value};

dendrer_object::words! {
    /// Which way a change goes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Ranked {
        /// Something is refused or found that was not.
        Stricter = "stricter",
        /// Something is let through that was not.
        Looser = "looser",
        /// Neither can be said.
        Other = "other",
    }
}

impl Ranked {
    fn turned(self) -> Ranked {
        match self {
            Ranked::Stricter => Ranked::Looser,
            Ranked::Looser => Ranked::Stricter,
            Ranked::Other => Ranked::Other,
        }
    }
}

/// A change between two contracts.
#[derive(Debug, Clone, PartialEq)]
pub struct ContractChange {
    /// Which way it goes.
    pub ranked: Ranked,
    /// Where in the pack, with dots; by names, not by places in lists.
    pub place: String,
    /// What is otherwise, in words.
    pub words: String,
}

struct Changes(Vec<ContractChange>);

impl Changes {
    fn push(&mut self, ranked: Ranked, place: impl Into<String>, words: impl Into<String>) {
        self.0.push(ContractChange { ranked, place: place.into(), words: words.into() });
    }
}

/// Compares two contracts, the second against the first. Stricter changes come first, then looser ones, then others, each
/// in order of places.
pub fn compare(old: &Pack, new: &Pack) -> Vec<ContractChange> {
    let mut changes = Changes(Vec::new());
    let title = |pack: &Pack| format!("{}/{}", pack.name, pack.version);
    if title(old) != title(new) {
        let words =
            format!("{} becomes {}: nothing is imported from the one into the other", title(old), title(new));
        changes.push(Ranked::Other, "name", words);
    }
    if old.engine != new.engine {
        let words = format!("{} becomes {}", old.engine.as_str(), new.engine.as_str());
        changes.push(Ranked::Other, "reducer", words);
    }
    if old.module() != new.module() {
        let shown = |pack: &Pack| pack.module().map_or("none".to_owned(), |module| module.short());
        let words = format!("the module that reduces is {}, and was {}", shown(new), shown(old));
        changes.push(Ranked::Other, "module", words);
    }
    types(old, new, &mut changes);
    contracts(old, new, &mut changes);
    predicates(old, new, &mut changes);
    tools(old, new, &mut changes);
    rules(old, new, &mut changes);
    for member in ["constants", "define", "state"] {
        members(member, old, new, &mut changes);
    }
    rest(old, new, &mut changes);
    changes.0.sort_by(|a, b| (a.ranked, &a.place, &a.words).cmp(&(b.ranked, &b.place, &b.words)));
    changes.0
}

fn types(old: &Pack, new: &Pack, changes: &mut Changes) {
    for name in new.types.keys().filter(|name| !old.types.contains_key(*name)) {
        changes.push(Ranked::Looser, format!("types.{name}"), format!("{name} may be proposed"));
    }
    for name in old.types.keys().filter(|name| !new.types.contains_key(*name)) {
        changes.push(
            Ranked::Stricter,
            format!("types.{name}"),
            format!("{name} is refused: nothing registers it"),
        );
    }
}

fn contracts(old: &Pack, new: &Pack, changes: &mut Changes) {
    let (old, new) = (&old.contracts.types, &new.contracts.types);
    let fields = |contract: &Contract| {
        contract.required.iter().map(|required| &*required.name).collect::<Vec<_>>().join(", ")
    };
    for (name, contract) in new {
        let place = format!("contracts.{name}");
        match old.get(name) {
            None => {
                let words = format!("{name} needs {}; it needed nothing", fields(contract));
                changes.push(Ranked::Stricter, place, words);
            }
            Some(before) => required(&place, before, contract, changes),
        }
    }
    for (name, contract) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
        let words = format!("{name} needs nothing; it needed {}", fields(contract));
        changes.push(Ranked::Looser, format!("contracts.{name}"), words);
    }
}

fn required(place: &str, old: &Contract, new: &Contract, changes: &mut Changes) {
    let type_name = &new.type_name;
    let find = |contract: &Contract, name: &str| {
        contract.required.iter().find(|field| *field.name == *name).cloned()
    };
    let names: BTreeSet<&str> = old.required.iter().chain(&new.required).map(|field| &*field.name).collect();
    for name in names {
        let at = format!("{place}.required_state.{name}");
        match (find(old, name), find(new, name)) {
            (None, Some(field)) => {
                let nullable = if field.nullable { ", which may be null" } else { "" };
                let words = format!("{type_name} needs {name} ({}{nullable})", field.kind);
                changes.push(Ranked::Stricter, at, words);
            }
            (Some(_), None) => changes.push(Ranked::Looser, at, format!("{type_name} does not need {name}")),
            (Some(before), Some(after)) => {
                field(&at, &before, &after, changes);
                import_rule(&format!("{place}.match.{name}"), name, (old, new), changes);
            }
            (None, None) => {}
        }
    }
    for (member, before, after) in
        [("hash_seeds", &old.seeds, &new.seeds), ("advisory", &old.advisory, &new.advisory)]
    {
        let what = if member == "advisory" { "a model may name" } else { "seeds the hash:" };
        for name in after.iter().filter(|name| !before.contains(name)) {
            changes.push(Ranked::Other, format!("{place}.{member}"), format!("{what} {name}"));
        }
        for name in before.iter().filter(|name| !after.contains(name)) {
            changes.push(Ranked::Other, format!("{place}.{member}"), format!("no longer: {what} {name}"));
        }
    }
}

fn field(place: &str, old: &Required, new: &Required, changes: &mut Changes) {
    let name = &new.name;
    if old.kind != new.kind {
        let narrower = |a: ValueKind, b: ValueKind| {
            b == ValueKind::Any
                || (a, b) == (ValueKind::Integer, ValueKind::Number)
                || (a, b) == (ValueKind::Datetime, ValueKind::Text)
        };
        let ranked = match (narrower(new.kind, old.kind), narrower(old.kind, new.kind)) {
            (true, _) => Ranked::Stricter,
            (_, true) => Ranked::Looser,
            _ => Ranked::Other,
        };
        changes.push(ranked, place, format!("{name} is {}, and was {}", new.kind, old.kind));
    }
    if old.nullable != new.nullable {
        let (ranked, words) = match new.nullable {
            true => (Ranked::Looser, "may be null"),
            false => (Ranked::Stricter, "may not be null"),
        };
        changes.push(ranked, place, format!("{name} {words}"));
    }
    if old.precision != new.precision {
        let finer = new.precision.map_or(u8::MAX, |decimals| decimals)
            > old.precision.map_or(u8::MAX, |decimals| decimals);
        let ranked = if finer { Ranked::Stricter } else { Ranked::Looser };
        let counted =
            |precision: Option<u8>| precision.map_or("all".to_owned(), |decimals| decimals.to_string());
        let words = format!(
            "{name} counts with {} decimals, and did with {}",
            counted(new.precision),
            counted(old.precision)
        );
        changes.push(ranked, place, words);
    }
}

/// How an import compares a field that both require.
fn import_rule(place: &str, name: &str, (old, new): (&Contract, &Contract), changes: &mut Changes) {
    let (before, after) = (old.rule(name), new.rule(name));
    let expr = |contract: &Contract| match contract.matches.get(name) {
        Some(Match::Holds(expr)) => Some(expr.clone()),
        _ => None,
    };
    let ranked = match (expr(old), expr(new)) {
        (Some(before), Some(after)) => match which(&after, false, &before, false) {
            Some(ranked) => ranked,
            None => return,
        },
        _ if before == after => return,
        // An expression asks that the field is there, and more.
        _ if before == "present" => Ranked::Stricter,
        _ if after == "present" => Ranked::Looser,
        _ => Ranked::Other,
    };
    let words = format!("an import finds {name} {}, and found it {}", rule_words(after), rule_words(before));
    changes.push(ranked, place, words);
}

fn rule_words(rule: &str) -> String {
    match rule {
        "equal" | "present" => rule.to_owned(),
        expr => format!("such that {expr}"),
    }
}

/// Which way it goes if what is true of fewer states is stricter; `None` where both say the same.
fn which(new: &Expr, new_negated: bool, old: &Expr, old_negated: bool) -> Option<Ranked> {
    if new_negated == old_negated && new.in_full() == old.in_full() {
        return None;
    }
    let narrower = new.includes(new_negated, old, old_negated);
    let wider = old.includes(old_negated, new, new_negated);
    match (narrower, wider) {
        (true, true) => None,
        (true, false) => Some(Ranked::Stricter),
        (false, true) => Some(Ranked::Looser),
        (false, false) => Some(Ranked::Other),
    }
}

fn predicates(old: &Pack, new: &Pack, changes: &mut Changes) {
    let find =
        |pack: &'_ Pack, name: &str| pack.predicates.iter().position(|one| one.predicate.name() == name);
    for declared in &new.predicates {
        let name = declared.predicate.name();
        match find(old, name) {
            Some(at) => predicate((old, &old.predicates[at]), (new, declared), changes),
            None => {
                let words = format!("{name} is judged: {}", declared.predicate.words());
                changes.push(Ranked::Stricter, format!("violations.{name}"), words);
            }
        }
    }
    for declared in old.predicates.iter().filter(|one| find(new, one.predicate.name()).is_none()) {
        let name = declared.predicate.name();
        let words = format!("{name} is not judged any more: {}", declared.predicate.words());
        changes.push(Ranked::Looser, format!("violations.{name}"), words);
    }
}

fn predicate(
    (old_pack, old): (&Pack, &Declared),
    (new_pack, new): (&Pack, &Declared),
    changes: &mut Changes,
) {
    let name = new.predicate.name();
    let place = format!("violations.{name}");
    // The violation is what is compared, whichever way the text puts it.
    let is_ok = |declared: &Declared| declared.predicate.polarity() == Polarity::Holds;
    let ranked = match (new.predicate.asked(), old.predicate.asked()) {
        (Asking::Expr(text), Asking::Expr(was)) => {
            which(text, is_ok(new), was, is_ok(old)).map(Ranked::turned)
        }
        // What a program says is not compared.
        (Asking::Program(module), Asking::Program(was)) if module.digest() == was.digest() => None,
        _ => Some(Ranked::Other),
    };
    if let Some(ranked) = ranked {
        let words = format!("{name} is {}, and was {}", new.predicate.words(), old.predicate.words());
        changes.push(ranked, &place, words);
    }
    match (old.is_violation, new.is_violation) {
        (false, true) => {
            let words = format!("{name} is looked for before each commit, and was only asked about");
            changes.push(Ranked::Stricter, &place, words);
        }
        (true, false) => {
            let words = format!("{name} is only asked about, and was looked for before each commit");
            changes.push(Ranked::Looser, &place, words);
        }
        _ => {}
    }
    if old.predicate.window() != new.predicate.window() {
        let side = |window: Window| if window == Window::Before { "before" } else { "after" };
        let words = format!(
            "{name} looks at the state {} a transition, and looked at the one {}",
            side(new.predicate.window()),
            side(old.predicate.window())
        );
        changes.push(Ranked::Other, &place, words);
    }
    scope(&place, old, new, changes);
    let (before, after) = (old_pack.sound(&old.predicate), new_pack.sound(&new.predicate));
    if before.as_str() != after.as_str() {
        let words = format!(
            "that {name} cannot recover is known {}, and was {}",
            known(after.as_str()),
            known(before.as_str())
        );
        changes.push(Ranked::Other, place, words);
    }
}

/// The types at which a predicate looks; none named are all.
fn scope(place: &str, old: &Declared, new: &Declared, changes: &mut Changes) {
    let (before, after) = (old.predicate.scope(), new.predicate.scope());
    let covers = |wide: &[TypeName], narrow: &[TypeName]| {
        wide.is_empty() || !narrow.is_empty() && narrow.iter().all(|name| wide.contains(name))
    };
    let ranked = match (covers(after, before), covers(before, after)) {
        (true, true) => return,
        (true, false) => Ranked::Stricter,
        (false, true) => Ranked::Looser,
        (false, false) => Ranked::Other,
    };
    let list = |names: &[TypeName]| match names {
        [] => "every type".to_owned(),
        names => names.iter().map(TypeName::as_str).collect::<Vec<_>>().join(", "),
    };
    let words = format!("{} looks at {}, and looked at {}", new.predicate.name(), list(after), list(before));
    changes.push(ranked, place, words);
}

fn known(word: &str) -> &str {
    match word {
        "by_text" => "by its text",
        "by_rules" => "by the rules",
        "lifted" => "by the lift",
        _ => "not at all",
    }
}

/// A tool that may be called again is looser than one that may not.
fn tools(old: &Pack, new: &Pack, changes: &mut Changes) {
    let order = |effect: Effect| match effect {
        Effect::Host | Effect::Read => 0,
        Effect::IdempotentWrite => 1,
        Effect::Effectful => 2,
    };
    for tool in &new.tools {
        let place = format!("tools.{}", tool.name);
        match old.tools.iter().find(|other| other.name == tool.name) {
            None => changes.push(
                Ranked::Other,
                place,
                format!("{} is declared {}", tool.name, tool.class().as_str()),
            ),
            Some(before) if before.class() != tool.class() => {
                let ranked = match order(tool.class()) > order(before.class()) {
                    true => Ranked::Stricter,
                    false => Ranked::Looser,
                };
                let words = format!(
                    "{} is {}, and was {}",
                    tool.name,
                    tool.class().as_str(),
                    before.class().as_str()
                );
                changes.push(ranked, place, words);
            }
            Some(_) => {}
        }
        let failed = |tool: &Tool| tool.failed.as_ref().map(|failed| failed.canonical().to_owned());
        let before = old.tools.iter().find(|other| other.name == tool.name).and_then(failed);
        if failed(tool) != before {
            let words = failed(tool)
                .map_or_else(|| "no more than its results say".to_owned(), |words| format!("when {words}"));
            let place = format!("tools.{}.failed", tool.name);
            changes.push(Ranked::Other, place, format!("a call of {} failed {words}", tool.name));
        }
    }
    for tool in old.tools.iter().filter(|tool| !new.tools.iter().any(|other| other.name == tool.name)) {
        changes.push(
            Ranked::Other,
            format!("tools.{}", tool.name),
            format!("{} is not declared any more", tool.name),
        );
    }
}

/// Rules are compared one by one as they stand; what changed in them is for a reader to judge.
fn rules(old: &Pack, new: &Pack, changes: &mut Changes) {
    let list = |pack: &Pack| -> Vec<Value> {
        let rules = pack.value().get("rules").and_then(Value::as_array);
        rules.into_iter().flat_map(|rules| rules.iter()).map(without_words).collect()
    };
    let (before, after) = (list(old), list(new));
    if before == after {
        return;
    }
    let name = |pack: &Pack, index: usize| pack.rule_names().nth(index).unwrap_or_default().to_owned();
    for (index, rule) in after.iter().enumerate().filter(|(_, rule)| !before.contains(rule)) {
        let words = format!("{} is new or says something else", name(new, index));
        changes.push(Ranked::Other, format!("rules[{index}]"), format!("{words}{}", for_types(rule)));
    }
    for (index, rule) in before.iter().enumerate().filter(|(_, rule)| !after.contains(rule)) {
        let words = format!("{} of the first is gone or says something else", name(old, index));
        changes.push(Ranked::Other, format!("rules[{index}]"), format!("{words}{}", for_types(rule)));
    }
    let same = |list: &[Value], other: &[Value]| -> Vec<Value> {
        list.iter().filter(|rule| other.contains(rule)).cloned().collect()
    };
    if same(&before, &after) != same(&after, &before) {
        changes.push(Ranked::Other, "rules", "the rules that both have stand in another order");
    }
}

fn for_types(rule: &Value) -> String {
    rule.get("when_type").map(|types| format!(" (for {types})")).unwrap_or_default()
}

fn without_words(value: &Value) -> Value {
    match value.as_object() {
        Some(members) => {
            let mut members = members.clone();
            members.remove("words");
            Value::Object(members)
        }
        None => value.clone(),
    }
}

/// The members of a map of the pack that are otherwise.
fn members(member: &str, old: &Pack, new: &Pack, changes: &mut Changes) {
    let of = |pack: &Pack| pack.value().get(member).and_then(Value::as_object).cloned().unwrap_or_default();
    let (before, after) = (of(old), of(new));
    let names: BTreeSet<String> =
        before.iter().chain(after.iter()).map(|(name, _)| name.to_string()).collect();
    for name in names {
        let words = match (before.get(&name).map(without_words), after.get(&name).map(without_words)) {
            (None, Some(value)) => format!("{name} is new: {value}"),
            (Some(value), None) => format!("{name} is gone; it was {value}"),
            (Some(a), Some(b)) if a != b => format!("{name} is {b}, and was {a}"),
            _ => continue,
        };
        changes.push(Ranked::Other, format!("{member}.{name}"), words);
    }
}

/// Members of packs that are not ranked here, and are not passed over either.
fn rest(old: &Pack, new: &Pack, changes: &mut Changes) {
    let names = |pack: &Pack| -> Vec<String> {
        pack.value()
            .as_object()
            .into_iter()
            .flat_map(|members| members.iter())
            .map(|(name, _)| name.to_string())
            .collect()
    };
    let all: BTreeSet<String> = names(old).into_iter().chain(names(new)).collect();
    let is_rest = |name: &&String| Member::find(name).is_none_or(|member| !member.in_comparison);
    for name in all.iter().filter(is_rest) {
        let (before, after) = (old.value().get(name), new.value().get(name));
        if before != after {
            let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            changes.push(
                Ranked::Other,
                name.as_str(),
                format!("{name} is {}, and was {}", shown(after), shown(before)),
            );
        }
    }
}

#[cfg(test)]
mod tests;
