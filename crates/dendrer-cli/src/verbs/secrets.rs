//! `dendrer secrets`: what redaction would take out of a text, and what is on record that it would take today.

use std::path::Path;

use clap::{Args, Subcommand};
use dendrer::address::is_bundle_name;
use dendrer::ask::secrets::{SecretsAnswer, SecretsScanQuestion, in_text};
use dendrer::redact::RedactionProfile;
use dendrer::repo;
use dendrer_object::Code;
use dendrer_view::secrets::SecretVariablesAnswer;

use crate::context::desk::CommandDesk;
use crate::context::packs;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::{Out, files};

/// `secrets`
#[derive(Debug, Subcommand)]
pub(crate) enum SecretsVerb {
    /// Show what would be taken out of a text before it is recorded
    #[command(
        after_help = "Examples:\n  dendrer secrets test note.graph\n  dendrer secrets test note.graph --redacted\n  dendrer secrets test --env"
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
    #[arg(required_unless_present = "env")]
    pub(crate) file: Option<String>,
    /// Print the text without its secrets
    #[arg(long)]
    pub(crate) redacted: bool,
    /// List the variables of the environment that are secrets by their names, and which values are not taken
    #[arg(long, conflicts_with_all = ["file", "redacted"])]
    pub(crate) env: bool,
    /// The pack with rules of its own, and with the names of tools and types that are not taken
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: Option<String>,
}

/// The longest text that is looked at.
const TEXT_SIZE_MAX: usize = 1 << 30;

pub(crate) fn run(global: &Global, verb: &SecretsVerb, out: &mut Out) -> Result {
    match verb {
        SecretsVerb::Test(args) => test(args, out),
        SecretsVerb::Scan { what } => {
            let text = |name: &str| match Path::new(name).is_file() && !is_bundle_name(name) {
                true => read(name).map(Some),
                false => Ok(None),
            };
            let question = SecretsScanQuestion { what: what.clone() };
            let answer = question.scan(&mut CommandDesk::new(global, out), &mut { text })?;
            out.answer(&answer)
        }
    }
}

fn test(args: &SecretsTest, out: &mut Out) -> Result {
    let pack = args.pack.as_deref().map(packs::load).transpose()?;
    let pack = pack.as_ref().map(|source| source.pack.value());
    let Some(file) = &args.file else {
        return out.answer(&SecretVariablesAnswer(&repo::secret_variables(pack)?));
    };
    let redactor = repo::redactor(RedactionProfile::Default, pack, None)?;
    let text = read(file)?;
    let items = in_text(&redactor, &text, None);
    if !args.redacted {
        let looked_at = if file == "-" { "standard input" } else { file };
        let (rules, looked_at) = (redactor.rules().clone(), vec![looked_at.to_owned()]);
        return out.answer(&SecretsAnswer { rules, items, looked_at });
    }
    // A text that is JSON is recorded as JSON, by names and values.
    out.bytes(redactor.text(&text).0.as_bytes())?;
    Ok(u8::from(!items.is_empty()))
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
    let is_wide = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    if is_wide {
        let pairs = bytes[2..].chunks_exact(2).map(|pair| [pair[0], pair[1]]);
        let of = if bytes[0] == 0xff { u16::from_le_bytes } else { u16::from_be_bytes };
        return Ok(String::from_utf16_lossy(&pairs.map(of).collect::<Vec<u16>>()));
    }
    let packed =
        [(&[0x1f, 0x8b][..], "gzip"), (&[0x28, 0xb5, 0x2f, 0xfd][..], "Zstandard"), (b"PK\x03\x04", "zip")];
    if let Some((_, kind)) = packed.iter().find(|(begin, _)| bytes.starts_with(begin)) {
        return Err(Failure::new(
            Code::E0203,
            format!("{path} is compressed ({kind}), and was not looked at"),
        )
        .note("unpack it first"));
    }
    // Bytes that are no UTF-8 are looked at all the same: a log may have bytes of another program in it.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
