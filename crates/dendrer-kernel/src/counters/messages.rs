//! Counts the messages that a put or a write adds to a thread (`messages` of a transition).
//!
//! Each message is one of a chat: calls of an assistant, a result of a tool, the failure of a node. The recorder lists a message once, by
//! its id: nothing is looked up here.

use dendrer_object::{MESSAGES, Value};

use super::Counters;
use crate::status;
use crate::unknown::{NO_USAGE, STATUS_UNKNOWN};

/// The place of the messages, for counters that look at it.
pub(super) fn places(counter: &str) -> &'static [&'static str] {
    match counter {
        "by_agent" | "cost_usd" | "last_tool" | "tokens_used" | "tool_calls" | "tool_errors" => {
            &["/messages"]
        }
        _ => &[],
    }
}

/// Whether a member of a message is true.
fn says(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool) == Some(true)
}

/// Whether a message of a transition names an agent.
pub(super) fn name_agent(content: &Value, agent: &Value) -> bool {
    let listed = content.get(MESSAGES).and_then(Value::as_array);
    listed.is_some_and(|list| list.iter().any(|one| one.get("agent") == Some(agent)))
}

impl Counters {
    /// Takes in the messages of a transition.
    pub(super) fn add_messages(&mut self, messages: &Value) {
        messages.as_array().into_iter().flat_map(|list| list.iter()).for_each(|one| self.add_message(one));
    }

    fn add_message(&mut self, message: &Value) {
        if says(message, "repeated") {
            return;
        }
        // An edited message was counted when it came; calls and tokens that it adds count.
        let is_edited = says(message, "edited");
        if let Some(agent) = message.get("agent").filter(|_| !is_edited) {
            self.add_agent(agent);
        }
        let calls = message.get("calls").and_then(Value::as_array);
        for call in calls.into_iter().flat_map(|calls| calls.iter()).filter(|call| !says(call, "repeated")) {
            self.add_request(call);
        }
        if let Some(result) = message.get("result").filter(|_| !is_edited) {
            self.close(Some(result));
            match result.get("status").and_then(Value::as_str).and_then(status::is_failure) {
                Some(failed) => self.tool_errors += u64::from(failed),
                None => self.miss("tool_errors", STATUS_UNKNOWN),
            }
        }
        let Some(usage) = message.get("usage") else { return };
        for (counter, sum) in [("tokens_used", &mut self.tokens_used), ("cost_usd", &mut self.cost_usd)] {
            match usage.get(counter) {
                Some(Value::Null) => {
                    self.missing.entry(counter).or_insert((self.transitions, NO_USAGE));
                }
                stated => *sum += stated.and_then(Value::as_f64).unwrap_or(0.0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_object::json::parse_door;

    fn counted(contents: &[&str]) -> Counters {
        let mut counters = Counters::default();
        contents.iter().for_each(|one| counters.add("memory.write", &parse_door(one.as_bytes()).unwrap()));
        counters
    }

    #[test]
    fn messages_of_a_thread_count_as_those_of_a_chat() {
        let counters = counted(&[
            r#"{"agent_id":"langgraph","messages":[{"agent":"user","role":"user"},
               {"agent":"model","role":"assistant","calls":[{"tool":"pay","call_id":"c1"},{"tool":"look","call_id":"c2"}],
                "usage":{"tokens_used":6100,"cost_usd":0.5}}]}"#,
            r#"{"agent_id":"langgraph","messages":[{"agent":"tool","result":{"tool":"pay","status":"error"}},
               {"agent":"tool","result":{"tool":"look","status":"ok"}},{"agent":"plan","role":"error","result":{"status":"error"}}]}"#,
            r#"{"agent_id":"langgraph","messages":[{"agent":"model","edited":true,
                "calls":[{"tool":"pay","repeated":true},{"tool":"ask"}],"usage":{"tokens_used":-100}},
               {"agent":"x","repeated":true,"calls":[{"tool":"no"}],"result":{"status":"error"},"usage":{"tokens_used":1}}]}"#,
        ]);
        assert_eq!(
            counters.to_value().to_string(),
            r#"{"anomalies":{},"by_agent":{"langgraph":3,"model":1,"plan":1,"tool":2,"user":1},"cost_usd":0.5,"denied_count":0,"last_tool":"ask","tokens_used":6000,"tool_calls":3,"tool_errors":2,"transitions":3,"version":"counters/1"}"#
        );
        assert_eq!((counters.is_open("pay"), counters.is_open("ask")), (Some(false), Some(true)));
        assert_eq!(Counters::from_kept(&counters.to_kept()), Some(counters));
    }

    #[test]
    fn a_node_that_writes_is_counted_by_its_messages() {
        let counters = counted(&[
            r#"{"agent_id":"model","messages":[{"agent":"model","role":"assistant"},{"agent":"model","role":"assistant"}]}"#,
            r#"{"agent_id":"plan","messages":[{"agent":"plan","role":"node"}]}"#,
            r#"{"agent_id":"pay"}"#,
        ]);
        let counted = counters.to_value();
        let by_agent = counted.get("by_agent").map(ToString::to_string);
        assert_eq!(by_agent.as_deref(), Some(r#"{"model":2,"pay":1,"plan":1}"#));
    }

    #[test]
    fn a_message_without_usage_or_with_another_status_leaves_a_lower_bound() {
        let counters = counted(&[
            r#"{"messages":[{"role":"assistant","usage":{"tokens_used":7,"cost_usd":null}}]}"#,
            r#"{"messages":[{"role":"tool","result":{"tool":"t","status":"on hold"}},{"role":"tool","result":{"tool":"t"}}]}"#,
        ]);
        let since =
            |name| counters.unknown_since(Some(name), None).map(|since| (since.tick, since.code.to_string()));
        assert_eq!(since("cost_usd"), Some((1, NO_USAGE.to_owned())));
        assert_eq!(since("tool_errors"), Some((2, STATUS_UNKNOWN.to_owned())));
        assert_eq!((since("tokens_used"), since("tool_calls")), (None, None));
    }
}
