//! Sessions: lines of a tree, one answer over several lines, sub-agents among them.

use std::collections::BTreeMap;

use dendrer_object::Value;

use super::facts::{Asked, Facts, Tokens};
use super::model::{Can, Dice, Ids, Model, Said, Text, mild, output};
use super::{Written, quoted};

pub(super) const CAN: Can = Can {
    agents: 3,
    ids: &[Ids::Unique],
    names: false,
    late: false,
    twice: false,
    same: true,
    trees: false,
    again: true,
};

/// An agent that goes on while the session goes back is on no certain branch.
pub(super) const TREES: Can = Can { agents: 1, trees: true, ..CAN };

fn outcome(how: u64) -> (String, bool) {
    let (text, failed) = output(if how / 3 % 4 == 1 { mild(how / 16) } else { how / 16 });
    let content = match how % 3 {
        0 => format!(r#"[{{"type":"text","text":{}}}]"#, quoted(&text)),
        _ => quoted(&text),
    };
    match how / 3 % 4 {
        0 => (format!(r#""content":{content},"is_error":true"#), true),
        1 => (format!(r#""content":{content},"is_error":false"#), false),
        _ => (format!(r#""content":{content}"#), failed),
    }
}

/// A line, with what every line has.
fn line(uuid: &str, parent: Option<&str>, side: &str, members: &str) -> String {
    let parent = parent.map_or("null".to_owned(), quoted);
    format!(
        r#"{{"parentUuid":{parent},"isSidechain":{},"userType":"external","cwd":"/w","sessionId":"5e55","version":"2.1.4","gitBranch":"main",{members},"uuid":"{uuid}","timestamp":"2026-03-01T10:00:00.000Z"{side}}}"#,
        !side.is_empty()
    )
}

/// The lines of one entry, and the last line of the agent after it.
struct Lines<'m> {
    model: &'m Model,
    /// By entry: its lines.
    made: Vec<Vec<String>>,
    /// By entry: the newest line of each agent after it.
    tips: Vec<BTreeMap<&'static str, String>>,
    /// By call: the line that asks for it.
    asked_in: BTreeMap<usize, String>,
}

/// The agent whose calls are those of the session itself.
const MAIN: &str = "assistant";

impl<'m> Lines<'m> {
    fn of(model: &'m Model) -> Lines<'m> {
        let mut lines = Lines { model, made: Vec::new(), tips: Vec::new(), asked_in: BTreeMap::new() };
        for at in 0..model.entries.len() {
            let before = model.entries[at].before;
            let mut tips = before.map(|before| lines.tips[before].clone()).unwrap_or_default();
            let made = lines.entry(at, &mut tips);
            lines.made.push(made);
            lines.tips.push(tips);
        }
        lines
    }

    fn entry(&mut self, at: usize, tips: &mut BTreeMap<&'static str, String>) -> Vec<String> {
        let entry = &self.model.entries[at];
        match &entry.said {
            Said::User(_) => {
                let words = quoted(self.model.words(at));
                let content = match entry.how % 2 {
                    0 => words,
                    _ => format!(r#"[{{"type":"text","text":{words}}}]"#),
                };
                let uuid = format!("u{at}");
                let message = format!(r#""type":"user","message":{{"role":"user","content":{content}}}"#);
                let made = line(&uuid, tips.get(MAIN).map(|tip| &**tip), "", &message);
                tips.insert(MAIN, uuid);
                vec![made]
            }
            Said::Model { agent, .. } => self.answer(at, agent, tips),
            Said::Result { call, .. } => {
                let agent = self.model.calls[*call].agent;
                let side = side_of(agent);
                let id = self.model.calls[*call].id.as_deref().unwrap_or_default();
                let uuid = format!("r{at}");
                let message = format!(
                    r#""type":"user","message":{{"role":"user","content":[{{"tool_use_id":"{id}","type":"tool_result",{}}}]}},"toolUseResult":{{"stdout":"x","is_error":"data","usage":{{"total_tokens":5}}}}"#,
                    outcome(entry.how).0
                );
                let made = line(&uuid, self.asked_in.get(call).map(|asked| &**asked), &side, &message);
                tips.insert(agent, uuid);
                vec![made]
            }
            Said::Again(first) => self.made[*first].clone(),
        }
    }

    /// The lines of an answer: one a part, each with the usage so far.
    fn answer(
        &mut self,
        at: usize,
        agent: &'static str,
        tips: &mut BTreeMap<&'static str, String>,
    ) -> Vec<String> {
        let Said::Model { calls, usage, .. } = &self.model.entries[at].said else { unreachable!() };
        let mut made = Vec::new();
        let side = side_of(agent);
        if agent != MAIN && !tips.contains_key(agent) {
            // The session asks for the agent, which begins with the words of its task.
            let (task, first) = (format!("k{at}"), format!("s{at}"));
            let part = format!(
                r#"{{"type":"tool_use","id":"toolu_{at}","name":"Task","input":{{"prompt":"Do {at}.","subagent_type":"{agent}"}}}}"#
            );
            let parent = tips.get(MAIN).map(|tip| &**tip);
            made.push(assistant(&task, parent, "", &format!("msg_k{at}"), &part, Some([1, 2])));
            let message = format!(r#""type":"user","message":{{"role":"user","content":"Do {at}."}}"#);
            made.push(line(&first, None, &side, &message));
            tips.insert(MAIN, task);
            tips.insert(agent, first);
        }
        let parts = parts(self.model, at);
        let last = parts.len() - 1;
        for (number, (part, call)) in parts.iter().enumerate() {
            let uuid = format!("a{at}_{number}");
            let usage = usage.map(|[given, made]| [given, if number == last { made } else { 1 }]);
            let parent = tips.get(agent).map(|tip| &**tip);
            made.push(assistant(&uuid, parent, &side, &format!("msg_{at}"), part, usage));
            if let Some(call) = call {
                self.asked_in.insert(calls.start + call, uuid.clone());
            }
            tips.insert(agent, uuid);
        }
        made
    }

    /// The facts of a branch.
    fn facts(&self, path: &[usize]) -> Facts {
        let mut facts = Facts::default();
        let mut agents: BTreeMap<&str, String> = BTreeMap::from([(MAIN, "main".to_owned())]);
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for at in path.iter().copied() {
            let entry = &self.model.entries[at];
            match &entry.said {
                Said::User(text) => facts.user(*text),
                Said::Model { agent, .. } => {
                    if !agents.contains_key(agent) {
                        let count = counts.entry(agent).or_default();
                        *count += 1;
                        agents.insert(agent, format!("sub:{agent}-{count}"));
                        let params = format!(r#"{{"prompt":"Do {at}.","subagent_type":"{agent}"}}"#);
                        let params = dendrer_object::json::parse_door(params.as_bytes()).unwrap();
                        let id = format!("toolu_{at}");
                        let task = Asked::new(Some(&id), "Task", Some(params), "main");
                        facts.asks_for(vec![task], Tokens::Is(103));
                        facts.observe("main");
                    }
                    self.answer_facts(at, &agents[agent], &mut facts);
                }
                Said::Result { call, .. } => {
                    facts.answers(*call, [false, false], Some(outcome(entry.how).1));
                }
                Said::Again(first) => (0..self.made[*first].len()).for_each(|_| facts.again(None)),
            }
        }
        facts
    }

    fn answer_facts(&self, at: usize, agent: &str, facts: &mut Facts) {
        let Said::Model { text, calls, usage, .. } = &self.model.entries[at].said else { unreachable!() };
        let parts = parts(self.model, at);
        let (last, mut before) = (parts.len() - 1, 0);
        for (number, (part, call)) in parts.iter().enumerate() {
            let tokens = match usage {
                None if number == 0 => Tokens::Unstated,
                None => Tokens::None,
                Some([given, made]) => {
                    let now = given + 100 + if number == last { *made } else { 1 };
                    Tokens::Is(now - std::mem::replace(&mut before, now))
                }
            };
            match call {
                Some(call) => facts.asks(self.model, std::iter::once(calls.start + call), agent, tokens),
                None => {
                    let is_text = part.starts_with(r#"{"type":"text""#);
                    facts.says(agent, text.filter(|_| is_text).unwrap_or(Text::Plain), tokens);
                }
            }
        }
    }
}

/// The members that a line of a sub-agent has.
fn side_of(agent: &str) -> String {
    if agent == MAIN { String::new() } else { format!(r#","agentId":"id-{agent}""#) }
}

fn assistant(
    uuid: &str,
    parent: Option<&str>,
    side: &str,
    id: &str,
    part: &str,
    usage: Option<[u64; 2]>,
) -> String {
    let usage = usage.map(|[given, made]| {
        format!(r#","usage":{{"input_tokens":{given},"cache_creation_input_tokens":0,"cache_read_input_tokens":100,"output_tokens":{made},"service_tier":"standard"}}"#)
    });
    let message = format!(
        r#""type":"assistant","requestId":"req_1","message":{{"model":"claude-x","id":"{id}","type":"message","role":"assistant","content":[{part}],"stop_reason":null,"stop_sequence":null{}}}"#,
        usage.unwrap_or_default()
    );
    line(uuid, parent, side, &message)
}

/// The parts of an answer, and which of its calls each is.
fn parts(model: &Model, at: usize) -> Vec<(String, Option<usize>)> {
    let Said::Model { text, calls, .. } = &model.entries[at].said else { unreachable!() };
    let mut parts = Vec::new();
    if model.entries[at].how.is_multiple_of(3) {
        parts.push((r#"{"type":"thinking","thinking":"Look.","signature":"c2ln"}"#.to_owned(), None));
    }
    if text.is_some() || calls.is_empty() {
        let words = Value::from(model.words(at));
        parts.push((format!(r#"{{"type":"text","text":{words}}}"#), None));
    }
    for (number, call) in model.calls[calls.clone()].iter().enumerate() {
        let (id, n, tool) = (call.id.as_deref().unwrap_or_default(), call.params, call.tool);
        let part = format!(r#"{{"type":"tool_use","id":"{id}","name":"{tool}","input":{{"n":{n}}}}}"#);
        parts.push((part, Some(number)));
    }
    parts
}

pub(super) fn write(dice: &mut Dice, model: &Model) -> Written {
    let lines = Lines::of(model);
    let leaves = model.leaves();
    let mut branches: Vec<Facts> = leaves.iter().map(|leaf| lines.facts(&model.path(*leaf))).collect();
    let Some(main) = branches.pop() else { return Written::new("claude-code", String::new()) };
    let mut all: Vec<String> = Vec::new();
    for made in lines.made.concat() {
        if dice.below(6) == 0 {
            all.push(dice.one(&[
                r#"{"type":"file-history-snapshot","messageId":"x","snapshot":{"trackedFileBackups":{}},"isSnapshotUpdate":false}"#,
                r#"{"type":"queue-operation","operation":"enqueue","timestamp":"2026-03-01T10:00:00.000Z","sessionId":"5e55"}"#,
                r#"{"type":"summary","summary":"Lamps","leafUuid":"x"}"#,
            ]).to_owned());
        }
        all.push(made);
    }
    Written { main, branches, ..Written::new("claude-code", all.join("\n")) }
}
