//! `dendrer contract lint`: what in a contract is most likely not meant.

use dendrer::contract::lint::{Found, Linted, lint};
use dendrer::pack::{Files, text_of};
use dendrer_object::Value;
use dendrer_view::{count, document, quote};

use super::args::ContractLint;
use super::read;
use crate::context::packs;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;
use crate::out::Style;

/// How many findings are printed for people; a document has them all.
const SHOWN: usize = 100;

pub(super) fn run(global: &Global, args: &ContractLint, out: &mut Out) -> Result {
    let linted = match read::is_file(&args.contract) {
        true => lint(&packs::read_file(&args.contract)?, packs::beside(&args.contract)),
        false => {
            let found = read::resolve_pack(global, &args.contract, out)?;
            // Without the text that people wrote, lines are those of the one-line form.
            let text = found.text.clone().unwrap_or_else(|| text_of(found.pack.value()));
            lint(text.as_bytes(), Files::Of(found.pack.value()))
        }
    };
    let code = u8::from(!linted.found.is_empty());
    if !out.is_text() {
        out.document(&to_json(&args.contract, &linted))?;
        return Ok(code);
    }
    for found in linted.found.iter().take(SHOWN) {
        print(&args.contract, found, out)?;
    }
    if let Some(more) = linted.found.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        out.line(format!("({more} more; --json has all)"))?;
    }
    let findings = count(linted.found.len() as u64, "finding", "findings");
    match &linted.pack {
        Some(pack) if linted.found.is_empty() => {
            let ok = out.paint(Style::Good, "OK");
            out.line(format!("{ok}  {}/{}   no findings", pack.name, pack.version))?;
        }
        _ => out.line(findings)?,
    }
    if !linted.is_complete {
        out.say("note: it is no pack yet; nothing but its faults was looked at");
    }
    Ok(code)
}

fn print(file: &str, found: &Found, out: &mut Out) -> Result<()> {
    let place = quote::escape(&format!("{file}:{}:{}", found.mark.line, found.mark.column));
    let (word, style) = if found.is_fault() { ("error", Style::Bad) } else { ("warning", Style::Warn) };
    let head = out.paint(style, &format!("{word}[{}]:", found.code));
    out.line(format!("{place}: {head} {}", quote::escape(&found.message)))?;
    if !found.place.is_empty() {
        out.line(format!("  | at     {}", quote::escape(&found.place)))?;
    }
    if let Some(why) = &found.why {
        out.line(format!("  | why    {}", quote::escape(why)))?;
    }
    if let Some(step) = &found.step {
        out.line(format!("  | next   {}", quote::escape(step)))?;
    }
    Ok(())
}

fn to_json(file: &str, linted: &Linted) -> Value {
    let item = |found: &Found| {
        Value::record([
            ("code", Value::from(found.code)),
            ("level", Value::from(if found.is_fault() { "error" } else { "warning" })),
            ("file", Value::from(file)),
            ("line", Value::from(found.mark.line as u64)),
            ("column", Value::from(found.mark.column as u64)),
            ("place", Value::from(found.place.as_str())),
            ("message", Value::from(found.message.as_str())),
            ("why", Value::from(found.why.as_deref())),
            ("next", Value::from(found.step.as_deref())),
        ])
    };
    let pack = linted.pack.as_ref();
    document(
        "contract-lint",
        [
            ("file", Value::from(file)),
            ("name", Value::from(pack.map(|pack| &*pack.name))),
            ("version", Value::from(pack.map(|pack| &*pack.version))),
            ("complete", Value::from(linted.is_complete)),
            ("items", Value::array(linted.found.iter().map(item))),
        ],
    )
}
