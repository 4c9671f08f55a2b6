//! Dates in a condition on runs: `updated <= "2026-03-01"` includes that day, as `log --until 2026-03-01` does.
//!
//! The times of runs are texts of one form, in UTC. A date is a stretch of them, so a comparison with one is written with its
//! first or its last second. Any other text is an error: compared as a text it would choose runs at random.

use dendrer_kernel::expr::{Expr, ExprError, Span};
use dendrer_object::{Timestamp, Value};

/// The name whose values are times.
pub(super) const UPDATED: &str = "updated";

/// Hint on the form of a date.
const HINT: &str = "write a date, like \"2026-03-01\" or \"2026-03-01 12:00\", in UTC";

/// The first and the last second of a date.
type Stretch = [String; 2];

/// Writes the comparisons of a condition with dates as comparisons with their seconds. `None` if it has none.
///
/// # Errors
///
/// An error at any other text.
pub(super) fn written(text: &str, expr: &Expr) -> Result<Option<String>, ExprError> {
    let mut out = text.to_owned();
    let mut is_changed = false;
    // From the end on, so that the spans before it stay.
    for one in expr.comparisons().into_iter().rev() {
        let [literal] = &one.literals[..] else { continue };
        let is_of_times = one.definition.is_none() && is_of_updated(text, one.span, literal.span);
        let Some(date) = literal.value.as_str().filter(|_| is_of_times) else { continue };
        let Some([first, last]) = stretch(date) else {
            let message = format!("{} is no date", Value::from(date));
            return Err(ExprError::of_types(literal.span, message, HINT, text));
        };
        let is_turned = literal.span.start == one.span.start;
        let Some(comparison) = compared(one.symbol, is_turned, &first, &last) else { continue };
        out.replace_range(one.span.start as usize..one.span.end as usize, &format!("({comparison})"));
        is_changed = true;
    }
    Ok(is_changed.then_some(out))
}

/// Whether the other side of a comparison is the time of the run alone.
fn is_of_updated(text: &str, whole: Span, literal: Span) -> bool {
    let part = |from: u32, to: u32| text.get(from as usize..to as usize).unwrap_or_default();
    let is_mark = |c: char| c.is_whitespace() || "<>=!()".contains(c);
    let sides = [part(whole.start, literal.start), part(literal.end, whole.end)];
    sides.map(|side| side.trim_matches(is_mark)).concat() == UPDATED
}

/// Writes a comparison of the time with a stretch; `None` for one that compares no order.
fn compared(symbol: &str, is_turned: bool, first: &str, last: &str) -> Option<String> {
    let symbol = match (symbol, is_turned) {
        ("<", true) => ">",
        ("<=", true) => ">=",
        (">", true) => "<",
        (">=", true) => "<=",
        (symbol, _) => symbol,
    };
    Some(match symbol {
        "<" | ">=" => format!("{UPDATED} {symbol} \"{first}\""),
        "<=" | ">" => format!("{UPDATED} {symbol} \"{last}\""),
        "==" => format!("{UPDATED} >= \"{first}\" && {UPDATED} <= \"{last}\""),
        "!=" => format!("{UPDATED} < \"{first}\" || {UPDATED} > \"{last}\""),
        _ => return None,
    })
}

/// Reads a day, a minute or a second; `None` for any other text.
fn stretch(text: &str) -> Option<Stretch> {
    let text = text.strip_suffix('Z').unwrap_or(text).replace('T', " ");
    let (day, time) = text.split_once(' ').unwrap_or((&text, ""));
    let (first, last) = match time.len() {
        0 if !text.contains(' ') => ("00:00:00".to_owned(), "23:59:59".to_owned()),
        5 => (format!("{time}:00"), format!("{time}:59")),
        8 => (time.to_owned(), time.to_owned()),
        _ => return None,
    };
    let is_moment = format!("{day}T{last}.000Z").parse::<Timestamp>().is_ok();
    is_moment.then(|| [format!("{day} {first}"), format!("{day} {last}")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_kernel::expr::Scope;

    fn rewritten(text: &str) -> Result<Option<String>, String> {
        let scope = Scope::new().root(UPDATED).root("name");
        let expr = Expr::parse_condition(text, &scope).unwrap();
        let written =
            written(text, &expr).map_err(|error| format!("{} at {}", error.message, error.span.start))?;
        if let Some(text) = &written {
            Expr::parse_condition(text, &scope).unwrap();
        }
        Ok(written)
    }

    #[test]
    fn a_date_is_its_whole_day() {
        for (text, expected) in [
            ("updated <= \"2026-02-24\"", "(updated <= \"2026-02-24 23:59:59\")"),
            ("\"2026-02-24\" > updated", "(updated < \"2026-02-24 00:00:00\")"),
            (
                "name == \"a\" && updated > \"2026-02-24 12:00\"",
                "name == \"a\" && (updated > \"2026-02-24 12:00:59\")",
            ),
            (
                "updated == \"2024-02-29\"",
                "(updated >= \"2024-02-29 00:00:00\" && updated <= \"2024-02-29 23:59:59\")",
            ),
            ("!(updated >= \"2026-02-24T01:02:03Z\")", "!((updated >= \"2026-02-24 01:02:03\"))"),
        ] {
            assert_eq!(rewritten(text), Ok(Some(expected.to_owned())), "{text}");
        }
        assert_eq!(rewritten("name == \"2026-13-45\""), Ok(None));
    }

    #[test]
    fn what_is_no_date_is_an_error() {
        for text in [
            "2026-13-45",
            "2026-02-30",
            "26.02.2026",
            "2026-2-5",
            "yesterday",
            "",
            "2026-02-24 25:00",
            "2026-02-24 ",
            "2h",
        ] {
            let found = rewritten(&format!("updated > \"{text}\""));
            assert_eq!(found, Err(format!("\"{text}\" is no date at 10")), "{text}");
        }
    }
}
