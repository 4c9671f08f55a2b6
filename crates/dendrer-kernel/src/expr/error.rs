//! Errors of an expression, or of a value that it met, and their words.
//!
//! Never decides anything. Every error carries the bytes of the text it is about, so that a caller can draw a
//! caret, and most carry a hint that names what to write instead.

use dendrer_object::Code;
use std::borrow::Cow;
use std::fmt;

use dendrer_object::Pointer;

use crate::sealed::{self, Met};
use crate::unknown::Since;

/// A stretch of the text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Span {
        // A text beyond the limit is refused before any span is made, so nothing is cut off here.
        Span { start: start as u32, end: end as u32 }
    }

    pub(crate) fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end }
    }
}

/// Why a text is not an expression of the language. Codes:
///
/// | code | is |
/// | --- | --- |
/// | `E0501` | the grammar does not allow this token |
/// | `E0502` | types or the number of arguments cannot fit, whatever the state holds |
/// | `E0505` | an undeclared name |
/// | `E0506` | part of CEL, but not in the language |
/// | `E0507` | `/` where it is not known which of the two divisions is meant |
/// | `E0508` | too long, too large or nested too deep |
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at byte {}", span.start)]
#[non_exhaustive]
pub struct ExprError {
    /// The code under which `dendrer explain` knows this error.
    pub code: Code,
    /// Bytes of the text.
    pub span: Span,
    /// The fault.
    pub message: String,
    /// The text to write instead, if it is known.
    pub hint: Option<String>,
    /// The text of the span, or an empty text.
    pub text: Box<str>,
}

/// Grammar.
pub(crate) const SYNTAX: Code = Code::E0501;
/// Types and numbers of arguments.
pub(crate) const TYPE: Code = Code::E0502;
/// Unknown names.
pub(crate) const NAME: Code = Code::E0505;
/// Parts of CEL that are not in the language.
pub(crate) const UNSUPPORTED: Code = Code::E0506;
/// A division that could mean two things.
pub(crate) const DIVISION: Code = Code::E0507;
/// Limits.
pub(crate) const LIMIT: Code = Code::E0508;

impl ExprError {
    pub(crate) fn new(code: Code, span: Span, message: impl Into<String>) -> ExprError {
        ExprError { code, span, message: message.into(), hint: None, text: "".into() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> ExprError {
        self.hint = Some(hint.into());
        self
    }

    /// Returns an error of a literal that the values it is compared with never have.
    pub fn of_types(span: Span, message: impl Into<String>, hint: &str, text: &str) -> ExprError {
        ExprError::new(TYPE, span, message).hint(hint).of(text)
    }

    /// Adds the text that was read. A name with a hyphen, which reads as a difference, has a hint.
    pub(super) fn of(mut self, text: &str) -> ExprError {
        if let Some(hint) = self.of_hyphen(text) {
            self.hint = Some(hint);
        }
        self.text = text.into();
        self
    }

    /// The hint of an unknown name that is the end of one with a hyphen, like `id` in `state.order-id`.
    fn of_hyphen(&self, text: &str) -> Option<String> {
        let start = self.span.start as usize;
        let before = text.get(..start).filter(|before| self.code == NAME && before.ends_with('-'))?;
        let is_part = |c: char| c == '_' || c == '-' || c.is_ascii_alphanumeric();
        let path = before.trim_end_matches(is_part);
        let rest = text.get(path.len()..)?;
        let name = rest.split(|c: char| !is_part(c)).next()?;
        let path = path.strip_suffix('.').filter(|_| !name.starts_with('-'))?;
        let is_step = |c: char| c == '_' || c == '.' || c.is_ascii_alphanumeric();
        let place = path.get(path.trim_end_matches(is_step).len()..).filter(|place| !place.is_empty())?;
        Some(format!("write {place}[\"{name}\"]"))
    }

    pub(crate) fn unsupported(span: Span, what: impl fmt::Display) -> ExprError {
        ExprError::new(UNSUPPORTED, span, format!("{what} is not supported"))
    }

    /// Renders the error with the line of `text` it is about and a caret below.
    pub fn render(&self, text: &str) -> String {
        render(&format!("error[{}]: {}", self.code, self.message), text, self.span, self.hint.as_deref())
    }
}

/// Why there is no answer: the expression met something it cannot judge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Uncertain {
    /// The path that could not be judged, as one would write it: `state.items[3].price`. Absent where no path is
    /// involved.
    pub path: Option<String>,
    /// A word for what was met ([`crate::sealed`]). This is what is put on record.
    pub met: &'static str,
    /// The value or condition that was met, in words.
    pub message: String,
    /// The text to write instead, if it is known.
    pub hint: Option<String>,
    /// Bytes of the text.
    pub span: Span,
    /// The unknown place of the state that was met, if that is why ([`crate::unknown`]).
    pub unknown: Option<(Pointer, Since)>,
}

impl Uncertain {
    /// Renders the reason with the line of `text` it is about and a caret below.
    pub fn render(&self, text: &str) -> String {
        render(&format!("uncertain: {}", self.message), text, self.span, self.hint.as_deref())
    }
}

/// Why an evaluation gave no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The expression met something it cannot judge.
    #[error(transparent)]
    Uncertain(Box<Uncertain>),
    /// The budget ran out. Says nothing about the state.
    #[error("the step budget is used up")]
    Exhausted,
}

impl From<EvalError> for Met {
    fn from(error: EvalError) -> Met {
        let message = error.to_string();
        match error {
            EvalError::Uncertain(why) => Met { word: why.met, at: why.path.clone(), message },
            EvalError::Exhausted => Met { word: sealed::STEPS, at: None, message },
        }
    }
}

/// Cuts a name down to what a message can hold.
pub(crate) fn shown(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(CONTEXT) {
        None => Cow::Borrowed(name),
        Some((at, _)) => Cow::Owned(format!("{}...", &name[..at])),
    }
}

fn render(head: &str, text: &str, span: Span, hint: Option<&str>) -> String {
    let boundary = |at: u32| {
        let mut at = (at as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (boundary(span.start), boundary(span.end));
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    // A tab and a line of thousands of characters would both push the caret off its place.
    let printable =
        |part: &str| part.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    let before: String = tail(&text[line_start..start], CONTEXT);
    let marked = &text[start..end.clamp(start, line_end)];
    let after: String = text[start..line_end].chars().skip(marked.chars().count()).take(CONTEXT).collect();
    let marked: String = marked.chars().take(CONTEXT).collect();
    let carets = "^".repeat(marked.chars().count().max(1));
    let mut out = format!(
        "{head}\n  {}{}{}\n  {}{carets}",
        printable(&before),
        printable(&marked),
        printable(&after),
        " ".repeat(before.chars().count())
    );
    if let Some(hint) = hint {
        out.push_str("\nhelp: ");
        out.push_str(hint);
    }
    out
}

/// How many characters of a name, or on either side of a place, are shown.
const CONTEXT: usize = 60;

fn tail(text: &str, count: usize) -> String {
    let skip = text.chars().count().saturating_sub(count);
    text.chars().skip(skip).collect()
}
