//! Events of the dendrer paper (appendix B), as `export` writes them.

use std::collections::BTreeMap;

use dendrer_object::document::{As, True};
use dendrer_object::intent::{Effect, ForkType};
use dendrer_object::value::Array;
use dendrer_object::{Digest, Object, Record, RunName, Timestamp, Value, document};

document! {
    /// One line of `dendrer export --format jsonl`: the canonical event of the dendrer paper (appendix B), and the members
    /// of a record that it leaves out
    pub object EventLine(run: &RunName, record: &Record, content: &Value, before: Object, after: Object, pack: Option<EventContract>) {
        let (header, own) = (record.header(), |name: &str| content.get(name).cloned());
        let always = |name: &str| own(name).unwrap_or(Value::Null);
        let fork = |name: &str| content.get("fork")?.get(name).cloned();
        /// The tick
        tick: As<u64> = As::new(header.tick),
        /// The time of the record
        ts: Timestamp = header.ts,
        /// The agent
        agent_id: As<str> = As::new(always("agent_id")),
        /// The goal
        goal_id: As<Option<String>> = As::new(always("goal_id")),
        /// The run
        run_id: &RunName = run,
        /// The type of the transition
        transition_type: As<str> = As::new(header.type_name.as_ref().map(|name| name.to_string())),
        /// The members of the state that the transition wrote, before it
        state_before: Object = before,
        /// The members of the state that the transition wrote, after it
        state_after: Object = after,
        /// The meaning of the transition in words
        intent: As<Option<Object>> = As::new(always("intent")),
        /// The call of a tool
        action: As<Option<Object>> = As::new(always("action")),
        /// The answer of a tool
        result: As<Option<Object>> = As::new(always("result")),
        /// The decision on an action
        policy: As<Option<Object>> = As::new(always("policy")),
        /// The figures of the transition
        metrics: As<Option<Object>> = As::new(always("metrics")),
        /// The anomalies
        anomalies: As<Array> = As::new(own("anomalies").unwrap_or_else(|| Value::array([]))),
        /// The author
        author: &str = header.author.as_str(),
        /// The number among the transitions of the agent
        seq: As<u64> = As::new(always("seq")),
        /// The root of the state after the transition
        state_root: As<Digest> = As::new(always("state_root")),
        /// The hash of the context of the intent
        intent_context_hash: As<Option<String>> =
            As::new(content.get("context").and_then(|context| context.get("hash")).cloned()),
        /// The contract that the transition was made under
        contract: Option<EventContract> = pack,
        /// The run that was forked
        parent_run_id?: As<str> = fork("parent_run_id").map(As::new),
        /// The tick at which it was forked
        parent_tick?: As<u64> = fork("parent_tick").map(As::new),
        /// The reason of the fork
        fork_reason?: As<str> = fork("fork_reason").map(As::new),
        /// The source of a cherry-picked transition, and the fields that were checked
        cherrypick?: As<Object> = own("cherrypick").map(As::new),
        /// Id, contract and version of each violation, and the tick that caused it
        violations?: As<Array> = own("violations").map(As::new),
        /// The text of an extension of the contract
        payload?: As<Object> = own("extension").map(As::new),
        /// The id
        id: Digest = record.id(),
        /// The id of the record before
        prev: As<Digest> = As::new(header.prev),
        /// The effect of the tool on the world
        effect?: As<Effect> = own("effect").map(As::new),
        /// The origin of an answer in a fork
        fork_type?: As<ForkType> = own("fork_type").map(As::new),
        /// The rules by which secrets were taken out before the record was judged
        redaction?: As<EventRedaction> = own("redaction").map(As::new),
        /// The own name of the line, once in a run
        key?: As<str> = own("key").map(As::new),
        /// The id of the first record of a transition that was proposed again
        origin?: As<Digest> = own("origin").map(As::new),
        /// The time that the source of an imported transition states; absent if it states none
        observed_at?: As<String> = own("observed_at").map(As::new),
        /// Path, index and asked of the request and the result of an edge of a graph
        edge?: As<Object> = own("edge").map(As::new),
        /// The type of a step of a witness chain
        action_type?: As<str> = own("action_type").map(As::new),
        /// Whether a result with evidence or commitments came over a pipe
        unattested?: As<True> = own("unattested").map(As::new),
        /// Atoms of evidence
        evidence?: As<[Object]> = own("evidence").map(As::new),
        /// Commitments
        commitments?: As<[Object]> = own("commitments").map(As::new),
        /// Edges between evidence and commitments
        edges?: As<[Object]> = own("edges").map(As::new),
        /// Commitments that are closed
        closes?: As<[Object]> = own("closes").map(As::new),
        /// Ids of commitments that the author made their own
        adopts?: As<[String]> = own("adopts").map(As::new),
        /// The name of the user who wrote the line
        user?: As<str> = own("user").map(As::new),
        /// The sums to which its calls add, by commitment
        spent?: As<Object> = own("spent").map(As::new),
        /// The scope of its calls: commitments of other scopes are not asked
        scope?: As<str> = own("scope").map(As::new),
        /// The delta as it was proposed, if the kernel rounded it
        proposed?: As<Array> = own("proposed").map(As::new),
        /// Ids of violations that began earlier and last, each with since
        still_violated?: As<[Object]> = own("still_violated").map(As::new),
        /// Code and ids of what would have refused the line from stage 2 on
        would_refuse?: As<[Object]> = own("would_refuse").map(As::new),
        /// Path, from and to of the values that were rounded to the decimals of their field
        rounded?: As<[Object]> = own("rounded").map(As::new),
    }

    /// The contract that a transition was made under
    pub object EventContract(named: Option<Value>, of_version: Option<Value>, of_pack: Digest, context: Option<&Value>) {
        /// The id
        id: As<Option<String>> = As::new(named),
        /// The version
        version: As<Option<String>> = As::new(of_version),
        /// The digest of its pack
        pack: Digest = of_pack,
        /// Names of the advisory fields that the context has
        advisory?: As<[String]> = context.and_then(|context| context.get("advisory")).cloned().map(As::new),
        /// Names of fields that the context leaves out
        ignored?: As<[String]> = context.and_then(|context| context.get("ignored")).cloned().map(As::new),
    }

    /// The rules by which secrets were taken out
    object EventRedaction(by: As<RedactionRules>, key: Option<&str>, counts: BTreeMap<String, u64>) {
        /// The rules
        rules: As<RedactionRules> = by,
        /// The id of the key of the tags
        tags?: &str = key,
        /// The number of secrets of each kind
        taken: BTreeMap<String, u64> = counts,
    }

    /// Rules by which secrets are taken out
    object RedactionRules(known: &str, of_version: &str, of_rules: &str) {
        /// The name
        name: &str = known,
        /// The version
        version: &str = of_version,
        /// The digest
        digest: &str = of_rules,
    }
}
