//! `dendrer explain`

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer_object::Value;
use dendrer_view::codes::{CODES, Code, find};
use dendrer_view::document;

use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Format;
use crate::offers;
use crate::out::Out;

/// `explain`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The code, like E0301; all of them if not given
    #[arg(add = ArgValueCompleter::new(offers::codes))]
    pub(crate) code: Option<String>,
}

pub(crate) fn run(args: &Explain, out: &mut Out) -> Result {
    let Some(wanted) = &args.code else { return list(out) };
    let wanted = wanted.to_uppercase();
    let Some(code) = find(&wanted) else {
        let near = dendrer_object::text::nearest(&wanted, CODES.iter().map(|code| code.code));
        let failure =
            Failure::new("E0109", format!("there is no code {wanted}")).help(&["dendrer", "explain"]);
        return Err(near.map_or(failure.clone(), |near| failure.note(format!("did you mean {near}?"))));
    };
    if out.is_text() {
        out.line(format!("{}  {}", code.code, code.title))?;
        out.line("")?;
        out.line(code.text)?;
        out.line("")?;
        out.line(format!("exit code {}", code.exit))?;
    } else {
        out.document(&document("explain", [("items", Value::array([item(code)]))]))?;
    }
    Ok(0)
}

fn list(out: &mut Out) -> Result {
    match out.format() {
        Format::Text => {
            for code in CODES {
                out.line(format!("{}  exit {}  {}", code.code, code.exit, code.title))?;
            }
            out.line(format!("{} of {} codes", CODES.len(), CODES.len()))?;
        }
        Format::Json => {
            out.document(&document("explain", [("items", Value::array(CODES.iter().map(item)))]))?
        }
        Format::Jsonl => {
            for code in CODES {
                out.item(&item(code))?;
            }
            out.summary("explain", [])?;
        }
    }
    Ok(0)
}

fn item(code: &Code) -> Value {
    Value::record([
        ("code", Value::from(code.code)),
        ("exit", Value::from(u64::from(code.exit))),
        ("kind", Value::from(code.kind)),
        ("text", Value::from(code.text)),
        ("title", Value::from(code.title)),
    ])
}
