//! The recorded origin of a transition as lines and as a document.

use dendrer::provenance::{DECISION_REACH, Provenance};
use dendrer_object::Value;

use crate::{quote, thousands};

/// Writes one fact a line.
pub fn lines(found: &Provenance) -> Vec<String> {
    let agent = found.agent.as_deref().map_or_else(|| "-".to_owned(), quote::escape);
    let seq = found.seq.map(|seq| format!(", number {seq} of its branch")).unwrap_or_default();
    let mut lines = vec![format!("author       {}", found.author), format!("agent        {agent}{seq}")];
    for (rel, hash, place) in &found.links {
        let rel = rel.as_str();
        lines.push(match place {
            Some(place) => format!(
                "{rel:<11}  {}@{}  {}  {}  hash {}",
                place.run,
                place.tick,
                place.type_name.as_deref().unwrap_or("-"),
                place.agent.as_deref().map_or_else(|| "-".to_owned(), quote::escape),
                hash.short()
            ),
            None => format!("{rel:<11}  {}, which is not on a chain here", hash.short()),
        });
    }
    let stage = found.stage.map(|stage| format!(", recorded at stage {stage}")).unwrap_or_default();
    let reducer = found.reducer.as_deref().map(|name| format!(", reducer {}", quote::escape(name)));
    lines.push(format!("run          {}{stage}{}", found.run, reducer.unwrap_or_default()));
    if let Some(pack) = found.pack {
        lines.push(format!("pack         {}", pack.short()));
    }
    if let Some(contract) = &found.contract {
        lines.push(format!(
            "contract     {}, whose required state was there before it",
            quote::escape(contract)
        ));
    }
    if !found.rules.is_empty() {
        lines.push(format!("policy       {}, judged by the kernel", quote::escape(&found.rules.join(", "))));
    }
    lines.push(match &found.decided {
        Some(decided) => {
            let version = decided.version.as_deref();
            let version = version.map(|version| format!(", policy {}", quote::escape(version)));
            let decision = quote::escape(&decided.decision);
            format!(
                "decided      {decision} at {}@{}{}",
                decided.run,
                decided.tick,
                version.unwrap_or_default()
            )
        }
        None => format!("decided      no decision about it within {} ticks", thousands(DECISION_REACH)),
    });
    if let Some(position) = found.position {
        let signed = if found.signed { "signed" } else { "not signed yet" };
        lines.push(format!(
            "log          record {} of {}, {signed}",
            thousands(position + 1),
            thousands(found.log)
        ));
    }
    lines
}

/// Returns the facts as a member of `dendrer.show/1`.
pub fn to_json(found: &Provenance) -> Value {
    let links = found.links.iter().map(|(rel, hash, place)| {
        let place = place.as_ref();
        Value::record([
            ("rel", Value::from(rel.as_str())),
            ("hash", Value::from(*hash)),
            ("run", Value::from(place.map(|place| place.run.to_string()))),
            ("tick", Value::from(place.map(|place| place.tick))),
            ("type", Value::from(place.and_then(|place| place.type_name.clone()))),
            ("agent", Value::from(place.and_then(|place| place.agent.clone()))),
        ])
    });
    Value::record([
        ("author", Value::from(found.author.as_str())),
        ("agent", Value::from(found.agent.clone())),
        ("seq", Value::from(found.seq)),
        ("run", Value::from(found.run.as_str())),
        ("stage", Value::from(found.stage)),
        ("reducer", Value::from(found.reducer.clone())),
        ("pack", Value::from(found.pack)),
        ("contract", Value::from(found.contract.clone())),
        (
            "decided",
            found.decided.as_ref().map_or(Value::Null, |decided| {
                Value::record([
                    ("run", Value::from(decided.run.as_str())),
                    ("tick", Value::from(decided.tick)),
                    ("decision", Value::from(decided.decision.as_str())),
                    ("version", Value::from(decided.version.clone())),
                ])
            }),
        ),
        ("rules", Value::array(found.rules.iter().map(|rule| Value::from(rule.as_str())))),
        ("position", Value::from(found.position)),
        ("log", Value::from(found.log)),
        ("signed", Value::from(found.signed)),
        ("links", Value::array(links)),
    ])
}
