//! Chosen fields of a document. The published schema lists the fields that a document has.
//!
//! A field is a member of the items where a document has items, or a member of the document itself.

use dendrer_object::Value;

use crate::answer::{Answer, Line, Page};
use crate::layout::{columns, pad};
use crate::table::{Align, Table};
use crate::{quote, schemas};

/// The fields that were asked for, in the order in which they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    items: Vec<String>,
    top: Vec<String>,
}

/// A field that the document does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The field.
    pub field: String,
    /// A known field with a similar name, if there is one.
    pub near: Option<String>,
}

/// Lists the fields of a document: those of its items, and its own.
pub fn available(schema: &str) -> (Vec<String>, Vec<String>) {
    let schema = schemas::find(schema).unwrap_or_else(Value::object);
    let properties = schema.get("properties");
    let names = |object: Option<&Value>| -> Vec<String> {
        let object = object.and_then(Value::as_object);
        object.into_iter().flat_map(|object| object.iter()).map(|(name, _)| name.to_string()).collect()
    };
    let mut top = names(properties);
    top.retain(|name| name != "schema" && name != "items");
    let list = properties.and_then(|properties| properties.get("items"));
    let variants = list.and_then(|list| list.get("anyOf")).and_then(Value::as_array);
    let lists = variants.into_iter().flat_map(|variants| variants.iter()).chain(list);
    let item = lists.filter_map(|list| list.get("items")).next();
    // An item may be one of several objects.
    let kinds = item.and_then(|item| item.get("anyOf")).and_then(Value::as_array);
    let kinds = kinds.into_iter().flat_map(|kinds| kinds.iter()).chain(item);
    let mut items: Vec<String> = Vec::new();
    for name in kinds.flat_map(|kind| names(kind.get("properties"))) {
        if !items.contains(&name) {
            items.push(name);
        }
    }
    (items, top)
}

/// The fields that a document has: those of its items, then its own.
#[derive(Debug, Clone, Copy)]
pub struct FieldsAnswer {
    /// The name of the document.
    pub document: &'static str,
}

impl Answer for FieldsAnswer {
    fn document(&self) -> Value {
        let (items, own) = available(self.document);
        schemas::FieldsDocument::of(self.document, &items, &own).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let (items, own) = available(self.document);
        items.into_iter().chain(own).map(Line::from).collect()
    }
}

impl Fields {
    /// Chooses fields of a document. A name that items and document share means the items' own.
    pub fn choose(schema: &str, wanted: &[String]) -> Result<Fields, Unknown> {
        let (of_items, of_document) = available(schema);
        let mut fields = Fields { items: Vec::new(), top: Vec::new() };
        for field in wanted {
            if of_items.contains(field) {
                fields.items.push(field.clone());
            } else if of_document.contains(field) {
                fields.top.push(field.clone());
            } else {
                let known = of_items.iter().chain(&of_document).map(String::as_str);
                let near = dendrer_object::text::nearest(field, known).map(str::to_owned);
                return Err(Unknown { field: field.clone(), near });
            }
        }
        Ok(fields)
    }

    /// Returns an item with the chosen fields alone.
    pub fn of_item(&self, item: &Value) -> Value {
        let chosen = if self.items.is_empty() { &self.top } else { &self.items };
        pick(item, chosen)
    }

    /// Returns a document with the chosen fields alone; its schema is always named.
    pub fn of_document(&self, document: &Value) -> Value {
        let mut chosen = match self.top.is_empty() {
            true => document.as_object().cloned().unwrap_or_default(),
            false => pick(document, &self.top).as_object().cloned().unwrap_or_default(),
        };
        if let Some(schema) = document.get("schema") {
            chosen.set("schema", schema.clone());
        }
        let items = document.get("items").and_then(Value::as_array).filter(|_| !self.items.is_empty());
        if let Some(items) = items {
            chosen.set("items", Value::array(items.iter().map(|item| pick(item, &self.items))));
        }
        Value::Object(chosen)
    }

    /// Writes the chosen fields for people: the document's own one a line, those of its items as a table.
    pub fn lines(&self, document: &Value, width: Option<usize>, as_list: bool) -> Vec<String> {
        let size = self.top.iter().map(|name| columns(name)).max().unwrap_or(0);
        let own = self.top.iter().map(|name| format!("{}  {}", pad(name, size), cell(document.get(name))));
        let mut lines: Vec<String> = own.collect();
        if self.items.is_empty() {
            return lines;
        }
        let items =
            || document.get("items").and_then(Value::as_array).into_iter().flat_map(|list| list.iter());
        let columns = self.items.iter().map(|name| {
            let numbers = items().filter_map(|item| item.get(name)).all(|v| v.as_number().is_some());
            (name.clone(), if numbers { Align::Right } else { Align::Left })
        });
        let mut table = Table::new(columns);
        let mut count = 0;
        for item in items() {
            table.row(self.items.iter().map(|name| cell(item.get(name))).collect());
            count += 1;
        }
        if count > 0 {
            lines.extend(if as_list {
                table.list()
            } else {
                width.map_or_else(|| table.whole(), |width| table.lines(width).0)
            });
        }
        lines.push(format!("{} shown", crate::count(count, "item", "items")));
        lines
    }
}

fn pick(value: &Value, names: &[String]) -> Value {
    Value::record(names.iter().filter_map(|name| Some((name.as_str(), value.get(name)?.clone()))))
}

/// Strings without quotes, since the column says what they are; nothing as a dash.
fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => quote::escape(text),
        Some(other) => quote::value(other),
    }
}

#[cfg(test)]
mod tests {
    use dendrer_object::json;

    use super::*;

    fn choose(names: &str) -> Result<Fields, Unknown> {
        Fields::choose("runs", &names.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn fields_are_those_of_the_schema_and_a_slip_is_named() {
        let (items, top) = available("runs");
        assert!(
            items.contains(&"ticks".to_owned())
                && top
                    == [
                        "complete",
                        "hidden",
                        "incomplete",
                        "matching",
                        "next",
                        "tampered",
                        "total",
                        "trust",
                        "unclear",
                        "unfinished"
                    ]
        );
        assert_eq!(available("version").0, Vec::<String>::new());
        let near = Some("ticks".to_owned());
        assert_eq!(choose("name,tick"), Err(Unknown { field: "tick".to_owned(), near }));
    }

    #[test]
    fn a_document_keeps_its_schema_and_what_was_chosen() {
        let text = r#"{"items":[{"goal":null,"name":"a","ticks":10},{"goal":"g\u001b","name":"bb","ticks":9}],"schema":"dendrer.runs/1","total":2}"#;
        let document = json::parse_door(text.as_bytes()).unwrap();
        let json = |names: &str| choose(names).unwrap().of_document(&document).to_string();
        assert_eq!(
            json("name"),
            r#"{"items":[{"name":"a"},{"name":"bb"}],"schema":"dendrer.runs/1","total":2}"#
        );
        assert_eq!(json("total"), r#"{"schema":"dendrer.runs/1","total":2}"#);
        let lines = |names: &str| choose(names).unwrap().lines(&document, None, false);
        assert_eq!(
            lines("ticks,name,goal"),
            ["ticks  name  goal", "   10  a     -", "    9  bb    g\\x1b", "2 items shown"]
        );
        assert_eq!(lines("total"), ["total  2"]);
        let list = choose("ticks,name").unwrap().lines(&document, None, true);
        assert_eq!(list, ["ticks: 10, name: a", "ticks: 9, name: bb", "2 items shown"]);
    }
}
