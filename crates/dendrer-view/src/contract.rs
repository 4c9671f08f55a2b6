//! Contracts as rows and documents: what they say, and what another says otherwise.

use dendrer::contract::compare::{ContractChange, Ranked};
use dendrer::contract::find::{Added, Listed, Listing};
use dendrer::contract::terms::{ContractTerms, FieldTerms, Need, Never, TypeTerms};
use dendrer::kernel::pack::PackEngine;
use dendrer::kernel::pack::writes::{Sound, Written};
use dendrer::kernel::predicate::Window;
use dendrer_object::{Pointer, TypeName, Value, tag};

use crate::{document, quote};

pub mod check;
pub mod extend;
pub mod found;
pub mod lint;
pub mod suggest;

/// How long a value is shown to people.
const VALUE_SHOWN: usize = 60;

/// Says how it is known that a violation cannot recover.
pub fn sound_words(sound: &Sound) -> String {
    match sound {
        Sound::ByText => "sound: by its text, it cannot recover".to_owned(),
        Sound::ByRules => "sound: no rule of the pack can take it back".to_owned(),
        Sound::Lifted => "sound: its first violation counts, whatever comes after (lifted)".to_owned(),
        Sound::Unknown { turned_by } => match &turned_by[..] {
            [] => "not known to be sound: it may recover, and bisect looks at the run first".to_owned(),
            rules => format!(
                "not known to be sound: {} may take it back, and bisect looks at the run first",
                rule_numbers(rules)
            ),
        },
    }
}

fn rule_numbers(rules: &[usize]) -> String {
    let numbers = rules.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    format!("{} {numbers}", if rules.len() == 1 { "rule" } else { "rules" })
}

fn words(text: Option<&str>) -> String {
    let line = text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    line.map(|line| format!("   {}", quote::escape(&line))).unwrap_or_default()
}

fn short(value: &Value) -> String {
    let text = quote::value(value);
    match text.chars().count() > VALUE_SHOWN {
        true => format!("{}... (--json shows all)", text.chars().take(VALUE_SHOWN).collect::<String>()),
        false => text,
    }
}

fn list<'t>(names: impl IntoIterator<Item = &'t TypeName>) -> String {
    names.into_iter().map(TypeName::as_str).collect::<Vec<_>>().join(", ")
}

/// Writes what a contract says, for people. Only one type, if it is named.
pub fn lines(terms: &ContractTerms<'_>, only: Option<&TypeName>) -> Vec<String> {
    let mut lines = Vec::new();
    for one in terms.types.iter().filter(|one| only.is_none_or(|only| *only == one.name)) {
        type_lines(one, terms.pack.engine, &mut lines);
    }
    if only.is_some() {
        return lines;
    }
    let idle = terms.pack.rules_for_all();
    if !idle.is_empty() {
        lines.push(format!("type      (every other)   {}", rule_numbers(&idle)));
    }
    for one in &terms.never {
        never_lines(one, &mut lines);
    }
    terms.fields.iter().for_each(|field| lines.push(field_line(field, terms.pack.engine)));
    lines.push("field     state.kernel_anomalies, policy, progress   written by the kernel alone".to_owned());
    for tool in &terms.pack.tools {
        let name = quote::escape(&tool.name);
        lines.push(format!("tool      {name}   {}{}", tool.class().as_str(), words(tool.words.as_deref())));
    }
    for (name, value) in &terms.others {
        lines.push(format!("besides   {}   {}", quote::escape(tag::user_name(name)), short(value)));
    }
    lines
}

fn type_lines(one: &TypeTerms<'_>, engine: PackEngine, lines: &mut Vec<String>) {
    let registered = if one.registered { ", registered by the pack" } else { "" };
    lines.push(format!(
        "type      {}   written by {}{registered}{}",
        one.name,
        one.authors,
        words(one.words)
    ));
    if !one.has_contract {
        lines.push("  needs     nothing: it has no contract, and is imported nowhere".to_owned());
    }
    let width = one.needs.iter().map(|need| need.required.name.chars().count()).max().unwrap_or(0);
    for (index, need) in one.needs.iter().enumerate() {
        let head = if index == 0 { "needs" } else { "" };
        lines.push(format!(
            "  {head:<8}  {:<width$}  {}",
            quote::escape(&need.required.name),
            need_words(need)
        ));
    }
    if !one.advisory.is_empty() {
        let names = one.advisory.iter().map(|name| &**name).collect::<Vec<_>>().join(", ");
        lines.push(format!(
            "  may name  {}   (what a model says it looked at is bound as well)",
            quote::escape(&names)
        ));
    }
    match one.writes.is_empty() {
        true => lines.push(format!("  changes   {}", changes_words(engine))),
        false => {
            let mut seen: Vec<String> = Vec::new();
            for write in &one.writes {
                let text = format!("{} ({}, rule {})", write.field, write.act, write.rule);
                if !seen.contains(&text) {
                    seen.push(text);
                }
            }
            lines.push(format!("  changes   {}", quote::escape(&seen.join(", "))));
        }
    }
}

/// The words for the changes of a transition that no rule governs.
fn changes_words(engine: PackEngine) -> &'static str {
    match engine {
        PackEngine::Fold => "nothing",
        PackEngine::Delta => "what its intent proposes",
        PackEngine::Wasm => "what the module says",
    }
}

/// The writer of a field that no rule writes.
pub fn writer_words(engine: PackEngine) -> &'static str {
    match engine {
        PackEngine::Fold => "no rule writes it",
        PackEngine::Delta => "intents may write it",
        PackEngine::Wasm => "the module may write it",
    }
}

fn need_words(need: &Need<'_>) -> String {
    let mut parts = vec![need.required.kind.to_string()];
    parts.extend(need.required.precision.map(|decimals| format!("counted to {decimals} decimals")));
    parts.extend(need.required.nullable.then(|| "may be null".to_owned()));
    parts.extend(need.is_seed.then(|| match need.seed_since.filter(|_| need.seed_since != need.since) {
        Some(id) => format!("seeds the hash since extension {}", quote::escape(id)),
        None => "seeds the hash".to_owned(),
    }));
    parts.push(match need.import {
        "equal" => "an import finds it equal".to_owned(),
        "present" => "an import finds it there".to_owned(),
        rule => format!("an import finds that {}", quote::escape(rule)),
    });
    parts.extend(need.since.map(since));
    parts.join(", ")
}

fn since(id: &str) -> String {
    format!("since extension {}", quote::escape(id))
}

fn never_lines(one: &Never<'_>, lines: &mut Vec<String>) {
    let window = match one.predicate.window() {
        Window::After => "after",
        Window::Before => "before",
    };
    let name = one.predicate.name();
    let question = quote::escape(&one.predicate.words());
    let since = one.since.map(|id| format!(", {}", since(id))).unwrap_or_default();
    lines.push(format!(
        "never     {name}   {question}   ({window} each transition{since}){}",
        words(one.words)
    ));
    lines.push(format!("          {}", sound_words(&one.sound)));
    let reads = one.reads.iter().map(|(place, types)| match types.is_empty() {
        true => place_words(place),
        false => format!("{} (required by {})", place_words(place), list(types)),
    });
    let reads = reads.collect::<Vec<_>>().join(", ");
    lines.push(format!("          reads {}", if reads.is_empty() { "nothing of the state" } else { &reads }));
}

fn place_words(place: &Pointer) -> String {
    quote::escape(&place.in_state())
}

fn field_line(field: &FieldTerms<'_>, engine: PackEngine) -> String {
    let begins = match (&field.begins, field.init) {
        (Some(value), _) => format!("begins as {}", short(value)),
        (None, Some(init)) => format!("begins as {} gives", short(init)),
        (None, None) => "begins as the run says".to_owned(),
    };
    let mut by: Vec<String> = Vec::new();
    for (write, types) in &field.writes {
        let types = types.as_ref().map_or_else(|| "every type".to_owned(), list);
        let text = format!("{} of {types} (rule {})", write.act, write.rule);
        if !by.contains(&text) {
            by.push(text);
        }
    }
    let by = match by.is_empty() {
        true => writer_words(engine).to_owned(),
        false => format!("written by {}", by.join(", ")),
    };
    let decimals = field.decimals.map(|decimals| format!(", {decimals} decimals")).unwrap_or_default();
    let may = match field.writers {
        [] => String::new(),
        writers => {
            let named: Vec<&str> = writers.iter().map(|writer| &**writer).collect();
            format!("; only {} may change it", quote::escape(&named.join(", ")))
        }
    };
    let since = field.since.map(|id| format!("; declared {}", since(id))).unwrap_or_default();
    let name = quote::escape(field.name);
    format!("field     state.{name}   {begins}{decimals}; {by}{may}{since}{}", words(field.words))
}

/// Writes what a contract says as members of `dendrer.contract/1`.
pub fn terms_json(terms: &ContractTerms<'_>, only: Option<&TypeName>) -> Vec<(&'static str, Value)> {
    let types = terms.types.iter().filter(|one| only.is_none_or(|only| *only == one.name)).map(type_json);
    let others = terms.others.iter().map(|(name, value)| (*name, (*value).clone()));
    let tools = terms.pack.tools.iter().map(|tool| {
        Value::record([
            ("name", Value::from(&*tool.name)),
            ("effect", Value::from(tool.class().as_str())),
            ("failed", Value::from(tool.failed.as_ref().map(|failed| failed.canonical()))),
            ("words", Value::from(tool.words.as_deref())),
        ])
    });
    vec![
        ("name", Value::from(&*terms.pack.name)),
        ("version", Value::from(&*terms.pack.version)),
        ("words", Value::from(terms.pack.words.as_deref())),
        ("reducer", Value::from(terms.pack.engine.as_str())),
        ("module", Value::from(terms.pack.module())),
        ("items", Value::array(types)),
        ("never", Value::array(terms.never.iter().map(never_json))),
        ("fields", Value::array(terms.fields.iter().map(field_json))),
        ("tools", Value::array(tools)),
        ("others", Value::record(others)),
    ]
}

fn write_json(write: &Written) -> Value {
    Value::record([
        ("field", Value::from(&*write.field)),
        ("act", Value::from(write.act)),
        ("rule", Value::from(write.rule as u64)),
        ("whole", Value::from(write.whole)),
    ])
}

fn type_json(one: &TypeTerms<'_>) -> Value {
    let needs = one.needs.iter().map(|need| {
        let Need { required, is_seed, import, since, seed_since } = need;
        Value::record([
            ("name", Value::from(&*required.name)),
            ("kind", Value::from(required.kind.to_string())),
            ("precision", Value::from(required.precision.map(u64::from))),
            ("nullable", Value::from(required.nullable)),
            ("seed", Value::from(*is_seed)),
            ("import", Value::from(*import)),
            ("since", Value::from(*since)),
            ("seed_since", Value::from(*seed_since)),
        ])
    });
    Value::record([
        ("type", Value::from(one.name.as_str())),
        ("words", Value::from(one.words)),
        ("authors", Value::from(one.authors)),
        ("registered", Value::from(one.registered)),
        ("contract", Value::from(one.has_contract)),
        ("needs", Value::array(needs)),
        ("advisory", Value::array(one.advisory.iter().map(|name| Value::from(&**name)))),
        ("writes", Value::array(one.writes.iter().map(write_json))),
    ])
}

fn never_json(one: &Never<'_>) -> Value {
    let turned = match &one.sound {
        Sound::Unknown { turned_by } => turned_by.clone(),
        _ => Vec::new(),
    };
    let reads = one.reads.iter().map(|(place, types)| {
        Value::record([
            ("path", Value::from(place.written())),
            ("required_by", Value::array(types.iter().map(|name| Value::from(name.as_str())))),
        ])
    });
    let window = if one.predicate.window() == Window::Before { "before" } else { "after" };
    Value::record([
        ("name", Value::from(one.predicate.name())),
        ("words", Value::from(one.words)),
        ("question", Value::from(one.predicate.words())),
        ("window", Value::from(window)),
        ("sound", Value::from(one.sound.as_str())),
        ("turned_by", Value::array(turned.iter().map(|rule| Value::from(*rule as u64)))),
        ("reads", Value::array(reads)),
        ("digest", Value::from(one.predicate.digest())),
        ("since", Value::from(one.since)),
    ])
}

fn field_json(field: &FieldTerms<'_>) -> Value {
    let writes = field.writes.iter().map(|(write, types)| {
        let types = types
            .as_ref()
            .map_or(Value::Null, |types| Value::array(types.iter().map(|name| Value::from(name.as_str()))));
        Value::record([
            ("act", Value::from(write.act)),
            ("rule", Value::from(write.rule as u64)),
            ("whole", Value::from(write.whole)),
            ("types", types),
        ])
    });
    Value::record([
        ("name", Value::from(field.name)),
        ("words", Value::from(field.words)),
        ("decimals", Value::from(field.decimals.map(u64::from))),
        ("begins", field.begins.clone().unwrap_or(Value::Null)),
        ("begins_fixed", Value::from(field.begins.is_some())),
        ("init", field.init.cloned().unwrap_or(Value::Null)),
        ("writes", Value::array(writes)),
        ("writers", Value::array(field.writers.iter().map(|writer| Value::from(&**writer)))),
        ("since", Value::from(field.since)),
    ])
}

/// Writes what an extension is on a line, and behind one that does not hold yet what it is to bring about.
pub fn extension_lines(added: &Added) -> Vec<String> {
    let word = if added.holds { "extension" } else { "coming   " };
    let Added { id, tick, from, .. } = added;
    let by = if added.approved_by.is_empty() {
        String::new()
    } else {
        format!("by {}, ", quote::escape(&added.approved_by))
    };
    let signed = if added.is_signed { "signed with their key" } else { "not signed" };
    let mut lines = vec![format!(
        "{word} {}   written at tick {tick}, holds from tick {from} on   approved {by}{signed}{}",
        quote::escape(id),
        words(added.words.as_deref())
    )];
    let changes = added.adds.iter().filter(|_| !added.holds);
    lines.extend(changes.map(|change| format!("          {}", quote::escape(&change.words))));
    lines
}

/// Returns an extension as a member of `dendrer.contract/1`.
pub fn extension_json(added: &Added) -> Value {
    Value::record([
        ("id", Value::from(&*added.id)),
        ("words", Value::from(added.words.as_deref())),
        ("tick", Value::from(added.tick)),
        ("from", Value::from(added.from)),
        ("holds", Value::from(added.holds)),
        ("approved_by", Value::from(&*added.approved_by)),
        ("signed", Value::from(added.is_signed)),
        ("adds", Value::array(added.adds.iter().map(change_json))),
    ])
}

/// Writes one change of a comparison on a line, after its rank.
pub fn change_line(change: &ContractChange) -> String {
    let word = match change.ranked {
        Ranked::Stricter => "STRICTER",
        Ranked::Looser => "LOOSER  ",
        Ranked::Other => "OTHER   ",
    };
    format!("{word}  {}   {}", quote::escape(&change.place), quote::escape(&change.words))
}

/// Returns a change as an item of `dendrer.contract-diff/1`.
pub fn change_json(change: &ContractChange) -> Value {
    Value::record([
        ("ranked", Value::from(change.ranked.as_str())),
        ("place", Value::from(change.place.as_str())),
        ("words", Value::from(change.words.as_str())),
    ])
}

/// Returns what the runs of a store are under as `dendrer.contracts/1`.
pub fn listing_json(listing: &Listing) -> Value {
    let item = |listed: &Listed| {
        let Listed { pack, runs } = listed;
        Value::record([
            ("name", Value::from(&*pack.name)),
            ("version", Value::from(&*pack.version)),
            ("digest", Value::from(pack.digest())),
            ("types", Value::array(pack.contracts.types.keys().map(|name| Value::from(name.as_str())))),
            ("violations", Value::from(pack.predicates.len() as u64)),
            ("runs", Value::array(runs.iter().map(|run| Value::from(run.as_str())))),
        ])
    };
    let unreadable = listing.unreadable.iter().map(|(run, why)| {
        Value::record([("run", Value::from(run.as_str())), ("why", Value::from(why.as_str()))])
    });
    document(
        "contracts",
        [
            ("items", Value::array(listing.packs.iter().map(item))),
            ("without", Value::from(listing.without)),
            ("unreadable", Value::array(unreadable)),
        ],
    )
}
