//! Threads of checkpoints as other rooms know them: the runs, their records, the nodes of their tasks.
//!
//! A thread is a run whose `meta` names it. Its puts and writes are written by the runtime, with a member of `intent` that
//! places them. Reads names alone and no values.

use std::sync::Arc;

use dendrer_object::record::{Author, Kind, Record};
use dendrer_object::{Pointer, Value, tag};

/// The agent of the puts of a thread, and of writes of a task without a node.
pub(crate) const AGENT: &str = "langgraph";

/// The member of a run's `meta` with the thread that it is of.
pub(crate) const THREAD: &str = "thread_id";

/// The beginning of the name of a run whose thread has a name that no run can have.
pub(crate) const NAMED_BY_DIGEST: &str = "lg-";

/// The member of an intent that is a put.
pub(crate) const CHECKPOINT: &str = "checkpoint";

/// The member of an intent that has the writes of a task.
pub(crate) const WRITES: &str = "writes";

/// The member of an intent that claims a thread.
pub(crate) const CLAIM: &str = "claim";

/// The member of an intent that names checkpoints which were removed.
pub(crate) const REMOVED: &str = "removed";

/// Members of `intent` that place a put or a write: which checkpoint, and where its bytes are.
pub(crate) const PLACES: [&str; 4] = [CHECKPOINT, CLAIM, REMOVED, WRITES];

/// The channel with the interrupts of a task.
pub(crate) const INTERRUPT: &str = "__interrupt__";

/// The channel with the answers to interrupts.
pub(crate) const RESUME: &str = "__resume__";

/// The channel with the failure of a task.
pub(crate) const ERROR: &str = "__error__";

/// The channel with what a graph is given, and the node that hands it on.
pub(crate) const START: &str = "__start__";

/// The channel with the tasks that nodes ask for.
pub(crate) const TASKS: &str = "__pregel_tasks";

/// The beginning of the channels that lead to a node.
pub(crate) const BRANCH: &str = "branch:";

/// Whether a channel is one of the framework: it leads to nodes, and holds no value of the graph.
pub(crate) fn is_internal(channel: &str) -> bool {
    ["__", BRANCH, "join:", "start:"].iter().any(|begin| channel.starts_with(begin))
}

/// Whether a record is a put, a write, a claim or a removal of a thread.
pub(crate) fn is_of_thread(record: &Record) -> bool {
    let header = record.header();
    let has = |name: &&str| {
        let place = Pointer::of(["intent", name]);
        record.body().fields().iter().any(|field| field.pointer == place)
    };
    header.kind == Kind::Transition
        && header.author == Author::Runtime
        && PLACES.iter().any(|name| has(&name))
}

/// The places of the vault that a put or a write of a thread names, with the member of `intent` that does.
pub(crate) fn exact_places(record: &Record) -> impl Iterator<Item = (&'static str, Arc<str>)> {
    let member =
        |name: &str| record.body().value(&format!("/intent/{name}")).filter(|_| is_of_thread(record));
    let at = |about: Option<&Value>| about?.get("at")?.as_str().map(Arc::<str>::from);
    let put = member(CHECKPOINT).and_then(|about| at(about.get("exact"))).map(|at| (CHECKPOINT, at));
    put.into_iter().chain(at(member(WRITES).as_ref()).map(|at| (WRITES, at)))
}

/// Whether a record marks everything in its run of a thread as removed.
pub(crate) fn is_removal(record: &Record) -> bool {
    let about = record.body().value(&format!("/intent/{REMOVED}"));
    let is_all = |about: Value| about.get("all").and_then(Value::as_bool) == Some(true);
    is_of_thread(record) && about.is_some_and(is_all)
}

/// Whether a record of a thread has the interrupts of a task: the task did not fail, and asks.
pub(crate) fn is_interrupt(record: &Record) -> bool {
    let body = record.body();
    if !is_of_thread(record) || body.value(&format!("/intent/{CHECKPOINT}")).is_some() {
        return false;
    }
    let Some(about) = body.value(&format!("/intent/{WRITES}")) else { return false };
    let is_placed =
        ["ns", "checkpoint", "path"].iter().all(|name| about.get(name).and_then(Value::as_str).is_some());
    let values = body.value("/intent/values");
    let values = values.as_ref().and_then(Value::as_array);
    let has = |channel: &str| {
        let is_it = |value: &Value| {
            value.get("channel").and_then(Value::as_str) == Some(channel) && value.get("value").is_some()
        };
        values.is_some_and(|values| values.iter().any(is_it))
    };
    is_placed && has(INTERRUPT) && !has(ERROR)
}

/// The thread that a `run` record is of, as it is recorded.
pub(crate) fn thread_of(begin: &Record) -> Option<Arc<str>> {
    let meta = begin.body().value("/meta").or_else(|| begin.content().get("meta").cloned())?;
    meta.get(THREAD)?.as_str().map(Arc::from)
}

/// The place of a channel in the state.
pub(crate) fn place_of(namespace: &str, channel: &str) -> Pointer {
    let channel = tag::stored_name(channel);
    match namespace {
        "" => Pointer::of(["values", &channel]),
        namespace => Pointer::of(["subgraphs", &tag::stored_name(namespace), &channel]),
    }
}

/// The namespaces of a namespace without the ids of their tasks.
pub(crate) fn plain_namespace(namespace: &str) -> String {
    let parts = namespace.split('|').map(|part| part.split(':').next().unwrap_or(part));
    parts.collect::<Vec<_>>().join("|")
}

/// The node of a task, by the path of the task.
pub(crate) fn node_of(path: &str, sends: &[Arc<str>]) -> Option<String> {
    let (kind, rest) = path.strip_prefix('~')?.split_once(", ")?;
    if kind == "__pregel_push" {
        // A function that a node calls is called by that node.
        if rest.starts_with('~') {
            return node_of(rest, sends);
        }
        let number: usize = rest.split(", ").next()?.parse().ok()?;
        return sends.get(number).filter(|node| !node.is_empty()).map(|node| node.to_string());
    }
    let ends = [", False", ", True", ", node_error_handler"];
    let mut name = rest.split(", ~").next()?;
    while let Some(shorter) = ends.iter().find_map(|end| name.strip_suffix(end)) {
        name = shorter;
    }
    (!name.starts_with("__")).then(|| name.split(", 0").next().unwrap_or(name).to_owned())
}

/// The node of a task that is asked for.
pub(crate) fn node_of_task(task: &Value) -> Option<Arc<str>> {
    task.as_array()?.get(0)?.as_str().map(Arc::from)
}

/// The agent of a node: its name after those of the nodes around it.
pub(crate) fn agent_of(namespace: &str, node: &str) -> String {
    let around = namespace.split('|').filter(|part| !part.is_empty());
    let around = around.map(|part| part.split(':').next().unwrap_or(part));
    let names: Vec<&str> = around.chain([node]).collect();
    let mut name = names.join("/");
    let mut end = name.len().min(256);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_of_the_node_in_its_path() {
        let sends = ["pay".into(), "look".into()];
        for (path, node) in [
            ("~__pregel_pull, model", Some("model")),
            ("~__pregel_pull, a, b, False", Some("a, b")),
            ("~__pregel_pull, model, node_error_handler, False", Some("model")),
            ("~__pregel_push, 0000000001, False", Some("look")),
            ("~__pregel_push, 0000000007, False", None),
            ("~__pregel_push, ~__pregel_pull, flow, 0000000000, 3f, True", Some("flow")),
            ("~__pregel_pull, __start__", None),
            ("", None),
        ] {
            assert_eq!(node_of(path, &sends).as_deref(), node, "{path}");
        }
        assert_eq!(agent_of("quoter:1f|inner:2e", "ask"), "quoter/inner/ask");
        assert_eq!(agent_of("", "ask"), "ask");
    }
}
