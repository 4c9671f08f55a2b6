//! The shape of an answer: its forms, its document, and whether it may be paged.
//!
//! Forms that exclude each other are refused here, before anything is read: an answer is never half-valid.

use dendrer_object::Code;
use dendrer_view::fields::{Fields, FieldsAnswer};

use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Format;
use crate::global::Global;
use crate::out::Form;

/// The forms that a verb can answer in.
pub(crate) struct Shape {
    /// The name on the command line.
    verb: &'static str,
    /// The document that `--json` prints; the first if there are several.
    document: Option<&'static str>,
    /// The values of `--format`.
    forms: Vec<&'static str>,
    /// Whether a long answer is paged on a terminal.
    pages: bool,
    /// Whether the answer is bytes for another program; its verb opens the file itself.
    is_bytes: bool,
    /// Whether the verb can be run again if it failed before it wrote anything: it reads no pipe, and leaves nothing
    /// but a signature.
    again: bool,
}

impl Shape {
    /// Adds forms.
    pub(crate) fn also(mut self, forms: &[&'static str]) -> Shape {
        self.forms.extend(forms);
        self
    }

    /// Says whether a long answer is paged.
    pub(crate) fn paged(self, pages: bool) -> Shape {
        Shape { pages, ..self }
    }

    /// The verb can be run again.
    pub(crate) fn again(self) -> Shape {
        Shape { again: true, ..self }
    }

    /// A text that is no document.
    pub(crate) fn text(verb: &'static str) -> Shape {
        Shape { document: None, forms: vec!["text"], ..flows(verb, "") }
    }

    /// Bytes in these forms.
    pub(crate) fn bytes(verb: &'static str, forms: &[&'static str]) -> Shape {
        Shape { forms: forms.to_vec(), is_bytes: true, ..flows(verb, verb) }
    }

    /// A file that is written, and a document about it.
    pub(crate) fn file(verb: &'static str, document: &'static str) -> Shape {
        Shape { document: Some(document), ..Shape::bytes(verb, &["text"]) }
    }

    /// Returns the fields of the document.
    pub(crate) fn fields(&self) -> FieldsAnswer {
        FieldsAnswer { document: self.document.unwrap_or_default() }
    }
}

/// A document that is paged as text.
pub(crate) fn pages(verb: &'static str, document: &'static str) -> Shape {
    let forms = FORMS.to_vec();
    Shape { verb, document: Some(document), forms, pages: true, is_bytes: false, again: false }
}

/// A document that is never paged.
pub(crate) fn flows(verb: &'static str, document: &'static str) -> Shape {
    Shape { pages: false, ..pages(verb, document) }
}

const FORMS: &[&str] = &["text", "json", "jsonl"];

/// Decides how the answer is written, or refuses flags that exclude each other.
pub(crate) fn form(global: &Global, shape: &Shape) -> Result<Form> {
    chosen(global, shape).map_err(|failure| {
        let words = ["dendrer"].into_iter().chain(shape.verb.split(' ')).chain(["--help"]);
        failure.help(&words.collect::<Vec<_>>())
    })
}

fn chosen(global: &Global, shape: &Shape) -> Result<Form> {
    let given = [
        global.json.then_some("--json"),
        global.jsonl.then_some("--jsonl"),
        global.format.is_some().then_some("--format"),
    ];
    let given: Vec<&str> = given.into_iter().flatten().collect();
    // The file of an export has a form, and the document about it another one.
    let is_of_file =
        shape.is_bytes && global.json && !global.jsonl && global.format.as_deref() != Some("json");
    if given.len() > 1 && !is_of_file {
        return Err(Failure::new(Code::E0106, format!("{} exclude each other", given.join(" and "))));
    }
    let special = match global.format.as_deref() {
        Some(form) if !shape.forms.contains(&form) => return Err(no_form(shape, form)),
        Some(form) => !FORMS.contains(&form) || shape.is_bytes,
        None => false,
    };
    let format = match (global.json, global.jsonl, global.format.as_deref()) {
        (true, ..) if is_of_file => Format::Json,
        _ if special => Format::Text,
        (true, ..) | (.., Some("json")) => Format::Json,
        (_, true, _) | (.., Some("jsonl")) => Format::Jsonl,
        _ => Format::Text,
    };
    if format != Format::Text && shape.document.is_none() {
        return Err(Failure::new(Code::E0106, format!("{} prints a text and no document", shape.verb)));
    }
    if format == Format::Jsonl && shape.is_bytes {
        return Err(Failure::new(Code::E0106, "an export is no stream of items")
            .note("its events, one a line, are --format jsonl"));
    }
    let fields = match (global.fields.as_slice(), shape.document) {
        ([], _) => None,
        _ if special => {
            return Err(Failure::new(Code::E0106, "--fields is for documents, and this form is none"));
        }
        (_, None) => return Err(Failure::new(Code::E0106, format!("{} has no fields", shape.verb))),
        ([only], Some(_)) if only == "list" => None,
        (wanted, Some(document)) => Some(choose(document, wanted)?),
    };
    Ok(Form { format, fields, pages: shape.pages, is_bytes: shape.is_bytes, again: shape.again })
}

fn no_form(shape: &Shape, form: &str) -> Failure {
    let failure = Failure::new(Code::E0106, format!("{} has no form \"{form}\"", shape.verb));
    match dendrer_object::text::nearest(form, shape.forms.iter().copied()) {
        Some(near) => failure.note(format!("did you mean {near}?")),
        None => failure.at("forms", shape.forms.join(", ")),
    }
}

fn choose(document: &str, wanted: &[String]) -> Result<Fields> {
    Fields::choose(document, wanted).map_err(|unknown| {
        let failure = Failure::new(Code::E0106, format!("{document} has no field \"{}\"", unknown.field));
        match unknown.near {
            Some(near) => failure.note(format!("did you mean {near}?")),
            None => failure.note("--fields list says which there are"),
        }
    })
}

/// Whether the call asks which fields there are.
pub(crate) fn asks_for_fields(global: &Global) -> bool {
    matches!(global.fields.as_slice(), [only] if only == "list")
}
