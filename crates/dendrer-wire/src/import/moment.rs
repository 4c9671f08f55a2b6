//! Times of a source as numbers, to order items by them.

/// Reads RFC 3339 text, or the form of it with a blank, as nanoseconds since 1970.
pub(crate) fn moment(text: &str) -> Option<i128> {
    let text = text.trim();
    let (date, time) = text.split_at_checked(10)?;
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let time = time.strip_prefix(['T', 't', ' '])?;
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = whole.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(0..=9999).contains(&year) {
        return None;
    }
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..=60).contains(&second) {
        return None;
    }
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos: i64 = format!("{:0<9}", fraction.get(..fraction.len().min(9))?).parse().ok()?;
    let offset = match zone.strip_prefix(['+', '-']) {
        None => 0,
        Some(rest) => {
            let (hours, minutes) = rest.split_once(':').unwrap_or((rest.get(..2)?, rest.get(2..)?));
            let minutes = if minutes.is_empty() { 0 } else { minutes.parse::<i64>().ok()? };
            let all = hours.parse::<i64>().ok()? * 3600 + minutes * 60;
            if zone.starts_with('-') { -all } else { all }
        }
    };
    // Days since 1970 of the proleptic Gregorian calendar, with years that begin in March.
    let (shifted, of_year) = (if month <= 2 { year - 1 } else { year }, (month + 9) % 12);
    let (era, year_of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let day_of_year = (153 * of_year + 2) / 5 + day - 1;
    let days =
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    let seconds = i128::from(days * 86_400 + hour * 3600 + minute * 60 + second - offset);
    Some(seconds * 1_000_000_000 + i128::from(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_nanoseconds() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2024-04-29T00:49:12.097Z", Some(1_714_351_752_097_000_000)),
            ("2024-04-29 02:49:12.097000+02:00", Some(1_714_351_752_097_000_000)),
            ("2000-02-29T00:00:00", Some(951_782_400_000_000_000)),
            ("2024-13-01T00:00:00Z", None),
            ("yesterday", None),
            ("\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}T", None),
        ] {
            assert_eq!(moment(text), expected, "{text}");
        }
    }
}
