//! Largest writes and first seen, against a slow definition that looks at every leaf of every transition.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use dendrer::Trace;
use std::sync::Arc;

use dendrer::ask::bisect::gather::{BisectAnswer, BisectDetails};
use dendrer::ask::first_seen::FirstSeen;
use dendrer::ask::why::gather::why;
use dendrer::bisect::BisectSubject;
use dendrer::why::Reach;
use dendrer_kernel::predicate::Predicate;
use dendrer_kernel::step::Start;
use dendrer_object::record::Record;
use dendrer_object::{Delta, Intent, Pointer, Value, json};
use dendrer_store::Shared;
use dendrer_store::embedded::{Embedded, Options};
use dendrer_testkit::{Dice, info, key, memory, record, records_of, run_name, store_of};

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// One line of a recording, with members as JSON.
fn line(type_name: &str, members: &[(&str, &str)], delta: &str) -> Intent {
    let mut intent = Intent::new(type_name.parse().unwrap(), "agent");
    for (name, text) in members {
        intent = match *name {
            "messages" => intent.by_runtime().carrying(name, value(text)),
            name => intent.with(name, value(text)),
        };
    }
    let intent = if type_name.starts_with("action.") { intent.by_runtime() } else { intent };
    intent.with_delta(Delta::from_value(&value(delta)).unwrap())
}

fn recorded(state: &str, meta: Option<&str>, lines: Vec<Intent>) -> Shared {
    let store = memory(3);
    let mut start = Start::new(run_name("r"));
    start.state = value(state);
    if let Some(meta) = meta {
        start.meta = Some(value(meta));
    }
    record(&store, &start, lines);
    store
}

fn trace(store: &Shared) -> Trace {
    Trace::open(store, &run_name("r")).unwrap()
}

fn answer(trace: &Trace, holds: &str) -> BisectAnswer {
    let subject = BisectSubject::Predicate(Predicate::holds("expression", holds).unwrap());
    let report = trace.bisect(&subject).unwrap();
    let details = BisectDetails { contributors: false, chain_limit: 0, may_fork: true };
    BisectAnswer::of(trace, subject, report, details).unwrap()
}

/// Writes `88 at 16 /result/output/price of search_price +2` for each value that was looked for.
fn words(found: &FirstSeen) -> Vec<String> {
    let each = found.seen.iter().map(|seen| match &seen.at {
        Some(at) => {
            let tool = at.tool.as_ref().map_or_else(String::new, |tool| format!(" of {tool}"));
            format!("{} at {} {}{tool} +{}", seen.value, at.tick, at.path.as_str(), at.others)
        }
        None => format!("{} not before {}, {} unread", seen.value, seen.write, seen.unread),
    });
    each.collect()
}

fn moved(found: &FirstSeen) -> Vec<String> {
    let side = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
    let each = found.moved.iter().map(|one| {
        format!(
            "{} {} {} -> {} {}",
            one.tick,
            one.place.as_str(),
            side(&one.before),
            one.after,
            side(&one.change)
        )
    });
    each.collect()
}

const PRICES: [(&str, &str, &str); 12] = [
    ("hammer", "32.5", "CHF"),
    ("saw", "41", "CHF"),
    ("drill", "149.9", "CHF"),
    ("vice", "88", "CHF"),
    ("file set", "37.2", "CHF"),
    ("chisel", "29.9", "CHF"),
    ("ruler", "12", "CHF"),
    ("torque wrench", "310.0", "EUR"),
    ("level", "38", "CHF"),
    ("clamps", "54.4", "CHF"),
    ("gloves", "19.9", "CHF"),
    ("lamp", "61", "CHF"),
];

/// An agent that buys twelve items and adds the eighth quote, in EUR, as CHF.
fn shop() -> Vec<Intent> {
    let begin = r#"[{"set":"/budget_chf","value":860},{"set":"/total_chf","value":0}]"#;
    let mut lines = vec![
        line("observation.add", &[("intent", r#"{"description":"buy 12 items, at most CHF 860"}"#)], begin),
        line("plan.update", &[("intent", r#"{"description":"quote, then order"}"#)], "[]"),
    ];
    let mut total = 0.0;
    for (item, price, currency) in PRICES {
        let call = |tool: &str, params: &str| format!(r#"{{"tool":"{tool}","params":{params}}}"#);
        let quote = format!(r#"{{"item":"{item}","price":{price},"currency":"{currency}"}}"#);
        let params = format!(r#"{{"item":"{item}"}}"#);
        let output = |output: &str| format!(r#"{{"status":"ok","output":{output}}}"#);
        lines.push(line("action.request", &[("action", &call("search_price", &params))], "[]"));
        lines.push(line(
            "action.result",
            &[("action", r#"{"tool":"search_price"}"#), ("result", &output(&quote))],
            &format!(r#"[{{"set":"/quotes/{item}","value":{quote}}}]"#),
        ));
        let params = format!(r#"{{"item":"{item}","price_chf":{price}}}"#);
        lines.push(line("action.request", &[("action", &call("place_order", &params))], "[]"));
        total = (100.0 * (total + price.parse::<f64>().unwrap())).round() / 100.0;
        lines.push(line(
            "action.result",
            &[
                ("action", r#"{"tool":"place_order"}"#),
                ("result", &output(&format!(r#"{{"booked_chf":{price}}}"#))),
            ],
            &format!(
                r#"[{{"set":"/total_chf","value":{total}}},{{"set":"/orders/{item}","value":{price}}}]"#
            ),
        ));
    }
    lines
}

#[test]
fn an_onset_leads_back_to_the_answer_in_another_currency() {
    let store = recorded("{}", None, shop());
    let trace = trace(&store);
    let answer = answer(&trace, "state.total_chf <= 860");
    assert_eq!(answer.found.report.onset(), Some(50));
    let found = answer.first_seen.as_ref().unwrap();
    assert_eq!(
        moved(found),
        [
            "34 /total_chf 390.5 -> 700.5 310",
            "14 /total_chf 73.5 -> 223.4 149.9",
            "18 /total_chf 223.4 -> 311.4 88"
        ]
    );
    assert_eq!((found.writes, found.hidden, found.is_whole()), (13, 0, true));
    assert_eq!(
        words(found),
        [
            "310 at 32 /result/output/price of search_price +2",
            "149.9 at 12 /result/output/price of search_price +2",
            "88 at 16 /result/output/price of search_price +2"
        ]
    );
    let within = found.seen[0].at.as_ref().unwrap().within.to_string();
    assert_eq!(within, r#"{"currency":"EUR","item":"torque wrench","price":310}"#);
    let suggested: Vec<(String, Option<String>)> =
        answer.suggestions().into_iter().map(|one| (one.argv.join(" "), one.remark)).collect();
    assert_eq!(suggested[0].0, "dendrer fork r@31");
    assert_eq!(
        suggested[0].1.as_deref(),
        Some("before the answer came in; no rules, so the agent itself goes on from there")
    );
    assert!(suggested[1].0.contains("--tool-policy"), "{suggested:?}");
    let place = Pointer::of(["total_chf"]);
    let why = why(&trace, 34, &place, Reach { depth: 1, cross_agent: true }).unwrap().unwrap();
    assert_eq!(words(&why.first_seen.unwrap()), ["310 at 32 /result/output/price of search_price +2"]);
}

#[test]
fn a_place_without_a_number_is_looked_for_by_its_value() {
    let told = r#"{"description":"the supplier is Acme Ltd, Bern."}"#;
    let lines = vec![
        line("observation.add", &[("intent", told)], r#"[{"set":"/n","value":1}]"#),
        line("memory.write", &[], r#"[{"set":"/supplier","value":"Acme Ltd"}]"#),
        line("memory.write", &[], r#"[{"set":"/supplier","value":"Acme Ltd, Bern"}]"#),
    ];
    let store = recorded(r#"{"supplier":"none yet"}"#, None, lines);
    let found = answer(&trace(&store), r#"state.supplier != "Acme Ltd, Bern""#).first_seen.unwrap();
    assert_eq!((moved(&found), found.writes), (Vec::new(), 2));
    assert_eq!(words(&found), [r#""Acme Ltd, Bern" at 1 /intent/description +0"#]);
}

#[test]
fn the_first_state_of_a_run_counts() {
    let lines = vec![line("memory.write", &[], r#"[{"set":"/due","value":450}]"#)];
    let store = recorded(r#"{"due":100,"offer":{"monthly":350}}"#, None, lines);
    let found = answer(&trace(&store), "state.due <= 400").first_seen.unwrap();
    assert_eq!(words(&found), ["350 at 0 /state/offer/monthly +0"]);
}

#[test]
fn a_thread_is_read_by_its_writes_messages_and_checkpoints() {
    let writes = r#"{"writes":{"exact":{"len":310}},"metadata":{"step":310},"values":[{"channel":"quote","value":{"price":310.0,"currency":"EUR"}}]}"#;
    let message =
        r#"[{"role":"tool","content":"{\"weight\": 42.5}","result":{"tool":"weigh","status":"ok"}}]"#;
    let lines = vec![
        line(
            "memory.write",
            &[("intent", r#"{"checkpoint":{"at":310}}"#)],
            r#"[{"set":"/values","value":{"total":32.5}}]"#,
        ),
        line("observation.add", &[("intent", writes), ("messages", message)], "[]"),
        line("memory.write", &[], r#"[{"set":"/values/quote","value":{"price":310}}]"#),
        line("memory.write", &[], r#"[{"set":"/values/total","value":342.5}]"#),
        line("memory.write", &[], r#"[{"set":"/values/total","value":385}]"#),
        line("memory.write", &[], r#"[{"set":"/values/total","value":695}]"#),
    ];
    let store = recorded(r#"{"values":{}}"#, Some(r#"{"thread_id":"t-a"}"#), lines);
    let trace = trace(&store);
    let found = answer(&trace, "!has(state.values.total) || state.values.total <= 300").first_seen.unwrap();
    assert_eq!(words(&found)[0], "310 at 2 /intent/values/0/value/price +1");
    let found = FirstSeen::of_write(&trace, &Pointer::of(["values", "total"]), 5);
    assert_eq!(words(&found), ["42.5 at 2 /messages/0/content/weight of weigh +0"]);
    let found = FirstSeen::of_write(&trace, &Pointer::of(["values", "quote"]), 3);
    assert_eq!(words(&found), ["310 at 2 /intent/values/0/value/price +0"]);
}

#[test]
fn erased_values_are_counted() {
    let lines = vec![
        line("observation.add", &[("intent", r#"{"description":"it costs 350"}"#)], "[]"),
        line("memory.write", &[], r#"[{"set":"/due","value":450}]"#),
    ];
    let store = recorded(r#"{"due":100}"#, None, lines);
    let places = [Pointer::of(["intent", "description"])];
    let hidden: Vec<Record> = records_of(&store)
        .into_iter()
        .map(|record| if record.header().tick == Some(1) { record.without(&places) } else { record })
        .collect();
    let hidden = store_of(info(3), hidden);
    let found = FirstSeen::of_write(&trace(&store), &Pointer::of(["due"]), 2);
    assert_eq!(words(&found), ["350 at 1 /intent/description +0"]);
    let found = FirstSeen::of_write(&trace(&hidden), &Pointer::of(["due"]), 2);
    assert_eq!(words(&found), ["350 not before 2, 1 unread"]);
}

/// The slow definition: the first tick with a leaf that is equal, read through every text of JSON.
mod slow {
    use super::*;

    pub(super) fn first(trace: &Trace, number: &str, upto: u64) -> Option<u64> {
        let holds = |value: &Value| leaves(value).iter().any(|leaf| equals(leaf, number));
        if holds(&trace.state(0).unwrap()) {
            return Some(0);
        }
        (1..=upto).find(|tick| {
            let content = trace.record(*tick).unwrap().content();
            let at = |path: &str| path.parse::<Pointer>().unwrap().get(&content).cloned();
            ["/intent", "/action/params", "/result/output"]
                .into_iter()
                .filter_map(at)
                .any(|value| holds(&value))
        })
    }

    /// The value that is named for a number that was written, and its first tick: the change with its sign, then without, if
    /// it is on record before the write, else the number itself, if it is; else the same in the transition of the write.
    pub(super) fn named(
        trace: &Trace,
        after: &Value,
        change: Option<&Value>,
        write: u64,
    ) -> Option<(String, u64)> {
        let seen = |number: String| {
            let is_wanted = !["", "0", "1", "-1"].contains(&&*number);
            let tick = is_wanted.then(|| first(trace, &number, write)).flatten()?;
            Some((number, tick))
        };
        let value = seen(after.to_string());
        let change = change.map(Value::to_string).unwrap_or_default();
        let amount = change.trim_start_matches('-').to_owned();
        let (change, amount) = (seen(change), seen(amount));
        let before = |found: &Option<(String, u64)>| found.clone().filter(|(_, tick)| *tick < write);
        let earlier = before(&change).or_else(|| before(&amount)).or_else(|| before(&value));
        earlier.or(change).or(amount).or(value)
    }

    /// Every scalar, and those of texts that hold JSON.
    fn leaves(value: &Value) -> Vec<Value> {
        match value {
            Value::Object(members) => members.entries().flat_map(|one| leaves(&one.value)).collect(),
            Value::Array(items) => items.iter().flat_map(leaves).collect(),
            Value::String(text) => match json::parse_door(text.as_bytes()) {
                Ok(inner) => [vec![value.clone()], leaves(&inner)].concat(),
                Err(_) => vec![value.clone()],
            },
            scalar => vec![scalar.clone()],
        }
    }

    fn equals(leaf: &Value, number: &str) -> bool {
        match leaf {
            Value::Number(_) => leaf.to_string() == number,
            Value::String(text) if number.bytes().filter(u8::is_ascii_digit).count() >= 3 => {
                text.match_indices(number).any(|(at, _)| {
                    let (before, after) = (&text[..at], &text[at + number.len()..]);
                    let before: Vec<char> = before.chars().rev().take(2).collect();
                    let after: Vec<char> = after.chars().take(2).collect();
                    let is_longer = |around: &[char]| match around {
                        [c, ..] if c.is_alphanumeric() || "_-".contains(*c) => true,
                        [c, digit, ..] => {
                            "'\u{2019} \u{a0}\u{202f}:/.,".contains(*c) && digit.is_ascii_digit()
                        }
                        _ => false,
                    };
                    !is_longer(&before) && !is_longer(&after)
                })
            }
            _ => false,
        }
    }
}

/// An amount with two decimals, as it is printed.
fn amount(cents: u64) -> String {
    Value::from(cents as f64 / 100.0).to_string()
}

/// One step of an agent that has an amount: the line, and how it is spelled there.
fn step(dice: &mut Dice, amount: &str) -> Intent {
    let object = format!(r#"{{"currency":"EUR","price":{amount}}}"#);
    let text = |value: &str| Value::from(value).to_string();
    let words = format!("it costs {amount}, delivery is free.");
    match dice.below(7) {
        0 => line(
            "action.result",
            &[
                ("action", r#"{"tool":"quote"}"#),
                ("result", &format!(r#"{{"status":"ok","output":{object}}}"#)),
            ],
            "[]",
        ),
        1 => line("action.request", &[("action", &format!(r#"{{"tool":"pay","params":{object}}}"#))], "[]"),
        2 => line("observation.add", &[("intent", &format!(r#"{{"description":{}}}"#, text(&words)))], "[]"),
        3 => line(
            "action.result",
            &[
                ("action", r#"{"tool":"quote"}"#),
                ("result", &format!(r#"{{"status":"ok","output":{}}}"#, text(&object))),
            ],
            "[]",
        ),
        4 => {
            let inner = format!(r#"{{"answer":{}}}"#, text(&object));
            line("plan.update", &[("intent", &format!(r#"{{"description":{}}}"#, text(&inner)))], "[]")
        }
        // Part of a longer number, which has another value.
        5 => {
            let separators = ["'", "\u{2019}", " ", "\u{a0}", "\u{202f}", ":", "/", ".", ",", "_"];
            let separator = separators[dice.below(separators.len() as u64) as usize];
            let longer = format!("booked as 12{separator}{amount} today");
            line("observation.add", &[("intent", &format!(r#"{{"description":{}}}"#, text(&longer)))], "[]")
        }
        // A copy in the state alone is no leaf that is looked at.
        _ => line("memory.write", &[], &format!(r#"[{{"set":"/quote","value":{object}}}]"#)),
    }
}

/// An agent that carries an amount through one to six steps and adds it, or overwrites the total with it. If it is changed on the
/// way, another one is added.
fn carrying(dice: &mut Dice, is_changed: bool, is_set: bool) -> (Vec<Intent>, String) {
    let cents = 20_003 + 2 * dice.below(400_000);
    let told = amount(cents);
    let kept = match (is_changed, dice.below(2)) {
        (false, _) => cents,
        (true, 0) => (cents as f64 * 0.94).round() as u64,
        (true, _) => (cents / 100 + 1) * 100,
    };
    let (mut lines, mut total) = (Vec::new(), 0_u64);
    for at in 0..1 + dice.below(6) {
        // Smaller amounts of others come between.
        let other = 101 + 13 * dice.below(700);
        if dice.below(2) == 0 {
            total += other;
            lines.push(step(dice, &amount(other)));
            lines.push(line(
                "memory.write",
                &[],
                &format!(r#"[{{"set":"/total","value":{}}}]"#, amount(total)),
            ));
        }
        let spelled = if at == 0 || !is_changed { &told } else { continue };
        lines.push(step(dice, spelled));
    }
    total = if is_set { kept } else { total + kept };
    lines.push(line("memory.write", &[], &format!(r#"[{{"set":"/total","value":{}}}]"#, amount(total))));
    (lines, amount(kept))
}

#[test]
fn first_seen_is_that_of_the_slow_definition() {
    let count: u64 = std::env::var("DENDRER_AGENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000);
    let mut dice = Dice(49);
    let (mut found_some, mut found_none) = (0, 0);
    for number in 0..count {
        let (is_changed, is_set) = (number % 4 == 3, number % 5 == 4);
        let (lines, kept) = carrying(&mut dice, is_changed, is_set);
        let last = lines.len() as u64;
        let store = recorded(r#"{"total":0}"#, None, lines);
        let trace = trace(&store);
        let total = trace.state(last).unwrap().get("total").unwrap().to_string();
        let found = answer(&trace, &format!("state.total != {total}")).first_seen.unwrap();
        for one in &found.moved {
            let seen = found.seen.iter().find(|seen| seen.write == one.tick).unwrap();
            let slow = slow::named(&trace, &one.after, one.change.as_ref(), one.tick);
            let fast = seen.at.as_ref().map(|at| (seen.value.to_string(), at.tick));
            assert_eq!(fast, slow, "agent {number}: {} at {}", one.after, one.tick);
        }
        // What overwrites may change less than what was added before.
        let of_last = found.seen.iter().find(|seen| seen.write == last);
        let Some(of_last) = of_last else {
            assert!(is_set, "agent {number}");
            continue;
        };
        if !is_set || of_last.at.is_some() {
            assert_eq!(of_last.value.to_string(), kept, "agent {number}");
        }
        match (is_changed, &of_last.at) {
            (true, at) => assert!(at.is_none(), "agent {number}: {kept} was never told"),
            (false, Some(_)) => found_some += 1,
            (false, None) => found_none += 1,
        }
    }
    assert!(found_some > found_none, "{found_some} found, {found_none} in the state alone");
}

/// Measures what the search adds to a bisect of a long run: `DENDRER_TICKS=1000000`.
#[test]
fn a_long_run_is_read_100_000_transitions_back() {
    let count: u64 = std::env::var("DENDRER_TICKS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let quote = |n: u64| format!(r#"{{"status":"ok","output":{{"item":"item {n}","price":{}}}}}"#, n % 97);
    let mut lines: Vec<Intent> = vec![line(
        "action.result",
        &[("action", r#"{"tool":"quote"}"#), ("result", r#"{"status":"ok","output":{"price":70310.5}}"#)],
        "[]",
    )];
    lines.extend((1..count - 1).map(|n| {
        let delta = if n % 100 == 0 { r#"[{"add":"/total","value":0.01}]"# } else { "[]" };
        line("action.result", &[("action", r#"{"tool":"quote"}"#), ("result", &quote(n))], delta)
    }));
    lines.push(line("memory.write", &[], r#"[{"add":"/total","value":70310.5}]"#));
    let dir = tempfile::tempdir().unwrap();
    let store = Embedded::create(&dir.path().join("s"), info(3), Options::untagged()).unwrap();
    let store = Shared::new(Box::new(store.with_key(Some(Arc::new(key(3))))));
    let mut start = Start::new(run_name("r"));
    start.state = value(r#"{"total":0}"#);
    record(&store, &start, lines);
    let trace = trace(&store);
    let predicate = Predicate::holds("expression", "state.total < 70000").unwrap();
    let report = trace.bisect(&BisectSubject::Predicate(predicate.clone())).unwrap();
    let onset = report.onset().unwrap();
    let begun = std::time::Instant::now();
    let found = FirstSeen::of_onset(&trace, &predicate, onset).unwrap().unwrap();
    if count > 300 {
        println!("{count} ticks: {:?}", begun.elapsed());
    }
    assert_eq!(found.is_whole(), count <= 100_000);
    let expected = if found.is_whole() { Some(1) } else { None };
    assert_eq!(found.seen[0].at.as_ref().map(|at| at.tick), expected);
}

#[test]
fn a_number_that_overwrites_another_is_named_itself() {
    let quote = |price: &str| {
        let result = format!(r#"{{"status":"ok","output":{{"price":{price}}}}}"#);
        line("action.result", &[("action", r#"{"tool":"quote"}"#), ("result", &result)], "[]")
    };
    let set = |value: &str| line("memory.write", &[], &format!(r#"[{{"set":"/due","value":{value}}}]"#));
    let of = |lines: Vec<Intent>| {
        let last = lines.len() as u64;
        let store = recorded(r#"{"due":120}"#, None, lines);
        words(&FirstSeen::of_write(&trace(&store), &Pointer::of(["due"]), last))
    };
    let place = "/result/output/price of quote +0";
    // The difference was told before, and so was 310: of a sum it is what was added, so it comes first.
    assert_eq!(of(vec![quote("190"), quote("310"), set("310")]), [format!("190 at 1 {place}")]);
    assert_eq!(of(vec![quote("189"), quote("310"), set("310")]), [format!("310 at 2 {place}")]);
    assert_eq!(of(vec![quote("190"), set("310")]), [format!("190 at 1 {place}")]);
    assert_eq!(of(vec![set("310")]), ["190 not before 1, 0 unread"]);
    // With its sign first.
    assert_eq!(of(vec![quote("310"), quote("-310"), set("-190")]), [format!("-310 at 2 {place}")]);
    assert_eq!(of(vec![quote("310"), set("-190")]), [format!("310 at 1 {place}")]);
    // The noise of doubles is no part of a difference.
    assert_eq!(of(vec![quote("0.2"), set("0.1"), set("0.30000000000000004")]), [format!("0.2 at 1 {place}")]);
}
