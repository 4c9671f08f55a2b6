//! `dendrer schema`

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer_object::Code;
use dendrer_object::text::nearest;
use dendrer_view::schemas::{SchemaAnswer, SchemaListAnswer, find, names};

use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::offers;
use crate::out::Out;

/// `schema`
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The document; a list if not given
    #[arg(add = ArgValueCompleter::new(offers::schema_names))]
    pub(crate) name: Option<String>,
}

pub(crate) fn run(_: &Global, args: &Schema, out: &mut Out) -> Result {
    let Some(name) = &args.name else { return out.answer(&SchemaListAnswer) };
    let schema = find(name).ok_or_else(|| {
        let near = nearest(name, names());
        let failure =
            Failure::new(Code::E0109, format!("there is no schema {name}")).help(&["dendrer", "schema"]);
        near.into_iter().fold(failure, |failure, near| failure.note(format!("did you mean {near}?")))
    })?;
    out.answer_whole(&SchemaAnswer(schema))
}
