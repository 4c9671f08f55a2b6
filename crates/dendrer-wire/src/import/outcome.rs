//! Whether a result says that its call failed, and where it says so (design, section 9).
//!
//! A failure is what the source states: in a member beside the content, or in one of a few members of a content that is JSON. A
//! `status` inside a content is data of the tool. Where neither speaks, one rule reads the beginning of the text, and the status is
//! marked as read from text.

use dendrer::kernel::status;
use dendrer_object::value::Object;
use dendrer_object::{Value, json};

use super::account;
use super::note::{At, ImportNote, NoteKind};
use super::skim;

/// The status of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is stated beside the content.
    Flag(bool),
    /// The content is JSON, which states a failure or none.
    Json(bool),
    /// The text was looked at.
    Text(bool),
    /// A member states it in a way that is not known.
    Unknown,
}

impl Outcome {
    /// Whether the call failed.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Outcome::Flag(true) | Outcome::Json(true) | Outcome::Text(true))
    }

    /// The word for it; `None` if it is not known.
    pub(crate) fn status(self) -> Option<&'static str> {
        match self {
            Outcome::Unknown => None,
            known if known.is_failure() => Some("error"),
            _ => Some("ok"),
        }
    }

    /// The word for where it was read.
    pub(crate) fn from(self) -> &'static str {
        match self {
            Outcome::Flag(_) => "flag",
            Outcome::Json(_) => "json",
            Outcome::Text(_) | Outcome::Unknown => "text",
        }
    }
}

/// A status that a member states.
enum Stated {
    Nothing,
    Failure(bool),
    /// A value that means nothing that is known here.
    Unread,
}

/// Reads a member by which a result states its status, beside its content.
fn beside(name: &str, value: &Value) -> Stated {
    match (name, value) {
        (_, Value::Null) => Stated::Nothing,
        ("error", Value::String(text)) => Stated::Failure(!text.is_empty()),
        ("error", Value::Bool(failed)) | ("is_error" | "isError", Value::Bool(failed)) => {
            Stated::Failure(*failed)
        }
        ("error", Value::Object(_)) => Stated::Failure(true),
        ("success", Value::Bool(succeeded)) => Stated::Failure(!succeeded),
        ("exit_code", Value::Number(code)) => Stated::Failure(code.as_f64() != Some(0.0)),
        ("status", Value::String(word)) => status::is_failure(word).map_or(Stated::Unread, Stated::Failure),
        _ => Stated::Unread,
    }
}

/// The members that state a failure, also inside a content.
const WITHIN: [&str; 5] = ["error", "is_error", "isError", "success", "exit_code"];

/// The members that state how a call ended, beside a content.
pub(crate) const STATING: [&str; 6] = ["error", "is_error", "isError", "success", "exit_code", "status"];

/// Reads the status of a message that brings a result.
pub(crate) fn of_message(
    message: &Object,
    content: Option<&Value>,
    at: At<'_>,
    notes: &mut Vec<ImportNote>,
) -> Outcome {
    let mut stated = None;
    let mut unread = None;
    for (name, value) in message.iter() {
        // Beside the content, a word says it as well.
        let known = STATING.into_iter().find(|known| **known == **name);
        let Some(name) = known else { continue };
        match beside(name, value) {
            Stated::Nothing => {
                // A member that is there and says nothing says that there is no failure.
                if name == "error" {
                    stated.get_or_insert(false);
                }
            }
            Stated::Failure(failed) => stated = Some(stated == Some(true) || failed),
            Stated::Unread => unread = Some((name, value)),
        }
    }
    match (stated, unread) {
        // One member that states a failure is enough.
        (Some(true), _) => Outcome::Flag(true),
        (_, Some((name, value))) => {
            let text = format!(
                "{name} is {}, which says neither that the call failed nor that it did not",
                shown(value)
            );
            notes.push(ImportNote::new(NoteKind::StatusUnknown, format!("{at}/{name}"), text));
            Outcome::Unknown
        }
        (Some(false), None) => beside_content(false, content, at, notes),
        (None, None) => {
            let found = content.map_or(Outcome::Text(false), of_content);
            if found == Outcome::Unknown {
                notes.push(unknown_content(format!("{at}/content")));
            }
            found
        }
    }
}

/// Reads a status that is stated next to a content: a content that is JSON and states a failure is not overruled by it.
/// Prose states nothing next to a flag.
pub(crate) fn beside_content(
    failed: bool,
    content: Option<&Value>,
    at: At<'_>,
    notes: &mut Vec<ImportNote>,
) -> Outcome {
    if failed || content.map(of_content) != Some(Outcome::Json(true)) {
        return Outcome::Flag(failed);
    }
    let text = "the content states that the call failed, and the status next to it that it did not";
    notes.push(ImportNote::new(NoteKind::StatusUnknown, format!("{at}/content"), text));
    Outcome::Unknown
}

/// Notes a content that is JSON and states in no known way whether the call failed.
fn unknown_content(path: String) -> ImportNote {
    let text = "the content is JSON with a name that is there twice, a number beyond all doubles, or a status as text, so that what it states is not read";
    ImportNote::new(NoteKind::StatusUnknown, path, text)
}

/// A value for a message, shortened.
fn shown(value: &Value) -> String {
    let text = json::to_string(value);
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Reads the status out of a content.
pub(crate) fn of_content(content: &Value) -> Outcome {
    match content {
        Value::String(text) => of_text(text),
        Value::Object(object) => of_members(object),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            match &texts[..] {
                [] => Outcome::Text(false),
                [only] if parts.len() == 1 => of_text(only),
                [first, ..] => Outcome::Text(is_failure_in_words(first)),
            }
        }
        _ => Outcome::Text(false),
    }
}

fn of_text(text: &str) -> Outcome {
    let bytes = text.trim_ascii();
    // A list of parts that was written out as text says what the list says.
    if let Some(parts) = account::parts_in_text(bytes) {
        return of_content(&Value::Array(parts));
    }
    match bytes.as_bytes().first() {
        Some(b'{' | b'[') if skim::value(bytes.as_bytes()) == Some(bytes.len()) => {}
        // An unusual text is read in full.
        Some(b'{' | b'[') if json::parse_door(bytes.as_bytes()).is_ok() => {}
        _ => return Outcome::Text(is_failure_in_words(text)),
    }
    // Most of it is data: only what may have one of the members is read.
    let may_state =
        bytes.starts_with('{') && (bytes.contains("\\u") || WITHIN.iter().any(|name| bytes.contains(name)));
    match may_state.then(|| json::parse_door(bytes.as_bytes())) {
        Some(Ok(Value::Object(object))) => of_members(&object),
        // It is JSON to a lax reader alone: a name twice, or a number beyond all doubles.
        Some(Err(_)) => Outcome::Unknown,
        _ => Outcome::Json(false),
    }
}

/// Reads the members of a content by which it states a failure. A member of another type is data of the tool, but for a truth value or a number
/// as text, of which nothing is known.
fn of_members(object: &Object) -> Outcome {
    let stated = object.iter().filter(|(name, _)| WITHIN.contains(&&***name));
    let mut is_text = false;
    for (name, value) in stated {
        if matches!(beside(name, value), Stated::Failure(true)) {
            return Outcome::Json(true);
        }
        is_text |= &**name != "error" && value.as_str().is_some_and(is_status_as_text);
    }
    if is_text { Outcome::Unknown } else { Outcome::Json(false) }
}

/// Whether a text is a truth value or a number.
fn is_status_as_text(text: &str) -> bool {
    let text = text.trim_ascii();
    ["true", "false"].iter().any(|word| word.eq_ignore_ascii_case(text)) || text.parse::<f64>().is_ok()
}

/// The one rule for prose: the text begins with `Traceback (most recent call last)`, or with a name that ends in `Error:` or
/// `Exception:`. White space in front is passed over.
fn is_failure_in_words(text: &str) -> bool {
    let text = text.trim_start();
    if text.starts_with("Traceback (most recent call last)") {
        return true;
    }
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    let Some(end) = text.find(|c: char| !is_of_name(c)) else { return false };
    let (name, rest) = text.split_at(end);
    rest.starts_with(':') && (name.ends_with("Error") || name.ends_with("Exception"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Outcome, usize) {
        let message = json::parse_door(text.as_bytes()).unwrap();
        let object = message.as_object().unwrap();
        let mut notes = Vec::new();
        let at = At::item("", 0);
        (of_message(object, object.get("content"), at, &mut notes), notes.len())
    }

    #[test]
    fn a_failure_is_what_a_member_states() {
        for (text, outcome) in [
            (r#"{"content":"x","status":"error"}"#, Outcome::Flag(true)),
            (r#"{"content":"Error: x","status":"success"}"#, Outcome::Flag(false)),
            (r#"{"content":"x","status":"Completed","is_error":false}"#, Outcome::Flag(false)),
            (r#"{"content":"x","isError":true}"#, Outcome::Flag(true)),
            (r#"{"content":"x","success":false}"#, Outcome::Flag(true)),
            (r#"{"content":"x","success":true,"error":"late"}"#, Outcome::Flag(true)),
            (r#"{"content":"x","exit_code":1}"#, Outcome::Flag(true)),
            (r#"{"content":"x","exit_code":0}"#, Outcome::Flag(false)),
            (r#"{"content":"Error: x","error":null}"#, Outcome::Flag(false)),
            (r#"{"content":"x","error":{"code":3}}"#, Outcome::Flag(true)),
            (r#"{"content":"Error: x","status":null}"#, Outcome::Text(true)),
            // A word that is not known is neither; one that is known beside it decides only for a failure.
            (r#"{"content":"Error: x","status":"on hold"}"#, Outcome::Unknown),
            (r#"{"content":"x","status":200}"#, Outcome::Unknown),
            (r#"{"content":"x","is_error":"no"}"#, Outcome::Unknown),
            (r#"{"content":"x","status":"on hold","error":"late"}"#, Outcome::Flag(true)),
            (r#"{"content":"x","status":"on hold","success":true}"#, Outcome::Unknown),
        ] {
            let (found, notes) = read(text);
            assert_eq!((found, notes), (outcome, usize::from(outcome == Outcome::Unknown)), "{text}");
        }
    }

    #[test]
    fn json_in_a_content_is_data_but_for_five_members() {
        for (content, outcome) in [
            (r#"{"status":"error"}"#, Outcome::Json(false)),
            (r#"{"status":"cancelled","items":[{"error":"x"}]}"#, Outcome::Json(false)),
            (r#" {"error":"no such user"} "#, Outcome::Json(true)),
            (r#"{"error":{}}"#, Outcome::Json(true)),
            (r#"{"error":true}"#, Outcome::Json(true)),
            (r#"{"error":""}"#, Outcome::Json(false)),
            (r#"{"error":null,"errors":3}"#, Outcome::Json(false)),
            (r#"{"error":0.25}"#, Outcome::Json(false)),
            (r#"{"isError":true,"content":[]}"#, Outcome::Json(true)),
            (r#"{"is_error":true}"#, Outcome::Json(true)),
            (r#"{"is_error":"true"}"#, Outcome::Unknown),
            (r#"{"exit_code":"1"}"#, Outcome::Unknown),
            (r#"{"success":"order 7 is sent"}"#, Outcome::Json(false)),
            (r#"{"success":false}"#, Outcome::Json(true)),
            (r#"{"success":0}"#, Outcome::Json(false)),
            (r#"{"exit_code":137}"#, Outcome::Json(true)),
            (r#"{"exit_code":0,"stderr":"Error: x"}"#, Outcome::Json(false)),
            (r#"{"\u0065rror":"x"}"#, Outcome::Json(true)),
            (r#"[{"error":"x"}]"#, Outcome::Json(false)),
            (r#"{"error":"x""#, Outcome::Text(false)),
            (r#"{"error":"x"} and more"#, Outcome::Text(false)),
        ] {
            let message = Value::record([("content", Value::from(content))]);
            assert_eq!(read(&json::to_string(&message)).0, outcome, "{content}");
        }
        assert_eq!(read(r#"{"content":{"error":"x"}}"#).0, Outcome::Json(true));
        assert_eq!(
            read(r#"{"content":[{"type":"text","text":"{\"success\":false}"}]}"#).0,
            Outcome::Json(true)
        );
        assert_eq!(
            read(r#"{"content":[{"type":"text","text":"ValueError: x"},{"text":"y"}]}"#).0,
            Outcome::Text(true)
        );
        assert_eq!(read(r#"{"content":null}"#).0, Outcome::Text(false));
        assert_eq!(read("{}").0, Outcome::Text(false));
    }

    #[test]
    fn prose_is_read_by_one_rule() {
        for (text, is_failure) in [
            ("Error: x", true),
            ("  Error: x", true),
            ("ValueError: x", true),
            ("openai.RateLimitError: x", true),
            ("java.lang.NullPointerException: x", true),
            ("Traceback (most recent call last):\n  KeyError: 'north'", true),
            ("Error-free build: 214 checks", false),
            ("Error budget left: 98 %", false),
            ("Error", false),
            ("Errors: 0", false),
            ("No Error: fine", false),
            ("error: x", false),
            ("404", false),
            ("", false),
        ] {
            assert_eq!(is_failure_in_words(text), is_failure, "{text}");
        }
    }
}
