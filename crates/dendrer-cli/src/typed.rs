//! Words of a command as they were typed, before the parser reads them.
//!
//! Turns forms of other tools into those of the parser: `-5` into `-n 5`, `--holds '-a > 1'` into `--holds='-a > 1'`.
//! Never looks at a store.
//!
//! Rule: a word that the parser knows as a flag stays a flag; test `a_value_may_begin_with_a_minus`.

use clap::{Arg, Command};

/// One part of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A verb, or the second word of a group.
    Verb(String),
    /// A flag that the parser knows, with its value if that is a word of its own.
    Flag(String, Option<String>),
    /// A word that looks like a flag and is not known.
    Unknown(String),
    /// Any other word.
    Plain(String),
    /// The mark after which no word is a flag.
    End,
}

/// The parts of a command, and the verb that they name.
pub(crate) struct Typed<'c> {
    /// The program itself if no verb is named.
    pub(crate) command: &'c Command,
    /// The verb, and its second word.
    pub(crate) names: Vec<&'c str>,
    /// The parts in their order.
    pub(crate) pieces: Vec<Piece>,
    root: &'c Command,
}

impl<'c> Typed<'c> {
    /// Reads words; the first is the name of the program.
    pub(crate) fn read(root: &'c Command, args: &[String]) -> Typed<'c> {
        let mut typed = Typed { command: root, names: Vec::new(), pieces: Vec::new(), root };
        let mut rest = args.iter().skip(1).peekable();
        let mut is_ended = false;
        while let Some(word) = rest.next() {
            let piece = match typed.verb(word) {
                _ if is_ended => Piece::Plain(word.clone()),
                Some(verb) => {
                    typed.command = verb;
                    typed.names.push(verb.get_name());
                    Piece::Verb(word.clone())
                }
                None if word == "--" => {
                    is_ended = true;
                    Piece::End
                }
                None => match (typed.count(word), typed.flag(word)) {
                    (Some(count), _) => Piece::Flag("-n".to_owned(), Some(count.to_owned())),
                    (None, Some((_, true))) => Piece::Flag(word.clone(), typed.value(&mut rest)),
                    (None, Some((_, false))) => Piece::Flag(word.clone(), None),
                    (None, None) if is_flag(word) => Piece::Unknown(word.clone()),
                    (None, None) => Piece::Plain(word.clone()),
                },
            };
            typed.pieces.push(piece);
        }
        typed
    }

    /// Returns the words that are neither verbs nor flags nor values of known flags.
    pub(crate) fn plain(&self) -> Vec<&str> {
        let plain = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Plain(word) => Some(word.as_str()),
            _ => None,
        });
        plain.collect()
    }

    /// Returns the words for the parser, without the name of the program.
    pub(crate) fn words(pieces: &[Piece]) -> Vec<String> {
        let mut words = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Flag(flag, Some(value)) if value.starts_with('-') => {
                    words.push(format!("{flag}={value}"));
                }
                Piece::Flag(flag, Some(value)) => words.extend([flag.clone(), value.clone()]),
                Piece::Verb(word) | Piece::Flag(word, None) | Piece::Unknown(word) | Piece::Plain(word) => {
                    words.push(word.clone());
                }
                Piece::End => words.push("--".to_owned()),
            }
        }
        words
    }

    /// Whether a word is a value that begins with `-`, such as an expression: no flag has these characters.
    pub(crate) fn has_values_like_flags(&self) -> bool {
        self.pieces.iter().any(|piece| match piece {
            Piece::Unknown(word) => !is_name_of_flag(word),
            _ => false,
        })
    }

    /// Finds a flag of the verb, or of every verb.
    pub(crate) fn argument(&self, flag: &str) -> Option<&'c Arg> {
        let of_all = self.root.get_arguments().filter(|arg| self.names.is_empty() || arg.is_global_set());
        let mut all = self.command.get_arguments().chain(of_all);
        all.find(|arg| match flag.strip_prefix("--") {
            Some(long) => {
                arg.get_long_and_visible_aliases().is_some_and(|names| names.contains(&long))
                    || arg.get_all_aliases().is_some_and(|names| names.contains(&long))
            }
            None => {
                let short = flag.strip_prefix('-').and_then(|rest| rest.chars().next());
                short.is_some() && arg.get_short() == short
            }
        })
    }

    /// Returns the long flags of the verb, with their dashes.
    pub(crate) fn long_flags(&self) -> Vec<String> {
        let of_all = self.root.get_arguments().filter(|arg| self.names.is_empty() || arg.is_global_set());
        let all = self.command.get_arguments().chain(of_all);
        all.filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")).collect()
    }

    fn verb(&self, word: &str) -> Option<&'c Command> {
        let begins = !self.pieces.iter().any(|piece| matches!(piece, Piece::Plain(_)));
        self.command.find_subcommand(word).filter(|_| begins)
    }

    /// Returns the digits of `-5`, if the verb takes a number with `-n`.
    fn count<'w>(&self, word: &'w str) -> Option<&'w str> {
        let digits = word.strip_prefix('-').filter(|digits| !digits.is_empty())?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && self.argument("-n").is_some_and(takes_value)).then_some(digits)
    }

    /// Finds a known flag; the second value is true if its value is the word after it.
    fn flag(&self, word: &str) -> Option<(Option<&'c Arg>, bool)> {
        if matches!(word, "--help" | "-h" | "--version" | "-V") {
            return Some((None, false));
        }
        if word.starts_with("--") {
            let (name, inline) =
                word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            let arg = self.argument(name)?;
            return Some((Some(arg), takes_value(arg) && inline.is_none()));
        }
        let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty())?;
        let mut found = None;
        for (at, letter) in letters.char_indices() {
            let arg = self.argument(&format!("-{letter}"))?;
            if takes_value(arg) {
                return Some((Some(arg), at + letter.len_utf8() == letters.len()));
            }
            found = Some(arg);
        }
        found.map(|arg| (Some(arg), false))
    }

    /// Takes the value of a flag: the next word, unless that is a flag. A value may follow `--`, as the parser of other
    /// programs asks for it.
    fn value<'w>(
        &self,
        rest: &mut std::iter::Peekable<impl Iterator<Item = &'w String> + Clone>,
    ) -> Option<String> {
        let next = rest.peek()?;
        if next.as_str() == "--" {
            let mut ahead = rest.clone();
            ahead.next();
            let value = ahead.next()?.clone();
            *rest = ahead;
            return Some(value);
        }
        let is_value = !is_flag(next) || self.flag(next).is_none();
        is_value.then(|| rest.next().cloned()).flatten()
    }
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values() && arg.get_num_args().is_none_or(|range| range.min_values() > 0)
}

fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

fn is_name_of_flag(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::command;

    fn check(line: &[&str], expected: &[&str]) {
        let root = command();
        let args: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(Typed::words(&Typed::read(&root, &args).pieces), expected);
    }

    #[test]
    fn a_value_may_begin_with_a_minus() {
        let value = "-state.loss > -5";
        let joined = "--holds=-state.loss > -5";
        check(&["dendrer", "bisect", "r", "--holds", value], &["bisect", "r", joined]);
        check(&["dendrer", "bisect", "r", "--holds", "--", value], &["bisect", "r", joined]);
        check(&["dendrer", "bisect", "r", joined], &["bisect", "r", joined]);
        check(&["dendrer", "log", "--grep", "-x"], &["log", "--grep=-x"]);
        check(&["dendrer", "bisect", "r", "--from", "-3"], &["bisect", "r", "--from=-3"]);
        // A flag that is known stays one, so that a forgotten value is reported.
        check(&["dendrer", "log", "--grep", "--json"], &["log", "--grep", "--json"]);
    }

    #[test]
    fn a_number_alone_is_a_limit() {
        check(&["dendrer", "log", "-5"], &["log", "-n", "5"]);
        check(&["dendrer", "log", "r", "-n", "5"], &["log", "r", "-n", "5"]);
        check(&["dendrer", "verify", "-5"], &["verify", "-5"]);
    }

    #[test]
    fn the_value_of_a_flag_is_no_verb() {
        let root = command();
        let args = ["dendrer", "--store", "log", "show", "--", "state"].map(str::to_owned);
        let typed = Typed::read(&root, &args);
        assert_eq!((typed.names.as_slice(), typed.plain().as_slice()), (&["show"][..], &["state"][..]));
    }
}
