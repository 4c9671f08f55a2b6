//! Points and lengths of time, the fields that are declared moments, and texts that only look like moments.

use super::*;

/// A bill whose two times have two offsets, and a field that nobody declared.
fn run_bill(text: &str) -> String {
    let state = read(
        r#"{"due":"2026-03-01T12:00:00Z","paid_at":"2026-03-01T12:30:00+02:00","late_at":"2026-03-01T09:59:00-05:00",
            "free":"2026-03-01T12:00:00.000Z","note":"paid","nul":null,"n":5,"old":"2026-03-01T11:00:00Z",
            "bill":{"due":"2026-03-01T13:00:00+01:00"},"secs":1772366400,
            "log":[{"at":"2026-03-01T12:30:00+02:00"},{"at":"2026-03-01T12:00:00Z"}]}"#,
    );
    let scope = ["/due", "/paid_at", "/late_at", "/bill/due", "/nul", "/n"]
        .iter()
        .fold(Scope::new(), |scope, path| scope.datetime(&path.parse().unwrap()))
        .root_of_state("before")
        .constant("DEADLINE", Value::from("2026-03-01T14:00:00+01:00"))
        .define("is_late", &[], "state.paid_at > state.due")
        .unwrap()
        .define("after", &["a", "b"], "a > b")
        .unwrap()
        .define("latest", &["a", "b"], "max(a, b)")
        .unwrap();
    match Expr::parse(text, &scope) {
        Err(error) => format!("{}: {}", error.code, error.message),
        Ok(expr) => {
            let env = Env { others: &[("before", &state)], ..Env::of(&state) };
            match expr.evaluate(&env, &mut Budget::default()) {
                Ok(value) => value.to_string(),
                Err(EvalError::Uncertain(why)) => {
                    format!("{}: {}", why.hint.as_deref().unwrap_or("-"), why.message)
                }
                Err(EvalError::Exhausted) => "exhausted".to_owned(),
            }
        }
    }
}

fn check_bill(table: &[(&str, &str)]) {
    for (text, expected) in table {
        assert_eq!(run_bill(text), *expected, "{text}");
    }
}

#[test]
fn declared_fields_are_ordered_and_calculated_with_as_moments() {
    check_bill(&[
        ("state.paid_at > state.due", "false"),
        ("state.late_at > state.due", "true"),
        ("is_late", "false"),
        ("before.late_at > state.paid_at", "true"),
        ("state.due <= '2026-03-01T13:00:00+01:00'", "true"),
        ("'2026-03-01T13:00:00.000+01:00' < state.late_at", "true"),
        ("state.due < DEADLINE", "true"),
        ("state.late_at < DEADLINE", "false"),
        ("state.bill.due >= state.due", "true"),
        ("state.due <= state.free && state.due >= state.free", "true"),
        ("cel.bind(d, state.due, state.paid_at < d)", "true"),
        ("(state.note == 'paid' ? state.paid_at : state.due) < state.due", "true"),
        ("state.due - state.paid_at == duration('90m')", "true"),
        ("state.due - state.paid_at < duration('1h')", "false"),
        ("state.due - '2026-03-01T00:00:00Z'", "\"43200s\""),
        ("state.due + duration('24h')", "\"2026-03-02T12:00:00Z\""),
        ("duration('1s') + state.due + duration('1s')", "\"2026-03-01T12:00:02Z\""),
        ("state.due - duration('1s') < timestamp(state.free)", "true"),
        ("max(state.due, state.paid_at)", "\"2026-03-01T12:00:00Z\""),
        ("min(state.due, state.paid_at)", "\"2026-03-01T12:30:00+02:00\""),
        ("min(state.late_at, state.paid_at, state.due) < state.due", "true"),
        ("max(state.due, timestamp(state.free))", "\"2026-03-01T12:00:00Z\""),
        ("timestamp(state.free) == state.due", "true"),
        ("state.due == timestamp(state.free)", "true"),
        ("after(state.paid_at, state.due)", "false"),
        ("after(state.late_at, '2026-03-01T13:00:00+01:00')", "true"),
        ("latest(state.paid_at, state.due) < state.late_at", "true"),
        ("max([state.paid_at, state.due])", "\"2026-03-01T12:00:00Z\""),
        ("min([state.paid_at, state.free, state.due])", "\"2026-03-01T12:30:00+02:00\""),
        ("sort([state.due, state.paid_at, state.free])[0]", "\"2026-03-01T12:30:00+02:00\""),
        ("[state].exists(s, s.paid_at > s.due)", "false"),
        ("[state.paid_at, state.late_at].map(t, t > state.due)", "[false,true]"),
        ("{'a': state.paid_at}.a > {'b': state.due}.b", "false"),
        ("{'a': [state.paid_at]}", "{\"a\":[\"2026-03-01T12:30:00+02:00\"]}"),
        ("size([state.paid_at][0])", "25"),
        ("state.due in [state.due, state.paid_at]", "true"),
        ("distinct([state.due, state.due])", "[\"2026-03-01T12:00:00Z\"]"),
        ("canon([state.due])", "\"[\\\"2026-03-01T12:00:00Z\\\"]\""),
        ("timestamp(state.free) == timestamp(state.old)", "false"),
    ]);
}

#[test]
fn declared_fields_are_texts_to_everything_else() {
    check_bill(&[
        ("state.due", "\"2026-03-01T12:00:00Z\""),
        ("'due ' + state.due", "\"due 2026-03-01T12:00:00Z\""),
        ("state.due + ' at noon'", "\"2026-03-01T12:00:00Z at noon\""),
        ("state.due.startsWith('2026-')", "true"),
        ("size(state.due)", "20"),
        ("state.due == '2026-03-01T12:00:00Z'", "true"),
        ("state.due == '2026-03-01T13:00:00+01:00'", "false"),
        ("state.due == state.bill.due", "false"),
        ("timestamp(state.due) == timestamp(state.bill.due)", "true"),
        ("state.due in ['2026-03-01T12:00:00Z']", "true"),
        (
            "state.due.getHours()",
            "write timestamp(state.due) or duration(state.due): state.due is a string, and `getHours` takes a time beside a time",
        ),
    ]);
}

#[test]
fn what_is_no_moment_beside_one_is_refused_or_uncertain() {
    let kind = "such as 2026-02-23T17:21:05+01:00";
    check_bill(&[
        ("state.due < 'soon'", "E0502: the text is no time with its offset, as RFC 3339 writes it"),
        ("state.due - '1h'", "E0502: the text is no time with its offset, as RFC 3339 writes it"),
        ("state.due < 5", "E0502: `<` does not take a timestamp and an int"),
        ("state.due < duration('1s')", "E0502: `<` does not take a timestamp and a duration"),
        (
            "timestamp('2026-02-30T00:00:00Z')",
            "E0502: the text is no time with its offset, as RFC 3339 writes it",
        ),
        (
            "timestamp('2016-12-31T23:59:60Z')",
            "E0502: the text names a leap second, which has no place among the others",
        ),
        ("duration('1d')", "E0502: the text is no duration"),
        ("timestamp(state.due) == 'x'", "E0502: a timestamp and a string are never equal"),
        (
            "after(state.due, state.note)",
            "such as 2026-02-23T17:21:05+01:00: b: the text is no time with its offset, as RFC 3339 writes it, in `after`",
        ),
        (
            "max([state.due, state.note])",
            "such as 2026-02-23T17:21:05+01:00: the text is no time with its offset, as RFC 3339 writes it",
        ),
        (
            "state.due < state.note",
            &format!("{kind}: state.note: the text is no time with its offset, as RFC 3339 writes it"),
        ),
        (
            "state.due < state.nul",
            "guard it: state.nul != null && ...: state.nul is null, and `<` takes numbers, strings or booleans",
        ),
        (
            "state.n < state.due",
            "write timestamp(state.n) or duration(state.n): state.n is a number, and `<` takes a time beside a time",
        ),
        (
            "timestamp(state.due) == state.free",
            "write timestamp(text) or duration(text) for the text, or string(a) for the time: a time is compared with a text",
        ),
        (
            "timestamp(state.due) < state.free",
            "write timestamp(state.free) or duration(state.free): state.free is a string, and `<` takes a time beside a time",
        ),
        ("timestamp(state.due) == state.nul", "false"),
    ]);
}

#[test]
fn texts_in_two_spellings_have_no_order() {
    let two = "times that differ in the offset or in the number of fraction digits are not ordered as texts";
    let pair = |a: &str, b: &str| format!("-: {two}: compare timestamp({a}) with timestamp({b})");
    let list = format!("-: {two}: take timestamp(text) of each");
    check_bill(&[
        ("state.old < state.free", &pair("state.old", "state.free")),
        ("state.old < '2026-03-01T12:00:00+00:00'", &pair("state.old", "\"2026-03-01T12:00:00+00:00\"")),
        ("state.log[0].at >= state.log[1].at", &pair("state.log[0].at", "state.log[1].at")),
        ("state.old < '2026-03-01T12:00:00Z'", "true"),
        ("state.old < '2026-03-01'", "false"),
        ("state.old < 'later'", "true"),
        ("state.old == state.free", "false"),
        ("state.old < '2026-03-01T12:00:00'", &pair("state.old", "\"2026-03-01T12:00:00\"")),
        ("state.old < '2026-03-01T12:00Z'", &pair("state.old", "\"2026-03-01T12:00Z\"")),
        ("state.old < '2026-03-01T12:00:00Z and more'", "true"),
        ("'2026-03-01T12:00' < '2026-03-01T13:00'", "true"),
        ("max(state.old, state.free, 'x')", &list),
        ("min(state.log.map(entry, entry.at))", &list),
        ("sort(state.log.map(entry, entry.at))", &list),
        ("sort([state.old, 'x', state.free])", &list),
        ("sort([state.old, '2026-03-01T10:00:00Z'])", "[\"2026-03-01T10:00:00Z\",\"2026-03-01T11:00:00Z\"]"),
        (
            "sort(state.log.map(entry, timestamp(entry.at)))",
            "[\"2026-03-01T10:30:00Z\",\"2026-03-01T12:00:00Z\"]",
        ),
        ("max(state.log.map(entry, timestamp(entry.at))) == timestamp(state.due)", "true"),
        ("state.log.all(entry, timestamp(entry.at) <= timestamp(state.due))", "true"),
    ]);
}

#[test]
fn times_are_values_of_lists_and_maps_and_leave_as_texts() {
    check_bill(&[
        ("[timestamp(state.due), 1]", "[\"2026-03-01T12:00:00Z\",1]"),
        (
            "{'at': timestamp(state.paid_at), 'for': duration('1h30m')}",
            "{\"at\":\"2026-03-01T10:30:00Z\",\"for\":\"5400s\"}",
        ),
        ("[timestamp(state.paid_at)][0].getHours()", "10"),
        ("[timestamp(state.paid_at)][0].getHours('+02:00')", "12"),
        ("timestamp(state.due) in [timestamp(state.bill.due)]", "true"),
        ("distinct([timestamp(state.due), timestamp(state.bill.due)])", "[\"2026-03-01T12:00:00Z\"]"),
        ("canon([timestamp(state.due)])", "\"[\\\"2026-03-01T12:00:00Z\\\"]\""),
        ("string(timestamp(state.paid_at)) + '!'", "\"2026-03-01T10:30:00Z!\""),
        ("int(timestamp(state.due)) == state.secs", "true"),
        ("timestamp(state.secs) == timestamp(state.due)", "true"),
        ("timestamp(state.secs * 1000)", "-: the time is outside the years 1 to 9999"),
        (
            "parse_json('{\"$timestamp\": \"2026-03-01T12:00:00Z\"}')",
            "{\"$$timestamp\":\"2026-03-01T12:00:00Z\"}",
        ),
        ("timestamp('0001-01-01T00:00:00Z').getDayOfYear('-02:00')", "365"),
        ("duration('90m').getHours()", "1"),
        ("duration('-90m').getHours()", "-1"),
        ("duration('90m').getMilliseconds()", "E0502: `getMilliseconds` does not take a duration"),
    ]);
}

#[test]
fn the_same_text_over_a_declared_field_means_something_else() {
    let text = "state.a > state.b";
    let plain = Expr::parse(text, &Scope::new()).unwrap();
    let declared = Expr::parse(text, &Scope::new().datetime(&"/a".parse().unwrap())).unwrap();
    assert_eq!(plain.canonical(), declared.canonical());
    assert_ne!(plain.in_full(), declared.in_full());
}
