//! An index that says something else than the log, by one bit or on purpose: no writer and no exact question follows it.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use crate::keep::files;
use crate::support::{Place, copy, ran};

fn sql(place: &Place, text: &str) {
    let db = rusqlite::Connection::open(place.path().join(".dendrer/index.sqlite")).unwrap();
    db.execute_batch(&format!("PRAGMA foreign_keys = OFF; {text}")).unwrap();
}

/// Intents that each write the next number.
pub(crate) fn writes(values: std::ops::Range<u64>) -> String {
    values
        .map(|n| {
            format!(
                "{{\"type\":\"memory.write\",\"agent\":\"a\",\"delta\":[{{\"set\":\"/x\",\"value\":{n}}}]}}\n"
            )
        })
        .collect()
}

/// An index that hides the end of a run leads no writer to a second history, and no question to a shorter one.
#[test]
fn an_index_that_hides_ticks_hides_them_from_no_question() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "a"], writes(1..1201).as_bytes());
    for (at, place_in_log) in
        [(1101, "4294967280"), (1101, "(select frame from record where position = 1150)")]
    {
        // An export ends the log with a map.
        let segments = files(&place.path().join(".dendrer/segments"));
        let lie = format!(
            "UPDATE record SET run = NULL, tick = NULL, kind = 'refusal' WHERE position >= {at};
             UPDATE record SET frame = {place_in_log} WHERE position = {at};"
        );
        sql(&place, &lie);
        let refused = place.run_with(&["commit", "--run", "a"], writes(0..1).as_bytes());
        assert!(refused.code != 0 && refused.stderr.contains("doctor --fix"), "{}", refused.stderr);
        assert_eq!(files(&place.path().join(".dendrer/segments")), segments);
        let found = place.run(&["bisect", "a", "--predicate", "has(state.x) && state.x > 1150"]);
        let is_right = found.code == 0 && found.stdout.contains("1151");
        assert!(is_right || found.stderr.contains("E0309"), "{}{}", found.stdout, found.stderr);
        // The run is exported whole, without the index, or not at all.
        let is_exported = place.run(&["export", "a", "-o", "a.dnd"]).code == 0;
        let bundle = place.path().join("a.dnd");
        assert_eq!(bundle.exists(), is_exported);
        if is_exported {
            let runs = place.ok(&["runs", "a.dnd", "--json"]);
            assert!(runs.contains("1200"), "{runs}");
            assert_eq!(place.run(&["verify", "a.dnd", "--replay"]).code, 0);
            std::fs::remove_file(bundle).unwrap();
        }
        assert!(place.ok(&["doctor", "--fix"]).contains("made again"));
        assert_eq!(place.run(&["verify", "--all"]).code, 0);
    }
    place.run_with(&["commit", "--run", "a"], writes(0..1).as_bytes());
    assert_eq!(place.run(&["verify", "--all", "--replay"]).code, 0);
}

/// Where a record stands is asked of the index, and whether it is that record of the log: for links, for the parents of forks,
/// and for what was signed.
#[test]
fn an_index_that_names_another_place_is_found_out() {
    let place = Place::with_store();
    for (run, from) in [("b", 5000), ("a", 1)] {
        place.run_with(&["commit", "--run", run], writes(from..from + 600).as_bytes());
    }
    place.ok(&["fork", "a@300", "--as", "f"]);
    place.ok(&["doctor", "--fix"]);
    let row = |run: &str| format!("tick = 300 AND run = (SELECT begin FROM run WHERE name = '{run}')");
    let (a, b) = (row("a"), row("b"));
    sql(
        &place,
        &format!(
            "CREATE TEMP TABLE t AS SELECT id FROM record WHERE {a}; UPDATE record SET id = (SELECT id FROM t) WHERE {b}"
        ),
    );
    for verb in [&["state", "f@300", "--json"][..], &["show", "f@300", "--json"]] {
        let ran = place.run(verb);
        assert!(!ran.stdout.contains("5299"), "{verb:?}: {}", ran.stdout);
    }
    let judged = place.run(&["bisect", "f", "--predicate", "has(state.x) && state.x < 1000"]);
    assert!(judged.stdout.contains("tick 1 "), "{}{}", judged.stdout, judged.stderr);
    place.ok(&["doctor", "--fix"]);
    let nobody = "ab".repeat(32);
    sql(&place, &format!("UPDATE record SET id = x'{nobody}' WHERE position = 700"));
    let linked = format!(
        "{{\"type\":\"memory.write\",\"agent\":\"a\",\"links\":[{{\"rel\":\"evidence\",\"hash\":\"sha256:{nobody}\"}}]}}\n"
    );
    let refused = place.run_with(&["commit", "--run", "a"], linked.as_bytes());
    assert!(refused.code != 0, "{}", refused.stdout);
    place.ok(&["doctor", "--fix"]);
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
    // What was signed is looked for in the log: a row that leads elsewhere is no damage of the log.
    let signed = std::fs::read_to_string(place.path().join(".dendrer/checkpoint")).unwrap();
    let size: u64 = signed.lines().nth(1).unwrap().parse().unwrap();
    let elsewhere = [("DENDRER_KEY", "/nowhere")];
    let mut unsigned = place.command(&["commit", "--run", "a", "--file", "more.jsonl"]);
    std::fs::write(place.path().join("more.jsonl"), writes(0..1200)).unwrap();
    unsigned.envs(elsewhere).output().unwrap();
    place.ok(&["doctor", "--fix"]);
    sql(&place, &format!("UPDATE record SET frame = 4294967280 WHERE position = {size} - 1"));
    assert_eq!(place.run(&["runs"]).stderr, "");
    assert_ne!(place.run(&["commit", "--run", "a", "--file", "more.jsonl"]).code, 4);
}

/// Flips one bit of the name of a run in what runs are found by, which no row shows.
fn flip_name(place: &Place, tree: &str, bytes: &[u8]) {
    let path = place.path().join(".dendrer/index.sqlite");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let number = |text: &str| db.query_row(text, [], |row| row.get::<_, u32>(0)).unwrap();
    let size = number("PRAGMA page_size") as usize;
    let page = number(&format!("SELECT rootpage FROM sqlite_schema WHERE name = '{tree}'")) as usize;
    db.close().unwrap();
    let mut file = std::fs::read(&path).unwrap();
    let begin = (page - 1) * size;
    let at = file[begin..begin + size].windows(bytes.len()).position(|part| part == bytes).unwrap();
    file[begin + at] ^= 1;
    std::fs::write(&path, file).unwrap();
}

/// A flipped bit in what rows are found by, or in a row, frees no name: a run begins once.
#[test]
fn a_flipped_bit_of_the_index_begins_no_run_again() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "main"], writes(0..1500).as_bytes());
    let segments = files(&place.path().join(".dendrer/segments"));
    for tree in ["sqlite_autoindex_run_1", "run"] {
        match tree {
            // Whoever looks the row up by the right name would find it.
            "run" => sql(&place, "UPDATE run SET name = 'mainx'"),
            _ => flip_name(&place, tree, b"main"),
        }
        let runs = place.run(&["runs", "--json"]);
        if tree != "run" {
            assert!(runs.code == 0 && runs.stdout.contains("1500"), "{}{}", runs.stdout, runs.stderr);
            assert!(place.ok(&["state", "main@5", "--json"]).contains(": 4") || runs.code == 0);
        }
        let refused = place.run_with(&["commit", "--run", "main"], writes(0..1).as_bytes());
        assert!(refused.code == 8 && refused.stderr.contains("doctor --fix"), "{tree}: {}", refused.stderr);
        assert_eq!(files(&place.path().join(".dendrer/segments")), segments, "{tree}");
        // Damage is reported and left to `doctor`.
        let verified = place.run(&["verify"]);
        let said = format!("{}{}", verified.stdout, verified.stderr);
        assert!(verified.code == 0 && said.contains("derived   damaged: index"), "{tree}: {said}");
        place.ok(&["doctor", "--fix"]);
        assert_eq!(place.run(&["verify"]).code, 0, "{tree}");
    }
    place.run_with(&["commit", "--run", "main"], writes(0..1).as_bytes());
    assert_eq!(place.run(&["verify", "--all", "--replay"]).code, 0);
}

/// A row that is missing or says something else than the log leads to no wrong answer, and to no second beginning of a run: an
/// answer is the one of the honest index, or names what mends it.
#[test]
fn a_row_that_is_missing_or_wrong_is_told_as_one_of_the_index() {
    let place = Place::with_store();
    for (run, from) in [("b", 5000), ("a", 1)] {
        place.run_with(&["commit", "--run", run], writes(from..from + 300).as_bytes());
    }
    place.ok(&["fork", "a@200", "--as", "f"]);
    place.run_with(&["commit", "--run", "c"], writes(0..1100).as_bytes());
    place.ok(&["doctor", "--fix"]);
    let (store, honest) = (place.path().join(".dendrer"), place.path().join("honest"));
    std::fs::rename(&store, &honest).unwrap();
    let heads = place.config().join("heads");
    let signed = place.path().join("signed");
    copy(&heads, &signed);
    let at = |tick: u64| format!("run = (SELECT begin FROM run WHERE name = 'a') AND tick = {tick}");
    let (a150, a200, a300, begin) = (at(150), at(200), at(300), at(0));
    let lies = [
        format!("DELETE FROM record WHERE {a150}"),
        format!("DELETE FROM record WHERE {a200}"),
        format!("DELETE FROM record WHERE {begin}"),
        format!("UPDATE record SET tick = tick + 1000 WHERE {a150}"),
        format!("UPDATE record SET tick = 301 WHERE {a300}"),
        format!("UPDATE record SET id = (SELECT id FROM record WHERE position = 7) WHERE {a300}"),
        format!("UPDATE record SET id = x'{}' WHERE {a200}", "ab".repeat(32)),
        "UPDATE run SET begin = begin + 1 WHERE name = 'a'".to_owned(),
        "UPDATE run SET parent = NULL WHERE name = 'f'".to_owned(),
        "DELETE FROM run WHERE name = 'a'".to_owned(),
        "DELETE FROM run WHERE name = 'f'".to_owned(),
    ];
    let questions = [
        &["show", "a@150", "--json"][..],
        &["state", "f@180", "--json"],
        &["bisect", "a", "--predicate", "has(state.x) && state.x > 250", "--json"],
        &["commit", "--run", "a"],
        &["commit", "--run", "f"],
        &["commit", "--run", "new"],
    ];
    let with = |lie: Option<&str>| {
        for (from, to) in [(&honest, &store), (&signed, &heads)] {
            if to.exists() {
                std::fs::remove_dir_all(to).unwrap();
            }
            copy(from, to);
        }
        lie.into_iter().for_each(|lie| sql(&place, lie));
        questions.map(|question| place.run_with(question, writes(0..1).as_bytes()))
    };
    let right = with(None);
    assert!(right.iter().all(|ran| ran.code == 0));
    for lie in &lies {
        with(None);
        sql(&place, lie);
        for target in ["a", "f", "--all"] {
            let found = place.run(&["verify", target, "--replay"]);
            let is_told = found.stdout.contains("derived   damaged: index");
            assert!(found.code == 0 && is_told, "{lie}\n{target}: {}{}", found.stdout, found.stderr);
        }
        for ((question, ran), right) in questions.iter().zip(with(Some(lie))).zip(&right) {
            let is_right = ran.code == 0 && (question[0] == "commit" || ran.stdout == right.stdout);
            let said = format!("{}{}", ran.stdout, ran.stderr);
            let is_told = ran.code != 0 && ["E0309", "E0809"].iter().any(|code| said.contains(code));
            assert!(is_right || is_told, "{lie}\n{question:?}: {} {said}", ran.code);
        }
        // Some of them were committed, none of them what the log cannot have.
        place.ok(&["doctor", "--fix"]);
        assert_eq!(place.run(&["verify", "--all"]).code, 0, "{lie}");
    }
}

/// Sums that do not follow from the records are found, and go with the index that is made again.
#[test]
fn a_changed_tile_is_found_and_made_again() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "a"], writes(0..1500).as_bytes());
    // The tiles that were complete before there was an index.
    let bins = &["log", "a", "--bins", "4", "--json"];
    let right = place.ok(bins);
    let lie = |number: u64| {
        sql(
            &place,
            &format!(
                "UPDATE tile SET sums = CAST(replace(CAST(sums AS TEXT), '\"n\":', '\"failed\":7,\"n\":') AS BLOB)
                 WHERE level = 6 AND number = {number}"
            ),
        );
    };
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
    for number in [3, 17] {
        lie(number);
        assert_eq!(place.run(&["fsck"]).code, 4);
        let found = place.run(&["verify", "--all"]);
        assert!(found.code == 0 && found.stdout.contains("derived   damaged: index"), "{}", found.stdout);
        assert!(place.ok(&["doctor", "--fix"]).contains("made again"));
        assert_eq!(place.run(&["verify", "--all"]).code, 0);
        // Nothing is kept in the new index until the records are summed again.
        for _ in 0..2 {
            assert_eq!(place.ok(bins), right);
        }
    }
}

/// An index that was advanced by a version that counts no runs is no damaged one.
#[test]
fn runs_are_counted_anew_where_somebody_did_not_count_them() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "a"], writes(0..1500).as_bytes());
    sql(&place, "UPDATE meta SET value = '1 0' WHERE key = 'runs'");
    assert_eq!(place.run(&["runs"]).stderr, "");
    assert_eq!(place.run_with(&["commit", "--run", "b"], writes(0..1500).as_bytes()).code, 0);
    sql(
        &place,
        "DELETE FROM record WHERE run = (SELECT begin FROM run WHERE name = 'b'); DELETE FROM run WHERE name = 'b'",
    );
    let refused = place.run_with(&["commit", "--run", "b"], writes(0..1).as_bytes());
    assert!(
        refused.code == 8 && refused.stderr.contains("rows of 1 runs, and 2 began"),
        "{}",
        refused.stderr
    );
}

/// The line of a writer that waits for lines is judged at the new head, also if it asked for a new run and has begun it with its
/// first line, and the reply names the place that another one wrote; with a `base` it is not taken.
#[test]
fn a_writer_that_waits_for_lines_is_judged_behind_what_another_wrote() {
    let place = Place::with_store();
    for (run, flags) in [("a", &["--new"][..]), ("b", &[])] {
        let mut late = place.command(&["commit", "--run", run]);
        late.args(flags).arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut late = late.spawn().unwrap();
        let mut input = late.stdin.take().unwrap();
        input.write_all(writes(5..6).as_bytes()).unwrap();
        input.flush().unwrap();
        let begun = std::time::Instant::now();
        while place.run(&["show", &format!("{run}@1")]).code != 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{run} does not begin");
        }
        assert_eq!(place.run(&["commit", "--run", run, "--new"]).code, 2);
        assert_eq!(place.run_with(&["commit", "--run", run], writes(0..1).as_bytes()).code, 0);
        let based = writes(2..3).replacen('{', "{\"base\":1,", 1);
        let lines = writes(1..2) + &based;
        input.write_all(lines.as_bytes()).unwrap();
        drop(input);
        let late = ran(late.wait_with_output().unwrap());
        assert!(late.code == 5 && late.stdout.contains("E0407"), "{flags:?}: {} {}", late.code, late.stdout);
        let document: serde_json::Value = serde_json::from_str(&late.stdout).unwrap();
        let [first, second] = [2, 3].map(|at| &document["items"][at]);
        let overtaken = serde_json::json!([{"path": "/x", "tick": 2, "agent": "a"}]);
        assert_eq!((&first["tick"], &first["overtaken"]), (&3.into(), &overtaken), "{document}");
        assert_eq!((&second["what"], &second["reason"]["head"]), (&"stale".into(), &3.into()), "{document}");
    }
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
}

/// A bisect that reads its probes alone takes no row of a lying index for the log: the onset is right, or the question is
/// refused.
#[test]
fn bisect_by_probes_is_right_or_refused_under_an_index_that_lies() {
    let place = Place::new();
    place.ok(&["demo", ".", "--size", "4000", "--no-tour"]);
    place.ok(&["predicate", "register", "acme.calls", "--holds", "state.counters.tool_calls < 700"]);
    let index = place.path().join(".dendrer/index.sqlite");
    let checkpointed = "DELETE FROM verdict; PRAGMA wal_checkpoint(TRUNCATE)";
    sql(&place, checkpointed);
    let honest = std::fs::read(&index).unwrap();
    let built_in = ["bisect", "generated-4000", "--predicate", "kernel.policy_compliant", "--json"];
    let counted = ["bisect", "generated-4000", "--predicate", "acme.calls", "--json"];
    let right = [built_in, counted].map(|ask| place.run(&ask).stdout);
    assert!(right[1].contains("\"onset\":2800"), "{}", right[1]);
    let row = |tick: u64| format!("(SELECT * FROM record WHERE tick = {tick})");
    let swapped = |column: &str, a: u64, b: u64| {
        format!(
            "CREATE TEMP TABLE x AS SELECT {column} AS v FROM {}; CREATE TEMP TABLE y AS SELECT {column} AS v FROM {};
             UPDATE record SET {column} = (SELECT v FROM y) WHERE tick = {a};
             UPDATE record SET {column} = (SELECT v FROM x) WHERE tick = {b};",
            row(a),
            row(b)
        )
    };
    let moved = |a: u64, b: u64| {
        format!(
            "UPDATE record SET tick = 900001 WHERE tick = {a}; UPDATE record SET tick = {a} WHERE tick = {b};
             UPDATE record SET tick = {b} WHERE tick = 900001;"
        )
    };
    let mut lies: Vec<String> = Vec::new();
    for (a, b) in [(2800, 2801), (2799, 2800), (2000, 3999), (4000, 10), (1, 4000)] {
        lies.extend([moved(a, b), swapped("frame", a, b), swapped("id", a, b)]);
    }
    lies.extend(["2700", "3999", "4001", "0"].map(|tip| format!("UPDATE run SET newest_tick = {tip}")));
    lies.push("UPDATE run SET begin = 5".to_owned());
    // A snapshot of another tick, and a forged one.
    lies.push("UPDATE snapshot SET state = (SELECT state FROM snapshot ORDER BY tick LIMIT 1)".to_owned());
    lies.push(
        "UPDATE snapshot SET state = (SELECT state FROM snapshot ORDER BY tick DESC LIMIT 1)".to_owned(),
    );
    lies.push("UPDATE snapshot SET state = CAST(zeroblob(32) || '{\"agents\":[],\"counters\":{},\"state\":{}}' AS BLOB)".to_owned());
    lies.push("UPDATE snapshot SET tick = tick + 1".to_owned());
    for lie in &lies {
        for (ask, right) in [built_in, counted].iter().zip(&right) {
            let _ = std::fs::remove_file(index.with_extension("sqlite-wal"));
            let _ = std::fs::remove_file(index.with_extension("sqlite-shm"));
            std::fs::write(&index, &honest).unwrap();
            sql(&place, &format!("{lie}; {checkpointed}"));
            let found = place.run(ask);
            let is_refused = found.stdout.contains("\"code\":\"E03") && !matches!(found.code, 0 | 1);
            assert!(found.stdout == *right || is_refused, "{lie}: {}{}", found.stdout, found.stderr);
        }
    }
}
