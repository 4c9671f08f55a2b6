//! What became of a proposal at a door, and the kinds of rules that it is about.

use std::collections::BTreeSet;

use dendrer::kernel::step::Outcome;
use dendrer_object::Value;
use dendrer_object::record::{Kind, Record};

/// The columns of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    Requests,
    States,
    Violations,
    Writers,
    Contracts,
    Commitments,
    Scope,
    Decisions,
    Rounding,
    LookAlikes,
    Stage,
    Form,
}

impl Rule {
    pub(crate) const ALL: [Rule; 12] = [
        Rule::Requests,
        Rule::States,
        Rule::Violations,
        Rule::Writers,
        Rule::Contracts,
        Rule::Commitments,
        Rule::Scope,
        Rule::Decisions,
        Rule::Rounding,
        Rule::LookAlikes,
        Rule::Stage,
        Rule::Form,
    ];

    pub(crate) fn words(self) -> &'static str {
        match self {
            Rule::Requests => "policy about requests",
            Rule::States => "policy about states",
            Rule::Violations => "violations",
            Rule::Writers => "writers",
            Rule::Contracts => "contracts",
            Rule::Commitments => "commitments",
            Rule::Scope => "delegation scope",
            Rule::Decisions => "decisions",
            Rule::Rounding => "rounding",
            Rule::LookAlikes => "look-alikes",
            Rule::Stage => "types and tools of stage 3",
            Rule::Form => "form and authorship",
        }
    }

    /// The kind of a rule by its id in the packs of these tests.
    fn of_id(id: &str) -> Option<Rule> {
        match id.as_bytes().first()? {
            b'r' => Some(Rule::Requests),
            b's' => Some(Rule::States),
            b'v' => Some(Rule::Violations),
            b'D' => Some(Rule::Scope),
            b'A'..=b'Z' => Some(Rule::Commitments),
            _ => None,
        }
    }

    /// The kinds of rules that a fact of the kind is about: a code, a kind of anomaly or the id of a rule.
    fn of(fact: &str, ids: &[String]) -> Vec<Rule> {
        match fact {
            "E0429" | "E0428" | "E0434" | "E0419" | "cannot_be_judged" | "violated" | "latched"
            | "still_violated" => ids.iter().filter_map(|id| Rule::of_id(id)).collect(),
            "E0430" => vec![Rule::Writers],
            "E0411" => vec![Rule::Contracts],
            "commitment_violated" if ids.iter().any(|id| id == "D") => vec![Rule::Scope],
            "E0451" | "E0453" | "commitment_violated" => vec![Rule::Commitments],
            "E0452" => vec![Rule::Scope],
            "E0435" | "denied_before" | "acted_after_deny" | "decision_without_request" => {
                vec![Rule::Decisions]
            }
            "E0436" | "finer_than_declared" => vec![Rule::Rounding],
            "E0438" | "look_alike" => vec![Rule::LookAlikes],
            "E0425" | "E0426" | "undeclared_tool" => vec![Rule::Stage],
            "E0437" | "tool_beside_calls" => vec![Rule::Requests],
            _ => vec![Rule::Form],
        }
    }
}

/// A refusal, a note, or what would have refused: the code or the kind, and the ids that it names.
pub(crate) type Fact = (String, Vec<String>);

/// What became of a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is a transition.
    Taken { notes: BTreeSet<Fact>, would: BTreeSet<Fact> },
    /// It was refused.
    Refused(Fact),
    /// The door cannot express it: the reason.
    Cannot(&'static str),
}

fn texts(list: Option<&Value>, of: impl Fn(&Value) -> Option<&str>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flat_map(|list| list.iter());
    items.filter_map(|item| of(item).map(str::to_owned)).collect()
}

fn id(item: &Value) -> Option<&str> {
    item.get("id").and_then(Value::as_str)
}

/// The ids that a sealed reason names.
fn ids_of(reason: &Value) -> Vec<String> {
    let mut ids = texts(reason.get("violations"), id);
    ids.extend(texts(reason.get("rules"), id));
    ids.extend(texts(reason.get("commitments"), Value::as_str));
    ids.extend(reason.get("commitment").and_then(Value::as_str).map(str::to_owned));
    ids
}

impl Found {
    pub(crate) fn of(outcome: &Outcome) -> Found {
        match outcome {
            Outcome::Refused(refused) => {
                let ids = refused.reason.ids().iter().map(ToString::to_string).collect();
                Found::Refused((refused.reason.code().to_string(), ids))
            }
            taken => Found::of_records(&taken.records()),
        }
    }

    pub(crate) fn refused(code: &str) -> Found {
        Found::Refused((code.to_owned(), Vec::new()))
    }

    /// The outcome that the records of a line say: the transition with the violations after it, or the refusal.
    pub(crate) fn of_records(records: &[&Record]) -> Found {
        let content = records[0].content();
        if records[0].header().kind == Kind::Refusal {
            let reason = content.get("reason").cloned().unwrap_or(Value::Null);
            let code = reason.get("code").and_then(Value::as_str).unwrap_or_default().to_owned();
            return Found::Refused((code, ids_of(&reason)));
        }
        let mut notes = BTreeSet::new();
        let anomalies = content.get("anomalies").and_then(Value::as_array);
        for note in anomalies.into_iter().flat_map(|list| list.iter()) {
            let kind = note.get("kind").and_then(Value::as_str).unwrap_or_default();
            // Of what happened outside of the terms, the code says which.
            let code = note.get("code").and_then(Value::as_str).filter(|_| kind == "outside_terms");
            notes.insert((code.unwrap_or(kind).to_owned(), ids_of(note)));
        }
        let still = texts(content.get("still_violated"), |item| item.as_str().or_else(|| id(item)));
        notes.extend((!still.is_empty()).then(|| ("still_violated".to_owned(), still)));
        let delta = content.get("delta").and_then(Value::as_array);
        for op in delta.into_iter().flat_map(|ops| ops.iter()) {
            let path = op.get("path").or_else(|| op.get("set")).or_else(|| op.get("append"));
            if path.and_then(Value::as_str).is_some_and(|path| path.starts_with("/policy/v"))
                && let Some(value) = op.get("value")
                && let Some(name) = value.get("rule").or_else(|| value.get("id")).and_then(Value::as_str)
            {
                notes.insert(("latched".to_owned(), vec![name.to_owned()]));
            }
        }
        for record in &records[1..] {
            let violated = texts(record.content().get("violations"), id);
            notes.extend((!violated.is_empty()).then(|| ("violated".to_owned(), violated)));
        }
        let mut would = BTreeSet::new();
        let listed = content.get("would_refuse").and_then(Value::as_array);
        for one in listed.into_iter().flat_map(|list| list.iter()) {
            let code = one.get("code").and_then(Value::as_str).unwrap_or_default().to_owned();
            would.insert((code, texts(one.get("ids"), Value::as_str)));
        }
        Found::Taken { notes, would }
    }

    /// What a door tells that records it at a lower stage and refuses nothing: the notes of that stage, and the refusal.
    pub(crate) fn told(&self, below: &Found) -> Found {
        match (self, below) {
            (Found::Taken { would, .. }, Found::Taken { notes, .. }) => {
                Found::Taken { notes: notes.clone(), would: would.clone() }
            }
            (main, _) => main.clone(),
        }
    }

    /// Every fact.
    pub(crate) fn facts(&self) -> Vec<&Fact> {
        match self {
            Found::Taken { notes, would } => notes.iter().chain(would).collect(),
            Found::Refused(fact) => vec![fact],
            Found::Cannot(_) => Vec::new(),
        }
    }

    /// The kinds of rules that have to do with it.
    pub(crate) fn rules(&self) -> BTreeSet<Rule> {
        self.facts().into_iter().flat_map(|(fact, ids)| Rule::of(fact, ids)).collect()
    }

    /// The code with which it was refused.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Found::Refused((code, _)) => Some(code),
            _ => None,
        }
    }
}
