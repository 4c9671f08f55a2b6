//! The schema of a line of `dendrer commit`: the members of [`MEMBERS`], with the types of the kernel, what a commitment is made
//! of, and a step in place of a type.

use dendrer::kernel::commitment::{LineAtom, LineClosing, LineCommitment, LineEdge};
use dendrer::record::chain::StepLine;
use dendrer_object::document::{DRAFT, DocumentMember, Members as _, Shape as _, any_of, closed};
use dendrer_object::document::{object_schema, one_of};
use dendrer_object::intent::line::{LineMember, MEMBERS};
use dendrer_object::{Value, json};

use crate::commit::types;

/// A line of each type that needs no pack, and its meaning.
const EXAMPLES: [(&str, &str); 8] = [
    (
        r#"{"type":"observation.add","agent":"router","intent":{"description":"storm over the north pass"},"delta":[{"set":"/weather","value":"storm"}]}"#,
        "Something that the agent saw or was told",
    ),
    (
        r#"{"type":"plan.update","agent":"router","confidence":0.82,"intent":{"description":"take the coast road"},"delta":[{"set":"/plan","value":"coast"}]}"#,
        "A plan, or a step of thought",
    ),
    (
        r#"{"type":"action.request","agent":"router","action":{"tool":"book_truck","call_id":"c1","params":{"road":"coast"}},"effect":"effectful"}"#,
        "A call of a tool, before it runs",
    ),
    (
        r#"{"type":"action.result","agent":"router","author":"runtime","action":{"tool":"book_truck","call_id":"c1"},"result":{"status":"ok","output":{"truck":7}},"delta":[{"append":"/trucks","value":7}]}"#,
        "The answer of a tool. Written by the runtime",
    ),
    (
        r#"{"type":"memory.write","agent":"router","delta":[{"set":"/memory/coast_road_hours","value":9}]}"#,
        "Something kept for later",
    ),
    (
        r#"{"type":"policy.decision","agent":"router","author":"runtime","policy":{"decision":"allow","policy_version":"2026-11","notes":"below the cost limit"}}"#,
        "An action allowed, denied or escalated. Written by the runtime",
    ),
    (
        r#"{"type":"anomaly.flag","agent":"router","intent":{"description":"truck 7 reports km 40 and km 300 at once"}}"#,
        "Something that the agent finds odd",
    ),
    (
        r#"{"type":"goal.complete","agent":"router","goal":"deliver","intent":{"description":"delivered at 16:40"}}"#,
        "The goal is reached, in the view of the agent",
    ),
];

/// The members and limits of a line, in words.
const ABOUT: &str = "The short names, and those of the paper's event (appendix B): type or transition_type, agent or agent_id, goal or \
     goal_id. A member that is not here is refused by name. One line has at most 256 MiB, one value at most 64 MiB in canonical \
     form, nesting at most 128 levels, and a record at most 1,024 fields. docs/recording.md has all of it with examples. Types: ";

/// Returns the schema of a line.
pub fn published() -> Value {
    let step = DocumentMember {
        name: "step",
        sentence: StepLine::title(),
        is_required: false,
        schema: StepLine::schema(),
    };
    let members: Vec<DocumentMember> = MEMBERS.iter().map(documented).chain([step]).collect();
    let examples =
        EXAMPLES.map(|(line, about)| (json::parse_door(line.as_bytes()).unwrap_or(Value::Null), about));
    let meanings =
        examples.iter().filter_map(|(line, about)| Some(format!("{}: {about}", line.get("type")?.as_str()?)));
    let named = ["type", "transition_type", "step"]
        .map(|name| Value::record([("required", Value::array([Value::from(name)]))]));
    let mut schema = closed(object_schema(&members)).as_object().cloned().unwrap_or_default();
    for (name, value) in [
        ("$schema", Value::from(DRAFT)),
        ("title", Value::from("One line of `dendrer commit`")),
        ("description", Value::from(format!("{ABOUT}{}.", meanings.collect::<Vec<_>>().join("; ")))),
        ("anyOf", any_of(named).get("anyOf").cloned().unwrap_or(Value::Null)),
        ("examples", Value::array(examples.map(|(line, _)| line))),
    ] {
        schema.set(name, value);
    }
    Value::Object(schema)
}

/// Returns a member with the shapes that the kernel knows.
fn documented(member: &LineMember) -> DocumentMember {
    let own = member.documented();
    let schema = match member.name {
        "type" | "transition_type" => any_of([one_of(&types().collect::<Vec<_>>()), registered()]),
        "evidence" => <[LineAtom]>::schema(),
        "commitments" => <[LineCommitment]>::schema(),
        "edges" => <[LineEdge]>::schema(),
        "closes" => <[LineClosing]>::schema(),
        _ => return own,
    };
    DocumentMember { schema, ..own }
}

/// Returns the schema of a type that the pack of a run registers.
fn registered() -> Value {
    Value::record([
        ("description", Value::from("A type that the pack of the run registers.")),
        ("type", Value::from("string")),
        ("pattern", Value::from(r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$")),
        ("maxLength", Value::from(128u64)),
    ])
}
