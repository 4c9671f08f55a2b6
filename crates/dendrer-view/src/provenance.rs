//! The recorded origin of a transition as lines and as a document.

use dendrer::provenance::{DECISION_REACH, Decided, LinkedRecord, Provenance};
use dendrer_object::record::Rel;
use dendrer_object::{Digest, RunName, document};

use crate::{quote, thousands};

/// Writes one fact a line.
pub fn lines(found: &Provenance) -> Vec<String> {
    let agent = found.agent.as_deref().map_or_else(|| "-".to_owned(), quote::name);
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
                place.agent.as_deref().map_or_else(|| "-".to_owned(), quote::name),
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

document! {
    /// The recorded origin of a transition
    pub object ProvenanceObject(found: &Provenance) {
        /// The kind of the author
        author: &str = &found.author,
        /// The agent, as recorded
        agent: Option<&str> = found.agent.as_deref(),
        /// The number in the branch of the agent
        seq: Option<u64> = found.seq,
        /// The run
        run: &str = &found.run,
        /// The stage at which the run was recorded
        stage: Option<u64> = found.stage,
        /// The reducer of the run
        reducer: Option<&str> = found.reducer.as_deref(),
        /// The digest of the pack
        pack: Option<Digest> = found.pack,
        /// The contract that the kernel held the transition to
        contract: Option<&str> = found.contract.as_deref(),
        /// The decision about the transition; null if none is found
        decided: Option<DecidedObject> = found.decided.as_ref().map(DecidedObject::of),
        /// The policy rules of the run, which the kernel judges
        rules: &[String] = &found.rules,
        /// The position in the log, from zero; null if the log does not contain the record
        position: Option<u64> = found.position,
        /// The number of records in the log
        log: u64 = found.log,
        /// Whether the newest checkpoint covers the record
        signed: bool = found.signed,
        /// The links of the record
        links: Vec<LinkedObject> =
            found.links.iter().map(|(rel, id, to)| LinkedObject::of(*rel, *id, to.as_ref())).collect(),
    }

    /// A decision about a transition
    object DecidedObject(decided: &Decided) {
        /// The run of the decision
        run: &str = decided.run.as_str(),
        /// The tick of the decision
        tick: u64 = decided.tick,
        /// The decision
        decision: &str = &decided.decision,
        /// The version of the policy; null if none was recorded
        version: Option<&str> = decided.version.as_deref(),
    }

    /// A link and the record that it leads to
    object LinkedObject(relation: Rel, id: Digest, to: Option<&LinkedRecord>) {
        /// The relation
        rel: Rel = relation,
        /// The id of the record
        hash: Digest = id,
        /// The run of the record; null if it is not on a chain here
        run: Option<&RunName> = to.map(|to| &to.run),
        /// The tick of the record
        tick: Option<u64> = to.map(|to| to.tick),
        /// The type of the record
        type: Option<&str> = to.and_then(|to| to.type_name.as_deref()),
        /// The agent of the record
        agent: Option<&str> = to.and_then(|to| to.agent.as_deref()),
    }
}
