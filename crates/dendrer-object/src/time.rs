//! Time stamps as text: RFC 3339 in UTC with three decimals and `Z` (dendrer paper, appendix B).
//!
//! Pure conversions: nothing here reads a clock.

use std::fmt;
use std::str::FromStr;

/// Milliseconds since 1970-01-01T00:00:00Z, up to the end of the year 9999. Leap seconds do not count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

const MAX_MS: u64 = 253_402_300_799_999;

/// The text is not `YYYY-MM-DDThh:mm:ss.mmmZ`, or no such moment exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a time is `YYYY-MM-DDThh:mm:ss.mmmZ`, from 1970 to 9999")]
pub struct TimestampError;

impl Timestamp {
    /// Takes milliseconds since 1970; what lies beyond the year 9999 becomes its last millisecond.
    pub fn from_ms(ms: u64) -> Timestamp {
        Timestamp(ms.min(MAX_MS))
    }

    /// Returns milliseconds since 1970.
    pub fn ms(self) -> u64 {
        self.0
    }
}

/// Turns days since 1970-01-01 into year, month and day of the proleptic Gregorian calendar, from the year 0 on.
pub fn civil_of_days(days: i64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, so that the leap day is the last of its year.
    let days = days.saturating_add(719_468).max(0).unsigned_abs();
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Turns a date of the proleptic Gregorian calendar, of the year 1 or later, into days since 1970-01-01.
pub fn days_of_civil(year: u64, month: u64, day: u64) -> i64 {
    let year = year.saturating_sub(u64::from(month <= 2));
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    (era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year) as i64 - 719_468
}

impl Timestamp {
    /// Appends the text.
    pub fn write(self, out: &mut Vec<u8>) {
        let (year, month, day) = civil_of_days((self.0 / 86_400_000) as i64);
        let ms = self.0 % 86_400_000;
        let parts = [
            (year, 4, b'-'),
            (month, 2, b'-'),
            (day, 2, b'T'),
            (ms / 3_600_000, 2, b':'),
            (ms / 60_000 % 60, 2, b':'),
            (ms / 1000 % 60, 2, b'.'),
            (ms % 1000, 3, b'Z'),
        ];
        let mut text = [0; 24];
        let mut at = 0;
        for (mut value, digits, mark) in parts {
            for place in text[at..at + digits].iter_mut().rev() {
                *place = b'0' + (value % 10) as u8;
                value /= 10;
            }
            text[at + digits] = mark;
            at += digits + 1;
        }
        out.extend_from_slice(&text);
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(24);
        self.write(&mut text);
        f.write_str(std::str::from_utf8(&text).expect("digits and marks are ASCII"))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Timestamp, TimestampError> {
        let bytes = text.as_bytes();
        let number = |from: usize, to: usize| {
            let digits = bytes.get(from..to).filter(|d| d.iter().all(u8::is_ascii_digit))?;
            Some(digits.iter().fold(0u64, |n, c| n * 10 + u64::from(c - b'0')))
        };
        let read = || {
            let year = number(0, 4).filter(|year| *year >= 1970)?;
            let month = number(5, 7).filter(|month| (1..=12).contains(month))?;
            let day = days_of_civil(year, month, number(8, 10).filter(|day| *day >= 1)?).unsigned_abs();
            let ms = number(11, 13)? * 3_600_000 + number(14, 16)? * 60_000 + number(17, 19)? * 1000;
            Some(Timestamp(day * 86_400_000 + ms + number(20, 23)?))
        };
        // Writing it back settles separators, lengths and days that no month has.
        read().filter(|time| time.0 <= MAX_MS && time.to_string() == text).ok_or(TimestampError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_771_867_265_000, "2026-02-23T17:21:05.000Z"),
            (2_147_483_648_000, "2038-01-19T03:14:08.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (MAX_MS, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp(ms).to_string(), text);
            assert_eq!(text.parse(), Ok(Timestamp(ms)));
        }
        assert_eq!(Timestamp::from_ms(u64::MAX), Timestamp(MAX_MS));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "2026-02-23T17:21:05Z",
            "2026-02-30T00:00:00.000Z",
            "2026-02-23 17:21:05.000Z",
            "2026-13-01T00:00:00.000Z",
            "2026-02-23T24:00:00.000Z",
            "1969-12-31T23:59:59.999Z",
            "2026-02-23T17:21:60.000Z",
            "2026-02-23T17:21:05.0000Z",
            "2026-00-10T00:00:00.000Z",
            "1970-01-00T00:00:00.000Z",
            "1970-00-01T00:00:00.000Z",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(TimestampError), "{text}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_survives_the_round_trip() {
        for day in 0..146_097 {
            let time = Timestamp(day * 86_400_000 + 1);
            assert_eq!(time.to_string().parse(), Ok(time));
        }
    }
}
