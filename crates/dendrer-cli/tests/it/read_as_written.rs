//! Imports that do not guess: what is read is what was written, and what was not read is said. Each input is the kind of transcript
//! that people's reports led to.

use dendrer_object::{Value, json};

use crate::support::Place;

const NO_ERROR: &str = "state.counters.tool_errors == 0";

/// A place with an imported transcript, as run `r`.
fn imported(messages: &str, more: &[&str]) -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("t.json"), messages).unwrap();
    let args = [&["import", "t.json", "--run", "r", "-q"], more].concat();
    place.ok(&args);
    place
}

/// The document of a bisect, and its exit code.
fn bisect(place: &Place, question: &[&str]) -> (Value, i32) {
    let ran = place.run(&[&["bisect", "r", "--no-chain", "--json"], question].concat());
    (json::parse_door(ran.stdout.as_bytes()).unwrap(), ran.code)
}

fn onset(place: &Place, question: &[&str]) -> Option<u64> {
    bisect(place, question).0.get("onset").and_then(Value::as_u64)
}

fn call(id: &str, tool: &str, params: &str) -> String {
    let params = Value::from(params);
    format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"{tool}","arguments":{params}}}}}]}}"#
    )
}

#[test]
fn a_failure_that_a_member_states_is_the_first_failure() {
    for stated in [
        r#""status":"error""#,
        r#""is_error":true"#,
        r#""isError":true"#,
        r#""success":false"#,
        r#""exit_code":2"#,
        r#""error":"no""#,
    ] {
        let said = |id: &str, more: &str| {
            format!(
                r#"{{"role":"tool","tool_call_id":"{id}","content":"people must lie between 1 and 8",{more}}}"#
            )
        };
        let messages = [
            r#"{"role":"user","content":"Seat nine."}"#.to_owned(),
            call("t1", "seat", "{\"people\":9}"),
            said("t1", stated),
            call("t2", "seat", "{\"people\":5}"),
            said("t2", r#""status":"success""#),
        ];
        let place = imported(&format!("[{}]", messages.join(",")), &[]);
        assert_eq!(onset(&place, &["--holds", NO_ERROR]), Some(3), "{stated}");
        assert_eq!(onset(&place, &["--holds", "state.counters.tool_errors <= 1"]), None, "{stated}");
    }
}

#[test]
fn a_status_that_is_not_known_is_neither() {
    let messages = format!(
        r#"[{},{{"role":"tool","tool_call_id":"a","content":"x","status":"on hold"}}]"#,
        call("a", "t", "{}")
    );
    let place = imported(&messages, &[]);
    let (answer, code) = bisect(&place, &["--holds", NO_ERROR]);
    assert_eq!((answer.get("onset"), code), (Some(&Value::Null), 6), "{answer}");
    let shown = place.ok(&["state", "r", "--path", "counters", "--json"]);
    assert!(shown.contains("status_unknown"), "{shown}");
    assert!(
        place
            .run(&["import", "t.json", "--run", "again", "--again", "--on-gap", "stop"])
            .stderr
            .contains("status")
    );
    // A mapping that names the place has to name the words.
    let line = r#"{"t":"action.result","who":"a","out":"x","s":"on hold"}"#;
    std::fs::write(place.path().join("l.jsonl"), line).unwrap();
    let map = r#"{"type":"/t","agent":"/who","result":{"output":"/out","status":"/s"}}"#;
    std::fs::write(place.path().join("m.json"), map).unwrap();
    let refused = place.run(&["import", "l.jsonl", "--kind", "jsonl", "--map", "m.json", "--run", "m"]);
    assert!(refused.stderr.contains("E0215") && refused.stderr.contains("on hold"), "{}", refused.stderr);
    std::fs::write(place.path().join("l.jsonl"), line.replace("on hold", "Succeeded")).unwrap();
    place.ok(&["import", "l.jsonl", "--kind", "jsonl", "--map", "m.json", "--run", "m", "-q"]);
    let result = place.ok(&["show", "m@1", "--json"]);
    assert!(result.contains(r#""status":"ok""#) && result.contains(r#""stated":"Succeeded""#), "{result}");
}

#[test]
fn prose_is_a_failure_by_one_rule() {
    let said = |id: &str, text: &str| {
        format!(r#"{{"role":"tool","tool_call_id":"{id}","content":{}}}"#, Value::from(text))
    };
    let messages = [
        call("t1", "build", "{}"),
        said("t1", "Error-free build: 214 checks, all green."),
        call("t2", "budget", "{}"),
        said("t2", "Error budget left this month: 98 %."),
        call("t3", "deploy", "{}"),
        said("t3", "Traceback (most recent call last):\n  KeyError: 'north'"),
    ];
    let place = imported(&format!("[{}]", messages.join(",")), &[]);
    assert_eq!(onset(&place, &["--holds", NO_ERROR]), Some(6));
}

#[test]
fn a_result_that_may_answer_several_calls_answers_none() {
    let ask = |city: &str| call("call_0", "weather", &format!("{{\"city\":\"{city}\"}}"));
    let messages = [
        r#"{"role":"user","content":"Weather in Bern?"}"#.to_owned(),
        ask("Bern"),
        r#"{"role":"user","content":"Stop. Rome."}"#.to_owned(),
        ask("Rome"),
        r#"{"role":"tool","tool_call_id":"call_0","content":"rain"}"#.to_owned(),
        r#"{"role":"assistant","content":"It rains."}"#.to_owned(),
    ];
    let pack = "name: q.cities\nversion: v1\nstate:\n  weather: {init: \"{}\"}\n  results: {init: 0}\nrules:\n  - words: what a city's weather is said to be\n    when_type: action.result\n    when: t.action.tool == 'weather'\n    steps:\n      - set: weather[t.action.params.city]\n        value: t.result.output\n  - words: results are counted\n    when_type: action.result\n    steps:\n      - add: results\n        value: 1\n";
    let place = Place::with_store();
    std::fs::write(place.path().join("p.yaml"), pack).unwrap();
    std::fs::write(place.path().join("t.json"), format!("[{}]", messages.join(","))).unwrap();
    place.ok(&["import", "t.json", "--run", "r", "--pack", "p.yaml", "-q"]);
    let shown = json::parse_door(place.ok(&["show", "r@5", "--json"]).as_bytes()).unwrap().to_string();
    assert!(!shown.contains("Bern") && !shown.contains("Rome"), "{shown}");
    // What rests on the call is unknown, and what does not is known.
    let (answer, code) = bisect(&place, &["--holds", "size(state.weather) == 0"]);
    assert_eq!(code, 6, "{answer}");
    assert_eq!(onset(&place, &["--holds", "state.results == 0"]), Some(5));
    // One of the calls has no result, and which is not known.
    let (answer, code) = bisect(&place, &["--anomaly", "call_without_result"]);
    assert_eq!((answer.get("onset"), code), (Some(&Value::Null), 6), "{answer}");
    assert_eq!(onset(&place, &["--anomaly", "result_ambiguous"]), Some(5));
    assert!(place.ok(&["verify", "r", "--replay"]).contains("\nINTACT"));
}

#[test]
fn items_that_are_no_messages_are_not_counted_as_absent() {
    let items = r#"[{"role":"user","content":"Order two lamps."},{"type":"function_call","id":"fc_1","call_id":"c1","name":"order","arguments":"{}","status":"completed"},{"type":"function_call_output","call_id":"c1","output":"Error: only 1 left"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}]"#;
    let place = Place::with_store();
    std::fs::write(place.path().join("t.json"), items).unwrap();
    let refused = place.run(&["import", "t.json", "--run", "r", "--kind", "openai-chat"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("E0203") && refused.stderr.contains("--kind openai-responses"),
        "{}",
        refused.stderr
    );
    assert_eq!(place.run(&["log", "r"]).code, 3, "nothing was imported");
    place.ok(&["import", "t.json", "--run", "items", "-q"]);
    let ran = place.run(&["bisect", "items", "--holds", NO_ERROR, "--json"]);
    assert!(ran.stdout.contains("\"onset\":3"), "{}", ran.stdout);
    // The mapping of the page reads them as well.
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/import.md")).unwrap();
    let map = page.lines().find(|line| line.contains("function_call_output\":\"action.result\"")).unwrap();
    std::fs::write(place.path().join("m.json"), map).unwrap();
    place.ok(&["import", "t.json", "--kind", "jsonl", "--map", "m.json", "--run", "r", "-q"]);
    assert_eq!(onset(&place, &["--holds", NO_ERROR]), Some(3));
}

#[test]
fn an_answer_beside_the_list_is_the_last_message() {
    let list = format!(
        r#"[{{"role":"user","content":"Free some space."}},{},{{"role":"tool","tool_call_id":"c1","content":"a.log"}}]"#,
        call("c1", "list", "{}")
    );
    let choice = |index: u64| format!(r#"{{"index":{index},"message":{}}}"#, call("c2", "wipe", "{}"));
    let exchange = |choices: &[String]| {
        format!(
            r#"{{"request":{{"messages":{list}}},"response":{{"choices":[{}],"usage":{{"total_tokens":40}}}}}}"#,
            choices.join(",")
        )
    };
    let wiped = ["--predicate", "state.counters.last_tool == 'wipe'"];
    let place = imported(&exchange(&[choice(0)]), &[]);
    assert_eq!(onset(&place, &wiped), Some(4));
    let shown = place.ok(&["show", "r@4", "--json"]);
    assert!(shown.contains(r#""tokens_used":40"#) && shown.contains("call_without_result"), "{shown}");
    // Of several nothing is taken, and nothing is said for sure of what comes behind the list.
    let place = imported(&exchange(&[choice(0), choice(1)]), &[]);
    let (answer, code) = bisect(&place, &wiped);
    assert_eq!((answer.get("onset"), code), (Some(&Value::Null), 6), "{answer}");
    // A copy of the last message says nothing new.
    let copied =
        format!(r#"{{"messages":{list},"last":{{"role":"tool","tool_call_id":"c1","content":"a.log"}}}}"#);
    let place = imported(&copied, &[]);
    assert_eq!(bisect(&place, &wiped).1, 1);
}

#[test]
fn usage_that_no_message_states_is_not_0() {
    let said = |usage: &str| format!(r#"{{"role":"assistant","content":"x"{usage}}}"#);
    let messages = [
        said(r#","usage":{"prompt_tokens":30,"completion_tokens":12}"#),
        said(""),
        said(r#","usage":{"total_tokens":100}"#),
    ];
    let place = imported(&format!("[{}]", messages.join(",")), &[]);
    // Of a lower bound a violation can be certain, and nothing else.
    assert_eq!(onset(&place, &["--holds", "state.counters.tokens_used < 40"]), Some(1));
    assert_eq!(bisect(&place, &["--holds", "state.counters.tokens_used < 50"]).1, 6);
    assert_eq!(bisect(&place, &["--holds", "state.counters.cost_usd < 50.0"]).1, 6);
    let refused = place.run(&["state", "r", "--path", "counters.tokens_used"]);
    assert!(
        !refused.stdout.contains("\n0")
            && (refused.stdout + &refused.stderr).contains("does not say what it used")
    );
    assert_eq!(place.ok(&["state", "r@1", "--path", "counters.tokens_used"]).trim(), "42");
}

/// What only names a run or a message, and when it was, is no difference in what an agent did.
#[test]
fn two_runs_part_where_they_do_something_else() {
    let thread = |own: &str, van: &str| {
        let call = |id: &str, tool: &str, params: &str| {
            format!(
                r#""tool_calls":[{{"id":"{own}-{id}","type":"function","function":{{"name":"{tool}","arguments":{}}}}}]"#,
                Value::from(params)
            )
        };
        let messages = [
            r#""role":"user","content":"Rent a van.""#.to_owned(),
            format!(r#""role":"assistant","content":null,{}"#, call("1", "vans", "{}")),
            format!(r#""role":"tool","tool_call_id":"{own}-1","content":"V2, V9""#),
            format!(
                r#""role":"assistant","content":null,{}"#,
                call("2", "rent", &format!("{{\"van\":\"{van}\"}}"))
            ),
        ];
        let messages = messages.iter().enumerate();
        let messages: Vec<String> = messages
            .map(|(at, said)| {
                format!(
                    r#"{{{said},"id":"{own}-{at}","created_at":"{own}","usage":{{"total_tokens":{}}}}}"#,
                    own.len()
                )
            })
            .collect();
        format!(r#"{{"id":"{own}","name":"{own}","messages":[{}]}}"#, messages.join(","))
    };
    let place = imported(&thread("mon", "V2"), &[]);
    std::fs::write(place.path().join("u.json"), thread("tuesday", "V9")).unwrap();
    place.ok(&["import", "u.json", "--run", "tue", "-q"]);
    let (answer, code) = bisect(&place, &["--divergence", "tue"]);
    assert_eq!((answer.get("onset"), code), (Some(&Value::from(4u64)), 0), "{answer}");
    let left_out = answer.get("left_out").unwrap().to_string();
    for name in ["intent.extra.id", "intent.extra.created_at", "intent.extra.usage", "meta.id", "meta.name"] {
        assert!(left_out.contains(&format!("\"{name}\"")), "{left_out}");
    }
    let told = place.ok(&["bisect", "r", "--divergence", "tue", "--no-chain"]);
    assert!(told.contains("left out intent.extra.created_at, intent.extra.id"), "{told}");
    let diff = place.ok(&["diff", "r", "tue"]);
    assert!(diff.contains("left out ") && !diff.contains("tuesday-"), "{diff}");
    // What is printed as a place is one, in both verbs, and what is asked for is compared.
    let printed = diff.lines().find(|line| line.contains("V2") && line.contains("V9")).unwrap();
    let printed = printed.split_whitespace().find(|word| word.contains("van")).unwrap();
    for verb in [
        &["bisect", "r", "--divergence", "tue", "--ignore", printed][..],
        &["diff", "r", "tue", "--exit-code", "--ignore", printed],
    ] {
        let ran = place.run(verb);
        let same = if verb[0] == "diff" { 0 } else { 1 };
        assert_eq!(ran.code, same, "{verb:?}\n{}{}", ran.stdout, ran.stderr);
    }
    assert_eq!(place.run(&["diff", "r", "tue", "--exit-code", "--path", "intent.extra.id"]).code, 1);
    assert_eq!(place.run(&["bisect", "r", "--divergence", "tue", "--ignore", "action.params.vam"]).code, 3);
    assert_eq!(bisect(&place, &["--divergence", "tue", "--align", "content"]).1, 0);
}

#[test]
fn a_number_is_one_however_it_is_written() {
    let place = Place::with_store();
    let line = |a: &str, b: &str| {
        format!(
            r#"{{"type":"plan.update","agent":"ann","delta":[{{"set":"/a","value":{a}}},{{"set":"/b","value":{b}}}]}}"#
        )
    };
    std::fs::write(place.path().join("one.jsonl"), line("1e21", "1000000000000000000000")).unwrap();
    std::fs::write(place.path().join("two.jsonl"), line("1000000000000000000000", "1e21")).unwrap();
    for run in ["one", "two"] {
        place.ok(&["commit", "--run", run, "--file", &format!("{run}.jsonl"), "-q"]);
    }
    assert_eq!(place.run(&["diff", "one", "two", "--exit-code"]).code, 0);
    for holds in [
        "state.a == state.b",
        "state.a in [state.b]",
        "size(distinct([state.a, state.b])) == 1",
        "intersects([state.a], [state.b])",
    ] {
        place.ok(&["predicate", "test", "--holds", holds, "one", "--from", "1"]);
        let (answer, _) = {
            let ran = place.run(&["bisect", "one", "--from", "1", "--no-chain", "--json", "--holds", holds]);
            (json::parse_door(ran.stdout.as_bytes()).unwrap(), ran.code)
        };
        assert_eq!(answer.get("outcome").and_then(Value::as_str), Some("never"), "{holds}");
    }
}

#[test]
fn texts_in_two_unicode_forms_are_shown_apart() {
    let place = Place::with_store();
    for (run, name) in [("a", "Zo\u{e9}"), ("b", "Zoe\u{301}")] {
        let line = format!(
            r#"{{"type":"plan.update","agent":"ann","delta":[{{"set":"/owner","value":"{name}"}},{{"set":"/by/{name}","value":1}}]}}"#
        );
        std::fs::write(place.path().join("t.jsonl"), line).unwrap();
        place.ok(&["commit", "--run", run, "--file", "t.jsonl", "-q"]);
    }
    let diff = place.run(&["diff", "a", "b", "--exit-code"]);
    assert_eq!(diff.code, 1);
    assert!(
        diff.stdout.contains("Zo\u{e9}")
            && diff.stdout.contains("Zoe\\u{301}")
            && !diff.stdout.contains('\u{301}'),
        "{}",
        diff.stdout
    );
    let lost = place.run(&["state", "b", "--path", "by.Zo\u{e9}"]);
    assert!(lost.stderr.contains("Zoe\\u{301}"), "{}", lost.stderr);
}

#[test]
fn what_looks_like_a_number_in_a_pack_is_told() {
    let place = Place::with_store();
    for (text, meant) in
        [("1_000", "1000"), ("0644", "0o644"), ("12:30", "\"12:30\""), ("0b11", "3"), ("1,000", "1000")]
    {
        let pack =
            format!("name: shop.stock\nversion: v1\nconstants:\n  most: {text}\nstate:\n  n: {{init: 5}}\n");
        std::fs::write(place.path().join("p.yaml"), &pack).unwrap();
        for verb in [&["pack", "check", "p.yaml"][..], &["contract", "lint", "p.yaml"]] {
            let found = place.run(verb);
            let told = found.stdout + &found.stderr;
            assert!(found.code != 0 && told.contains(meant) && told.contains("quotes"), "{text} {told}");
        }
        std::fs::write(place.path().join("p.yaml"), pack.replace(text, &format!("'{text}'"))).unwrap();
        place.ok(&["pack", "check", "p.yaml"]);
    }
}

/// Calls and results among the parts of a content are read: the call is the answer's, and the result an item of its own.
#[test]
fn calls_in_parts_are_counted() {
    let messages = r#"[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"pay","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"no","is_error":true}]}]"#;
    let place = imported(messages, &[]);
    for (holds, onset) in [(NO_ERROR, 3u64), ("state.counters.tool_calls == 0", 2)] {
        let (answer, code) = bisect(&place, &["--holds", holds]);
        assert_eq!((answer.get("onset"), code), (Some(&Value::from(onset)), 0), "{answer}");
        assert_eq!(answer.get("certainty").and_then(Value::as_str), Some("exact"), "{answer}");
    }
}

const BILL: [&str; 3] = [
    r#"{"type":"plan.update","agent":"ann","delta":[{"set":"/due","value":"2026-03-01T12:00:00Z"}]}"#,
    r#"{"type":"plan.update","agent":"ann","delta":[{"set":"/paid_at","value":"2026-03-01T12:30:00+02:00"}]}"#,
    r#"{"type":"plan.update","agent":"ann","delta":[{"set":"/paid_at","value":"2026-03-01T09:59:00-05:00"}]}"#,
];

/// Times that are written with two offsets are not ordered as texts, and are as moments.
#[test]
fn moments_with_two_offsets_are_no_violation_for_good() {
    let place = Place::with_store();
    std::fs::write(place.path().join("t.jsonl"), BILL.join("\n")).unwrap();
    place.ok(&["commit", "--run", "r", "--file", "t.jsonl", "-q"]);
    let (answer, code) = bisect(&place, &["--predicate", "has(state.paid_at) && state.paid_at > state.due"]);
    assert_eq!((answer.get("onset"), code), (Some(&Value::Null), 6), "{answer}");
    assert!(
        answer.to_string().contains("compare timestamp(state.paid_at) with timestamp(state.due)"),
        "{answer}"
    );
    let timed = "has(state.paid_at) && timestamp(state.paid_at) > timestamp(state.due)";
    assert_eq!(onset(&place, &["--predicate", timed]), Some(3));
    let late = "has(state.paid_at) && timestamp(state.paid_at) - timestamp(state.due) > duration('2h')";
    assert_eq!(onset(&place, &["--predicate", late]), Some(3));
}

/// A field that a contract declares `datetime` is a moment to the kernel, which judges at the door.
#[test]
fn a_bill_that_is_paid_in_time_is_no_violation() {
    let pack = "name: club.bills
version: v1
words: Bills that are paid in time.
reducer: delta/1
state:
  due: {init: \"'2026-03-01T12:00:00Z'\"}
  paid_at: {init: \"'2026-01-01T00:00:00Z'\"}
types:
  bill_paid: a bill is paid
contracts:
  bill_paid: {required_state: {due: {type: datetime}, paid_at: {type: datetime}}}
violations:
  - {id: late, condition: CONDITION, bisect_predicate: monotone_lift}
";
    let place = Place::with_store();
    let write = |condition: &str| {
        std::fs::write(place.path().join("bills.yaml"), pack.replace("CONDITION", condition)).unwrap();
    };
    write("state.paid_at > state.due");
    for (run, paid) in [("in-time", BILL[1]), ("too-late", BILL[2])] {
        std::fs::write(place.path().join("t.jsonl"), paid.replace("plan.update", "bill_paid")).unwrap();
        place.ok(&[
            "commit",
            "--run",
            run,
            "--file",
            "t.jsonl",
            "--pack",
            "bills.yaml",
            "--stage",
            "2",
            "-q",
        ]);
    }
    assert_eq!(place.run(&["contract", "check", "in-time"]).code, 0);
    let late = place.run(&["contract", "check", "too-late"]);
    assert!(late.code == 1 && late.stdout.contains("FAIL  late  from tick 1"), "{}", late.stdout);
    // A literal beside the field is a moment too, and one that is none is refused.
    write("\"state.paid_at > '2026-03-01T13:00:00.0+01:00'\"");
    place.ok(&["pack", "check", "bills.yaml"]);
    write("\"state.paid_at > 'noon'\"");
    let refused = place.run(&["pack", "check", "bills.yaml"]);
    assert!(refused.code == 1 && refused.stdout.contains("E0502"), "{} {}", refused.code, refused.stdout);
    // Equality is of the texts, and lint says so.
    write("state.paid_at == state.due");
    let found = place.run(&["contract", "lint", "bills.yaml"]);
    assert!(
        found.stdout.contains("warning[W0451]: paid_at is a datetime, and `==` compares its text"),
        "{}",
        found.stdout
    );
    write("timestamp(state.paid_at) == timestamp(state.due)");
    assert!(!place.run(&["contract", "lint", "bills.yaml"]).stdout.contains("W0451"));
}

#[test]
fn two_spellings_of_one_moment_are_two_texts_and_said_to_be_one_moment() {
    let place = Place::with_store();
    for (run, due) in [("a", "2026-03-01T12:00:00Z"), ("b", "2026-03-01T13:00:00.000+01:00")] {
        std::fs::write(place.path().join("t.jsonl"), BILL[0].replace("2026-03-01T12:00:00Z", due)).unwrap();
        place.ok(&["commit", "--run", run, "--file", "t.jsonl", "-q"]);
    }
    let diff = place.run(&["diff", "a", "b", "--exit-code"]);
    assert!(diff.code == 1 && diff.stdout.contains("(the same moment)"), "{}", diff.stdout);
}

const FORM_PACK: &str = r#"name: club.form
version: v1
reducer: fold/1
state:
  form: {init: "{'$ref': 'a', 'n': 0}"}
  $top: {init: "1"}
types:
  change: a form is changed
rules:
  - when_type: change
    steps:
      - {set: 'form["$ref"]', value: 't.intent["$new"]'}
      - {set: $top, value: 'state["$top"] + 1'}
contracts:
  change: {required_state: {form.$ref: {type: string}, $top: {type: number}}, hash_seeds: [form.$ref, $top], match: {$top: present}}
violations:
  - {id: far, condition: 'state["$top"] > 0 && state.form["$ref"] == "c"', bisect_predicate: monotone_lift}
"#;

/// A name that begins with `$` is typed and read as it is in the source, in every verb, pack, message and document.
#[test]
fn a_name_has_one_spelling() {
    let place = Place::with_store();
    for (run, last) in [("a", "B"), ("b", "C")] {
        let lines = format!(
            "{{\"type\":\"plan.update\",\"agent\":\"ann\",\"delta\":[{{\"set\":\"/form\",\"value\":{{\"$ref\":\"A\",\"kind\":\"x\"}}}}]}}\n\
             {{\"type\":\"plan.update\",\"agent\":\"ann\",\"delta\":[{{\"set\":\"/form/$ref\",\"value\":\"{last}\"}}]}}\n"
        );
        std::fs::write(place.path().join("t.jsonl"), lines).unwrap();
        place.ok(&["commit", "--run", run, "--file", "t.jsonl", "-q"]);
    }
    // Each question with the answer it must have, in text and as a document.
    let asked: [(&[&str], i32, &str); 9] = [
        (&["diff", "a", "b", "--path", "form[\"$ref\"]", "--exit-code"], 1, "\"B\" -> \"C\""),
        (&["log", "a", "--path", "form[\"$ref\"]"], 0, "2 of 2 transitions"),
        (&["backtrack", "a", "form[\"$ref\"]"], 0, "2 writes in 2 ticks"),
        (&["backtrack", "a", "/form/$ref"], 0, "2 writes in 2 ticks"),
        (&["state", "a", "--path", "form.$ref"], 0, "\"B\""),
        (&["state", "a"], 0, "\"$ref\": \"B\""),
        (&["why", "a", "form[\"$ref\"]"], 0, "form[\"$ref\"]"),
        (&["show", "a@2"], 0, "~ form[\"$ref\"]  \"A\" -> \"B\""),
        (
            &["bisect", "a", "--from", "1", "--holds", "state.form[\"$ref\"] == \"A\""],
            0,
            "~ form[\"$ref\"]  \"A\" -> \"B\"",
        ),
    ];
    for (args, code, words) in asked {
        let ran = place.run(args);
        assert!(
            ran.code == code && ran.stdout.contains(words),
            "{args:?}: {} {} {}",
            ran.code,
            ran.stdout,
            ran.stderr
        );
        let document = place.run(&[args, &["--json"]].concat());
        assert!(
            document.stdout.contains("$ref") || document.stdout.contains("\"total\":2"),
            "{}",
            document.stdout
        );
        for text in [ran.stdout, ran.stderr, document.stdout] {
            assert!(!text.contains("$$"), "{args:?}: {text}");
        }
    }
    place.ok(&["fork", "--run", "a", "--from", "1", "--as", "c", "--set", "form[\"$ref\"]=\"Z\"", "-q"]);
    assert_eq!(place.run(&["state", "c", "--path", "form.$ref"]).stdout, "\"Z\"\n");
    let lost = place.run(&["state", "a", "--path", "form.$reff"]);
    assert!(lost.code == 3 && lost.stderr.contains("did you mean form[\"$ref\"]?"), "{}", lost.stderr);
}

#[test]
fn a_name_has_one_spelling_in_packs_and_exports() {
    let place = Place::with_store();
    std::fs::write(place.path().join("p.yaml"), FORM_PACK).unwrap();
    place.ok(&["pack", "check", "p.yaml"]);
    let lines: String = ["b", "c"]
        .map(|new| format!("{{\"type\":\"change\",\"agent\":\"ann\",\"intent\":{{\"$new\":\"{new}\"}}}}\n"))
        .concat();
    std::fs::write(place.path().join("t.jsonl"), lines).unwrap();
    place.ok(&["commit", "--run", "r", "--file", "t.jsonl", "--pack", "p.yaml", "--stage", "2", "-q"]);
    for (args, words) in [
        (&["bisect", "r", "--predicate", "far"][..], "ONSET (exact)  tick 2"),
        (&["state", "r", "--path", "$top"], "3"),
        (&["contract", "show", "p.yaml"], "reads state[\"$top\"], state.form[\"$ref\"]"),
        (&["pack", "show", "p.yaml"], "$top: number, seeds the hash, import: present"),
        (
            &["export", "r", "--format", "jsonl"],
            "\"state_after\":{\"$top\":2,\"form\":{\"$ref\":\"b\",\"n\":0}}",
        ),
        (&["export", "r", "--format", "paper"], "\"intent\":{\"$new\":\"b\"}"),
        (&["export", "r", "--format", "cfd"], "\"intent\":{\"$new\":\"b\"}"),
    ] {
        let ran = place.run(args);
        assert!(
            ran.stdout.contains(words) && !ran.stdout.contains("$$"),
            "{args:?}: {} {}",
            ran.stdout,
            ran.stderr
        );
    }
    // The chain of hashes is over the lines as they are, and what is imported has the same names.
    let events = place.run(&["export", "r", "--format", "paper"]).stdout;
    std::fs::write(place.path().join("e.jsonl"), events).unwrap();
    place.ok(&["verify", "--profile", "paper", "e.jsonl"]);
    place.ok(&["import", "e.jsonl", "--kind", "paper", "--run", "back", "-q"]);
    assert_eq!(place.run(&["state", "back", "--path", "form.$ref"]).stdout, "\"c\"\n");
}

/// The nodes of a run bring back names and values that JSON has not.
#[test]
fn nodes_bring_back_names_and_what_json_has_not() {
    let place = Place::with_store();
    let line = r#"{"type":"plan.update","agent":"a","delta":[{"set":"/score","value":NaN},{"set":"/$defs","value":{"$ref":1}},{"set":"/m","value":{"$float":"NaN"}}]}"#;
    std::fs::write(place.path().join("t.jsonl"), line).unwrap();
    place.ok(&["commit", "--run", "r", "--file", "t.jsonl", "-q"]);
    let nodes = place.run(&["export", "r", "--format", "cfd"]).stdout;
    std::fs::write(place.path().join("n.cfd"), nodes).unwrap();
    place.ok(&["import", "n.cfd", "--kind", "cfd", "--run", "back", "-q"]);
    let value = |run: &str| place.json(&["state", run]).1.get("value").cloned();
    assert_eq!(value("back"), value("r"));
}

/// Calls in the nodes of another form are not read, so nothing is said for sure of what is counted.
#[test]
fn calls_in_nodes_are_not_counted_as_absent() {
    let place = imported(BY_PROSE, &[]);
    let nodes = place.run(&["export", "r", "--format", "cfd"]).stdout;
    std::fs::write(place.path().join("n.cfd"), nodes).unwrap();
    place.ok(&["import", "n.cfd", "--kind", "cfd", "--run", "back", "-q"]);
    let ran = place.run(&["bisect", "back", "--holds", NO_ERROR]);
    assert_eq!(ran.code, 6, "{}", ran.stdout);
}

/// One object keeps the doubled `$`: its only member has the name of a tag, and it would be read as the tagged form.
#[test]
fn an_object_that_looks_like_a_tagged_form_is_shown_apart() {
    let place = Place::with_store();
    let line = r#"{"type":"plan.update","agent":"ann","delta":[{"set":"/m","value":{"$float":"NaN"}},{"set":"/n","value":{"$float":"NaN","b":1}}]}"#;
    std::fs::write(place.path().join("t.jsonl"), line).unwrap();
    place.ok(&["commit", "--run", "r", "--file", "t.jsonl", "-q"]);
    let state = place.run(&["state", "r", "--json"]).stdout;
    assert!(state.contains(r#""m":{"$$float":"NaN"},"n":{"$float":"NaN","b":1}"#), "{state}");
}

const BY_PROSE: &str = r#"[{"role":"user","content":"pay"},
    {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"pay","arguments":"{}"}}]},
    {"role":"tool","tool_call_id":"a","content":"Error: no money"}]"#;

/// What rests on a status that was read from prose is heuristic, whichever verb is asked, and says nothing of exact.
#[test]
fn every_verb_says_how_many_statuses_were_read_from_prose() {
    let place = Place::with_store();
    let pack = "name: club.calls
version: v1
reducer: delta/1
state:
  n: {init: \"0\"}
violations:
  - {id: failed, condition: state.counters.tool_errors > 0, bisect_predicate: monotone_lift}
progress_contracts:
  - {id: calls, version: v1, score: '1.0 - double(state.counters.tool_errors)', violation: 'false', bisect_predicate: monotone_lift}
";
    std::fs::write(place.path().join("p.yaml"), pack).unwrap();
    std::fs::write(place.path().join("t.json"), BY_PROSE).unwrap();
    place.ok(&["import", "t.json", "--run", "r", "--pack", "p.yaml", "-q"]);
    for args in [
        &["bisect", "r", "--holds", NO_ERROR][..],
        &["bisect", "r", "--regression", "calls"],
        &["predicate", "test", "--holds", NO_ERROR, "r"],
        &["contract", "check", "r"],
        &["assert", "r", "--holds", NO_ERROR],
    ] {
        let ran = place.run(args);
        assert!(
            ran.stdout.contains("the status of 1 result was read from prose"),
            "{args:?}: {} {}",
            ran.stdout,
            ran.stderr
        );
        assert!(!ran.stdout.contains("exact for the imported record"), "{args:?}: {}", ran.stdout);
        let document = place.run(&[args, &["--json"]].concat()).stdout;
        assert!(
            document.contains("\"status_from_text\":1") && !document.contains("exact for the"),
            "{args:?}: {document}"
        );
    }
    let sure = place.run(&["bisect", "r", "--holds", "state.counters.tool_calls == 0"]);
    assert!(sure.stdout.contains("exact for the imported record"), "{}", sure.stdout);
}

/// An expression that is asked of a run knows what the pack of the run declares, also through arguments and lists.
#[test]
fn an_expression_asked_of_a_run_knows_its_moments() {
    let place = Place::with_store();
    let pack = "name: c.b
version: v1
reducer: delta/1
state:
  due: {init: \"'2026-03-01T12:00:00Z'\"}
  paid: {init: \"'2026-01-01T00:00:00Z'\"}
define: {\"after(a, b)\": a > b}
types: {bp: x}
contracts: {bp: {required_state: {due: {type: datetime}, paid: {type: datetime}}}}
violations: [{id: v, condition: \"after(state.paid, state.due)\", bisect_predicate: monotone_lift}]
";
    std::fs::write(place.path().join("p.yaml"), pack).unwrap();
    let lines = ["2026-03-01T12:30:00+02:00", "2026-03-01T09:59:00-05:00"].map(|paid| {
        format!("{{\"type\":\"plan.update\",\"agent\":\"a\",\"delta\":[{{\"set\":\"/paid\",\"value\":\"{paid}\"}}]}}\n")
    });
    std::fs::write(place.path().join("t.jsonl"), lines.concat()).unwrap();
    place.ok(&["commit", "--run", "r", "--pack", "p.yaml", "--file", "t.jsonl", "-q"]);
    for text in [
        "state.paid > state.due",
        "v",
        "after(state.paid, state.due)",
        "state.paid > timestamp('2026-03-01T12:00:00Z')",
        "state.paid == max([state.paid, state.due])",
    ] {
        assert_eq!(onset(&place, &["--predicate", text]), Some(2), "{text}");
    }
    let soon = r#"{"type":"plan.update","agent":"a","delta":[{"set":"/paid","value":"soon"}]}"#;
    std::fs::write(place.path().join("t.jsonl"), soon).unwrap();
    place.ok(&["commit", "--run", "r", "--file", "t.jsonl", "-q"]);
    for text in
        ["state.paid > state.due", "after(state.paid, state.due)", "max([state.paid, state.due]) == 'x'"]
    {
        let ran = place.run(&["predicate", "test", text, "r", "--ticks"]);
        assert!(ran.stdout.contains("   3  plan.update      uncertain"), "{text}: {}", ran.stdout);
    }
}

/// A content with a name that stands twice, or a number beyond all doubles, may state a failure that is not read.
#[test]
fn a_content_that_is_json_to_some_is_no_success() {
    for content in [
        r#"{"error":"boom","a":1,"a":2}"#,
        r#"{"is_error":true,"a":{"b":1,"b":2}}"#,
        r#"{"error":"x","n":1e999}"#,
    ] {
        let content = Value::from(content);
        let messages = format!(
            "[{},{{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":{content}}}]",
            call("a", "t", "{}")
        );
        let place = imported(&messages, &[]);
        let (answer, code) = bisect(&place, &["--holds", NO_ERROR]);
        assert_eq!((answer.get("onset"), code), (Some(&Value::Null), 6), "{answer}");
    }
}

/// What stands beside the list and is no message with a role is named, and what is counted is not known.
#[test]
fn answers_of_other_kinds_beside_the_list_are_not_counted_as_absent() {
    let asked = r#"[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]"#;
    for response in [
        r#"{"output":[{"type":"function_call","call_id":"z","name":"wipe","arguments":"{}"}]}"#,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"wipe","args":{}}}]}}]}"#,
        r#"{"tool_calls":[{"id":"z","type":"function","function":{"name":"wipe","arguments":"{}"}}]}"#,
        r#""{\"choices\":[{\"message\":{\"role\":\"assistant\",\"tool_calls\":[]}}]}""#,
    ] {
        let place = imported(&format!(r#"{{"request":{{"messages":{asked}}},"response":{response}}}"#), &[]);
        let (answer, code) = bisect(&place, &["--predicate", "state.counters.last_tool == 'wipe'"]);
        assert_eq!((answer.get("onset"), code), (Some(&Value::Null), 6), "{response}: {answer}");
    }
    let parts = r#"[{"role":"user","content":"q"},{"role":"model","parts":[{"functionCall":{"name":"f"}}],"content":null}]"#;
    let (answer, code) = bisect(&imported(parts, &[]), &["--holds", "state.counters.tool_calls == 0"]);
    assert_eq!((answer.get("onset"), code), (Some(&Value::from(2u64)), 0), "{answer}");
}

/// Two results without id and name for two calls: neither call is known to lack one.
#[test]
fn calls_without_ids_are_not_known_to_lack_a_result() {
    let calls = r#"{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"w","arguments":"{\"c\":1}"}},{"function":{"name":"w","arguments":"{\"c\":2}"}}]}"#;
    let result = r#"{"role":"tool","content":"{}"}"#;
    let place = imported(&format!("[{calls},{result},{result}]"), &[]);
    let ran = place.run(&["bisect", "r", "--anomaly", "call_without_result"]);
    assert!(ran.code == 6 && !ran.stdout.contains("ORIGIN"), "{} {} {}", ran.code, ran.stdout, ran.stderr);
}

/// A mapping that names no status still reads what a member of the line states; arguments in a text are read as JSON.
#[test]
fn a_mapping_reads_what_a_line_states() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/import.md")).unwrap();
    let map =
        page.split("### Items of the Responses API").nth(1).unwrap().split("```import-map\n").nth(1).unwrap();
    let place = Place::with_store();
    std::fs::write(place.path().join("map.json"), map.lines().next().unwrap()).unwrap();
    let items = r#"[{"type":"function_call","call_id":"a","name":"pay","arguments":"{\"n\":2}"},
        {"type":"function_call_output","call_id":"a","output":"x","status":"failed"},
        {"type":"custom_tool_call","call_id":"b","name":"sh","input":"rm -rf /"}]"#;
    std::fs::write(place.path().join("t.json"), items).unwrap();
    place.ok(&["import", "t.json", "--kind", "jsonl", "--map", "map.json", "--run", "r", "-q"]);
    let (answer, _) = bisect(&place, &["--holds", NO_ERROR]);
    assert_eq!(
        (answer.get("onset"), answer.get("certainty")),
        (Some(&2_u64.into()), Some(&"exact".into())),
        "{answer}"
    );
    for (tick, params) in [("r@1", r#""params":{"n":2}"#), ("r@3", r#""params":"rm -rf /""#)] {
        let shown = place.run(&["show", tick, "--json"]).stdout;
        assert!(shown.contains(params), "{shown}");
    }
}

/// What is printed as a place is taken as a place, whatever is in the name.
#[test]
fn a_printed_place_is_taken_as_a_place() {
    let place = Place::with_store();
    for (tick, name) in
        ["a\"b", "a\\b", "a\nb", "a\"]b", "\u{202e}x", "a.b", "$", "", "~/"].into_iter().enumerate()
    {
        let set = Value::from(format!("/form/{}", name.replace('~', "~0").replace('/', "~1")));
        let line =
            format!("{{\"type\":\"plan.update\",\"agent\":\"a\",\"delta\":[{{\"set\":{set},\"value\":1}}]}}");
        std::fs::write(place.path().join("t.jsonl"), line).unwrap();
        place.ok(&["commit", "--run", "r", "--file", "t.jsonl", "-q"]);
        let shown = place.run(&["show", &format!("r@{}", tick + 1)]).stdout;
        let printed = shown
            .lines()
            .find_map(|line| line.trim().strip_prefix("+ "))
            .unwrap()
            .rsplit_once("  ")
            .unwrap()
            .0;
        let found = place.run(&["state", "r", "--path", printed]);
        // The first write makes the form itself.
        let is_there = found.stdout == "1\n" || (tick == 0 && found.stdout.contains("1"));
        assert!(is_there, "{name:?} {printed} {} {}", found.stdout, found.stderr);
    }
}

/// What a rule names keeps its kind: a duration stays one, and a declared field a moment; what is written is text.
#[test]
fn what_a_rule_names_stays_a_time() {
    let place = Place::with_store();
    let pack = "name: acme.due
version: v1
types: {order.add: an order, order.check: it is looked at}
state: {asked: {}, paid: {}, sent: {}, slow: {}, most: {}, total: {}, last: {}, late: {init: '0'}}
contracts:
  order.check: {required_state: {asked: {type: datetime}, paid: {type: datetime}, sent: {type: datetime}}}
violations: [{id: v, condition: state.late > 9, bisect_predicate: monotone_lift}]
rules:
  - when_type: order.add
    steps:
      - {set: asked, value: t.intent.asked}
      - {set: paid, value: t.intent.paid}
      - {set: sent, value: t.intent.sent}
  - when_type: order.check
    steps:
      - let: {to_send: state.sent - state.asked, to_pay: state.paid - state.asked, a: state.sent, b: '[state.sent, state.paid]'}
      - {set: slow, value: to_send > to_pay and a > state.paid}
      - {set: most, value: 'max(to_send, to_pay)'}
      - {set: total, value: to_send + to_pay}
      - {set: last, value: max(b)}
      - each: {as: d, in: '[state.sent, state.paid]'}
        steps: [{add: late, value: 1, if: d > state.asked}]
";
    std::fs::write(place.path().join("p.yaml"), pack).unwrap();
    let lines = r#"{"type":"order.add","agent":"a","intent":{"asked":"2026-03-01T00:00:00Z","paid":"2026-03-01T04:00:00+02:00","sent":"2026-03-01T07:00:00-05:00"}}
{"type":"order.check","agent":"a","intent":{}}
"#;
    std::fs::write(place.path().join("t.jsonl"), lines).unwrap();
    place.ok(&["commit", "--run", "r", "--pack", "p.yaml", "--stage", "2", "--file", "t.jsonl", "-q"]);
    for (field, value) in [
        ("slow", "true"),
        ("most", "\"43200s\""),
        ("total", "\"50400s\""),
        ("last", "\"2026-03-01T07:00:00-05:00\""),
        ("late", "2"),
    ] {
        assert_eq!(place.run(&["state", "r", "--path", field]).stdout.trim(), value, "{field}");
    }
}

/// What the first of several passes over is kept, and a gate over steps says that their success was read from prose.
#[test]
fn what_is_passed_over_is_kept_and_steps_say_where_their_success_is_from() {
    let place = Place::with_store();
    let map = r#"{"type":{"const":"observation.add"},"agent":{"const":"bot"},"intent":{"content":{"first":["/answer","/text"]}}}"#;
    std::fs::write(place.path().join("map.json"), map).unwrap();
    std::fs::write(place.path().join("m.jsonl"), r#"{"answer":"yes","text":"the long reasoning"}"#).unwrap();
    place.ok(&["import", "m.jsonl", "--map", "map.json", "--run", "m", "-q"]);
    let shown = place.run(&["show", "m@1", "--json"]).stdout;
    assert!(shown.contains(r#""intent":{"content":"yes","extra":{"text":"the long reasoning"}}"#), "{shown}");
    let place = imported(BY_PROSE, &[]);
    let gate = place.run(&["assert", "r", "--holds", "steps.all(s, s.success)"]);
    assert!(gate.stdout.contains("the status of 1 result was read from prose"), "{}", gate.stdout);
}
