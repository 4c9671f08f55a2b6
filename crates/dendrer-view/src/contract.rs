//! Contracts as rows and documents: their terms, and the changes from one to another.

use dendrer::contract::compare::{ContractChange, Ranked};
use dendrer::contract::find::Added;
use dendrer::contract::terms::{ContractTerms, FieldTerms, Need, Never, TypeTerms};
use dendrer::kernel::expr::Expr;
use dendrer::kernel::pack::writes::Sound;
use dendrer::kernel::pack::{Effect, PackEngine, Tool};
use dendrer::kernel::predicate::Window;
use dendrer_object::{Pointer, TypeName, Value, document, tag};

use crate::layout::{columns, cut, pad};
use crate::quote;

pub mod check;
pub mod extend;
pub mod found;
pub mod lint;
pub mod suggest;

/// The largest number of characters of a value that people are shown.
const VALUE_SHOWN: usize = 60;

/// Returns the evidence that a violation cannot recover.
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
    match columns(&text) > VALUE_SHOWN {
        true => format!("{} (--json shows all)", cut(&text, VALUE_SHOWN + 3)),
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
    let width = one.needs.iter().map(|need| columns(&quote::escape(&need.required.name))).max().unwrap_or(0);
    for (index, need) in one.needs.iter().enumerate() {
        let head = if index == 0 { "needs" } else { "" };
        lines.push(format!(
            "  {head:<8}  {}  {}",
            pad(&quote::escape(&need.required.name), width),
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
    let mut parts = vec![need.required.kind.described().to_owned()];
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

/// Writes an extension on a line, and one that does not hold yet with the changes that it is to make.
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

document! {
    /// A tool that a pack declares
    pub object ToolObject(tool: &Tool) {
        /// The name
        name: &str = &tool.name,
        /// The class of its effect
        effect: Effect = tool.class(),
        /// The condition under which a result says that the call failed
        failed: Option<&str> = tool.failed.as_ref().map(Expr::canonical),
        /// The words for people
        words: Option<&str> = tool.words.as_deref(),
    }

    /// A change from one contract to another
    pub object ContractChangeObject(change: &ContractChange) {
        /// The rank of the change
        ranked: Ranked = change.ranked,
        /// The place in the contract
        place: &str = &change.place,
        /// The change in words
        words: &str = &change.words,
    }
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
