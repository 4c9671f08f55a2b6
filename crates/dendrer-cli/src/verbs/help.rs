//! `dendrer help`

use clap::Args;
use dendrer_object::Code;
use dendrer_view::help::{ExitCodesAnswer, HelpAnswer};

use crate::failure::{Failure, Result};
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
        Some(EXIT_CODES) => out.answer(&ExitCodesAnswer),
        topic => out.answer(&verb(topic, command)?),
    }
}

fn verb(topic: Option<&str>, mut command: clap::Command) -> Result<HelpAnswer> {
    let asked = command.clone();
    command.build();
    if let Some(topic) = topic {
        find(&mut command, topic)?;
    }
    // Asked in the parser's own way, so that `help VERB` and `VERB --help` are one text.
    let words = ["dendrer"].into_iter().chain(topic).chain(["--help"]);
    let text = asked.try_get_matches_from(words).err().map(|help| help.render().to_string());
    let known = command.get_subcommands().filter(|verb| topic.is_none_or(|topic| named(verb, topic)));
    let about = |verb: &clap::Command| verb.get_about().map(ToString::to_string).unwrap_or_default();
    let verbs = known.map(|verb| (verb.get_name().to_owned(), about(verb))).collect();
    Ok(HelpAnswer { verbs, text: text.unwrap_or_default() })
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
            let failure = Failure::new(Code::E0106, format!("there is no help on \"{name}\""))
                .help(&["dendrer", "help"]);
            Err(match dendrer_object::text::nearest(name, names.iter().map(String::as_str)) {
                Some(near) => failure.note(format!("did you mean {near}?")),
                None => failure,
            })
        }
    }
}
