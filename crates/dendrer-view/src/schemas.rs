//! The published JSON Schemas (draft 2020-12), one for each document that is printed.

use dendrer::run::event::EventLine;
use dendrer_object::document::{Members as _, PublishedSchema};
use dendrer_object::{Value, document};

use crate::answer::{Answer, Line, Page};
use crate::{ask, intent};

/// Lines of which no member names a schema.
const OTHERS: &[PublishedSchema] = &[
    PublishedSchema::of_line("event", EventLine::published),
    PublishedSchema::of_line("intent", intent::published),
];

fn all() -> impl Iterator<Item = &'static PublishedSchema> {
    ask::schemas().chain(OTHERS).chain(DOCUMENTS.iter().copied().flatten())
}

/// Returns the name of every schema, in order.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = all().map(|known| known.name).collect();
    names.sort_unstable();
    names
}

/// Finds a schema.
pub fn find(name: &str) -> Option<Value> {
    all().find(|known| known.name == name).map(|known| (known.schema)())
}

document! {
    /// The names of the schemas
    pub object SchemasDocument: "schemas" () {
        /// The names, in order
        items: Vec<&'static str> = names(),
    }

    /// The fields of a document
    pub object FieldsDocument: "fields" (name: &str, listed: &[String], own: &[String]) {
        let of_items = listed.iter().map(|name| FieldObject::of(name, "items"));
        let of_document = own.iter().map(|name| FieldObject::of(name, "document"));
        /// The name of the document
        document: &str = name,
        /// The fields
        items: Vec<FieldObject> = of_items.chain(of_document).collect(),
    }

    /// A field of a document
    object FieldObject(field: &str, owner: &str) {
        /// The name
        name: &str = field,
        /// The part of the document that has the field
        of: ["items" | "document"] = owner,
    }
}

/// The names of all schemas.
#[derive(Debug, Clone, Copy)]
pub struct SchemaListAnswer;

impl Answer for SchemaListAnswer {
    fn document(&self) -> Value {
        SchemasDocument::of().into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let names = names();
        let sum = format!("{} of {} schemas", names.len(), names.len());
        names.into_iter().map(Line::from).chain([sum.into()]).collect()
    }
}

/// One schema. Its document is the schema itself.
#[derive(Debug, Clone)]
pub struct SchemaAnswer(pub Value);

impl Answer for SchemaAnswer {
    fn document(&self) -> Value {
        self.0.clone()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        add_json(&self.0, "", "", "", &mut lines);
        lines.into_iter().map(|line| Line { is_document: true, ..Line::from(line) }).collect()
    }
}

/// Adds a value as JSON over several lines. `lead` precedes it on its first line, `tail` follows on its last one.
fn add_json(value: &Value, pad: &str, lead: &str, tail: &str, lines: &mut Vec<String>) {
    let inner = format!("{pad} ");
    let comma = |at: usize, len: usize| if at + 1 < len { "," } else { "" };
    match value {
        Value::Object(object) if !object.is_empty() => {
            lines.push(format!("{pad}{lead}{{"));
            for (at, (name, member)) in object.iter().enumerate() {
                let name = format!("{}: ", Value::from(&**name));
                add_json(member, &inner, &name, comma(at, object.len()), lines);
            }
            lines.push(format!("{pad}}}{tail}"));
        }
        Value::Array(array) if array.iter().any(|item| item.depth() > 0) => {
            lines.push(format!("{pad}{lead}["));
            for (at, item) in array.iter().enumerate() {
                add_json(item, &inner, "", comma(at, array.len()), lines);
            }
            lines.push(format!("{pad}]{tail}"));
        }
        scalar => lines.push(format!("{pad}{lead}{scalar}{tail}")),
    }
}
