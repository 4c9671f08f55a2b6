//! The head of an answer: where it was read, and with which reserve.

use dendrer::source::SourceHead;
use dendrer_object::document::{Shape as _, Tampered};
use dendrer_object::{Object, Value};

use crate::answer::{Line, Style};

/// What an answer about a run of stage 0 does not claim (design, section 12).
pub const STAGE_0: &str =
    "exact for the imported record: at stage 0 no policy, contract or effect class was enforced";

/// The lines below an answer that say what it does not claim.
pub fn caveats(document: Option<&Object>, head: &SourceHead) -> Vec<Line> {
    let stage = head.at_stage_0.then(|| {
        let caveat = document.map_or(STAGE_0, |document| stage_0(document, head));
        Line::from(format!("stage 0    {caveat}"))
    });
    let stopped = head.unfinished.iter().filter(|(_, found)| found.lost.is_none());
    let unfinished = stopped.map(|(run, found)| {
        Line::styled(
            Style::Warn,
            format!("UNFINISHED {run}: {}; the same import goes on with it", found.words()),
        )
    });
    stage.into_iter().chain(unfinished).collect()
}

/// Returns [`STAGE_0`] for an answer with this document: a guess, what uses one, or an answer about a part of a source does not
/// say that it is exact.
pub fn stage_0(document: &Object, head: &SourceHead) -> &'static str {
    let is_guess = document.get("certainty").and_then(Value::as_str) == Some("heuristic");
    let from_text = document.get("status_from_text").and_then(Value::as_u64).unwrap_or(0);
    let of_items = document.get("items").and_then(Value::as_array).into_iter().flat_map(|items| items.iter());
    let in_items = of_items.filter_map(|item| item.get("status_from_text")?.as_u64()).any(|count| count > 0);
    match is_guess || from_text > 0 || in_items || !head.unfinished.is_empty() {
        true => STAGE_0.strip_prefix("exact ").unwrap_or(STAGE_0),
        false => STAGE_0,
    }
}

/// Adds the head to a document; `is_read` if the document names what was read.
pub fn complete(mut document: Object, is_read: bool, head: &SourceHead) -> Object {
    if is_read && !head.read_from.is_empty() {
        document.set("read_from", head.read_from.to_value());
    }
    if is_read && head.at_stage_0 {
        let caveat = stage_0(&document, head);
        document.set("caveat", Value::from(caveat));
    }
    if head.unfinished.iter().any(|(_, found)| found.lost.is_none()) {
        document.set("unfinished", Value::from(true));
    }
    let partial = head.unfinished.iter().filter(|(_, found)| found.lost.is_some());
    let partial: Vec<String> = partial.map(|(run, found)| format!("{run}: {}", found.words())).collect();
    if !partial.is_empty() {
        document.set("incomplete", partial.to_value());
    }
    if let Some((code, message)) = &head.tampered {
        document.set("tampered", Tampered::of(*code, message).into());
    }
    document
}
