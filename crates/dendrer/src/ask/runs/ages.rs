//! Ages in a condition on runs: `updated > "2h"` is true of a run that was updated in the last two hours, as `log --since 2h`.
//!
//! Pure: the caller brings the time. An age is written as the time that it means, in the form of the times of runs.

use dendrer_kernel::expr::Expr;
use dendrer_object::{Timestamp, Value};

use super::ordered;

/// The units of an age, and their milliseconds.
const UNITS: [(&str, u64); 6] =
    [("min", 60_000), ("m", 60_000), ("s", 1000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];

/// Writes the ages that a condition compares with `updated` as times before `now`. `None` if it has none.
pub(super) fn written(text: &str, expr: &Expr, now: Timestamp) -> Option<String> {
    let mut out = text.to_owned();
    // From the end on, so that the spans before it stay.
    for one in expr.comparisons().into_iter().rev().filter(|one| one.definition.is_none()) {
        let whole = text.get(one.span.start as usize..one.span.end as usize).unwrap_or_default();
        let [literal] = &one.literals[..] else { continue };
        let Some(age) = literal.value.as_str().and_then(age) else { continue };
        if !whole.contains("updated") {
            continue;
        }
        let at = Timestamp::from_ms(now.ms().saturating_sub(age));
        let time = Value::from(ordered(at)).to_string();
        out.replace_range(literal.span.start as usize..literal.span.end as usize, &time);
    }
    (out != text).then_some(out)
}

/// Returns the milliseconds of `90s`, `30min`, `2h`, `3d` or `2w`.
fn age(text: &str) -> Option<u64> {
    let text = text.strip_suffix("ago").unwrap_or(text).trim();
    UNITS.iter().find_map(|(unit, ms)| {
        let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(*ms)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_kernel::expr::Scope;

    #[test]
    fn an_age_is_a_time_before_now() {
        let scope = Scope::new().root("updated").root("name");
        let now: Timestamp = "2026-03-01T12:00:00.000Z".parse().unwrap();
        let found = |text: &str| written(text, &Expr::parse_condition(text, &scope).unwrap(), now);
        for (text, expected) in [
            ("updated > \"60m\"", Some("updated > \"2026-03-01 11:00:00\"")),
            ("updated > \"2h ago\"", Some("updated > \"2026-03-01 10:00:00\"")),
            (
                "name == \"2h\" && \"24h\" <= updated",
                Some("name == \"2h\" && \"2026-02-28 12:00:00\" <= updated"),
            ),
            ("updated > \"2026-03-01\"", None),
            ("name == \"2h\"", None),
        ] {
            assert_eq!(found(text).as_deref(), expected, "{text}");
        }
    }
}
