//! Errors of the command line: one table from what the parser reports to what is printed.
//!
//! Never reads a store. A group without its second word prints its help; every other error has a sentence, at most one
//! note, and a command to type.
//!
//! Rule: a command that is printed here is one that the parser takes; test `wrong_commands`.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use dendrer_object::Code;
use dendrer_object::text::nearest;

use crate::failure::Failure;
use crate::out::usage::help_text;
use crate::typed::{Piece, Typed};
use crate::verbs;

use self::words::{FLAGS, Instead, WORDS};

mod words;

/// Lines below the sentence.
const LINES_MAX: usize = 2;

/// Returns the problem of words that the parser did not take.
pub(crate) fn problem(error: &clap::Error, args: &[String]) -> Failure {
    let root = verbs::command();
    let typed = Typed::read(&root, args);
    let failure = match error.kind() {
        ErrorKind::InvalidSubcommand if typed.names.is_empty() => unknown_verb(error, &typed),
        ErrorKind::InvalidSubcommand => unknown_second(error, &typed),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            usage(format!("{} needs a second word", of(&typed)))
        }
        ErrorKind::UnknownArgument | ErrorKind::TooManyValues => unknown_argument(error, &typed),
        ErrorKind::MissingRequiredArgument => missing(error, &typed),
        ErrorKind::InvalidValue | ErrorKind::NoEquals => invalid_value(error, &typed),
        ErrorKind::ValueValidation => refused_value(error),
        ErrorKind::ArgumentConflict => conflict(error, &typed),
        _ => usage(first_line(error)),
    };
    let failure = match failure.help.is_empty() {
        true => failure.help(&help_of(&typed)),
        false => failure,
    };
    let notes = failure.notes.len().min(1);
    let help = failure.help.into_iter().take(LINES_MAX - notes);
    let help = help.map(|argv| placed(argv, &typed)).collect();
    Failure { help, ..failure }
}

/// Adds the directory or the store that was named to a command that does not name one.
fn placed(argv: Vec<String>, typed: &Typed<'_>) -> Vec<String> {
    let value_of = |flag: &str| {
        typed.pieces.iter().find_map(|piece| match piece {
            Piece::Flag(name, Some(value)) if name == flag => Some(value.clone()),
            _ => None,
        })
    };
    let is_named = |flag: &str| argv.iter().any(|word| word == flag);
    if is_named("--help") || argv.get(1).is_some_and(|verb| verb == "help") {
        return argv;
    }
    let directory = value_of("-C").filter(|_| !is_named("-C"));
    let store = value_of("--store").filter(|_| !is_named("--store"));
    let named = directory.map(|dir| ["-C".to_owned(), dir]).into_iter().flatten();
    let stored = store.map(|store| ["--store".to_owned(), store]).into_iter().flatten();
    let (program, rest) = argv.split_at(1.min(argv.len()));
    program.iter().cloned().chain(named).chain(rest.iter().cloned()).chain(stored).collect()
}

/// Forms of answers that other tools take after `-o`.
const FORMS: [&str; 6] = ["json", "jsonl", "yaml", "wide", "table", "text"];

/// Refuses a file that is named like a form of an answer: it is the form that was meant.
pub(crate) fn of_output(file: Option<&str>, args: &[String]) -> Option<Failure> {
    let form = file.filter(|file| FORMS.contains(file))?;
    let root = verbs::command();
    let typed = Typed::read(&root, args);
    let flag = match form {
        "json" | "jsonl" => Some(format!("--{form}")),
        _ => None,
    };
    let again = typed.pieces.iter().filter_map(|piece| match piece {
        Piece::Flag(name, _) if name.starts_with("-o") || name.starts_with("--output") => {
            Some(Piece::Flag(flag.clone()?, None))
        }
        piece => Some(piece.clone()),
    });
    let again = taken(Typed::words(&again.collect::<Vec<_>>()));
    let failure = usage(format!("-o names a file, and \"{form}\" is a form"));
    let failure = failure.note(format!("a file of this name is written ./{form}"));
    Some(again.into_iter().fold(failure, with_help))
}

/// Returns the help of a group whose second word is missing, as it is printed.
pub(crate) fn help_of_group(error: &clap::Error, args: &[String]) -> Option<String> {
    let is_group = matches!(
        error.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    let root = verbs::command();
    let typed = Typed::read(&root, args);
    if !is_group || typed.names.is_empty() {
        return None;
    }
    let words = ["dendrer"].into_iter().chain(typed.names.iter().copied()).chain(["--help"]);
    verbs::command().try_get_matches_from(words).err().map(|help| help_text(&help, false))
}

/// Names the command with `@` for `HEAD` if a run of that name was asked for and is not there.
pub(crate) fn of_head(failure: Failure, args: &[String]) -> Failure {
    let is_head = |word: &str| {
        word.strip_prefix("HEAD").is_some_and(|rest| rest.is_empty() || rest.starts_with(['~', '@', '^']))
    };
    if failure.code != Code::E0101 || !args.iter().any(|arg| is_head(arg)) {
        return failure;
    }
    let words = args.iter().skip(1).map(|arg| at_tip(arg));
    let help = vec![std::iter::once("dendrer".to_owned()).chain(words).collect()];
    Failure { help, notes: Vec::new(), ..failure }
}

/// Writes `HEAD` as the latest run, `@`.
fn at_tip(word: &str) -> String {
    match word.strip_prefix("HEAD") {
        Some("") => "@".to_owned(),
        // `@@5` is no address.
        Some(rest) if rest.starts_with('~') => format!("@{rest}"),
        // As many before the tip as there are carets.
        Some(rest) if rest.bytes().all(|c| c == b'^') => format!("@~{}", rest.len()),
        _ => word.to_owned(),
    }
}

fn usage(sentence: impl Into<String>) -> Failure {
    Failure::new(Code::E0106, sentence)
}

/// The verb as it is typed: `pack check`.
fn of(typed: &Typed<'_>) -> String {
    match typed.names.is_empty() {
        true => "dendrer".to_owned(),
        false => typed.names.join(" "),
    }
}

fn help_of<'t>(typed: &Typed<'t>) -> Vec<&'t str> {
    let names = typed.names.iter().copied();
    ["dendrer"].into_iter().chain(names).chain(["--help"]).collect()
}

fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Takes the name out of how the parser shows an argument: `--limit <N>`, `<REV>`, `[RUN]...`.
fn name_of(shown: &str) -> &str {
    let first = shown.split([' ', '=']).next().unwrap_or(shown);
    first.trim_end_matches("...").trim_matches(['<', '>', '[', ']'])
}

/// Joins words as a sentence does: `a, b or c`.
fn either(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Returns the command if the parser takes it.
fn taken(words: Vec<String>) -> Option<Vec<String>> {
    let words: Vec<String> = std::iter::once("dendrer".to_owned()).chain(words).collect();
    let is_taken = match verbs::command().try_get_matches_from(&words) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::DisplayHelp,
    };
    is_taken.then_some(words)
}

fn with_help(failure: Failure, command: Vec<String>) -> Failure {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    failure.help(&words)
}

fn unknown_verb(error: &clap::Error, typed: &Typed<'_>) -> Failure {
    let word = texts(error, ContextKind::InvalidSubcommand).into_iter().next().unwrap_or_default();
    let after: Vec<&str> = typed.plain().into_iter().skip_while(|plain| *plain != word).skip(1).collect();
    if let Some(row) = WORDS.iter().find(|row| row.names.contains(&word.as_str())) {
        let failure = match row.is_planned {
            true => usage(format!("verb \"{word}\" is not there yet")),
            false => usage(format!("verb \"{word}\" does not exist")),
        };
        let failure = if row.note.is_empty() { failure } else { failure.note(row.note) };
        let commands: Vec<_> =
            row.commands.iter().filter_map(|template| taken(filled(template, &after)?)).collect();
        // The help of a verb is printed only if no command of it can be filled in.
        let is_help = |command: &Vec<String>| command.last().is_some_and(|word| word == "--help");
        let needed = commands.iter().all(is_help);
        return commands.into_iter().filter(|command| needed || !is_help(command)).fold(failure, with_help);
    }
    let failure = usage(format!("verb \"{word}\" does not exist"));
    match near_verb(&word, typed.command) {
        Some(near) => {
            let again = typed.pieces.iter().map(|piece| match piece {
                Piece::Plain(plain) if *plain == word => Piece::Verb(near.to_owned()),
                piece => piece.clone(),
            });
            let again = taken(Typed::words(&again.collect::<Vec<_>>()));
            let command = again.unwrap_or_else(|| ["dendrer", near, "--help"].map(str::to_owned).into());
            with_help(failure.note(format!("did you mean {near}?")), command)
        }
        None => failure.help(&["dendrer", "help"]),
    }
}

/// Finds the verb that may have been meant: with its letters in another order, one slip away, or begun.
fn near_verb<'c>(word: &str, command: &'c Command) -> Option<&'c str> {
    let names: Vec<&str> =
        command.get_subcommands().flat_map(Command::get_name_and_visible_aliases).collect();
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let turned = names.iter().copied().find(|name| sorted(name) == sorted(word));
    let begun = || names.iter().copied().find(|name| word.len() >= 2 && name.starts_with(word));
    turned.or_else(|| nearest(word, names.iter().copied())).or_else(begun)
}

/// Fills in a command; `None` if a word of it was not typed.
fn filled(template: &str, after: &[&str]) -> Option<Vec<String>> {
    let word = |at: usize| after.get(at).map(|word| at_tip(word));
    let latest = || "@".to_owned();
    let words = template.split(' ').map(|part| match part {
        // A tick that was named is where the fork begins.
        "--from" | "tip" if after.first().is_some_and(|run| run.trim_start_matches('@').contains('@')) => {
            Some(String::new())
        }
        "RUN" => Some(word(0).unwrap_or_else(latest)),
        "OTHER" => Some(word(1).unwrap_or_else(latest)),
        "PLACE" => word(1),
        "TEXT" => after.is_empty().then(|| part.to_owned()),
        "PATTERN" | "NAME" => word(0),
        "FILE" => word(0).filter(|file| std::path::Path::new(file).is_file()).or(Some(part.to_owned())),
        part => Some(part.to_owned()),
    });
    let words: Option<Vec<String>> = words.collect();
    words.map(|words| words.into_iter().filter(|word| !word.is_empty()).collect())
}

fn unknown_second(error: &clap::Error, typed: &Typed<'_>) -> Failure {
    let word = texts(error, ContextKind::InvalidSubcommand).into_iter().next().unwrap_or_default();
    let failure = usage(format!("{} has no \"{word}\"", of(typed)));
    let near = near_verb(&word, typed.command);
    match near {
        Some(near) => {
            let names = typed.names.iter().copied();
            let argv: Vec<&str> = ["dendrer"].into_iter().chain(names).chain([near, "--help"]).collect();
            failure.note(format!("did you mean {near}?")).help(&argv)
        }
        None => failure,
    }
}

fn unknown_argument(error: &clap::Error, typed: &Typed<'_>) -> Failure {
    let found = texts(error, ContextKind::InvalidArg).into_iter().next().unwrap_or_default();
    if !found.starts_with('-') {
        return word_too_many(&found, typed);
    }
    let flag = name_of(&found);
    if flag == "-C" {
        let failure = usage("-C goes before the verb");
        return directory_first(typed).and_then(taken).into_iter().fold(failure, with_help);
    }
    if error.kind() == ErrorKind::TooManyValues {
        let without = typed.pieces.iter().map(|piece| match piece {
            Piece::Flag(word, None) if word.split('=').next() == Some(flag) => {
                Piece::Flag(flag.to_owned(), None)
            }
            piece => piece.clone(),
        });
        let failure = usage(format!("{flag} takes no value"));
        let again = taken(Typed::words(&without.collect::<Vec<_>>()));
        return again.into_iter().fold(failure, with_help);
    }
    let failure = usage(format!("{} has no flag {flag}", of(typed)));
    if let Some(again) = replaced(typed).and_then(taken) {
        return with_help(failure, again);
    }
    let known = typed.long_flags();
    match nearest(flag, known.iter().map(String::as_str)) {
        Some(near) => {
            let again = typed.pieces.iter().map(|piece| match piece {
                Piece::Unknown(word) if word.split('=').next() == Some(flag) => {
                    Piece::Unknown(word.replacen(flag, near, 1))
                }
                piece => piece.clone(),
            });
            let again = taken(Typed::words(&again.collect::<Vec<_>>()));
            again.into_iter().fold(failure.note(format!("did you mean {near}?")), with_help)
        }
        None => failure,
    }
}

/// Returns the words with `-C DIR` in front of the verb.
fn directory_first(typed: &Typed<'_>) -> Option<Vec<String>> {
    let at = typed
        .pieces
        .iter()
        .position(|piece| matches!(piece, Piece::Unknown(word) if word.starts_with("-C")))?;
    let (before, rest) = typed.pieces.split_at(at);
    let (directory, rest) = match rest {
        [Piece::Unknown(word), Piece::Plain(directory), rest @ ..] if word == "-C" => {
            (directory.clone(), rest)
        }
        [Piece::Unknown(word), rest @ ..] if word.len() > 2 => {
            (word[2..].trim_start_matches('=').to_owned(), rest)
        }
        _ => return None,
    };
    Some([vec!["-C".to_owned(), directory], Typed::words(before), Typed::words(rest)].concat())
}

/// Returns the words with our flags for those of other tools; `None` if one is of no tool that is known.
fn replaced(typed: &Typed<'_>) -> Option<Vec<String>> {
    let mut pieces = Vec::new();
    let mut rest = typed.pieces.iter().peekable();
    while let Some(piece) = rest.next() {
        let Piece::Unknown(word) = piece else {
            pieces.push(piece.clone());
            continue;
        };
        let (name, inline) =
            word.split_once('=').map_or((&**word, None), |(name, value)| (name, Some(value)));
        let (_, instead) = FLAGS.iter().find(|(names, _)| names.contains(&name))?;
        let mut value = || match (inline, rest.peek()) {
            (Some(value), _) => Some(value.to_owned()),
            (None, Some(Piece::Plain(word))) => {
                rest.next();
                Some(word.clone())
            }
            _ => None,
        };
        match instead {
            Instead::Flag(ours) => {
                let ours = ours.iter().find_map(|ours| Some((*ours, typed.argument(ours)?)));
                let (ours, arg) = ours?;
                let value = if arg.get_action().takes_values() { Some(value()?) } else { None };
                pieces.push(Piece::Flag(ours.to_owned(), value));
            }
            Instead::Words(words) => {
                pieces.extend(words.iter().map(|word| Piece::Flag((*word).to_owned(), None)));
            }
            Instead::Value => pieces.push(Piece::Plain(at_tip(&value()?))),
            Instead::Nothing => {}
        }
    }
    Some(Typed::words(&pieces))
}

/// Commands for a verb that was given a word too many; `A`, `B` are the words that were typed, `REST` all but the first.
const PLACED: &[(&str, &[&str])] = &[
    ("merge", &["merge --as NEW --from A --from B", "merge --as NEW --from A"]),
    ("fork", &["fork A --from B -n"]),
    ("bisect", &["bisect WORD --all-of standard", "bisect A --holds EXPR", "bisect A --all-of standard"]),
    ("log", &["show A@B", "diff A B"]),
    ("verify", &["verify A"]),
    ("replay", &["replay A --to B"]),
    ("commit", &["commit --file A", "commit --run NEW --file A"]),
    ("cherrypick", &["cherrypick A --into B -n"]),
    ("rebase", &["rebase A --onto B --plan"]),
    ("assert", &["assert A --holds EXPR"]),
    ("note", &["note A REST"]),
];

fn word_too_many(word: &str, typed: &Typed<'_>) -> Failure {
    let verb = of(typed);
    let plain = typed.plain();
    let rows = PLACED.iter().filter(|(of, _)| *of == verb).flat_map(|(_, templates)| *templates);
    let flags = typed.pieces.iter().filter(|piece| matches!(piece, Piece::Flag(..))).cloned();
    let flags = Typed::words(&flags.collect::<Vec<_>>());
    let command = rows.into_iter().find_map(|template| {
        let filled = placed_words(template, &plain)?;
        taken([filled.as_slice(), &flags].concat()).or_else(|| taken(filled))
    });
    // A command without the word, if it stood alone.
    let dropped = || {
        let kept: Vec<Piece> =
            typed.pieces.iter().filter(|piece| **piece != Piece::Plain(word.to_owned())).cloned().collect();
        taken(Typed::words(&kept))
    };
    let failure = usage(format!("{verb} has no place for \"{word}\""));
    command.or_else(dropped).into_iter().fold(failure, with_help)
}

/// The words of the bisect of git.
const BISECTED: [&str; 10] =
    ["good", "bad", "start", "run", "reset", "skip", "old", "new", "log", "visualize"];

/// Fills in a command of [`PLACED`]; `None` if a word of it was not typed.
fn placed_words(template: &str, plain: &[&str]) -> Option<Vec<String>> {
    let word = |part: &str| match part {
        "A" => plain.first().map(|word| (*word).to_owned()),
        "B" => plain.get(1).map(|word| (*word).to_owned()),
        // The words of another bisect, in front of the run.
        "WORD" => {
            plain.get(1).filter(|_| BISECTED.contains(plain.first().unwrap_or(&""))).map(|word| at_tip(word))
        }
        "EXPR" => plain
            .get(1)
            .filter(|word| word.contains(['<', '>', '=', '!', '(']))
            .map(|word| (*word).to_owned()),
        "REST" => plain.get(1..).filter(|rest| !rest.is_empty()).map(|rest| rest.join(" ")),
        "A@B" => {
            let tick: u64 = plain.get(1)?.parse().ok()?;
            Some(format!("{}@{tick}", plain.first()?))
        }
        part => Some(part.to_owned()),
    };
    template.split(' ').map(word).collect()
}

/// The questions that `bisect` is asked most.
const QUESTIONS: &[&[&str]] = &[&["--all-of", "standard"], &["--holds", "state.counters.tool_errors == 0"]];

fn missing(error: &clap::Error, typed: &Typed<'_>) -> Failure {
    let missing = texts(error, ContextKind::InvalidArg);
    let is_question = |shown: &String| shown.contains("--holds") && shown.contains('|');
    if typed.names == ["bisect"] && missing.iter().any(is_question) {
        let run = typed.plain().into_iter().find(|word| !BISECTED.contains(word));
        let run = run.map_or("@".to_owned(), at_tip);
        let failure = usage("bisect needs a question");
        return QUESTIONS.iter().fold(failure, |failure, question| {
            failure.help(&[&["dendrer", "bisect", &run], *question].concat())
        });
    }
    if typed.names == ["merge"] && typed.plain().len() > 1 {
        return word_too_many(typed.plain()[0], typed);
    }
    let names: Vec<String> =
        missing.iter().map(|shown| shown.trim_end_matches("...").replace(['<', '>', '[', ']'], "")).collect();
    let names = match names.as_slice() {
        [] => "more words".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    };
    usage(format!("{} needs {names}", of(typed)))
}

fn invalid_value(error: &clap::Error, typed: &Typed<'_>) -> Failure {
    let shown = texts(error, ContextKind::InvalidArg).into_iter().next().unwrap_or_default();
    let name = name_of(&shown).to_owned();
    let value = texts(error, ContextKind::InvalidValue).into_iter().next().unwrap_or_default();
    let valid = texts(error, ContextKind::ValidValue);
    if value.is_empty() && !valid.iter().any(String::is_empty) {
        let form = shown.split_once(['<', '[']).map_or("", |(_, rest)| rest);
        let form = form.trim_end_matches("...").trim_end_matches(['>', ']']);
        let what = if form.is_empty() { "a value".to_owned() } else { form.to_owned() };
        let what = if valid.is_empty() { what } else { either(&valid) };
        return usage(format!("{name} needs {what}"));
    }
    let failure = match valid.is_empty() {
        true => usage(format!("{name} does not take \"{value}\"")),
        false => usage(format!("{name} takes {}, not \"{value}\"", either(&valid))),
    };
    let Some(near) = nearest(&value, valid.iter().map(String::as_str)) else { return failure };
    let again = typed.pieces.iter().map(|piece| match piece {
        Piece::Flag(flag, Some(given)) if *given == value => Piece::Flag(flag.clone(), Some(near.to_owned())),
        Piece::Flag(flag, None) if *flag == format!("{name}={value}") => {
            Piece::Flag(format!("{name}={near}"), None)
        }
        Piece::Plain(given) if *given == value => Piece::Plain(near.to_owned()),
        piece => piece.clone(),
    });
    let again = taken(Typed::words(&again.collect::<Vec<_>>()));
    again.into_iter().fold(failure.note(format!("did you mean {near}?")), with_help)
}

fn refused_value(error: &clap::Error) -> Failure {
    let shown = texts(error, ContextKind::InvalidArg).into_iter().next().unwrap_or_default();
    let value = texts(error, ContextKind::InvalidValue).into_iter().next().unwrap_or_default();
    let source = std::error::Error::source(error);
    let name = name_of(&shown);
    if source.is_some_and(|source| source.is::<std::num::ParseIntError>()) {
        return usage(format!("{name} takes a number, not \"{value}\""));
    }
    let why = source.map(ToString::to_string).unwrap_or_default();
    usage(format!("{name} does not take \"{value}\": {why}"))
}

fn conflict(error: &clap::Error, typed: &Typed<'_>) -> Failure {
    let name = texts(error, ContextKind::InvalidArg).into_iter().next().unwrap_or_default();
    let others = texts(error, ContextKind::PriorArg);
    let name = name_of(&name);
    let others: Vec<&str> = others.iter().map(|other| name_of(other)).collect();
    // A word after one that keeps second words from being read.
    if let (true, Some(last)) = (name.is_empty(), typed.plain().last()) {
        return word_too_many(last, typed);
    }
    match others.as_slice() {
        [] => usage(first_line(error)),
        [same] if *same == name => usage(format!("{name} is given twice")),
        others => usage(format!("{name} cannot be used with {}", others.join(", "))),
    }
}
