//! `dendrer man`

use dendrer_object::Code;
use std::io::IsTerminal;

use clap::Args;
use dendrer_view::quote;

use crate::failure::Failure;
use crate::failure::Result;
use crate::global::VARIABLES;
use crate::out::Out;

/// `man`
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The verb; the program as a whole if not given
    pub(crate) verb: Option<String>,
}

/// Writes the section of the variables of the environment.
fn environment() -> String {
    let escaped = |text: &str| text.replace('-', "\\-");
    let rows = VARIABLES.iter().map(|(name, about)| format!(".TP\n\\fB{name}\\fR\n{}\n", escaped(about)));
    format!(".SH ENVIRONMENT\n{}", rows.collect::<String>())
}

/// `page` is the description of the verb, or of the program.
pub(crate) fn run(args: &Man, page: clap::Command, out: &mut Out) -> Result {
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .source(concat!("dendrer ", env!("CARGO_PKG_VERSION")))
        .manual("dendrer")
        .render(&mut text)
        .map_err(|error| Failure::new(Code::E0801, "cannot make the page").at("cause", error.to_string()))?;
    text.extend_from_slice(environment().as_bytes());
    out.bytes(&text)?;
    if std::io::stdout().is_terminal() {
        let verb = args.verb.as_ref().map(|verb| format!(" {verb}")).unwrap_or_default();
        out.say(format!("help: to read it:  dendrer man{} | man -l -", quote::escape(&verb)));
    }
    Ok(0)
}
