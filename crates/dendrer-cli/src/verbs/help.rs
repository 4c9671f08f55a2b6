//! `dendrer help`

use clap::Args;
use dendrer_object::Code;
use dendrer_view::help::{ExitCodesAnswer, HelpAnswer};

use dendrer_view::codes::EXITS;

use crate::failure::{Failure, Result};
use crate::global::VARIABLES;
use crate::out::Out;
use crate::out::usage::help_text;

/// `help`
#[derive(Debug, Args)]
pub(crate) struct Help {
    /// A verb, globals, environment, or exit-codes
    pub(crate) topic: Option<String>,
}

/// The topic of exit codes.
const EXIT_CODES: &str = "exit-codes";

/// The topic of flags that every verb takes.
const GLOBALS: &str = "globals";

/// The topic of variables of the environment.
const ENVIRONMENT: &str = "environment";

/// Topics besides the verbs.
pub(crate) const TOPICS: [&str; 3] = [EXIT_CODES, GLOBALS, ENVIRONMENT];

/// Groups of verbs, each verb once; `help` is named in the usage.
const GROUPS: [(&str, &[&str]); 10] = [
    ("Start", &["demo", "init"]),
    ("Record", &["record", "mcp-shim", "commit", "import"]),
    ("Look", &["runs", "log", "show", "state", "steps", "serve"]),
    ("Check", &["verify", "replay", "predicate", "assert"]),
    ("Find", &["bisect", "why", "backtrack", "heatmap"]),
    ("Compare", &["diff", "compare", "coherence"]),
    ("Branch", &["fork", "cherrypick", "rebase", "merge", "conflicts", "reduce"]),
    ("Govern", &["contract", "pack", "commitments", "graph", "secrets"]),
    (
        "Share and keep",
        &["export", "fleet", "label", "note", "erase", "backup", "restore", "fsck", "gc", "key", "doctor"],
    ),
    ("More", &["schema", "explain", "version", "man", "completions"]),
];

/// The width of the help of the program, in columns.
const WIDTH: usize = 80;

impl Help {
    /// Whether the topic is the table of exit codes.
    pub(crate) fn is_exit_codes(&self) -> bool {
        self.topic.as_deref() == Some(EXIT_CODES)
    }
}

pub(crate) fn run(args: &Help, command: clap::Command, out: &mut Out) -> Result {
    match args.topic.as_deref() {
        Some(EXIT_CODES) => out.answer(&ExitCodesAnswer),
        Some(GLOBALS) => out.answer(&HelpAnswer { verbs: Vec::new(), text: globals(&command) }),
        Some(ENVIRONMENT) => out.answer(&HelpAnswer { verbs: Vec::new(), text: environment() }),
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
    let text = asked.try_get_matches_from(words).err().map(|help| help_text(&help, false));
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
    names.extend(TOPICS.map(str::to_owned));
    match command.get_subcommands_mut().find(|verb| named(verb, name)) {
        Some(verb) => Ok(verb),
        None => {
            let failure =
                Failure::new(Code::E0106, format!("help has no topic \"{name}\"")).help(&["dendrer", "help"]);
            Err(match dendrer_object::text::nearest(name, names.iter().map(String::as_str)) {
                Some(near) => failure.note(format!("did you mean {near}?")),
                None => failure,
            })
        }
    }
}

/// Writes the help of the program: verbs in groups, the flags of every verb, exit codes and examples.
pub(crate) fn of_program(command: &clap::Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{about}\n\nUsage: dendrer [-C DIR] VERB [ARGUMENTS]    dendrer help VERB\n");
    for (group, verbs) in GROUPS {
        text.push_str(&format!("\n{group}:\n"));
        for verb in verbs.iter().filter_map(|verb| command.find_subcommand(verb)) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&row(verb.get_name(), &about, 13));
        }
    }
    text.push('\n');
    text.push_str(&globals(command));
    text.push('\n');
    text.push_str(&exit_codes_and_examples());
    text.push('\n');
    text
}

/// Writes the flags that every verb takes, and `-C`.
fn globals(command: &clap::Command) -> String {
    let mut text = "Everywhere:\n".to_owned();
    for arg in command.get_arguments() {
        let value = arg.get_value_names().filter(|_| arg.get_action().takes_values());
        let value = value.and_then(|names| names.first());
        let value = value.map(|name| format!(" {name}")).unwrap_or_default();
        let flag = match (arg.get_short(), arg.get_long()) {
            (Some(short), Some(long)) => format!("-{short}, --{long}{value}"),
            (None, Some(long)) => format!("    --{long}{value}"),
            (Some(short), None) => format!("-{short}{value}"),
            (None, None) => continue,
        };
        let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
        text.push_str(&row(&flag, &about, 22));
    }
    text.push_str(&row("-h, --help", "Print help", 22));
    text.push_str(&row("-V, --version", "Print version", 22));
    text
}

/// Writes the variables of the environment.
fn environment() -> String {
    let rows = VARIABLES.iter().map(|(name, about)| row(name, about, 20));
    format!("Environment:\n{}", rows.collect::<String>())
}

/// Writes the table of exit codes, and the examples that end the help.
pub(crate) fn exit_codes_and_examples() -> String {
    let codes: Vec<String> =
        EXITS.iter().map(|exit| format!("  {:>3}  {}", exit.code, exit.meaning)).collect();
    format!(
        "Exit codes (more: dendrer help exit-codes):\n{}\n\nExamples:\n  dendrer demo\n  dendrer help exit-codes",
        codes.join("\n")
    )
}

/// Writes a name and a text in two columns, the second wrapped.
fn row(name: &str, text: &str, column: usize) -> String {
    let mut lines = vec![format!("  {name:<column$}")];
    // A name that is too long has a line of its own.
    if name.len() >= column {
        lines.push(format!("  {:<column$}", ""));
    }
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("the list begins with a line");
        let size = last.chars().count();
        if is_empty {
            last.push_str(word);
        } else if size + 1 + word.chars().count() <= WIDTH {
            last.push_str(&format!(" {word}"));
        } else {
            lines.push(format!("  {:<column$}{word}", ""));
        }
        is_empty = false;
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_in_one_group() {
        let command = crate::verbs::described();
        let mut verbs: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        verbs.retain(|verb| *verb != "help");
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        verbs.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, verbs);
    }

    #[test]
    fn no_line_of_the_help_is_wider_than_a_terminal() {
        for line in (of_program(&crate::verbs::described()) + &environment()).lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }
}
