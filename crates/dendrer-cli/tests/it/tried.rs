//! Faults that strangers found in their first hour, each with what is printed instead.

use std::fs;

use dendrer_view::layout::columns;

use crate::support::{Place, Ran, demo};

/// A store with a run `r` of these lines.
fn recorded(lines: &str) -> Place {
    let place = Place::with_store();
    fs::write(place.path().join("lines.jsonl"), lines).unwrap();
    place.ok(&["commit", "--run", "r", "--as", "runtime,user", "--file", "lines.jsonl", "-q"]);
    place
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn the_author_is_told_from_an_agent_of_that_name() {
    let place = recorded(
        r#"{"type":"observation.add","agent":"user","intent":{"description":"a"}}
{"type":"observation.add","agent":"router","author":"user","intent":{"description":"b"}}
{"type":"observation.add","author":"user","intent":{"description":"c"}}
{"type":"observation.add","agent":"runtime","intent":{"description":"d"}}
"#,
    );
    let log = place.ok(&["log", "r"]);
    has(&log, &["1  \"user\"  ", "2  user (router)  ", "3  user  ", "4  \"runtime\"  "]);
    for (tick, by) in [("1", "by \"user\"  "), ("2", "by user (router)  "), ("3", "by user  ")] {
        has(&place.ok(&["show", &format!("r@{tick}")]), &[by]);
    }
}

#[test]
fn a_name_of_a_trace_passes_for_no_verdict() {
    let place = recorded(
        r#"{"type":"action.request","action":{"tool":"allow pay","params":{"n":1}},"effect":"effectful"}
{"type":"plan.update","intent":{"description":"x","confidence  0.990":"b"}}
{"type":"action.result","action":{"tool":"FAIL"},"result":{"status":"ok","output":1}}
"#,
    );
    let log = place.ok(&["log", "r"]);
    has(&log, &["  \"allow pay\" {\"n\":1}", "  ok \"FAIL\" 1"]);
    has(&place.ok(&["show", "r@2"]), &["  \"confidence  0.990\"  \"b\""]);
}

#[test]
fn ascii_is_laid_out_as_it_is_spelled() {
    let line = |at: usize| {
        let wide = "田中太郎 ".repeat(20);
        format!(
            r#"{{"type":"plan.update","agent":"田{at}","intent":{{"description":"{wide}"}},"delta":[{{"set":"/田中/{at}","value":"{wide}"}}]}}"#
        )
    };
    let place = recorded(&[line(1), line(2), line(33)].join("\n"));
    for args in [
        &["log", "r"][..],
        &["show", "r@2"],
        &["state", "r"],
        &["runs"],
        &["why", "r", "/田中/2"],
        &["bisect", "r", "--holds", "size(state[\"田中\"]) < 2"],
    ] {
        let args = [args, &["--ascii", "--width", "60"]].concat();
        let Ran { stdout, stderr, .. } = place.run(&args);
        assert!(stdout.is_ascii() && !stdout.is_empty(), "{args:?}\n{stdout}");
        for line in stdout.lines().chain(stderr.lines()) {
            assert!(columns(line) <= 60, "{args:?}: {line}");
        }
    }
    let state = place.ok(&["state", "r", "--ascii"]);
    let read = |text: &str| dendrer_object::json::parse_door(text.trim().as_bytes()).unwrap();
    assert_eq!(read(&state), read(&place.ok(&["state", "r"])));
    let changes = place.ok(&["show", "r@2", "--ascii"]);
    has(&changes, &["by \\u75302", "  + [\"\\u7530\\u4e2d\"][2]"]);
}

#[test]
fn a_column_that_identifies_is_not_cut_for_the_last() {
    let heat = demo().run(&["heatmap", "logistics-run-47", "--width", "60"]);
    has(&heat.stdout, &["logistics-run-47@0", "(... at 60 columns; --full)"]);
    let runs = demo().run(&["runs", "--width", "40"]);
    has(&runs.stdout, &["\ntrip-planner-a ", "\ntrip-planner-d ", "\nlogistics-run-47 "]);
    for width in ["40", "60"] {
        let log = demo().run(&["log", "logistics-run-47", "-n", "4", "--width", width]);
        has(&log.stdout, &["compliance   policy.decision"]);
        assert!(log.stdout.lines().all(|line| columns(line) <= width.parse().unwrap()), "{}", log.stdout);
    }
}

#[test]
fn both_sides_of_a_structural_pair_are_read() {
    let diff = demo().run(&["diff", "trip-planner-a", "trip-planner-b", "--width", "80"]).stdout;
    has(
        &diff,
        &[
            "34|35  structural  policy.decision | observation.add\n  - budgeter  allow \"the offer fits into what is left\"\n  + verifier  ",
            "only in a: 3 transitions\n  anomaly.flag, memory.write, goal.complete\n",
        ],
    );
}

#[test]
fn marks_are_drawn_and_a_text_of_json_is_marked() {
    let place = recorded(
        "{\"type\":\"plan.update\",\"intent\":{\"description\":\"cafe\u{301} \u{1112}\u{1161}\u{11ab} \u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} \u{301}x\"},\"delta\":[{\"set\":\"/l\",\"value\":\"[1, 2]\"}]}",
    );
    let shown = place.ok(&["show", "r@1"]);
    has(
        &shown,
        &[
            "cafe\u{301} \u{1112}\u{1161}\u{11ab} \u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} \\u{301}x",
            "+ l  [1, 2] (text)",
        ],
    );
}

#[test]
fn a_refusal_of_a_model_is_read() {
    let place = Place::with_store();
    let chat = r#"[{"role":"user","content":"do it"},{"role":"assistant","content":null,"refusal":"I cannot help"},
        {"role":"assistant","content":[{"type":"refusal","refusal":"No way"}]}]"#;
    fs::write(place.path().join("chat.json"), chat).unwrap();
    place.ok(&["import", "chat.json", "--run", "chat"]);
    has(&place.ok(&["log", "chat"]), &["[refusal] \"I cannot help\"", "[refusal] \"No way\""]);
    has(&place.ok(&["show", "chat@2"]), &["I cannot help"]);
    has(&place.ok(&["show", "chat@3"]), &["[refusal] \"No way\""]);
}

#[test]
fn a_day_is_its_whole_day_and_no_date_is_refused() {
    let runs = |holds: &str| demo().run(&["runs", "--where", holds]);
    let on = |holds: &str| {
        let found = runs(holds).stdout;
        found.lines().filter(|line| line.starts_with("logistics-run-47 ")).count()
    };
    // The run ends on 2026-02-24.
    for (holds, count) in [
        ("updated <= \"2026-02-24\"", 1),
        ("updated < \"2026-02-24\"", 0),
        ("updated == \"2026-02-24\"", 1),
        ("updated > \"2026-02-24\"", 0),
        ("\"2026-02-24 00:00\" <= updated", 1),
    ] {
        assert_eq!(on(holds), count, "{holds}");
    }
    for text in ["2026-13-45", "26.02.2026", "2026-2-5", "yesterday"] {
        let found = runs(&format!("updated > \"{text}\""));
        assert_eq!(found.code, 2, "{text}");
        has(&found.stderr, &["error[E0502]", "is no date", "  ^"]);
    }
}

#[test]
fn a_command_that_is_printed_fits_what_was_typed() {
    let place = Place::with_demo();
    for (typed, printed) in [
        ("bisect good logistics-run-47", "help: dendrer bisect logistics-run-47 --all-of standard\n"),
        ("diff HEAD^ HEAD", "help: dendrer diff '@~1' @\n"),
        ("explain E404", "help: dendrer explain E0404\n"),
        ("label x", "help: dendrer label x @\n"),
        ("completions tcsh", "help: dendrer completions "),
        ("compare trip-planner-a trip-planner-b", "help: dendrer diff trip-planner-a trip-planner-b\n"),
        ("grep", "help: dendrer log --grep TEXT\n"),
        ("search lamp", "help: dendrer log @ --grep lamp\n"),
        ("show logistics-run-47/22", "help: dendrer show logistics-run-47@22\n"),
        ("runs -C /tmp", "help: dendrer -C /tmp runs\n"),
    ] {
        let ran = place.run(&typed.split(' ').collect::<Vec<_>>());
        assert_ne!(ran.code, 0, "{typed}");
        has(&ran.stderr, &[printed]);
        assert!(ran.stderr.lines().count() <= 4, "{typed}\n{}", ran.stderr);
    }
    place.ok(&["export", "logistics-run-47", "-o", "a.dnd"]);
    let [tilde, at] = ["a.dnd~1", "a.dnd@-1"].map(|rev| place.ok(&["show", rev]));
    assert_eq!(tilde, at);
    let lexed = place.run(&["bisect", "logistics-run-47", "--holds", "state.a \u{1b} > 1"]);
    has(&lexed.stderr, &["error[E0501]: '\\x1b' does not belong here"]);
}

#[test]
fn an_answer_that_rules_read_is_the_one_to_change() {
    let place = Place::with_store();
    let pack = "name: a.sum\nversion: v1\nwords: sums\nstate:\n  total: {words: sum, init: 0, decimals: 2}\nrules:\n  - words: add\n    when_type: action.result\n    when: t.action.tool == 'buy'\n    steps:\n      - add: total\n        value: t.result.output.price\npredicates:\n  ok: {words: under, holds: state.total <= 100}\n";
    fs::write(place.path().join("sum.yaml"), pack).unwrap();
    let line = |tool: &str, price: &str| {
        format!(
            "{{\"type\":\"action.result\",\"action\":{{\"tool\":\"{tool}\",\"params\":{{}}}},\"result\":{{\"status\":\"ok\",\"output\":{{\"price\":{price}}}}}}}\n"
        )
    };
    let lines: String =
        ["30.5", "40", "95.25", "3"].iter().map(|price| line("quote", price) + &line("buy", price)).collect();
    fs::write(place.path().join("s.jsonl"), lines).unwrap();
    place.ok(&[
        "commit", "--run", "s", "--stage", "2", "--pack", "sum.yaml", "--file", "s.jsonl", "--as", "runtime",
        "-q",
    ]);
    let found = place.run(&["bisect", "s", "--predicate", "ok", "--no-chain"]).stdout;
    has(
        &found,
        &["FIRST SEEN", "95.25  tick 5  ", "SUGGESTION  dendrer fork s@5 --tool-output 6=FILE --replay-rest"],
    );
    fs::write(place.path().join("FILE"), r#"{"price":1}"#).unwrap();
    place.ok(&["fork", "s@5", "--tool-output", "6=FILE", "--replay-rest", "--as", "other"]);
    assert_eq!(place.ok(&["state", "other", "--path", "total"]).trim(), "74.5");
}

#[test]
fn an_overwritten_number_is_looked_for_itself() {
    let place = recorded(
        r#"{"type":"memory.write","delta":[{"set":"/price","value":120}]}
{"type":"action.result","author":"runtime","action":{"tool":"quote"},"result":{"status":"ok","output":{"now":310}}}
{"type":"memory.write","delta":[{"set":"/price","value":310}]}
"#,
    );
    let found =
        place.run(&["bisect", "r", "--holds", "!has(state.price) || state.price <= 200", "--no-chain"]);
    has(&found.stdout, &["310  tick 2  result.output.now of quote"]);
}

#[test]
fn a_usage_line_fits() {
    for width in ["40", "60", "80"] {
        let help = demo().run(&["bisect", "--help", "--width", width]).stdout;
        let usage: Vec<&str> = help.lines().skip_while(|line| !line.starts_with("Usage: ")).collect();
        let usage: Vec<&str> = usage.into_iter().take_while(|line| !line.is_empty()).collect();
        assert!(usage.iter().all(|line| columns(line) <= width.parse().unwrap()), "{usage:#?}");
        let joined: String = usage.concat().chars().filter(|c| *c != ' ').collect();
        has(
            &joined,
            &["bisect[OPTIONS]<--predicate<NAME|EXPR>|--holds<EXPR>|", "<standard|PACK|FILE>><RUN>"],
        );
    }
}
