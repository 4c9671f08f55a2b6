//! Points and lengths of time: `timestamp(text)`, `duration(text)` and what is calculated with them, as CEL has it.
//!
//! A timestamp is a point of the years 1 to 9999 in nanoseconds. A duration is a length in nanoseconds that fits 64 bits,
//! about 292 years, as the published cases of CEL have it. Offsets are fixed: the rules of time zones change from year to
//! year, so that a verdict on one would not stay the same. Never reads a clock.
//!
//! Two texts have the order of the moments they write only in one spelling: the same offset and the same number of
//! fraction digits ([`Spelling`]).

use dendrer_object::time::{civil_of_days, days_of_civil};

use super::number::Operator;

/// A point in time, or a length of time. The nanoseconds are of the second that begins at `seconds`, below 10^9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// Since 1970-01-01T00:00:00Z.
    Timestamp {
        seconds: i64,
        nanos: u32,
    },
    Duration {
        seconds: i64,
        nanos: u32,
    },
}

dendrer_object::words! {
    /// A member of a timestamp or of a duration, with the function that returns it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Part {
        FullYear = "getFullYear",
        Month = "getMonth",
        Date = "getDate",
        DayOfMonth = "getDayOfMonth",
        DayOfWeek = "getDayOfWeek",
        DayOfYear = "getDayOfYear",
        Hours = "getHours",
        Minutes = "getMinutes",
        Seconds = "getSeconds",
        Milliseconds = "getMilliseconds",
    }
}

dendrer_object::words! {
    /// Why there is no such time, with the message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum TimeFault {
        /// The text is not one of RFC 3339 with an offset.
        NoTimestamp = "the text is no time with its offset, as RFC 3339 writes it",
        /// The text is no duration.
        NoDuration = "the text is no duration",
        /// The second is the sixtieth: how long a day with one is depends on a table.
        LeapSecond = "the text names a leap second, which has no place among the others",
        /// The text has a fraction of a nanosecond.
        TooFine = "the text has a fraction of a nanosecond",
        /// The point is before the year 1 or after 9999.
        OutOfRange = "the time is outside the years 1 to 9999",
        /// The length does not fit 64 bits of nanoseconds.
        TooLong = "the duration is longer than 64 bits of nanoseconds, about 292 years",
        /// The text is the name of a time zone.
        NamedZone = "a time zone by its name is not supported",
        /// The text is no offset.
        NoOffset = "the text is no offset",
    }
}

const NANOS: i128 = 1_000_000_000;

const DAY: i64 = 86_400;

const DAYS_OF_400_YEARS: i64 = 146_097;

/// Seconds since 1970 of 0001-01-01T00:00:00Z and of 9999-12-31T23:59:59Z.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

impl TimeFault {
    pub(super) fn hint(self) -> Option<&'static str> {
        match self {
            TimeFault::NoTimestamp => Some("such as 2026-02-23T17:21:05+01:00"),
            TimeFault::NoDuration => Some("such as 90s, 1h30m or 1.5h; the units are h m s ms us ns"),
            TimeFault::NamedZone | TimeFault::NoOffset => Some("write the offset, such as +02:00, or UTC"),
            _ => None,
        }
    }
}

impl Time {
    /// Reads a timestamp as RFC 3339 writes it.
    pub(super) fn timestamp(text: &str) -> Result<Time, TimeFault> {
        let read = Written::read(text).ok_or(TimeFault::NoTimestamp)?;
        if read.second == 60 {
            return Err(TimeFault::LeapSecond);
        }
        let nanos = nanos_of(read.fraction).ok_or(TimeFault::TooFine)?;
        if read.year == 0 {
            return Err(TimeFault::OutOfRange);
        }
        let [year, month, day] = [read.year, read.month, read.day].map(u64::from);
        let of_day = i64::from(read.hour) * 3600 + i64::from(read.minute) * 60 + i64::from(read.second);
        let seconds = days_of_civil(year, month, day) * DAY + of_day - i64::from(read.offset_minutes) * 60;
        Time::at(seconds, nanos)
    }

    /// Returns the timestamp that is so many seconds after 1970.
    pub(super) fn at(seconds: i64, nanos: u32) -> Result<Time, TimeFault> {
        SECONDS.contains(&seconds).then_some(Time::Timestamp { seconds, nanos }).ok_or(TimeFault::OutOfRange)
    }

    /// Reads a duration: numbers with units, `1h30m` or `-1.5s`.
    pub(super) fn duration(text: &str) -> Result<Time, TimeFault> {
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let mut total: i128 = 0;
        if rest.is_empty() {
            return Err(TimeFault::NoDuration);
        }
        if rest == "0" {
            rest = "";
        }
        while !rest.is_empty() {
            let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
            let (whole, behind) = rest.split_at(digits(rest));
            let (fraction, behind) = match behind.strip_prefix('.') {
                Some(behind) => behind.split_at(digits(behind)),
                None => ("", behind),
            };
            if whole.is_empty() && fraction.is_empty() {
                return Err(TimeFault::NoDuration);
            }
            // `ms` is looked for before `m`.
            let units: [(&str, i128); 8] = [
                ("ns", 1),
                ("us", 1_000),
                ("\u{b5}s", 1_000),
                ("\u{3bc}s", 1_000),
                ("ms", 1_000_000),
                ("s", NANOS),
                ("m", 60 * NANOS),
                ("h", 3600 * NANOS),
            ];
            let (unit, behind) = units
                .into_iter()
                .find_map(|(name, unit)| Some((unit, behind.strip_prefix(name)?)))
                .ok_or(TimeFault::NoDuration)?;
            // Leading zeros say nothing; 20 digits are beyond any duration, and 18 of a fraction fit beside an hour.
            let whole = whole.trim_start_matches('0');
            let fraction = fraction.trim_end_matches('0');
            if whole.len() > 20 {
                return Err(TimeFault::TooLong);
            }
            if fraction.len() > 18 {
                return Err(TimeFault::TooFine);
            }
            let number = |digits: &str| digits.bytes().fold(0_i128, |n, c| n * 10 + i128::from(c - b'0'));
            let scale = 10_i128.pow(fraction.len() as u32);
            let part = number(fraction) * unit;
            if part % scale != 0 {
                return Err(TimeFault::TooFine);
            }
            total = total.saturating_add(number(whole).saturating_mul(unit)).saturating_add(part / scale);
            rest = behind;
        }
        Time::lasting(if negative { -total } else { total })
    }

    fn lasting(nanos: i128) -> Result<Time, TimeFault> {
        i64::try_from(nanos).map_err(|_| TimeFault::TooLong)?;
        let (seconds, nanos) = split(nanos);
        Ok(Time::Duration { seconds, nanos })
    }

    fn total(self) -> i128 {
        let (Time::Timestamp { seconds, nanos } | Time::Duration { seconds, nanos }) = self;
        i128::from(seconds) * NANOS + i128::from(nanos)
    }

    /// Orders two points or two lengths; `None` for one of each.
    pub(super) fn compare(self, other: Time) -> Option<std::cmp::Ordering> {
        (self.is_timestamp() == other.is_timestamp()).then(|| self.total().cmp(&other.total()))
    }

    pub(super) fn is_timestamp(self) -> bool {
        matches!(self, Time::Timestamp { .. })
    }

    /// `self operator other`; `None` where the two have no such sum.
    pub(super) fn combine(self, operator: Operator, other: Time) -> Option<Result<Time, TimeFault>> {
        let sum = match operator {
            Operator::Add => self.total() + other.total(),
            Operator::Subtract => self.total() - other.total(),
            _ => return None,
        };
        let at = |sum: i128| {
            let (seconds, nanos) = split(sum);
            Time::at(seconds, nanos)
        };
        match (self.is_timestamp(), operator, other.is_timestamp()) {
            (true, _, false) | (false, Operator::Add, true) => Some(at(sum)),
            (false, _, false) | (true, Operator::Subtract, true) => Some(Time::lasting(sum)),
            _ => None,
        }
    }

    /// Returns a member; of a timestamp that at an offset of so many minutes. `None` where there is no such member.
    pub(super) fn part(self, part: Part, offset_minutes: i32) -> Option<i64> {
        let (seconds, nanos) = match self {
            Time::Timestamp { seconds, nanos } => (seconds + i64::from(offset_minutes) * 60, nanos),
            Time::Duration { .. } => {
                // Towards zero, as the whole hours of a length are counted.
                let whole = self.total() / NANOS;
                let unit = match part {
                    Part::Hours => 3600,
                    Part::Minutes => 60,
                    Part::Seconds => 1,
                    _ => return None,
                };
                return i64::try_from(whole / unit).ok();
            }
        };
        let (days, of_day) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let (year, month, day) = civil_of_days(days);
        Some(match part {
            Part::FullYear => year as i64,
            Part::Month => month as i64 - 1,
            Part::Date => day as i64,
            Part::DayOfMonth => day as i64 - 1,
            // 1970-01-01 was a Thursday.
            Part::DayOfWeek => (days + 4).rem_euclid(7),
            // A cycle later, since an offset can lead from the first hours of the year 1 into the year 0.
            Part::DayOfYear => days - (days_of_civil(year + 400, 1, 1) - DAYS_OF_400_YEARS),
            Part::Hours => of_day / 3600,
            Part::Minutes => of_day / 60 % 60,
            Part::Seconds => of_day % 60,
            Part::Milliseconds => i64::from(nanos / 1_000_000),
        })
    }

    /// Writes a timestamp in UTC as RFC 3339 has it and a duration in seconds, with as many fraction digits as it needs.
    pub(super) fn text(self) -> String {
        let fraction = |nanos: u32| match nanos {
            0 => String::new(),
            nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
        };
        match self {
            Time::Timestamp { seconds, nanos } => {
                let (year, month, day) = civil_of_days(seconds.div_euclid(DAY));
                let of_day = seconds.rem_euclid(DAY);
                let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
                let fraction = fraction(nanos);
                format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
            }
            Time::Duration { .. } => {
                let total = self.total();
                let size = total.unsigned_abs();
                let sign = if total < 0 { "-" } else { "" };
                let (seconds, nanos) = (size / NANOS.unsigned_abs(), size % NANOS.unsigned_abs());
                format!("{sign}{seconds}{}s", fraction(nanos as u32))
            }
        }
    }
}

fn split(total: i128) -> (i64, u32) {
    let seconds =
        i64::try_from(total.div_euclid(NANOS)).unwrap_or(if total < 0 { i64::MIN } else { i64::MAX });
    (seconds, total.rem_euclid(NANOS) as u32)
}

/// The nanoseconds that the digits of a fraction are; `None` where they are finer.
fn nanos_of(fraction: &str) -> Option<u32> {
    let digits = fraction.trim_end_matches('0');
    let value = digits.bytes().fold(0_u64, |n, c| n.saturating_mul(10).saturating_add(u64::from(c - b'0')));
    let scale = 9_u32.checked_sub(u32::try_from(digits.len()).ok()?)?;
    u32::try_from(value * 10_u64.pow(scale)).ok()
}

/// Reads an offset in minutes: `+02:00`, `02:00`, `-09:30`, `UTC`.
pub(super) fn offset(text: &str) -> Result<i32, TimeFault> {
    if text == "UTC" {
        return Ok(0);
    }
    let (sign, rest) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    match minutes(rest.as_bytes()) {
        Some(minutes) => Ok(sign * minutes),
        None if text.bytes().next().is_some_and(|c| c.is_ascii_alphabetic()) => Err(TimeFault::NamedZone),
        None => Err(TimeFault::NoOffset),
    }
}

/// Reads `hh:mm`.
fn minutes(text: &[u8]) -> Option<i32> {
    let [a, b, b':', c, d] = text else { return None };
    let digit = |c: &u8| c.is_ascii_digit().then(|| i32::from(c - b'0'));
    let (hours, minutes) = (digit(a)? * 10 + digit(b)?, digit(c)? * 10 + digit(d)?);
    (hours <= 23 && minutes <= 59).then_some(hours * 60 + minutes)
}

/// A date and time with an offset, as it is written.
struct Written<'t> {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    fraction: &'t str,
    offset_minutes: i32,
}

/// The spelling of a text that looks like a moment: the mark between date and time, whether there are seconds, how many
/// fraction digits, and the offset, if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling<'t> {
    between: u8,
    has_seconds: bool,
    fraction_digits: usize,
    offset: &'t str,
}

impl<'t> Spelling<'t> {
    /// Returns the spelling of a text that is a date and a time, of RFC 3339 or in another form of ISO 8601: `+0100`, no seconds,
    /// no offset.
    pub(super) fn of(text: &'t str) -> Option<Spelling<'t>> {
        let bytes = text.as_bytes();
        let are_digits =
            |places: &[usize]| places.iter().all(|place| bytes.get(*place).is_some_and(u8::is_ascii_digit));
        if !may_be_moment(text) || !are_digits(&[0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15]) {
            return None;
        }
        let has_seconds = bytes.get(16) == Some(&b':') && are_digits(&[17, 18]);
        let behind = text.get(if has_seconds { 19 } else { 16 }..)?;
        let (fraction_digits, offset) = match behind.strip_prefix(['.', ',']) {
            Some(behind) => {
                let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
                (digits, &behind[digits..])
            }
            None => (0, behind),
        };
        let is_offset = match offset.as_bytes() {
            [] | [b'Z' | b'z'] => true,
            [b'+' | b'-', rest @ ..] => {
                (2..=8).contains(&rest.len()) && rest.iter().all(|c| c.is_ascii_digit() || *c == b':')
            }
            _ => false,
        };
        is_offset.then_some(Spelling { between: bytes[10], has_seconds, fraction_digits, offset })
    }
}

/// Tells at a glance whether a text can be a moment: nearly no text that is compared can.
pub(super) fn may_be_moment(text: &str) -> bool {
    matches!(text.as_bytes(), [_, _, _, _, b'-', _, _, b'-', _, _, b'T' | b't' | b' ', _, _, b':', ..])
}

/// Tells whether a text is a date and time with an offset (RFC 3339): without an offset the moment is ambiguous.
pub(crate) fn is_datetime(text: &str) -> bool {
    Written::read(text).is_some()
}

/// How many milliseconds a duration has, like `1m30s`; `None` for any other text, and for one below zero.
pub fn milliseconds(text: &str) -> Option<u64> {
    match Time::duration(text).ok()? {
        Time::Duration { seconds, nanos } => {
            Some(u64::try_from(seconds).ok()?.checked_mul(1000)?.saturating_add(u64::from(nanos / 1_000_000)))
        }
        Time::Timestamp { .. } => None,
    }
}

/// Tells whether two texts are two spellings of one moment: other offsets, or other numbers of fraction digits.
pub fn is_same_moment(a: &str, b: &str) -> bool {
    a != b && may_be_moment(a) && Time::timestamp(a).is_ok_and(|at| Time::timestamp(b) == Ok(at))
}

impl<'t> Written<'t> {
    fn read(text: &'t str) -> Option<Written<'t>> {
        if !may_be_moment(text) || !text.is_char_boundary(19) || text.as_bytes().get(16) != Some(&b':') {
            return None;
        }
        let digits = |from: usize, count: usize| -> Option<u32> {
            let part = text.as_bytes().get(from..from + count)?;
            let digit = |n: u32, c: &u8| c.is_ascii_digit().then(|| n * 10 + u32::from(c - b'0'));
            part.iter().try_fold(0, digit)
        };
        let (year, month, day) = (digits(0, 4)?, digits(5, 2)?, digits(8, 2)?);
        let (hour, minute, second) = (digits(11, 2)?, digits(14, 2)?, digits(17, 2)?);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u32::from(leap),
            _ => return None,
        };
        if !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let rest = &text[19..];
        let (fraction, offset) = match rest.strip_prefix('.') {
            Some(behind) => {
                let end = behind.bytes().take_while(u8::is_ascii_digit).count();
                (end > 0).then(|| behind.split_at(end))?
            }
            None => ("", rest),
        };
        let offset_minutes = match offset.as_bytes() {
            [b'Z' | b'z'] => 0,
            [b'+', rest @ ..] => minutes(rest)?,
            [b'-', rest @ ..] => -minutes(rest)?,
            _ => return None,
        };
        Some(Written { year, month, day, hour, minute, second, fraction, offset_minutes })
    }
}

/// The end of something: a moment, or a length of time from another one on, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Milliseconds since 1970.
    At(u64),
    /// Milliseconds.
    For(u64),
}

/// Reads an end: a moment as RFC 3339 writes it, or a length like `900s`. A negative length ends at once.
pub(crate) fn until_of(text: &str) -> Option<Until> {
    let ms = |seconds: i64, nanos: u32| {
        let ms = i128::from(seconds) * 1000 + i128::from(nanos / 1_000_000);
        u64::try_from(ms.max(0)).unwrap_or(u64::MAX)
    };
    match Time::timestamp(text) {
        Ok(Time::Timestamp { seconds, nanos }) => return Some(Until::At(ms(seconds, nanos))),
        Ok(Time::Duration { .. }) | Err(_) => {}
    }
    match Time::duration(text) {
        Ok(Time::Duration { seconds, nanos }) => Some(Until::For(ms(seconds, nanos))),
        Ok(Time::Timestamp { .. }) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, expected) in [
            ("0", "0s"),
            ("1h30m", "5400s"),
            ("-1.5h", "-5400s"),
            (".5s", "0.5s"),
            ("+2ms3us4ns", "0.002003004s"),
            ("1\u{b5}s", "0.000001s"),
            ("-999999999ns", "-0.999999999s"),
            ("9223372036.854775807s", "9223372036.854775807s"),
        ] {
            assert_eq!(Time::duration(text).map(Time::text).as_deref(), Ok(expected), "{text}");
        }
        for (text, fault) in [
            ("", TimeFault::NoDuration),
            ("-", TimeFault::NoDuration),
            ("1", TimeFault::NoDuration),
            ("1d", TimeFault::NoDuration),
            ("1 s", TimeFault::NoDuration),
            ("s", TimeFault::NoDuration),
            (".s", TimeFault::NoDuration),
            ("1.5ns", TimeFault::TooFine),
            ("9223372036.854775808s", TimeFault::TooLong),
            ("99999999999999999999999999999999999999999h", TimeFault::TooLong),
            ("0.00000000000000000000001h", TimeFault::TooFine),
        ] {
            assert_eq!(Time::duration(text), Err(fault), "{text}");
        }
    }

    #[test]
    fn timestamps_are_read_and_written() {
        for (text, expected) in [
            ("2026-03-01T12:30:00+02:00", "2026-03-01T10:30:00Z"),
            ("2026-03-01t12:30:00.5z", "2026-03-01T12:30:00.5Z"),
            ("0001-01-01T00:00:00.000000001Z", "0001-01-01T00:00:00.000000001Z"),
            ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"),
            ("2024-02-29 23:59:59-00:30", "2024-03-01T00:29:59Z"),
            ("2026-03-01T12:30:00.1230000000000Z", "2026-03-01T12:30:00.123Z"),
        ] {
            assert_eq!(Time::timestamp(text).map(Time::text).as_deref(), Ok(expected), "{text}");
        }
        for (text, fault) in [
            ("2026-03-01T12:30:00", TimeFault::NoTimestamp),
            ("2026-03-01", TimeFault::NoTimestamp),
            ("2026-02-29T12:30:00Z", TimeFault::NoTimestamp),
            ("2026-03-01T12:30:00+24:00", TimeFault::NoTimestamp),
            ("2016-12-31T23:59:60Z", TimeFault::LeapSecond),
            ("2026-03-01T12:30:00.1234567891Z", TimeFault::TooFine),
            ("0000-06-01T00:00:00Z", TimeFault::OutOfRange),
            ("0001-01-01T00:00:00+00:01", TimeFault::OutOfRange),
            ("9999-12-31T23:59:59-00:01", TimeFault::OutOfRange),
        ] {
            assert_eq!(Time::timestamp(text), Err(fault), "{text}");
        }
    }
}
