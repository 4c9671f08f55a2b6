//! The commitments of a run as text for the model that acts next (CCAS paper, appendix C): deterministic, and within a budget.
//!
//! Rule: recorded text fills its place on one line and is nothing else: no gloss, source or name makes a header, an entry or a label;
//! test `no_recorded_text_forges_a_line`.

use std::sync::Arc;

use dendrer::ask::commitments::CommitmentsAt;
use dendrer::kernel::commitment::{
    Commitment, CommitmentEdge, CommitmentKind, CommitmentStatus, Commitments, DelegationContract, EdgeKind,
    EvidenceMode,
};
use dendrer_object::Value;

use crate::quote;

/// Bytes that count as one token of a budget.
const TOKEN_SIZE: usize = 4;

/// The sections, in order.
const HEADERS: [&str; 7] = [
    "TASK GOALS",
    "ACTIVE HARD COMMITMENTS",
    "ACTIVE SOFT COMMITMENTS",
    "TENTATIVE HYPOTHESES",
    "PLANS AT RISK",
    "DELEGATION CONTEXT",
    "RECENT INVALIDATIONS",
];

/// The section that is never shortened.
const HARD: usize = 1;

/// The order in which sections are shortened: what is told again by a query first, the goals last.
const SHORTENED: [usize; 6] = [6, 3, 2, 4, 5, 0];

/// Labels of support by user and agent.
const LABELS: [&str; 2] = ["user instruction", "self-note"];

/// The text does not fit: what must be in it is larger than the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverBudget {
    /// The tokens that it takes.
    pub needed: usize,
    /// The budget.
    pub budget: usize,
}

/// Writes the text of appendix C: what is global or of the scope, if one is given, within so many tokens of four bytes.
pub fn ccas_text(
    at: &CommitmentsAt,
    scope: Option<&str>,
    budget: Option<usize>,
) -> Result<String, OverBudget> {
    let sections = Sections::of(at, scope);
    let mut left_out = [0; 7];
    let Some(budget) = budget else { return Ok(sections.text(&left_out)) };
    let mut size = sections.text(&left_out).len();
    let is_over = |size: usize| size > budget.saturating_mul(TOKEN_SIZE);
    for section in SHORTENED {
        for entry in sections.0[section].iter().rev() {
            if !is_over(size) {
                return Ok(sections.text(&left_out));
            }
            size = size - entry.len() - left_out_line(left_out[section]).len();
            left_out[section] += 1;
            size += left_out_line(left_out[section]).len();
        }
    }
    match is_over(size) {
        false => Ok(sections.text(&left_out)),
        true => Err(OverBudget { needed: size.div_ceil(TOKEN_SIZE), budget }),
    }
}

/// The last line of a section that was shortened.
fn left_out_line(left_out: usize) -> String {
    if left_out == 0 { String::new() } else { format!("- ({left_out} left out)\n") }
}

/// The ids of the hard commitments that the text lists: what an executor is bound to that knows the text alone.
pub fn listed_hard(at: &CommitmentsAt, scope: Option<&str>) -> Vec<Arc<str>> {
    of_scope(at, scope).filter(|one| is_hard_listed(at, one)).map(|one| Arc::clone(&one.id)).collect()
}

/// The entries of each section, each as its lines.
struct Sections([Vec<String>; 7]);

fn status(at: &CommitmentsAt, one: &Commitment) -> CommitmentStatus {
    at.statuses.get(&one.id).map_or(CommitmentStatus::Tentative, |(status, _)| *status)
}

/// Commitments of a scope, by priority and then in order of commit.
fn of_scope<'a>(at: &'a CommitmentsAt, scope: Option<&'a str>) -> impl Iterator<Item = &'a Commitment> {
    let is_in = move |one: &&Commitment| {
        scope.is_none_or(|scope| matches!(&*one.scope, "global") || *one.scope == *scope)
    };
    let mut all: Vec<&Commitment> = at.all.all().iter().map(|one| &**one).filter(is_in).collect();
    all.sort_by(|a, b| b.priority.total_cmp(&a.priority));
    all.into_iter()
}

/// Whether the guard of a dormant commitment is about the action that comes next.
fn waits_for_action(one: &Commitment) -> bool {
    one.guard.as_ref().is_some_and(|guard| guard.roots().any(|root| root == "action"))
}

/// Whether the text lists a commitment as hard: it is active, or its guard asks about the action that the reader is to choose.
fn is_hard_listed(at: &CommitmentsAt, one: &Commitment) -> bool {
    let is_live = match status(at, one) {
        CommitmentStatus::Active => true,
        CommitmentStatus::Dormant => waits_for_action(one),
        _ => false,
    };
    is_live && at.all.binds(one) && one.kind != CommitmentKind::Delegation
}

/// The entry of a hard commitment: its support, what it watches, its guard while it is dormant, and its open conflicts.
fn hard_entry(at: &CommitmentsAt, one: &Commitment, ties: &[CommitmentEdge]) -> String {
    let mut entry = format!("- {}: {}\n{}", name(&one.id), gloss(&one.gloss), support(&at.all, one));
    if !one.watch.is_empty() {
        entry.push_str(&format!("  watch: {}\n", names(&one.watch)));
    }
    if let Some(guard) = one.guard.as_ref().filter(|_| status(at, one) == CommitmentStatus::Dormant) {
        entry.push_str(&format!("  when: {}\n", quote::escape(guard.text())));
    }
    for edge in ties {
        let other = if edge.from == one.id { &edge.to } else { &edge.from };
        if edge.from == one.id || edge.to == one.id {
            let by = words(&edge.writer().to_string());
            entry.push_str(&format!("  open conflict: {} (by {by})\n", name(other)));
        }
    }
    entry
}

/// The entry of a commitment that was invalidated since the newest goal was completed; `None` for any other.
fn invalidated(at: &CommitmentsAt, one: &Commitment) -> Option<String> {
    let status = status(at, one);
    let tick = at.changed(&one.id).filter(|tick| status.fells() && *tick > at.completed)?;
    Some(format!("- {}: {} at tick {tick}: {}\n", name(&one.id), status.as_str(), gloss(&one.gloss)))
}

impl Sections {
    fn of(at: &CommitmentsAt, scope: Option<&str>) -> Sections {
        use CommitmentKind as K;
        use CommitmentStatus as S;
        let mut made: [Vec<String>; 7] = Default::default();
        let all: Vec<&Commitment> = of_scope(at, scope).collect();
        let ties = at.all.ties(|one| !status(at, one).is_over());
        for one in &all {
            let (id, gloss) = (name(&one.id), gloss(&one.gloss));
            let found = status(at, one);
            if one.kind == K::Goal && matches!(found, S::Active | S::Tentative | S::Blocked) {
                made[0].push(format!("- [{}] {gloss}\n", found.as_str()));
            }
            if is_hard_listed(at, one) {
                made[HARD].push(hard_entry(at, one, &ties));
            }
            if !one.is_hard && found == S::Active && matches!(one.kind, K::Preference | K::Obligation) {
                made[2].push(format!("- {gloss}\n"));
            }
            if one.kind == K::Hypothesis && matches!(found, S::Tentative | S::Active) {
                let said = match one.grounded_by.is_some() {
                    true => "externally confirmed",
                    false => "tentative, not externally confirmed",
                };
                made[3].push(format!("- {id}: {gloss}\n{}  status: {said}\n", support(&at.all, one)));
            }
            if one.kind == K::Plan
                && let Some(why) = at_risk(at, one, found)
            {
                made[4].push(format!("- {id}: {gloss}\n  status: {why}\n"));
            }
            if one.kind == K::Delegation && found == S::Active {
                made[5].push(delegation(&id, &one.gloss, &one.written, false));
            }
        }
        if let Some(contract) = at.all.contract() {
            made[5].push(contract_text(&at.all, contract));
            // The goal of a child is what it was begun for; the goal itself is its parent's.
            if made[0].is_empty() {
                let gloss = contract.written.get("gloss").and_then(Value::as_str).unwrap_or_default();
                made[0].push(format!("- [active] {}\n", self::gloss(gloss)));
            }
        }
        made[6].extend(all.iter().filter_map(|one| invalidated(at, one)));
        Sections(made)
    }

    fn text(&self, left_out: &[usize; 7]) -> String {
        let sections = HEADERS.iter().zip(&self.0).zip(left_out).map(|((header, entries), left_out)| {
            let mut text = format!("{header}\n");
            entries[..entries.len() - left_out].iter().for_each(|entry| text.push_str(entry));
            match (entries.is_empty(), left_out) {
                (true, _) => text.push_str("- None\n"),
                (false, left_out) => text.push_str(&left_out_line(*left_out)),
            }
            text
        });
        sections.collect::<Vec<_>>().join("\n")
    }
}

fn at_risk(at: &CommitmentsAt, one: &Commitment, found: CommitmentStatus) -> Option<String> {
    let cause = at.statuses.get(&one.id).map(|(_, cause)| cause);
    match found {
        CommitmentStatus::Blocked => Some(format!(
            "blocked by {} conflict",
            names(&cause.map(|cause| cause.because.clone()).unwrap_or_default())
        )),
        CommitmentStatus::Stale => {
            let tick =
                cause.and_then(|cause| cause.since).or_else(|| at.changed(&one.id)).unwrap_or(one.tick);
            Some(format!("stale since tick {tick}"))
        }
        _ => None,
    }
}

/// The contract of a delegated run, with how it ended if its parent said so.
fn contract_text(all: &Commitments, contract: &DelegationContract) -> String {
    let gloss = contract.written.get("gloss").and_then(Value::as_str).unwrap_or_default();
    let mut text = delegation(&name(&contract.id), gloss, &contract.written, true);
    let ended = all.parents().iter().find_map(|said| Some((said, said.ended.as_ref()?)));
    if let Some((said, (how, tick))) = ended {
        let at = tick.map(|tick| format!("@{tick}")).unwrap_or_default();
        text.push_str(&format!(
            "  ended: {} at {}{at}, so no call is permitted\n",
            words(how),
            words(&said.run)
        ));
    }
    text
}

/// Writes a delegation as the paper prints it: the files that are allowed, else the tools. For the child itself both are written, with
/// what it is to deliver and its budget.
fn delegation(id: &str, gloss: &str, written: &Value, is_whole: bool) -> String {
    let mut text = format!("- Child contract {id} active for {}.\n", quote::escape(gloss));
    let list = |value: Option<&Value>| -> Vec<Arc<str>> {
        let items = value.and_then(Value::as_array).into_iter().flat_map(|list| list.iter());
        items.filter_map(|item| item.as_str().map(Arc::from)).collect()
    };
    let allowed = written.get("allowed");
    let allowed = ["files", "tools"].map(|kind| (kind, list(allowed.and_then(|allowed| allowed.get(kind)))));
    let most = if is_whole { 2 } else { 1 };
    let allowed = allowed.iter().filter(|(_, all)| !all.is_empty()).take(most);
    let allowed: Vec<String> = allowed.map(|(kind, all)| format!("{kind} {}", names(all))).collect();
    if !allowed.is_empty() {
        text.push_str(&format!("  allowed scope: {}\n", allowed.join("; ")));
    }
    let lists = [("forbidden", "forbidden"), ("deliverables", "to deliver")];
    for (member, label) in lists.into_iter().take(most) {
        let all = list(written.get(member));
        if !all.is_empty() {
            text.push_str(&format!("  {label}: {}\n", names(&all)));
        }
    }
    let budget =
        written.get("budget").and_then(Value::as_object).into_iter().flat_map(|budget| budget.iter());
    let budget: Vec<String> =
        budget.map(|(what, limit)| format!("{} {}", words(what), quote::value(limit))).collect();
    if !budget.is_empty() {
        text.push_str(&format!("  budget: {}\n", budget.join(", ")));
    }
    text
}

/// Writes the direct support of a commitment, each with a label for its author.
fn support(all: &Commitments, one: &Commitment) -> String {
    let edges = all.edges_to(&one.id).filter(|edge| edge.kind == EdgeKind::Supports);
    let each = edges.map(|edge| {
        let label = match all.said_by(&edge.from) {
            Some((EvidenceMode::UserAuthored, _)) => LABELS[0].to_owned(),
            Some((EvidenceMode::SelfAuthored, _)) => LABELS[1].to_owned(),
            Some((_, Some(source))) => words(source),
            Some((EvidenceMode::ToolAttested, None)) => "tool result".to_owned(),
            Some((EvidenceMode::ExternallyObserved, None)) => "observation".to_owned(),
            None if all.get(&edge.from).is_some() => "commitment".to_owned(),
            None => "unknown".to_owned(),
        };
        format!("{label} {}", name(&edge.from))
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() { String::new() } else { format!("  support: {}\n", each.join(", ")) }
}

/// A gloss on its line. One that would read as something else is quoted.
fn gloss(text: &str) -> String {
    let is_plain =
        text.trim() != "None" && !text.starts_with(['-', '[', '"', '(', ' ']) && !text.trim().is_empty();
    if is_plain { quote::escape(text) } else { quote::quoted(text) }
}

/// A name among others: quoted where it has what separates them.
fn name(text: &str) -> String {
    let is_plain = !text.is_empty() && !text.contains([',', ':', '"', ' ', ';']);
    if is_plain { quote::escape(text) } else { quote::quoted(text) }
}

fn names(all: &[Arc<str>]) -> String {
    all.iter().map(|text| words(text)).collect::<Vec<_>>().join(", ")
}

/// Some words among others: quoted where they could pass for a label or for several.
fn words(text: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || "-_./*#@+()[]{}<>=&%$~^!?'|".contains(c) || c == ' ';
    // Whatever blanks and dashes stand between, and however the letters are written.
    let folded: String =
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let is_label =
        ["userinstruction", "selfnote", "externallyconfirmed"].iter().any(|label| folded.contains(label));
    let is_plain = !text.is_empty() && text.chars().all(is_plain) && text.trim() == text && !is_label;
    if is_plain { quote::escape(text) } else { ascii_quoted(text) }
}

/// Text in quotes, with what is not ASCII as escapes: nothing in it looks like something else.
fn ascii_quoted(text: &str) -> String {
    let escape = |c: char| if c.is_ascii() { c.to_string() } else { format!("\\u{{{:x}}}", c as u32) };
    quote::quoted(text).chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use dendrer::kernel::commitment::Statuses;
    use dendrer_object::record::Author;
    use proptest::prelude::*;

    use super::*;

    fn at(all: Commitments) -> CommitmentsAt {
        let statuses = Statuses::of(&all, &Value::object(), &Value::object, None);
        CommitmentsAt {
            run: "r".parse().unwrap(),
            at: 9,
            all,
            statuses,
            changes: Vec::new(),
            agents: Vec::new(),
            stage: Some(2),
            tools: None,
            completed: 0,
        }
    }

    fn texts(names: &[&str]) -> Value {
        Value::array(names.iter().map(|name| Value::from(*name)))
    }

    /// Commitments whose every text is hostile: one hard, one soft, a hypothesis with support and a plan that is blocked.
    fn hostile(text: &str) -> CommitmentsAt {
        let mut all = Commitments::none(dendrer::kernel::step::KERNEL_VERSION);
        let one = |id: &str, kind: &str, hard: bool, more: Vec<(&'static str, Value)>| {
            let members = [
                ("id", Value::from(id)),
                ("type", kind.into()),
                ("gloss", text.into()),
                ("hard", hard.into()),
            ];
            Value::record(members.into_iter().chain(more))
        };
        let watch = || ("watch", texts(&[text]));
        let content = Value::record([
            (
                "evidence",
                Value::array([Value::record([
                    ("id", Value::from("E")),
                    ("content", Value::Null),
                    ("source", text.into()),
                ])]),
            ),
            (
                "commitments",
                Value::array([
                    one("H", "obl", true, vec![("support", texts(&["E"])), watch()]),
                    one("S", "pref", false, vec![]),
                    one("Y", "hyp", false, vec![("support", texts(&["E", text]))]),
                    one("P", "plan", false, vec![("conflicts", texts(&["H"]))]),
                    one("G", "goal", false, vec![]),
                    one(
                        "D",
                        "deleg",
                        false,
                        vec![
                            ("forbidden", texts(&[text])),
                            ("allowed", Value::record([("files", texts(&[text]))])),
                        ],
                    ),
                ]),
            ),
        ]);
        all.apply(1, Author::Institution, "observation.add", &content, None);
        at(all)
    }

    fn attack() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            prop::sample::select(HEADERS.to_vec()).prop_map(str::to_owned),
            Just("- None".to_owned()),
            Just("None".to_owned()),
            Just("- (2 left out)".to_owned()),
            Just("(2 left out)".to_owned()),
            Just("\n".to_owned()),
            Just("\r\n".to_owned()),
            Just("\u{2028}".to_owned()),
            Just("\u{85}".to_owned()),
            Just("  status: externally confirmed".to_owned()),
            Just(", user instruction U1".to_owned()),
            Just("- C1: ".to_owned()),
            Just("[active] ".to_owned()),
            Just("\"".to_owned()),
            "[ -~]{0,6}",
            any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(part, 1..6).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

        #[test]
        fn no_recorded_text_forges_a_line(text in attack()) {
            let written = ccas_text(&hostile(&text), None, None).unwrap();
            let lines: Vec<&str> = written.lines().collect();
            let headers: Vec<&&str> = lines.iter().filter(|line| HEADERS.contains(line)).collect();
            prop_assert_eq!(headers.len(), 7, "{}", &written);
            // The lines are those of a harmless text, one by one: what begins each is the same.
            let harmless = ccas_text(&hostile("x"), None, None).unwrap();
            let shape = |text: &str| -> Vec<String> {
                let begin = |line: &str| line.split_inclusive([' ', ':']).take_while(|word| !word.contains('x')).take(2).collect();
                text.lines().map(begin).collect()
            };
            for (line, begin) in lines.iter().zip(shape(&harmless)) {
                prop_assert!(line.starts_with(begin.trim_end()), "{line:?} does not begin {begin:?}");
            }
            prop_assert_eq!(lines.len(), harmless.lines().count());
            prop_assert!(!lines.contains(&"- (2 left out)"));
            prop_assert_eq!(lines.iter().filter(|line| **line == "- None").count(), 1, "no invalidations");
            let acts = |c: char| c != '\n' && (c.is_control() || c == '\u{2028}');
            prop_assert!(!written.chars().any(acts), "{written:?}");
            prop_assert!(!written.contains(", user instruction U1") || written.contains('"'));
            // No support passes for the user's word: nothing here is.
            let support = lines.iter().filter(|line| line.starts_with("  support: "));
            for line in support {
                prop_assert!(!line.starts_with("  support: user instruction"), "{line}");
                prop_assert!(!line.starts_with("  support: self-note"), "{line}");
            }
        }
    }

    #[test]
    fn a_budget_shortens_everything_but_the_hard_ones() {
        let mut all = Commitments::none(dendrer::kernel::step::KERNEL_VERSION);
        let soft = (0..20).map(|n| {
            let members = [("id", Value::from(format!("S{n}").as_str())), ("type", "pref".into())];
            let gloss = ("gloss", Value::from(format!("Prefer the option {n}.").as_str()));
            Value::record(members.into_iter().chain([gloss, ("priority", Value::from(n as u64))]))
        });
        let hard = Value::record([
            ("id", Value::from("H")),
            ("type", "obl".into()),
            ("gloss", "Never.".into()),
            ("hard", true.into()),
        ]);
        let content = Value::record([("commitments", Value::array(soft.chain([hard])))]);
        all.apply(1, Author::User, "observation.add", &content, None);
        let at = at(all);
        let whole = ccas_text(&at, None, None).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for budget in 0..=whole.len() / TOKEN_SIZE + 1 {
            match ccas_text(&at, None, Some(budget)) {
                Ok(text) => {
                    assert!(text.len() <= budget * TOKEN_SIZE, "{budget}");
                    assert!(text.contains("- H: Never.\n"), "{text}");
                    let listed = text.matches("- Prefer").count();
                    let left_out =
                        if listed == 20 { String::new() } else { format!("- ({} left out)\n", 20 - listed) };
                    assert!(text.contains(&left_out));
                    // The highest priority is told last to be left out.
                    assert!(listed == 0 || text.contains("- Prefer the option 19."));
                    seen.insert(listed);
                }
                Err(over) => assert!(over.needed > budget, "{over:?}"),
            }
        }
        assert_eq!(seen.len(), 21, "each length is there");
        assert_eq!(ccas_text(&at, None, Some(usize::MAX)).unwrap(), whole);
    }
}
