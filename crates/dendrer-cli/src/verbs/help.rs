//! `dendrer help`

use clap::Args;
use dendrer_object::Value;
use dendrer_view::codes::EXITS;
use dendrer_view::document;
use dendrer_view::table::{Align, Table};

use crate::failure::Failure;
use crate::failure::Result;
use crate::out::Out;

/// `help`
#[derive(Debug, Args)]
pub(crate) struct Help {
    /// A verb, or exit-codes
    pub(crate) topic: Option<String>,
}

/// What there is help on besides the verbs.
const EXIT_CODES: &str = "exit-codes";

impl Help {
    /// Whether the topic is the table of exit codes.
    pub(crate) fn is_exit_codes(&self) -> bool {
        self.topic.as_deref() == Some(EXIT_CODES)
    }
}

pub(crate) fn run(args: &Help, command: clap::Command, out: &mut Out) -> Result {
    match args.topic.as_deref() {
        Some(EXIT_CODES) => exit_codes(out),
        topic => verb(topic, command, out),
    }
}

fn exit_codes(out: &mut Out) -> Result {
    if !out.is_text() {
        let items = EXITS.iter().map(|exit| {
            Value::record([
                ("code", Value::from(u64::from(exit.code))),
                ("meaning", Value::from(exit.meaning)),
                ("examples", Value::from(exit.examples)),
            ])
        });
        out.document(&document("exit-codes", [("items", Value::array(items))]))?;
        return Ok(0);
    }
    let mut table =
        Table::new([("code", Align::Right), ("meaning", Align::Left), ("for example", Align::Left)]);
    for exit in EXITS {
        table.row(vec![exit.code.to_string(), exit.meaning.to_owned(), exit.examples.to_owned()]);
    }
    for line in table.lines(out.width()).0 {
        out.line(line)?;
    }
    out.line("of several answers the worst one counts: 4, then 7, then 6; each error's own code is in dendrer explain")?;
    Ok(0)
}

fn verb(topic: Option<&str>, mut command: clap::Command, out: &mut Out) -> Result {
    let asked = command.clone();
    command.build();
    if let Some(topic) = topic {
        find(&mut command, topic)?;
    }
    // Asked in the parser's own way, so that `help VERB` and `VERB --help` are one text.
    let words = ["dendrer"].into_iter().chain(topic).chain(["--help"]);
    let text = asked.try_get_matches_from(words).err().map(|help| help.render().to_string());
    let text = text.unwrap_or_default();
    if out.is_text() {
        out.bytes(text.as_bytes())?;
        return Ok(0);
    }
    let known = command.get_subcommands().filter(|verb| topic.is_none_or(|topic| named(verb, topic)));
    let items = known.map(|verb| {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        Value::record([("verb", Value::from(verb.get_name())), ("about", Value::from(about))])
    });
    out.document(&document("help", [("items", Value::array(items)), ("text", Value::from(text))]))?;
    Ok(0)
}

fn named(verb: &clap::Command, name: &str) -> bool {
    verb.get_name_and_visible_aliases().contains(&name)
}

/// Returns the description of a verb, or of the program if none is named.
pub(crate) fn page(mut command: clap::Command, verb: Option<&str>) -> Result<clap::Command> {
    command.build();
    match verb {
        None => Ok(command),
        Some(name) => find(&mut command, name).cloned(),
    }
}

/// Finds a verb by its name.
fn find<'c>(command: &'c mut clap::Command, name: &str) -> Result<&'c mut clap::Command> {
    let mut names: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    names.push(EXIT_CODES.to_owned());
    match command.get_subcommands_mut().find(|verb| named(verb, name)) {
        Some(verb) => Ok(verb),
        None => {
            let failure =
                Failure::new("E0106", format!("there is no help on \"{name}\"")).help(&["dendrer", "help"]);
            Err(match dendrer_object::text::nearest(name, names.iter().map(String::as_str)) {
                Some(near) => failure.note(format!("did you mean {near}?")),
                None => failure,
            })
        }
    }
}
