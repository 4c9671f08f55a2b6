//! The items of a document as a table that a spreadsheet reads.

use dendrer_object::{Object, Value};
use dendrer_view::quote;

/// The beginnings of a cell that a spreadsheet takes for a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Returns the items of a document as comma-separated values (RFC 4180): a line of names, then one line an item.
pub(crate) fn of(document: &Value) -> Vec<u8> {
    let items = document.get("items").and_then(Value::as_array);
    let items: Vec<&Object> =
        items.into_iter().flat_map(|items| items.iter()).filter_map(Value::as_object).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in items.iter().flat_map(|item| item.iter()) {
        if !names.contains(&&**name) {
            names.push(name);
        }
    }
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    // Ignored: a write into memory does not fail.
    let _ = writer.write_record(names.iter().map(|name| cell(Some(&Value::from(*name)))));
    for item in items {
        let _ = writer.write_record(names.iter().map(|name| cell(item.get(name))));
    }
    writer.into_inner().unwrap_or_default()
}

/// Returns a value as a cell: a text as it is, everything else as JSON.
fn cell(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return String::new(),
        Some(Value::String(text)) => text.to_string(),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => return quote::json(value),
        Some(other) => quote::json(other),
    };
    if text.starts_with(FORMULA) { format!("'{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_no_formula() {
        let json = r#"{"items":[{"a":"=1+1","n":-2},{"a":"x,\"y\"","b":["+"]}]}"#;
        let table = of(&dendrer_object::json::parse_door(json.as_bytes()).expect("it is JSON"));
        let expected = "a,n,b\r\n'=1+1,-2,\r\n\"x,\"\"y\"\"\",,\"[\"\"+\"\"]\"\r\n";
        assert_eq!(String::from_utf8(table).expect("it is text"), expected);
    }
}
