//! What people read, as files: the blocks of the most used verbs at 60, 80 and 200 columns. `DENDRER_UPDATE=1` writes
//! them; the Python tests measure their width with the tables of another library.

use std::path::{Path, PathBuf};

use crate::support::{Place, Ran};
#[cfg(unix)]
use crate::wrong_commands::sh;

/// Set to write the files instead of comparing them.
const UPDATE: &str = "DENDRER_UPDATE";

const WIDTHS: [&str; 3] = ["60", "80", "200"];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/printed").join(format!("{name}.txt"))
}

/// Writes digits of ids, keys and times of this run as dots, and keeps their width.
fn steady(text: &str) -> String {
    let is_hex = |word: &str| {
        let is_id = [12, 64].contains(&word.len())
            && word.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        is_id && word.bytes().any(|c| c.is_ascii_digit())
    };
    let is_time = |word: &str| {
        let shape: String = word.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
        matches!(shape.as_str(), "9999-99-99" | "99:99:99")
    };
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric()
            || c == '-' && word.len() >= 4
            || c == ':' && word.len() < 8 && !word.is_empty()
        {
            word.push(c);
            continue;
        }
        let hides = is_hex(&word) || is_time(&word);
        out.extend(word.chars().map(|c| if hides && c.is_ascii_alphanumeric() { '.' } else { c }));
        word.clear();
        out.push(c);
    }
    out.pop();
    // The short form of the key that signed.
    let lines =
        out.split('\n').map(|line| match line.strip_prefix("signer    ").and_then(|rest| rest.get(8..)) {
            Some(rest) => format!("signer    ........{rest}"),
            None => line.to_owned(),
        });
    lines.collect::<Vec<_>>().join("\n")
}

fn block(place: &Place, line: &str, width: &str) -> String {
    let words: Vec<String> = words(line);
    let args: Vec<&str> = words.iter().map(String::as_str).chain(["--width", width]).collect();
    let Ran { code, stdout, stderr, .. } = place.run(&args);
    let end = if code == 0 { String::new() } else { format!("[exit {code}]\n") };
    let stderr: String = stderr.lines().map(|line| format!("(stderr) {line}\n")).collect();
    format!("$ dendrer {line} --width {width}\n{stdout}{stderr}{end}\n")
}

/// Splits a line at blanks outside of single quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(at, part)| match at % 2 {
            0 => part.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

fn check(name: &str, place: &Place, lines: &[&str], times: bool) {
    let mut text = String::new();
    for width in WIDTHS {
        for line in lines {
            text.push_str(&block(place, line, width));
        }
    }
    let text = text.replace(&*place.path().to_string_lossy(), "/tmp/.tmp......");
    let text = if times { text } else { steady(&text) };
    let path = file(name);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for (found, expected) in text.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(found, expected, "{}: DENDRER_UPDATE=1 writes it anew", path.display());
    }
    assert_eq!(text, expected, "{}", path.display());
    paste(place, &text);
}

/// Returns the commands that a text prints for its reader, each as it would be pasted.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines().map(|line| line.strip_prefix("(stderr) ").unwrap_or(line));
    while let Some(line) = lines.next() {
        let begun = ["help: ", "SUGGESTION  "].iter().find_map(|lead| line.strip_prefix(lead));
        let counted = || line.trim_start().strip_prefix('(')?.split_once(" more line").map(|(_, rest)| rest);
        let counted = || Some(counted()?.split_once(": ")?.1);
        let Some(mut command) = begun.or_else(counted).map(str::to_owned) else { continue };
        while command.ends_with('\\') {
            command.push('\n');
            command.push_str(lines.next().unwrap_or_default());
        }
        if begun.is_none() {
            command = command.strip_suffix(')').unwrap_or(&command).to_owned();
        }
        if command.starts_with("dendrer ") {
            found.push(command);
        }
    }
    found
}

/// Pastes each command of a text into a shell: none is a usage error or names what is missing, and nothing else runs.
#[cfg(unix)]
fn paste(place: &Place, text: &str) {
    std::fs::write(place.path().join("FILE"), r#"{"item":"torque wrench","price":291.4}"#).unwrap();
    let names = || -> std::collections::BTreeSet<_> {
        std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = names();
    let commands: std::collections::BTreeSet<String> = commands(text).into_iter().collect();
    for command in commands {
        let (code, said) = sh(place, &command);
        assert!(![2, 3, 126, 127].contains(&code), "{command}\n{said}");
    }
    assert_eq!(names(), before);
}

#[cfg(not(unix))]
fn paste(_: &Place, _: &str) {}

#[test]
fn the_demo_is_printed_as_its_file_has_it() {
    let lines = [
        "runs",
        "log logistics-run-47@21..23",
        "show logistics-run-47@22",
        "state logistics-run-47@3",
        "diff trip-planner-a trip-planner-b",
        "bisect logistics-run-47 --predicate kernel.policy_compliant",
        "bisect logistics-run-47 --predicate kernel.policy_compliant --format paper",
        "bisect trip-planner-a --policy-flip action.request --format paper",
        "why logistics-run-47@31 risk_score",
        "why logistics-run-47@27",
        "backtrack logistics-run-47 risk_score --values",
        "verify logistics-run-47",
        "compare logistics-run-47:router logistics-run-47:feed-reader",
        "commitments logistics-run-47",
        "predicate test kernel.policy_compliant logistics-run-47",
    ];
    check("demo", &Place::with_demo(), &lines, true);
}

#[test]
fn a_run_under_a_pack_is_printed_as_its_file_has_it() {
    let lines = [
        "log claims-9 -n 5",
        "show claims-9@34",
        "state claims-9",
        "diff claims-9 claims-10",
        "bisect claims-9 --all-of standard",
        "bisect claims-9 --predicate kernel.policy_compliant",
        "why claims-9 total_paid_to_date",
        "backtrack claims-9 total_paid_to_date",
        "verify claims-9 --replay",
        "contract check claims-9",
    ];
    check("pack", &Place::with_demo(), &lines, true);
}

#[test]
fn a_hostile_run_is_printed_as_its_file_has_it() {
    let lines = [
        "runs --where 'refusals > 0'",
        "log hostile-1 --refusals",
        "show hostile-1@2",
        "show hostile-1@5",
        "state hostile-1@3",
        "diff hostile-1 hostile-1@12 --summary",
        "diff hostile-1 shop-team",
        "bisect hostile-1 --holds 'state.counters.tool_errors == 0'",
        "bisect hostile-1 --predicate kernel.anomaly_free",
        "backtrack hostile-1 notes",
        "verify hostile-1",
    ];
    check("hostile", &Place::with_demo(), &lines, true);
}

/// The agent that buys for a workshop: the eighth quote comes in another currency (tick 32, booked at 34), and the sum
/// passes its limit at tick 50.
mod workshop {
    use std::fmt::Write as _;

    const ITEMS: [(&str, f64, &str); 12] = [
        ("hammer", 32.5, "CHF"),
        ("saw", 41.0, "CHF"),
        ("drill", 149.9, "CHF"),
        ("vice", 88.0, "CHF"),
        ("file set", 37.2, "CHF"),
        ("chisel", 29.9, "CHF"),
        ("ruler", 12.0, "CHF"),
        ("torque wrench", 310.0, "EUR"),
        ("level", 38.0, "CHF"),
        ("clamps", 54.4, "CHF"),
        ("gloves", 19.9, "CHF"),
        ("lamp", 61.0, "CHF"),
    ];

    fn cents(number: f64) -> f64 {
        (number * 100.0).round() / 100.0
    }

    /// The run as lines of `commit`.
    pub(super) fn lines() -> String {
        let mut out = String::new();
        let mut line = |text: String| writeln!(out, "{text}").unwrap();
        line(r#"{"type":"observation.add","agent":"agent","intent":{"description":"Buy the 12 items on the list for the workshop, at most CHF 860. Mail me the total. 謝謝 🙏"},"delta":[{"set":"/budget_chf","value":860},{"set":"/total_chf","value":0},{"set":"/quotes","value":{}},{"set":"/orders","value":{}}]}"#.to_owned());
        line(r#"{"type":"plan.update","agent":"agent","intent":{"description":"quote first, then order each item"}}"#.to_owned());
        let mut total = 0.0;
        for (at, (item, price, currency)) in ITEMS.iter().enumerate() {
            let (quote, order, number) = (2 * at + 1, 2 * at + 2, at + 1);
            let output = format!(r#"{{"item":"{item}","price":{price},"currency":"{currency}"}}"#);
            line(format!(
                r#"{{"type":"action.request","agent":"agent","action":{{"tool":"search_price","params":{{"item":"{item}"}},"call_id":"c{quote}"}}}}"#
            ));
            line(format!(
                r#"{{"type":"action.result","agent":"agent","action":{{"tool":"search_price","call_id":"c{quote}"}},"result":{{"status":"ok","output":{output}}},"delta":[{{"set":"/quotes/{item}","value":{output}}}]}}"#
            ));
            line(format!(
                r#"{{"type":"action.request","agent":"agent","action":{{"tool":"place_order","params":{{"item":"{item}","price_chf":{price}}},"call_id":"c{order}"}}}}"#
            ));
            total = cents(total + price);
            line(format!(
                r#"{{"type":"action.result","agent":"agent","action":{{"tool":"place_order","call_id":"c{order}"}},"result":{{"status":"ok","output":{{"order":"O-{number}","booked_chf":{price}}}}},"delta":[{{"set":"/total_chf","value":{total}}},{{"set":"/orders/{item}","value":{price}}}]}}"#
            ));
        }
        line(format!(
            r#"{{"type":"action.request","agent":"agent","action":{{"tool":"send_mail","params":{{"to":"ann","body":"total CHF {total}"}},"call_id":"c25"}}}}"#
        ));
        line(r#"{"type":"action.result","agent":"agent","action":{"tool":"send_mail","call_id":"c25"},"result":{"status":"ok","output":{"sent":false}},"delta":[{"set":"/mail","value":{"sent":false}}]}"#.to_owned());
        line(format!(
            r#"{{"type":"goal.complete","agent":"agent","intent":{{"description":"ordered everything for CHF {total}"}}}}"#
        ));
        out
    }

    /// The same agent as messages of a chat.
    pub(super) fn chat() -> String {
        let mut messages = vec![
            r#"{"role":"system","content":"You buy what is on the list. Never spend more than CHF 860."}"#.to_owned(),
            r#"{"role":"user","content":"Buy the 12 items on the list for the workshop, at most CHF 860. Mail me the total. 謝謝 🙏"}"#.to_owned(),
            r#"{"role":"assistant","content":"quote first, then order each item"}"#.to_owned(),
        ];
        let mut number = 0;
        let mut call = |tool: &str, arguments: String, output: String| {
            number += 1;
            let quoted = |text: &str| dendrer_object::Value::from(text).to_string();
            messages.push(format!(r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{number}","type":"function","function":{{"name":"{tool}","arguments":{}}}}}]}}"#, quoted(&arguments)));
            messages.push(format!(
                r#"{{"role":"tool","tool_call_id":"call_{number}","content":{}}}"#,
                quoted(&output)
            ));
        };
        for (at, (item, price, currency)) in ITEMS.iter().enumerate() {
            call(
                "search_price",
                format!(r#"{{"item": "{item}"}}"#),
                format!(r#"{{"item": "{item}", "price": {price:.1}, "currency": "{currency}"}}"#),
            );
            call(
                "place_order",
                format!(r#"{{"item": "{item}", "price_chf": {price:.1}}}"#),
                format!(r#"{{"order": "O-{}", "booked_chf": {price:.1}}}"#, at + 1),
            );
        }
        call(
            "send_mail",
            r#"{"to": "ann", "body": "total CHF 873.8"}"#.to_owned(),
            r#"{"sent": false}"#.to_owned(),
        );
        messages.push(r#"{"role":"assistant","content":"ordered everything for CHF 873.8"}"#.to_owned());
        format!("[{}]", messages.join(",\n"))
    }
}

fn workshop_place() -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("chat.json"), workshop::chat()).unwrap();
    place.ok(&["import", "chat.json", "--run", "shop-chat"]);
    place.run_with(
        &["commit", "--run", "shop-py", "--goal", "12 items, at most CHF 860"],
        workshop::lines().as_bytes(),
    );
    place
}

#[test]
fn an_import_and_its_agent_are_printed_as_their_file_has_it() {
    let lines = [
        // The two are made within a second, or not.
        "runs --time none",
        "log shop-chat@31..32",
        "log shop-chat -n 4",
        "show shop-chat@32 --result",
        "show shop-chat@32",
        "show shop-chat@31",
        "state shop-chat",
        "state shop-chat counters",
        "state shop-py orders",
        "diff shop-chat shop-py --stat",
        "diff shop-chat shop-py -n 4",
        "bisect shop-py --holds 'state.total_chf <= 860'",
        "bisect shop-py --holds 'state.totl <= 3'",
        "bisect shop-chat --holds 'state.counters.tool_errors == 0'",
        "why shop-py total_chf",
        "why shop-py@33",
        "backtrack shop-py total_chf --values -n 3",
        "backtrack shop-chat counters.tool_errors",
        "verify shop-chat",
    ];
    check("import", &workshop_place(), &lines, false);
}

#[test]
fn the_onset_has_the_answer_in_another_currency() {
    let place = workshop_place();
    let (code, found) = place.json(&["bisect", "shop-py", "--holds", "state.total_chf <= 860"]);
    let number = |value: &dendrer_object::Value| value.as_f64();
    assert_eq!((code, found.get("onset").and_then(number)), (0, Some(50.0)));
    let first = found.get("first_seen").and_then(|list| list.as_array()?.get(0).cloned()).unwrap();
    assert_eq!(first.get("tick").and_then(number), Some(32.0));
    assert_eq!(
        first.get("tool").and_then(|tool| tool.as_str().map(str::to_owned)).as_deref(),
        Some("search_price")
    );
    assert_eq!(
        first.get("certainty").and_then(|word| word.as_str().map(str::to_owned)).as_deref(),
        Some("heuristic")
    );
}
