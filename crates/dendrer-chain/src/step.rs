//! One step of a chain, and its row (witness-log paper 2.2).

use std::fmt;

use dendrer_object::time::{Timestamp, civil_of_days, days_of_civil};

use crate::action::ActionType;
use crate::row::{RowText, RowValue, hash_text};
use crate::scrub::scrub;

/// The member with the hash of the row.
pub const CONTENT_HASH: &str = "content_hash";

/// The member with the hash of the row before (witness-log paper 5.1).
pub const PREV_HASH: &str = "prev_hash";

/// When a step began: ISO 8601, as Python's `datetime.isoformat` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StartedAt(Box<str>);

impl StartedAt {
    /// A moment in UTC: with `+00:00`, and with microseconds if there are any.
    pub fn of(at: Timestamp) -> StartedAt {
        let text = at.to_string();
        let (seconds, rest) = text.split_at(19);
        let ms = &rest[1..4];
        let fraction = if ms == "000" { String::new() } else { format!(".{ms}000") };
        StartedAt(format!("{seconds}{fraction}+00:00").into())
    }

    /// A moment as a row has it: a date and a time of ISO 8601. `None` for another text.
    pub fn parse(text: &str) -> Option<StartedAt> {
        let bytes = text.as_bytes();
        let digits = |from: usize, to: usize| {
            bytes.get(from..to).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
        };
        let mark = |at: usize, marks: &[u8]| bytes.get(at).is_some_and(|byte| marks.contains(byte));
        let is_date = digits(0, 4) && mark(4, b"-") && digits(5, 7) && mark(7, b"-") && digits(8, 10);
        let is_time = digits(11, 13) && mark(13, b":") && digits(14, 16) && mark(16, b":") && digits(17, 19);
        let rest = text.get(19..)?;
        let rest =
            rest.strip_prefix('.').map_or(rest, |part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
        let zone = rest.as_bytes();
        let is_zone = match zone {
            [] | b"Z" => true,
            [b'+' | b'-', hour @ .., b':', a, b] => {
                hour.len() == 2 && hour.iter().chain([a, b]).all(u8::is_ascii_digit)
            }
            _ => false,
        };
        let read = |from: usize| text.get(from..from + 2)?.parse::<u64>().ok();
        let date = || Some((text.get(..4)?.parse::<u64>().ok()?, read(5)?, read(8)?));
        // As `datetime.fromisoformat` of Python 3.11 takes them.
        let is_day = date().is_some_and(|(year, month, day)| {
            let is_in_range = year > 0 && (1..=12).contains(&month) && day > 0;
            is_in_range && civil_of_days(days_of_civil(year, month, day)) == (year, month, day)
        });
        let is_clock = read(11).is_some_and(|hour| hour < 24)
            && [14, 17].iter().all(|at| read(*at).is_some_and(|n| n < 60));
        let is_offset = zone.len() < 6 || {
            let part = |at: usize| rest.get(at..at + 2).and_then(|part| part.parse::<u64>().ok());
            part(1).is_some_and(|hour| hour < 24) && part(4).is_some_and(|minute| minute < 60)
        };
        let is_moment = is_day && is_clock && is_offset;
        (is_date && mark(10, b"T ") && is_time && is_zone && is_moment).then(|| StartedAt(text.into()))
    }

    /// The same moment as Python prints it in UTC, with microseconds if there are any. A time without a zone is taken for UTC;
    /// digits after microseconds are cut. A text that is no moment stays.
    pub fn in_utc(&self) -> StartedAt {
        self.utc().map_or_else(|| self.clone(), |text| StartedAt(text.into()))
    }

    fn utc(&self) -> Option<String> {
        let number = |from: usize, to: usize| self.0.get(from..to)?.parse::<u64>().ok();
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let is_date = year > 0 && (1..=12).contains(&month) && (1..=31).contains(&day);
        if !is_date || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let rest = self.0[19..].trim_start_matches(['.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
        let fraction = self.0[19..self.0.len() - rest.len()].trim_start_matches('.');
        let micros: u64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
        let zone = |at: usize| rest.get(at..at + 2).map_or(Some(0), |digits| digits.parse::<i64>().ok());
        let sign = if rest.starts_with('-') { -1 } else { 1 };
        let offset = if rest.len() == 6 { sign * (zone(1)? * 60 + zone(4)?) } else { 0 };
        let minutes = days_of_civil(year, month, day) * 1440 + (hour * 60 + minute) as i64 - offset;
        let (year, month, day) = civil_of_days(minutes.div_euclid(1440));
        if !(1..=9999).contains(&year) {
            return None;
        }
        let (hour, minute) = (minutes.rem_euclid(1440) / 60, minutes.rem_euclid(60));
        let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
        Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}+00:00"))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StartedAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One atomic unit of a chain. Fields, order and defaults of the witness-log paper 2.2; the last three are those of the published
/// package and of the program that wrote the row.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The shape of the interaction.
    pub action: ActionType,
    /// A short label, like `carl chat`.
    pub name: String,
    /// A prompt, arguments, or the name of a credential, never its value.
    pub input: RowValue,
    /// A response, a result, or the verdict of a gate.
    pub output: RowValue,
    /// Whether it succeeded.
    pub success: bool,
    /// When it began.
    pub started_at: StartedAt,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<f64>,
    /// The step in which this one is nested.
    pub parent_id: Option<String>,
    /// Twelve hexadecimal digits.
    pub step_id: String,
    /// The session.
    pub session_id: Option<String>,
    /// The key that joins chains of several processes.
    pub trace_id: Option<String>,
    /// A snapshot of coherence.
    pub phi: Option<f64>,
    /// A snapshot of phase lock.
    pub kuramoto_r: Option<f64>,
    /// Coherence of a channel, by name.
    pub channel_coherence: Option<Vec<(String, f64)>>,
    /// Which probe filled the coherence fields.
    pub probe_call: Option<RowValue>,
    /// The structure of a scoring tree.
    pub eml_tree: Option<RowValue>,
    /// Members that no field has.
    pub others: Vec<(RowText, RowValue)>,
}

/// The host's part of a new step: its id and its begin. The crate reads no clock and draws nothing by chance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepStamp {
    /// Twelve hexadecimal digits, another for each step.
    pub step_id: String,
    /// When it began.
    pub started_at: StartedAt,
}

impl StepStamp {
    /// A stamp with the first twelve digits of random bits.
    pub fn new(random: u64, at: Timestamp) -> StepStamp {
        StepStamp { step_id: format!("{random:016x}")[..12].to_owned(), started_at: StartedAt::of(at) }
    }
}

/// A row that is no step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowStepError {
    /// It is not an object.
    #[error("a row is an object")]
    Object,
    /// A member that it must have is missing or of another kind.
    #[error("{0} is missing or of another kind")]
    Member(&'static str),
    /// Its action is unknown, also to the extension.
    #[error("unknown action {0:?}")]
    Action(String),
}

/// Members of a row in their order (`carl-core` 0.2.0), without hashes.
const MEMBERS: [&str; 16] = [
    "step_id",
    "action",
    "name",
    "input",
    "output",
    "success",
    "started_at",
    "duration_ms",
    "parent_id",
    "session_id",
    "trace_id",
    "phi",
    "kuramoto_r",
    "channel_coherence",
    "probe_call",
    "eml_tree",
];

impl Step {
    /// A step that succeeded, with nothing else said of it.
    pub fn new(action: ActionType, name: &str, stamp: StepStamp) -> Step {
        Step {
            action,
            name: name.to_owned(),
            input: RowValue::Null,
            output: RowValue::Null,
            success: true,
            started_at: stamp.started_at,
            duration_ms: None,
            parent_id: None,
            step_id: stamp.step_id,
            session_id: None,
            trace_id: None,
            phi: None,
            kuramoto_r: None,
            channel_coherence: None,
            probe_call: None,
            eml_tree: None,
            others: Vec::new(),
        }
    }

    /// Reads a row. Missing members take their defaults, `success` is whatever Python takes for true; `stamp` is asked for an
    /// id and a time if the row lacks one of them. Fails without a known action or a name.
    pub fn from_row(row: &RowValue, stamp: impl FnOnce() -> StepStamp) -> Result<Step, RowStepError> {
        let RowValue::Object(members) = row else { return Err(RowStepError::Object) };
        let action = row.get("action").and_then(RowValue::as_str).ok_or(RowStepError::Member("action"))?;
        let action = ActionType::from_word(action).ok_or_else(|| RowStepError::Action(action.to_owned()))?;
        let name = row.get("name").and_then(RowValue::as_str).ok_or(RowStepError::Member("name"))?;
        let text = |name| row.get(name).and_then(RowValue::as_str).map(str::to_owned);
        let started_at = text("started_at")
            .map(|at| StartedAt::parse(&at).ok_or(RowStepError::Member("started_at")))
            .transpose()?;
        let stamp = match (text("step_id"), started_at) {
            (Some(step_id), Some(started_at)) => StepStamp { step_id, started_at },
            (step_id, started_at) => {
                let made = stamp();
                StepStamp {
                    step_id: step_id.unwrap_or(made.step_id),
                    started_at: started_at.unwrap_or(made.started_at),
                }
            }
        };
        let mut step = Step::new(action, name, stamp);
        let number = |name| row.get(name).and_then(RowValue::as_f64);
        let given = |name| row.get(name).filter(|value| **value != RowValue::Null).cloned();
        step.input = row.get("input").cloned().unwrap_or(RowValue::Null);
        step.output = row.get("output").cloned().unwrap_or(RowValue::Null);
        step.success = row.get("success").is_none_or(RowValue::is_truthy);
        (step.duration_ms, step.phi, step.kuramoto_r) =
            (number("duration_ms"), number("phi"), number("kuramoto_r"));
        (step.parent_id, step.session_id, step.trace_id) =
            (text("parent_id"), text("session_id"), text("trace_id"));
        step.channel_coherence = match row.get("channel_coherence") {
            Some(RowValue::Object(channels)) => {
                let of =
                    |(name, value): &(RowText, RowValue)| Some((name.as_str()?.to_owned(), value.as_f64()?));
                let channels: Option<Vec<_>> = channels.iter().map(of).collect();
                Some(channels.ok_or(RowStepError::Member("channel_coherence"))?)
            }
            None | Some(RowValue::Null) => None,
            Some(_) => return Err(RowStepError::Member("channel_coherence")),
        };
        (step.probe_call, step.eml_tree) = (given("probe_call"), given("eml_tree"));
        let is_other = |name: &RowText| {
            name.as_str()
                .is_none_or(|name| !MEMBERS.contains(&name) && name != CONTENT_HASH && name != PREV_HASH)
        };
        step.others = members.iter().filter(|(name, _)| is_other(name)).cloned().collect();
        Ok(step)
    }

    /// The row without hashes. Secrets of the input, the output and the scoring tree are taken out (witness-log paper 2.4).
    pub fn to_row(&self) -> RowValue {
        self.row_of(&scrub)
    }

    /// The row without hashes, of a step whose secrets were taken out before.
    pub fn to_row_as_is(&self) -> RowValue {
        self.row_of(&RowValue::clone)
    }

    fn row_of(&self, clean: &dyn Fn(&RowValue) -> RowValue) -> RowValue {
        let text = |text: &Option<String>| text.as_deref().map_or(RowValue::Null, RowValue::from);
        let number = |number: Option<f64>| number.map_or(RowValue::Null, RowValue::Float);
        let channels = self.channel_coherence.as_ref().map(|channels| {
            let of = |(name, value): &(String, f64)| (RowText::from(&**name), RowValue::Float(*value));
            RowValue::Object(channels.iter().map(of).collect())
        });
        let values = [
            RowValue::from(&*self.step_id),
            RowValue::from(self.action.as_str()),
            RowValue::from(&*self.name),
            clean(&self.input),
            clean(&self.output),
            RowValue::Bool(self.success),
            RowValue::from(self.started_at.as_str()),
            number(self.duration_ms),
            text(&self.parent_id),
            text(&self.session_id),
            text(&self.trace_id),
            number(self.phi),
            number(self.kuramoto_r),
            channels.unwrap_or(RowValue::Null),
            self.probe_call.clone().unwrap_or(RowValue::Null),
            self.eml_tree.as_ref().map_or(RowValue::Null, clean),
        ];
        let mut members: Vec<_> = MEMBERS.iter().map(|name| RowText::from(*name)).zip(values).collect();
        // A step without a tree has no member for it, as rows before it was known.
        members.truncate(if self.eml_tree.is_some() { MEMBERS.len() } else { MEMBERS.len() - 1 });
        members.extend(self.others.iter().map(|(name, value)| (name.clone(), clean(value))));
        RowValue::Object(members)
    }
}

/// A row with the hash of the row before, if one is given, and its own behind it, which covers it.
pub fn hashed(row: RowValue, prev_hash: Option<&str>) -> RowValue {
    let RowValue::Object(mut members) = row else { return row };
    members.retain(|(name, _)| !matches!(name.as_str(), Some(CONTENT_HASH | PREV_HASH)));
    members.extend(prev_hash.map(|hash| (RowText::from(PREV_HASH), RowValue::from(hash))));
    let row = RowValue::Object(members);
    let hash = row.content_hash();
    let RowValue::Object(mut members) = row else { unreachable!("made above") };
    members.push((RowText::from(CONTENT_HASH), RowValue::from(&*hash)));
    RowValue::Object(members)
}

/// The hash that a row says it has.
pub fn content_hash_of(row: &RowValue) -> Option<&str> {
    row.get(CONTENT_HASH)?.as_str()
}

/// Whether a row says its own hash. A row without one does not (`verify_step_content_hash` of `carl-core` 0.2.0).
pub fn verify_step_content_hash(row: &RowValue) -> bool {
    let (Some(said), RowValue::Object(members)) = (content_hash_of(row), row) else { return false };
    let body = members.iter().filter(|(name, _)| name.as_str() != Some(CONTENT_HASH)).cloned().collect();
    RowValue::Object(body).content_hash() == said
}

/// The hash that the first row of a chain names: that of the line of the header.
pub fn header_hash(line: &str) -> String {
    hash_text(line)
}
