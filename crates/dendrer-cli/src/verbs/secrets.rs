//! `dendrer secrets`: what redaction would take out of a text, and what is on record that it would take today.

use std::ops::ControlFlow;
use std::path::Path;

use clap::{Args, Subcommand};
use dendrer::Trace;
use dendrer::address::Address;
use dendrer::redact::{RedactionProfile, Redactor};
use dendrer::repo;
use dendrer::trace::all_runs;
use dendrer_object::value::differences;
use dendrer_object::{Code, Value};
use dendrer_view::secrets::{SecretFound, SecretPlace, SecretsAnswer};
use dendrer_view::{count, quote};

use crate::context;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::{Out, files};

/// `secrets`
#[derive(Debug, Subcommand)]
pub(crate) enum SecretsVerb {
    /// Show what would be taken out of a text before it is recorded
    #[command(
        after_help = "Examples:\n  dendrer secrets test note.graph\n  dendrer secrets test note.graph --redacted"
    )]
    Test(SecretsTest),
    /// Look for what is on record and would be taken out today, in runs or files; in all runs without a name
    #[command(
        after_help = "Examples:\n  dendrer secrets scan\n  dendrer secrets scan logistics-run-47 --json"
    )]
    Scan {
        /// Runs, bundles and files
        what: Vec<String>,
    },
}

/// `secrets test`
#[derive(Debug, Args)]
pub(crate) struct SecretsTest {
    /// The text; - for standard input
    pub(crate) file: String,
    /// Print the text without its secrets
    #[arg(long)]
    pub(crate) redacted: bool,
}

/// The longest text that is looked at.
const TEXT_SIZE_MAX: usize = 1 << 30;

pub(crate) fn run(global: &Global, verb: &SecretsVerb, out: &mut Out) -> Result {
    let redactor = repo::redactor(RedactionProfile::Default, None, None)?;
    let rules = redactor.rules();
    let rules = (rules.name.to_string(), rules.version.to_string(), rules.digest);
    match verb {
        SecretsVerb::Test(args) => {
            let text = read(&args.file)?;
            let items = in_text(&redactor, &text, None);
            if !args.redacted {
                let looked_at =
                    if args.file == "-" { "standard input".to_owned() } else { quote::escape(&args.file) };
                return out.answer(&SecretsAnswer { rules, items, looked_at });
            }
            // A text that is JSON is recorded as JSON, where names and values are told apart.
            out.bytes(redactor.text(&text).0.as_bytes())?;
            Ok(u8::from(!items.is_empty()))
        }
        SecretsVerb::Scan { what } => {
            let mut items = Vec::new();
            let mut looked_at = Vec::new();
            for name in what {
                if Path::new(name).is_file() && !name.ends_with(".dnd") {
                    items.extend(in_text(&redactor, &read(name)?, Some(SecretPlace::File(name.clone()))));
                    looked_at.push(quote::escape(name));
                    continue;
                }
                let rev = Address::parse(name)?;
                let source = context::sound(global, &rev, out)?;
                let trace = source.trace(&rev.resolve(&source.store)?)?;
                in_run(&redactor, &trace, &mut items)?;
                looked_at.push(trace.name().to_string());
            }
            if what.is_empty() {
                let store = context::read_store(global)?;
                let runs = all_runs(&*store)?;
                for run in &runs {
                    in_run(&redactor, &Trace::open(&store, &run.name)?, &mut items)?;
                }
                looked_at.push(count(runs.len() as u64, "run", "runs"));
            }
            out.answer(&SecretsAnswer { rules, items, looked_at: looked_at.join(", ") })
        }
    }
}

fn read(path: &str) -> Result<String> {
    let bytes = match path {
        "-" => {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes)
                .map_err(|error| files::cannot_read("standard input", &error))?;
            bytes
        }
        path => files::read(path, TEXT_SIZE_MAX)?,
    };
    if bytes.len() > TEXT_SIZE_MAX {
        return Err(Failure::new(Code::E0205, format!("{path} has more than {TEXT_SIZE_MAX} bytes")));
    }
    // What is no UTF-8 is looked at all the same: a log may have bytes of another program in it.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn in_text(redactor: &Redactor, text: &str, within: Option<SecretPlace>) -> Vec<SecretFound> {
    let (mut line, mut column, mut upto) = (1, 1, 0);
    let mut items = Vec::new();
    for span in redactor.find(text) {
        // Counted from the secret before, so that many in one long line take linear time.
        let between = &text[upto..span.start];
        let lines = between.bytes().filter(|c| *c == b'\n').count() as u64;
        let last = between.rfind('\n').map_or(between, |newline| &between[newline + 1..]);
        let width = last.chars().count() as u64;
        line += lines;
        column = if lines == 0 { column + width } else { 1 + width };
        upto = span.start;
        items.push(SecretFound {
            within: within.clone(),
            line,
            column,
            length: (span.end - span.start) as u64,
            kind: span.kind.to_string(),
        });
    }
    items
}

fn in_run(redactor: &Redactor, trace: &Trace, items: &mut Vec<SecretFound>) -> Result<()> {
    in_value(redactor, trace, 0, &trace.start().content(), items);
    trace.for_each(1, trace.tip(), &mut |tick, record| {
        in_value(redactor, trace, tick, &record.content(), items);
        ControlFlow::Continue(())
    })?;
    Ok(())
}

fn in_value(redactor: &Redactor, trace: &Trace, tick: u64, content: &Value, items: &mut Vec<SecretFound>) {
    let (clean, taken) = redactor.value(content);
    if taken.is_empty() {
        return;
    }
    for difference in differences(content, &clean) {
        let place =
            || SecretPlace::Record { run: trace.name().to_string(), tick, path: difference.path.written() };
        let left = difference.left.as_ref().and_then(Value::as_str);
        let kind = difference
            .right
            .as_ref()
            .and_then(|right| right.get("$redacted")?.get("kind")?.as_str().map(str::to_owned));
        match (left, kind) {
            (Some(text), None) => items.extend(in_text(redactor, text, Some(place()))),
            // A member whose name holds a secret is another member, and counted where the old one was.
            (_, None) if difference.left.is_none() => {}
            (text, kind) => items.push(SecretFound {
                within: Some(place()),
                line: 1,
                column: 1,
                length: text.map_or(0, str::len) as u64,
                kind: kind.unwrap_or_else(|| "named".to_owned()),
            }),
        }
    }
}
