//! HTML as text: lines of answers, values, and what marks a value that is not known.

use std::fmt::Write as _;

use dendrer_object::tag::is_tag_name;
use dendrer_object::{Object, Value};

use crate::answer::{Line, LinePlace, Style};
use crate::draw::svg::markup;
use crate::{count, quote, thousands};

/// How many bytes of one text are shown; the rest is counted.
const TEXT_MAX: usize = 4_096;

/// A part of a page.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Adds markup.
    pub(super) fn raw(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    /// Adds an element around text that is escaped already.
    pub(super) fn element(&mut self, tag: &str, class: &str, words: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = writeln!(self.0, "<{tag}{class}>{}</{tag}>", markup(words));
    }

    /// Adds the lines of an answer as they are printed. Notes are among them, and commands that ask a store are left out.
    pub(super) fn lines(&mut self, lines: &[Line]) {
        self.raw("<pre>");
        for line in lines.iter().filter(|line| !matches!(line.place, LinePlace::Help(_))) {
            for span in &line.spans {
                let shown = escaped(&span.text);
                let _ = match span.style.map(class) {
                    Some(class) => write!(self.0, "<span class=\"{class}\">{shown}</span>"),
                    None => write!(self.0, "{shown}"),
                };
            }
            if let Some(argv) = &line.command {
                let _ = write!(self.0, "<code>{}</code>", escaped(&quote::shell(argv)));
            }
            self.raw("\n");
        }
        self.raw("</pre>\n");
    }
}

/// The class of a style.
fn class(style: Style) -> &'static str {
    match style {
        Style::Bad => "bad",
        Style::Good => "good",
        Style::Warn => "warn",
        Style::Added => "added",
        Style::Removed => "removed",
        Style::Dim => "dim",
        Style::Strong => "strong",
    }
}

/// Writes text that is escaped already, and counts what is over its limit.
pub(super) fn escaped(text: &str) -> String {
    if text.len() <= TEXT_MAX {
        return markup(text);
    }
    let end = boundary(text, TEXT_MAX);
    format!("{} {}", markup(&text[..end]), form(&more(text.len() - end)))
}

/// The last place up to `most` at which a text can be cut.
fn boundary(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn more(bytes: usize) -> String {
    format!("{} not shown", count(bytes as u64, "more byte", "more bytes"))
}

/// Writes what takes the place of a value: a word in a frame, never text of the trace.
pub(super) fn form(words: &str) -> String {
    format!("<span class=\"form\">{}</span>", markup(words))
}

/// Writes words of a trace: one line in quotes, several as a block with an edge, so that none of them passes for a line of the
/// page.
pub(super) fn said(text: &str) -> String {
    let end = boundary(text, TEXT_MAX);
    let (kept, rest) = text.split_at(end);
    let rest = if rest.is_empty() { String::new() } else { format!(" {}", form(&more(rest.len()))) };
    if !kept.contains('\n') {
        return format!("{}{rest}", markup(&quote::quoted(kept)));
    }
    let lines: Vec<String> = kept.split('\n').map(|line| markup(&quote::escape_drawn(line))).collect();
    format!("<span class=\"said\">{}{rest}</span>", lines.join("\n"))
}

/// Writes a value, with the forms in it as marks.
pub(super) fn value(value: &Value) -> String {
    if !has_form(value) {
        return escaped(&quote::value(value));
    }
    let mut out = String::new();
    part(value, &mut out);
    out
}

/// Whether a form is anywhere in a value.
pub(super) fn has_form(value: &Value) -> bool {
    match value {
        Value::Object(object) => form_of(object).is_some() || object.iter().any(|(_, value)| has_form(value)),
        Value::Array(items) => items.iter().any(has_form),
        _ => false,
    }
}

/// Writes a value as JSON between marks. Once the text is too long, what is left is counted in members and items.
fn part(value: &Value, out: &mut String) {
    let list = |out: &mut String, brackets: [&str; 2], parts: &[(Option<&str>, &Value)]| {
        out.push_str(brackets[0]);
        for (at, (name, value)) in parts.iter().enumerate() {
            out.push_str(if at > 0 { "," } else { "" });
            if out.len() > 2 * TEXT_MAX {
                out.push_str(&form(&format!("{} more not shown", thousands((parts.len() - at) as u64))));
                break;
            }
            if let Some(name) = name {
                let name = quote::json(&Value::from(*name));
                let _ = write!(out, "{}:", escaped(&name));
            }
            part(value, out);
        }
        out.push_str(brackets[1]);
    };
    match value {
        Value::Object(object) => match form_of(object) {
            Some(words) => out.push_str(&form(&words)),
            None => {
                let parts: Vec<_> = object.iter().map(|(name, value)| (Some(&**name), value)).collect();
                list(out, ["{", "}"], &parts);
            }
        },
        Value::Array(items) => {
            let parts: Vec<_> = items.iter().map(|value| (None, value)).collect();
            list(out, ["[", "]"], &parts);
        }
        other => out.push_str(&escaped(&quote::as_text(other))),
    }
}

/// Names a value that JSON does not hold, or that is not here; `None` for any other object.
fn form_of(object: &Object) -> Option<String> {
    let (name, value) = object.iter().next().filter(|_| object.len() == 1)?;
    let word =
        |member: &str| value.get(member).and_then(Value::as_str).map(quote::escape).unwrap_or_default();
    let number = |member: &str| value.get(member).and_then(Value::as_u64).map(thousands).unwrap_or_default();
    match &**name {
        "$redacted" => Some(format!("redacted {}", word("kind"))),
        "$vault" => Some(format!("in the vault: {} bytes", number("bytes"))),
        "$gap" => Some(format!("gap: {}", word("reason"))),
        "$bytes" => Some(format!("bytes {}", short(value))),
        "$float" => Some(short(value)),
        "$cut" => Some("cut".to_owned()),
        name if is_tag_name(name) => Some(format!("{} {}", quote::escape(&name[1..]), short(value))),
        _ => None,
    }
}

/// The beginning of a value that is a text.
fn short(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    let end = boundary(text, 40);
    let rest = if end < text.len() { "..." } else { "" };
    format!("{}{rest}", quote::escape(&text[..end]))
}

#[cfg(test)]
mod tests {
    use dendrer_object::tag;

    use super::*;

    #[test]
    fn a_value_that_is_not_known_is_a_mark_and_no_text() {
        let redacted = Value::record([("kind", Value::from("github-pat"))]);
        let redacted = Value::record([("$redacted", redacted)]);
        assert_eq!(
            value(&Value::record([
                ("a", redacted),
                ("b", tag::gap("value_too_large", "/x")),
                ("c", Value::from(1_u64))
            ])),
            "{&quot;a&quot;:<span class=\"form\">redacted github-pat</span>,\
             &quot;b&quot;:<span class=\"form\">gap: value_too_large</span>,&quot;c&quot;:1}"
        );
    }

    #[test]
    fn a_mark_in_a_text_is_text() {
        let text = Value::from("{\"$redacted\":{\"kind\":\"x\"}}");
        assert_eq!(value(&text), "{&quot;$redacted&quot;:{&quot;kind&quot;:&quot;x&quot;}}");
        assert_eq!(said("<redacted:x>"), "&quot;&lt;redacted:x&gt;&quot;");
    }

    #[test]
    fn words_of_several_lines_have_an_edge() {
        assert_eq!(said("ok\nINTACT  r"), "<span class=\"said\">ok\nINTACT  r</span>");
        let long = "é".repeat(TEXT_MAX);
        assert!(
            said(&long).ends_with("<span class=\"form\">4,096 more bytes not shown</span>"),
            "{}",
            said(&long).len()
        );
    }
}
