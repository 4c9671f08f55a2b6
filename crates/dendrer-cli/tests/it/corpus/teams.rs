//! The logs of teams as branches of their agents: each message goes on from its agent's last one and merges the one before it.
//!
//! With such parents each message has seen all before it, so states, ancestors and children follow from the list alone.

use std::collections::BTreeMap;

use dendrer_object::{Value, json};

use super::data::{Domain, corpus};
use crate::agents::node;
use crate::support::Place;

fn items(value: &Value) -> Vec<Value> {
    value.get("items").and_then(Value::as_array).unwrap().iter().cloned().collect()
}

fn ticks(value: &Value) -> Vec<u64> {
    items(value).iter().map(|item| item.get("tick").unwrap().as_u64().unwrap()).collect()
}

#[test]
fn logs_of_teams_are_graphs_of_their_agents() {
    let Some(corpus) = corpus() else { return };
    let runs = corpus.runs(Domain::Log);
    assert_eq!(runs.len(), 28);
    for run in runs {
        let log = json::parse_door(&std::fs::read(run.path()).unwrap()).unwrap();
        let messages = log.get("history").unwrap().as_array().unwrap();
        let speaker = |message: &Value| {
            let named = message.get("name").or(message.get("role")).and_then(Value::as_str).unwrap();
            // Some logs say in the role to whom an agent speaks.
            named.split(" (").next().unwrap().to_owned()
        };
        let agents: Vec<String> = messages.iter().map(speaker).collect();
        let mut nodes: Vec<Value> = Vec::new();
        let mut newest: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
        for (at, agent) in agents.iter().enumerate() {
            let own = newest.get(&**agent).copied();
            let before = at.checked_sub(1);
            let prev = own.map(|(_, own)| own).or(before);
            let mut parents: Vec<String> =
                prev.into_iter().chain(before).map(|parent| format!("m{parent}")).collect();
            parents.dedup();
            let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
            let seq = own.map_or(0, |(seq, _)| seq + 1);
            let key = format!("by {agent}");
            let delta = Value::record([(
                "memory",
                Value::record([("turn", Value::from(at as u64)), (&*key, Value::from(seq))]),
            )]);
            let none = Value::Null;
            let prev = prev.map_or(&none, |prev| &nodes[prev]);
            let made = node(
                &format!("m{at}"),
                agent,
                seq,
                prev,
                &parents,
                r#"{"action":"say"}"#,
                &delta.to_string(),
            );
            nodes.push(made);
            newest.insert(agent, (seq, at));
        }
        let place = Place::with_store();
        let lines: String = nodes.iter().map(|node| format!("{node}\n")).collect();
        std::fs::write(place.path().join("t.jsonl"), lines).unwrap();
        place.ok(&["import", "t.jsonl", "--kind", "cfd", "--run", "team"]);
        let heads: Vec<(&str, u64)> =
            newest.iter().map(|(agent, (_, at))| (*agent, *at as u64 + 1)).collect();
        for (agent, head) in &heads {
            // All before it is seen: the state is that of the run there, and each turn was a write.
            let of = |text: &str| place.json(&["state", text]).1.get("value").cloned().unwrap();
            assert_eq!(of(&format!("team:{agent}")), of(&format!("team@{head}")), "{}: {agent}", run.file);
            let (_, writes) = place.json(&["backtrack", &format!("team:{agent}"), "memory.turn", "-n", "0"]);
            assert_eq!(ticks(&writes), (1..=*head).rev().collect::<Vec<_>>(), "{}: {agent}", run.file);
        }
        for pair in heads.windows(2) {
            let [(a, a_head), (b, b_head)] = [pair[0], pair[1]];
            let (_, found) = place.json(&["compare", &format!("team:{a}"), &format!("team:{b}"), "--check"]);
            let lower = a_head.min(b_head);
            assert_eq!(
                found.get("ancestor").unwrap().get("tick").unwrap().as_u64(),
                Some(lower),
                "{}: {a} {b}",
                run.file
            );
            let extension = |name: &str| found.get(name).unwrap().as_array().unwrap().len() as u64;
            assert_eq!(
                [extension("a_extension"), extension("b_extension")],
                [a_head - lower, b_head - lower]
            );
            assert_eq!(found.get("congruent").unwrap().as_f64(), Some(100.0));
        }
        // A message has two children where the next one is another agent's, and its own agent speaks again.
        let branching: Vec<u64> = (0..agents.len())
            .filter(|at| {
                let next = agents.get(at + 1).is_some_and(|next| *next != agents[*at]);
                next && agents[at + 1..].contains(&agents[*at])
            })
            .map(|at| at as u64 + 1)
            .collect();
        let (_, heat) = place.json(&["heatmap", "team", "-n", "0"]);
        assert_eq!(ticks(&heat), branching, "{}", run.file);
    }
}
