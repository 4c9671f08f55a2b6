//! Flags that every verb takes, and the values of flags that several verbs share.

use std::str::FromStr;
use std::time::{Duration, SystemTime};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, FromArgMatches, ValueEnum, ValueHint};
use dendrer::address::Position;
use dendrer::change::graph::Callers;
use dendrer::redact::RedactionProfile;
use dendrer::store::embedded::Options;
use dendrer_object::words::UnknownWord;
use dendrer_view::text::TimeForm;

/// The variables of the environment that the program reads.
pub(crate) const VARIABLES: [(&str, &str); 10] = [
    ("DENDRER_STORE", "The store, if no --store is given"),
    ("DENDRER_KEY", "The key of the log, if no --key is given"),
    ("DENDRER_COLOR", "always or never, if no --color is given"),
    (
        "DENDRER_PAGER",
        "The program for an answer that is longer than the screen; less if not set. Empty or cat: none",
    ),
    (
        "PAGER",
        "Empty or cat, with no DENDRER_PAGER: no pager. Any other program is not used, since it may show colours as rubbish",
    ),
    (
        "DENDRER_ACCESSIBLE",
        "1: lists instead of tables, words instead of signs, ASCII, no repaint, for screen readers. So does ACCESSIBLE",
    ),
    ("NO_COLOR", "Any text: no colour"),
    ("CLICOLOR_FORCE", "Any text but 0: colour also into a pipe"),
    ("TERM", "dumb: no colour and no pager"),
    ("TZ", "The time zone of times that are printed and read without one"),
];

/// Flags that every verb takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Global {
    /// The store: a directory that holds .dendrer, or the .dendrer itself
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) store: Option<String>,
    /// Print exactly one JSON document
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print one JSON item a line, and a summary
    #[arg(long, global = true)]
    pub(crate) jsonl: bool,
    /// The form of the answer: text, json, jsonl, and what the verb knows besides
    #[arg(long, global = true, value_name = "FORM")]
    pub(crate) format: Option<String>,
    /// Only these fields of the answer; "list" says which there are. A document cut like this need not have what its
    /// schema requires
    #[arg(long, global = true, value_name = "F,..", value_delimiter = ',')]
    pub(crate) fields: Vec<String>,
    /// Write the answer to a file
    #[arg(short = 'o', long = "output", global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<String>,
    /// When to use colour: auto, always, never
    #[arg(long, global = true, value_enum, default_value = "auto", hide_possible_values = true)]
    pub(crate) color: ColorChoice,
    /// Spell out every character that is not ASCII
    #[arg(long, global = true)]
    pub(crate) ascii: bool,
    /// How times are shown: local, utc, relative, none
    #[arg(long, global = true, value_enum, default_value = "local", hide_possible_values = true)]
    pub(crate) time: TimeChoice,
    /// Cut lines at N characters
    #[arg(long, global = true, value_name = "N")]
    pub(crate) width: Option<usize>,
    /// Shorten nothing
    #[arg(long, global = true)]
    pub(crate) full: bool,
    /// Do not page
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
    /// How far long work has come, on stderr: auto, plain, json, never
    #[arg(long, global = true, value_enum, default_value = "auto", hide_possible_values = true)]
    pub(crate) progress: ProgressChoice,
    /// Say nothing but the answer and errors
    #[arg(short = 'q', long, global = true)]
    pub(crate) quiet: bool,
    /// Say what is opened, and how long it took
    #[arg(short = 'v', long, global = true)]
    pub(crate) verbose: bool,
    /// The file that holds the key of the log
    #[arg(long, global = true, value_name = "FILE", env = "DENDRER_KEY", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<String>,
    /// Whether `-o` names standard output, so that it is no file.
    #[arg(skip)]
    pub(crate) is_stdout_named: bool,
    /// Whether the index is left alone, because it is damaged.
    #[arg(skip)]
    pub(crate) without_index: bool,
    /// The answers of a process that calls the program as a library.
    #[arg(skip)]
    pub(crate) callers: Option<Callers>,
}

impl Global {
    /// The flags when none was given, for code that runs outside a verb.
    pub(crate) fn unset() -> Global {
        let matches = Global::augment_args(clap::Command::new("dendrer")).get_matches_from(["dendrer"]);
        Global::from_arg_matches(&matches).expect("every flag has a default or is optional")
    }

    /// The form in which times are shown.
    pub(crate) fn times(&self) -> TimeForm {
        match self.time {
            TimeChoice::None => TimeForm::None,
            TimeChoice::Utc => TimeForm::Utc,
            TimeChoice::Relative => TimeForm::Relative { now: now_ms() },
            TimeChoice::Local => TimeForm::Zoned(jiff::tz::TimeZone::system()),
        }
    }

    /// How a store is opened for reading.
    pub(crate) fn reads(&self) -> Options {
        Options { index: !self.without_index, ..Options::read() }
    }
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One document.
    Json,
    /// One item a line, and a summary.
    Jsonl,
}

/// When colour is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless the environment says otherwise.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeChoice {
    /// In the local time zone.
    Local,
    /// As recorded, in UTC.
    Utc,
    /// As the time that has passed since.
    Relative,
    /// Not at all.
    None,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressChoice {
    /// One line that is drawn over, if stderr is a terminal.
    Auto,
    /// Plain lines, a few seconds apart.
    Plain,
    /// One JSON object a second.
    Json,
    /// Not at all.
    Never,
}

/// The words of `--window`.
pub(crate) const WINDOW: [(&str, &str); 2] = [("after", "After it"), ("before", "Before it")];

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuthorChoice {
    /// Agents alone: not even an action.result.
    Agent,
    /// The runtime: it may write policy.decision, policy and anomalies too.
    Runtime,
    /// A person, in their own words.
    User,
    /// The kernel, which takes no lines.
    System,
}

/// Reads a tick as flags take it: `12`, `tick:12`, `tip`, `-1`.
pub(crate) fn tick_arg(text: &str) -> Result<Position, String> {
    Position::parse(text)
        .ok_or_else(|| "a tick is a number, like 12 or tick:12, or tip, or -N before the tip".to_owned())
}

/// Writes the address of a tick that is a word of its own.
pub(crate) fn with_tick(rev: &str, tick: Option<&Position>) -> String {
    tick.map_or_else(|| rev.to_owned(), |tick| format!("{rev}@{tick}"))
}

/// Reads the number of a tick that need not be there yet.
pub(crate) fn plain_tick_arg(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("tick:").unwrap_or(text);
    digits.parse().map_err(|_| "a tick is a number, like 41".to_owned())
}

/// Reads which of several runs in a file is meant.
pub(crate) fn index_arg(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "an index is the number of a run in the file, counted from 0".to_owned())
}

/// Joins the two words `tick` `N` behind the flags that take a tick, so that each flag takes one value.
pub(crate) fn join_ticks(args: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let mut is_over = false;
    for arg in args {
        // Words after `--` are for another program.
        is_over |= arg == "--";
        let after_tick = !is_over && joined.last().is_some_and(|last| last == "tick");
        let flag = joined.len().checked_sub(2).map(|at| joined[at].as_str());
        if after_tick && matches!(flag, Some("--from" | "--to" | "--at" | "--tick" | "--effective-from")) {
            let last = joined.len() - 1;
            joined[last] = format!("tick:{arg}");
        } else {
            joined.push(arg);
        }
    }
    joined
}

/// Returns the time of the clock in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    SystemTime::UNIX_EPOCH.elapsed().map_or_else(|before| -ms(before.duration()), ms)
}

/// Reads a time like `30d` as milliseconds.
pub(crate) fn age_arg(text: &str) -> std::result::Result<u64, String> {
    let units = [('h', 3_600_000), ('d', 86_400_000), ('w', 604_800_000u64)];
    let parsed = units.iter().find_map(|(unit, ms)| {
        let number: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        number.checked_mul(*ms)
    });
    parsed.ok_or_else(|| "a number of hours, days or weeks, like 12h, 30d or 2w".to_owned())
}

/// Reads the beginning of a time as milliseconds since 1970: `2h` ago, a date, a date and a time.
pub(crate) fn since_arg(text: &str) -> std::result::Result<u64, String> {
    moment(text, false)
}

/// As [`since_arg`], for the end of a time: a date is its whole day, a minute its last millisecond, and so is a second.
pub(crate) fn until_arg(text: &str) -> std::result::Result<u64, String> {
    moment(text, true)
}

/// Dates without an offset are of the time zone in which times are shown as a rule, that of the system.
fn moment(text: &str, is_end: bool) -> std::result::Result<u64, String> {
    let ago = text.strip_suffix("ago").unwrap_or(text).trim();
    if let Some(age) = age(ago) {
        return Ok(u64::try_from(now_ms()).unwrap_or(0).saturating_sub(age));
    }
    let zone = jiff::tz::TimeZone::system();
    let covered = covered(text);
    let at = match (text.parse::<jiff::Timestamp>(), text.parse::<jiff::civil::DateTime>()) {
        (Ok(at), _) => at,
        (_, Ok(at)) => {
            let is_whole_day = covered.is_none() && is_end;
            let of_day = if is_whole_day { jiff::civil::time(23, 59, 59, 999_000_000) } else { at.time() };
            let zoned = at.date().to_datetime(of_day).to_zoned(zone);
            zoned.map_err(|error| error.to_string())?.timestamp()
        }
        _ => return Err("a time is like 2h, 3d or 2026-03-01".to_owned()),
    };
    let further = covered.filter(|_| is_end).map_or(0, |size| size - 1);
    Ok(u64::try_from(at.as_millisecond()).unwrap_or(0).saturating_add(further))
}

/// Returns how many milliseconds a written time of day covers: those of an hour, a minute, a second or less. `None` for a date
/// without a time.
fn covered(text: &str) -> Option<u64> {
    let (_, time) = text.split_once(['T', 't', ' '])?;
    let time = time.split(['Z', 'z', '+', '-', '[']).next().unwrap_or_default();
    let (whole, fraction) = time.split_once(['.', ',']).unwrap_or((time, ""));
    Some(match (whole.bytes().filter(u8::is_ascii_digit).count(), fraction.len()) {
        (..=2, _) => 3_600_000,
        (3..=4, _) => 60_000,
        (_, 0) => 1000,
        (_, 1) => 100,
        (_, 2) => 10,
        _ => 1,
    })
}

/// Returns the milliseconds of `90s`, `30min`, `2h`, `3d` or `2w`.
fn age(text: &str) -> Option<u64> {
    let units = [
        ("min", 60_000),
        ("m", 60_000),
        ("s", 1000),
        ("h", 3_600_000),
        ("d", 86_400_000),
        ("w", 604_800_000u64),
    ];
    units.iter().find_map(|(unit, ms)| {
        let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(*ms)
    })
}

/// Reads a word of choice; each word has its sentence of the help.
pub(crate) fn word<T>(
    words: &'static [(&'static str, &'static str)],
) -> impl TypedValueParser<Value = T> + use<T>
where
    T: FromStr<Err = UnknownWord> + Clone + Send + Sync + 'static,
{
    let values = words.iter().map(|(word, sentence)| PossibleValue::new(*word).help(*sentence));
    PossibleValuesParser::new(values).try_map(|word| word.parse::<T>())
}

/// Reads the name of a profile of redaction.
pub(crate) fn profile_arg(text: &str) -> std::result::Result<RedactionProfile, String> {
    text.parse().map_err(|_| "default, carl/1 or none".to_owned())
}

/// Returns the `--width` of the command line, which may be asked for where the rest cannot be read.
pub(crate) fn asked_width() -> Option<usize> {
    let args: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let joined = args.iter().find_map(|arg| arg.strip_prefix("--width="));
    let parted = || args.windows(2).find(|pair| pair[0] == "--width").map(|pair| pair[1].as_str());
    joined.or_else(parted)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_time_is_the_last_millisecond_that_it_covers() {
        for (text, last) in [
            ("2026-02-24T08:00:31Z", "2026-02-24T08:00:31.999Z"),
            ("2026-02-24 08:00:31Z", "2026-02-24T08:00:31.999Z"),
            ("2026-02-24T09:00:31+01:00", "2026-02-24T08:00:31.999Z"),
            ("2026-02-24T08:00:31.5Z", "2026-02-24T08:00:31.599Z"),
            ("2026-02-24T08:00:31.510Z", "2026-02-24T08:00:31.510Z"),
            ("2026-02-24T08:00Z", "2026-02-24T08:00:59.999Z"),
        ] {
            let expected: jiff::Timestamp = last.parse().unwrap();
            let found = until_arg(text).unwrap();
            assert_eq!(found, u64::try_from(expected.as_millisecond()).unwrap(), "{text}");
        }
        for (text, size) in
            [("2026-02-24 08:00:31", 1000), ("2026-02-24T08:00", 60_000), ("2026-02-24", 86_400_000)]
        {
            assert_eq!(until_arg(text).unwrap() - since_arg(text).unwrap(), size - 1, "{text}");
        }
    }

    #[test]
    fn two_words_become_one_tick_only_behind_the_flags_that_take_one() {
        let join = |text: &str| join_ticks(text.split(' ').map(str::to_owned)).join(" ");
        assert_eq!(join("bisect r --from tick 5 --to tick 9"), "bisect r --from tick:5 --to tick:9");
        assert_eq!(join("log tick 5"), "log tick 5");
        assert_eq!(join("log r --from 5"), "log r --from 5");
    }
}

/// The words of `--align`.
pub(crate) const ALIGN: [(&str, &str); 4] = [
    ("tick", "One by one behind what is shared, markers passed over"),
    ("content", "By the longest sequence of transitions that mean the same"),
    ("step", "Two threads of checkpoints by the steps of their graphs"),
    ("edge", "Two runs of graphs by the paths of their edges"),
];
