//! `dendrer schema`

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer_object::{Value, json};
use dendrer_view::document;
use dendrer_view::schemas::{SCHEMAS, find};

use crate::failure::Failure;
use crate::failure::Result;
use crate::offers;
use crate::out::Out;

/// `schema`
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The document; a list if not given
    #[arg(add = ArgValueCompleter::new(offers::schema_names))]
    pub(crate) name: Option<String>,
}

pub(crate) fn run(args: &Schema, out: &mut Out) -> Result {
    let Some(name) = &args.name else {
        if out.is_text() {
            for (name, _) in SCHEMAS {
                out.line(*name)?;
            }
            out.line(format!("{} of {} schemas", SCHEMAS.len(), SCHEMAS.len()))?;
        } else {
            out.document(&document(
                "schemas",
                [("items", Value::array(SCHEMAS.iter().map(|(name, _)| Value::from(*name))))],
            ))?;
        }
        return Ok(0);
    };
    let Some(text) = find(name) else {
        let near = dendrer_object::text::nearest(name, SCHEMAS.iter().map(|(name, _)| *name));
        let failure =
            Failure::new("E0109", format!("there is no schema {name}")).help(&["dendrer", "schema"]);
        return Err(near.map_or(failure.clone(), |near| failure.note(format!("did you mean {near}?"))));
    };
    if out.is_text() {
        out.line(text.trim_end())?;
    } else {
        let value = json::parse_door(text.as_bytes())
            .map_err(|error| Failure::new(error.code(), error.to_string()))?;
        out.line(undollar(&value))?;
    }
    Ok(0)
}

/// A schema's own `$id` and `$ref` are no tags: the door doubled them, and out they go as they were.
fn undollar(value: &Value) -> String {
    dendrer_view::quote::json(value).replace("\"$$", "\"$")
}
