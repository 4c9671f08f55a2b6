//! Pictures, and a run as one file of HTML with its bundle inside.

use std::path::Path;

use dendrer_object::Value;
use regex::Regex;

use crate::support::{Place, Ran, demo, strip};

/// The tag of the bundle in a page, and the one that ends it.
const BEGIN: &str = "<script type=\"application/dendrer-bundle\">\n";
const END: &str = "</script>\n";

/// Exports a run of the demo as a page.
fn page(place: &Place, args: &[&str]) -> String {
    place.ok(&[&["export", "--format", "html", "-o", "run.html"], args].concat());
    std::fs::read_to_string(place.path().join("run.html")).unwrap()
}

/// Splits a page into what is around its bundle, and the bundle.
fn parts(page: &str) -> [&str; 3] {
    let (head, rest) = page.split_once(BEGIN).expect("a bundle");
    let (bundle, tail) = rest.split_once(END).expect("its end");
    [head, bundle, tail]
}

fn write(place: &Place, name: &str, text: &str) {
    std::fs::write(place.path().join(name), text).unwrap();
}

/// The words of a picture, one text a line.
fn words(svg: &str) -> Vec<String> {
    let text = Regex::new(r"<text[^>]*>([^<]*)</text>").unwrap();
    text.captures_iter(svg).map(|found| found[1].to_owned()).collect()
}

#[test]
fn a_timeline_is_drawn_with_a_lane_for_each_agent() {
    let ran = demo().run(&[
        "log",
        "logistics-run-47@20..24",
        "--format",
        "svg",
        "--predicate",
        "kernel.policy_compliant",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        words(&ran.stdout),
        [
            "logistics-run-47   ticks 20..24",
            "1 mark = 1 tick",
            "all ticks",
            "1  kernel.policy_compliant: first violated at tick 22 (exact)",
            "verdict 1",
            "router",
            "compliance",
            "dispatcher",
            "feed-reader",
            "20",
            "21",
            "22",
            "23",
            "24",
            "tick",
            "denied",
            "fork",
            "saw",
            "plan",
            "call, answer",
            "wrote the state",
            "tick 22  onset  kernel.policy_compliant is violated first",
            "tick 23  denial  deny &quot;risk_score 0.83 exceeds the threshold 0.75&quot;",
            "tick 21  fork  &quot;take the night lock for three barges at once&quot;",
        ]
    );
    let about = "<desc>5 transitions; 4 lanes; 1 mark = 1 tick; denied: 1; kernel.policy_compliant: first violated at \
                 tick 22 (exact).</desc>";
    assert!(ran.stdout.contains(about), "{}", ran.stdout);
    let bins = demo().run(&["log", "logistics-run-47", "--bins", "8", "--format", "svg"]).stdout;
    assert!(words(&bins).contains(&"1 mark = 16 ticks".to_owned()), "{bins}");
    assert_eq!(bins, demo().run(&["log", "logistics-run-47", "--bins", "8", "--format", "svg"]).stdout);
}

#[test]
fn a_bisect_is_drawn_with_a_row_for_each_probe() {
    let asked = ["bisect", "logistics-run-47", "--predicate", "kernel.policy_compliant", "--format", "svg"];
    let ran = demo().run(&asked);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        words(&ran.stdout),
        [
            "kernel.policy_compliant",
            "ends",
            "tick 0 OK",
            "tick 64 FAIL",
            "probe 1/6",
            "tick 32 FAIL   left 1..32",
            "probe 2/6",
            "tick 16 OK   left 17..32",
            "probe 3/6",
            "tick 24 FAIL   left 17..24",
            "probe 4/6",
            "tick 20 OK   left 21..24",
            "probe 5/6",
            "tick 22 FAIL   left 21..22",
            "probe 6/6",
            "tick 21 OK   left 22",
            "onset",
            "ONSET (exact) tick 22   (6 probes)",
        ]
    );
    // A predicate that is never violated ends as its text does.
    let never = ["bisect", "logistics-run-47", "--holds", "state.risk_score <= 9", "--format", "svg"];
    assert_eq!(demo().run(&never).code, 1);
}

#[test]
fn flags_of_another_form_are_refused() {
    let refused = |args: &[&str]| {
        let ran = demo().run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stdout);
        ran.stderr.lines().next().unwrap_or_default().to_owned()
    };
    let run = "logistics-run-47";
    for (args, expected) in [
        (
            &["log", run, "--holds", "true"][..],
            "error[E0106]: --holds is of a timeline: --bins N or --format svg",
        ),
        (
            &["log", run, "--format", "svg", "--type", "plan.update"],
            "error[E0106]: a timeline has every transition of its ticks: it takes --from, --to, --bins, --holds and --predicate",
        ),
        (
            &["log", run, "--format", "dot"],
            "error[E0106]: --format dot is of the graph: log RUN --graph --format dot",
        ),
        (&["export", run, "--title", "x", "-o", "x"], "error[E0106]: --title is for --format html"),
        (
            &["export", run, "--with", run, "--format", "html", "-o", "x"],
            "error[E0106]: --with names logistics-run-47, which is compared with itself",
        ),
        (
            &["export", run, "--range", "30..20", "--format", "html", "-o", "x"],
            "error[E0106]: --range begins at tick 30 of logistics-run-47 and ends before it, at 20",
        ),
        (
            &["export", run, "--with", "x", "--format", "carl", "-o", "x"],
            "error[E0106]: there is no extension x",
        ),
    ] {
        assert_eq!(refused(args), expected);
    }
    assert!(!demo().dir().join("x").exists(), "nothing is written");
}

#[test]
fn a_page_is_read_as_its_bundle() {
    let place = Place::with_demo();
    let text = page(&place, &["logistics-run-47"]);
    assert!(text.len() < 300_000, "{} bytes", text.len());
    place.ok(&["export", "logistics-run-47", "-o", "run.dnd"]);
    let bundle = std::fs::read_to_string(place.path().join("run.dnd")).unwrap();
    assert_eq!(parts(&text)[1].replace("\\u003c", "<"), bundle);
    let from = |file: &str, args: &[&str]| {
        place.ok(&[args, &[&format!("{file}@22")]].concat()).replace(file, "FILE")
    };
    for args in [&["show"][..], &["state"], &["log", "--full"], &["diff", "logistics-planner-1"]] {
        assert_eq!(from("run.html", args), from("run.dnd", args), "{args:?}");
    }
    let (code, verified) = place.json(&["verify", "run.html"]);
    let (bundle_code, bundle_verified) = place.json(&["verify", "run.dnd"]);
    assert_eq!((code, verified.get("verdict")), (bundle_code, bundle_verified.get("verdict")));
    let not_checked = verified.get("not_checked").and_then(Value::as_array).unwrap();
    assert_eq!(not_checked.iter().next().and_then(Value::as_str), Some("the page around the bundle"));
    let other = Place::with_store();
    std::fs::copy(place.path().join("run.html"), other.path().join("run.html")).unwrap();
    other.ok(&["import", "run.html", "--from", "ann"]);
    other.ok(&["fork", "ann/logistics-run-47@21", "--reason", "another way"]);
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    let [one, other] = [Place::with_demo(), Place::with_demo()];
    let asked = ["logistics-run-47", "--with", "logistics-planner-1", "--holds", "state.risk_score <= 0.75"];
    let text = page(&one, &asked);
    assert_eq!(text, page(&one, &asked));
    // The map of each log has a time and a seed of its own, and with them the bundle and the signature.
    let around = |page: &str| {
        let [head, _, tail] = parts(page);
        let time = Regex::new(r"map of \d{4}-\d\d-\d\dT[0-9:.]+Z").unwrap();
        [head, tail].map(|part| time.replace_all(part, "map").into_owned())
    };
    assert_eq!(around(&text), around(&page(&other, &asked)));
}

/// Returns the tags of a page with what is around its bundle, its style and its script, and fails at a text that has one.
fn tags(page: &str) -> Vec<String> {
    let [head, _, tail] = parts(page);
    let outside = format!("{head}{tail}");
    let inert = Regex::new(r"(?s)<(style|script)>.*?</(style|script)>").unwrap();
    let outside = inert.replace_all(&outside, "<$1></$1>");
    let tag = Regex::new(r"<[^>]*>?").unwrap();
    tag.find_iter(&outside).map(|found| found.as_str().to_owned()).collect()
}

#[test]
fn nothing_of_a_hostile_run_acts() {
    let place = Place::with_demo();
    let asked = ["hostile-1", "--with", "logistics-run-47", "--title", "</title><script>alert(1)</script>"];
    let text = page(&place, &asked);
    // Each tag is one that the page is made of, with its attributes and nothing else.
    let known = Regex::new(
        r#"^(?x)<(
            !doctype\ html|html\ lang="en"|meta\ [a-z-]+="[^"<>]*"(\ content="[^"<>]*")?
            |/?(html|head|body|title|style|script|header|main|details|summary|h1|h2|p|pre|ol|li|b|i|code|div|span|a|label|form|output|button|svg|desc|text|path)
            |details\ open
            |(p|ol|li|div|span|h2|text|i|b)\ class="[a-z\ ]+"
            |li\ id="(r\d+)?[tc]\d+"(\ class="bad")?
            |a\ href="\#(r\d+)?[tc]\d+"
            |div\ class="figure"\ role="region"\ tabindex="0"\ aria-label="[a-z0-9\ ]+"
            |svg\ class="draw"\ role="img"\ width="960"\ height="\d+"\ viewBox="0\ 0\ 960\ \d+"
            |path\ class="[a-z]+"\ d="[MLHVhvalz0-9.\ -]*"/?
            |text(\ class="[a-z]+")?\ x="\d+"\ y="\d+"
            |(form|input|output|button)\ [^<>]*
        )>$"#,
    )
    .unwrap();
    for tag in tags(&text) {
        assert!(known.is_match(&tag), "{tag}");
    }
    let scripts = Regex::new("(?i)<script[^>]*>").unwrap();
    let scripts: Vec<&str> = scripts.find_iter(&text).map(|found| found.as_str()).collect();
    assert_eq!(scripts, [BEGIN.trim_end(), "<script>"]);
    assert_eq!(text.matches("default-src 'none'; script-src 'sha256-").count(), 1);
    for shown in
        ["&lt;script&gt;alert(document.domain)&lt;/script&gt;", "<title>&lt;/title&gt;&lt;script&gt;"]
    {
        assert!(text.contains(shown), "{shown}");
    }
    // What acts on a terminal or turns text around is spelled out, in the page and in its bundle.
    for acts in ['\u{202e}', '\u{200b}', '\u{1b}', '\0'] {
        assert!(!parts(&text)[0].contains(acts), "{acts:?}");
    }
}

fn verify(place: &Place, text: &[u8]) -> Ran {
    std::fs::write(place.path().join("changed.html"), text).unwrap();
    place.run(&["verify", "changed.html"])
}

#[test]
fn a_changed_byte_of_the_bundle_is_tampered() {
    let place = Place::with_demo();
    let text = page(&place, &["logistics-run-47"]);
    let begin = text.find(BEGIN).unwrap() + BEGIN.len();
    let end = begin + parts(&text)[1].len();
    // The first line names the version of the format: another one is not read.
    let begin = begin + text[begin..].find('\n').unwrap();
    let all: usize = std::env::var("DENDRER_CHANGED_BYTES").map_or(16, |text| text.parse().unwrap());
    for number in 0..all {
        let mut changed = text.clone().into_bytes();
        changed[begin + (end - begin) * number / all] ^= 1;
        let ran = verify(&place, &changed);
        assert_eq!(ran.code, 4, "byte {number}: {}{}", ran.stdout, ran.stderr);
    }
    let around = text.replace("What went wrong first", "Nothing went wrong");
    assert_eq!(verify(&place, around.as_bytes()).code, 0);
    let second = text.replace("</body>", &format!("{BEGIN}{END}</body>"));
    let ran = verify(&place, second.as_bytes());
    assert_eq!(ran.code, 4, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("MALFORMED    E0306: there is a second bundle in the page"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_page_without_its_bundle_cannot_be_checked() {
    let place = Place::with_demo();
    place.ok(&["export", "logistics-run-47", "--format", "html", "--no-bundle", "-o", "bare.html"]);
    let text = std::fs::read_to_string(place.path().join("bare.html")).unwrap();
    assert!(!text.contains("application/dendrer-bundle"));
    let alarm = Regex::new(
        "<h1>logistics-run-47</h1>\n<p class=\"alarm\">tip of logistics-run-47: sha256:[0-9a-f]{64}; nothing here can be checked</p>",
    );
    assert!(alarm.unwrap().is_match(&text), "{}", &text[..2_000]);
    for args in [&["verify", "bare.html"][..], &["log", "bare.html"], &["import", "bare.html"]] {
        let ran = place.run(args);
        assert_eq!(ran.code, 6, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("error[E0315]"), "{}", ran.stderr);
    }
}

#[test]
fn a_file_that_is_too_large_is_not_written() {
    let place = Place::with_demo();
    let ran = place.run(&[
        "export",
        "logistics-run-47",
        "--format",
        "html",
        "--max-bytes",
        "99999",
        "-o",
        "x.html",
    ]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    let sizes = Regex::new(r"(?m)^  \| (page|bundle)   +[\d,]+ bytes$").unwrap();
    assert_eq!(sizes.find_iter(&ran.stderr).count(), 2, "{}", ran.stderr);
    assert!(!place.path().join("x.html").exists());
    place.ok(&[
        "export",
        "logistics-run-47",
        "--format",
        "html",
        "--max-bytes",
        "99999",
        "--no-bundle",
        "-o",
        "x.html",
    ]);
}

#[test]
fn nothing_of_the_machine_is_in_the_file() {
    let place = Place::with_demo();
    place.ok(&["note", "logistics-run-47@22", "canary-note"]);
    place.ok(&["label", "canary-label", "logistics-run-47@22"]);
    let text = page(&place, &["logistics-run-47", "--with", "logistics-planner-1"]);
    let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let user = std::env::var("USER").unwrap_or_default();
    let paths = [place.path(), Path::new(env!("CARGO_MANIFEST_DIR"))].map(|path| path.display().to_string());
    // A short name of a host or a user may be a part of a word.
    let names = [host.trim(), &user].into_iter().filter(|name| name.len() > 7);
    for canary in ["canary-note", "canary-label", "run.html", &paths[0], &paths[1]].into_iter().chain(names) {
        assert!(!text.contains(canary), "{canary}");
    }
}

#[test]
fn a_withheld_value_is_not_in_the_file() {
    let place = Place::with_store();
    let line = |n: u64| {
        format!(
            "{{\"type\":\"action.result\",\"action\":{{\"tool\":\"t\"}},\"result\":{{\"status\":\"ok\",\"output\":\"canary-{n}\"}}}}\n"
        )
    };
    let lines: String = (0..3).map(line).collect();
    let ran = place.run_with(&["commit", "--run", "r"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(page(&place, &["r"]).contains("canary-1"));
    let text = page(&place, &["r", "--withhold", "/result/output"]);
    assert!(!text.contains("canary-"));
    assert!(text.contains("<span class=\"form\">erased or withheld: result.output</span>"), "{text}");
    assert_eq!(place.run(&["verify", "run.html"]).code, 6, "as for the bundle");
}

#[test]
fn a_value_that_was_redacted_is_a_mark_in_the_file() {
    let place = Place::with_store();
    let token = ["ghp_", "abcdefghijklmnopqrstuvwxyz0123456789AB"].concat();
    let line = format!(
        "{{\"type\":\"observation.add\",\"intent\":{{\"description\":\"key {token}\"}},\"delta\":[{{\"set\":\"/c\",\"value\":{{\"password\":\"hunter2secret\"}}}}]}}\n"
    );
    let ran = place.run_with(&["commit", "--run", "r"], line.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = page(&place, &["r"]);
    assert!(!text.contains(&token) && !text.contains("hunter2secret"));
    for mark in [
        "&quot;password&quot;:<span class=\"form\">redacted named</span>",
        "<span class=\"form\">taken out: 1 github-pat, 1 named</span>",
    ] {
        assert!(text.contains(mark), "{mark}");
    }
}

#[test]
fn ticks_that_are_left_out_are_counted() {
    let place = Place::with_store();
    let lines: String = (0..2_100)
        .map(|n| format!("{{\"type\":\"observation.add\",\"intent\":{{\"description\":\"line {n}\"}}}}\n"))
        .collect();
    let ran = place.run_with(&["commit", "--run", "long"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = page(&place, &["long"]);
    assert_eq!(text.matches("<li id=\"t").count(), 400);
    assert_eq!(
        text.matches("<li class=\"gap\">ticks 201 to 1,900 are not shown: 1,700 transitions</li>").count(),
        2
    );
    let part = page(&place, &["long", "--range", "1000..1009"]);
    assert_eq!(part.matches("<li id=\"t").count(), 10);
    assert_eq!(parts(&part)[1], parts(&text)[1], "the bundle has all");
    write(&place, "other.html", &part);
    assert_eq!(place.run(&["verify", "other.html"]).code, 0);
}

/// A field that answers read may be withheld: the answer is not known then, and the rest of the page is there.
#[test]
fn an_answer_that_reads_what_is_withheld_is_not_known() {
    let place = Place::with_demo();
    for field in ["/action", "/result", "/delta", "/anomalies", "/policy", "/state_root"] {
        let args = ["export", "logistics-run-47", "--format", "html", "--withhold", field, "-o", "w.html"];
        let page = place.naming("--although", &args);
        assert_eq!(page.code, 0, "{field}: {}", page.stderr);
        let text = std::fs::read_to_string(place.path().join("w.html")).unwrap();
        assert!(text.contains("<h2>Timeline</h2>"), "{field}");
        place.ok(&["export", "logistics-run-47", "-o", "w.dnd"]);
        strip(place.path().join("w.dnd"), &[field]);
        for verb in [
            &["bisect", "w.dnd", "--all-of", "standard"][..],
            &["commitments", "w.dnd"],
            &["log", "w.dnd", "--transcript"],
        ] {
            let got = place.run(verb);
            assert!(got.code < 7, "{field} {verb:?}: {}", got.stderr);
        }
    }
    let chat = r#"[{"role":"user","content":"pay"},{"role":"assistant","content":"paying","tool_calls":[
        {"id":"a","function":{"name":"pay","arguments":"{\"n\":3}"}},{"id":"b","function":{"name":"pay","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"b","content":"done"},{"role":"tool","tool_call_id":"a","content":"done"}]"#;
    std::fs::write(place.path().join("chat.json"), chat).unwrap();
    place.ok(&["import", "chat.json", "--run", "chat"]);
    let args = ["export", "chat", "--format", "html", "--withhold", "/action/calls", "-o", "w.html"];
    assert_eq!(place.naming("--also", &args).code, 0);
    assert!(place.run(&["bisect", "w.html", "--all-of", "standard"]).code < 7);
    // Each answer names its call where the tick has several.
    let read = place.ok(&["log", "chat", "--transcript"]);
    assert!(read.contains("(of tick 2, call b)") && read.contains("(call a)"), "{read}");
}

/// What may follow from a value is named first; what is left verifies, is imported, and goes on before the value.
#[test]
fn what_may_follow_from_a_withheld_value_is_named_first() {
    let (place, there) = (Place::with_store(), Place::with_store());
    let lines = r#"{"type":"plan.update","agent":"a","intent":{"description":"ask"},"delta":[{"set":"/n","value":1}]}
{"type":"action.result","author":"runtime","agent":"desk","action":{"tool":"limit","params":"c"},"result":{"status":"ok","output":4711},"delta":[{"set":"/limit","value":4711}]}
{"type":"plan.update","agent":"a","intent":{"description":"pay in full"}}
"#;
    let ran = place.run_with(&["commit", "--run", "r", "--as", "runtime"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let withheld = ["export", "r", "--withhold", "2:result.output"];
    let export = [&withheld[..], &["-o", "less.dnd"]].concat();
    let less = place.path().join("less.dnd");
    let asked = place.run(&export);
    assert_eq!((asked.code, asked.stdout.as_str()), (5, ""), "{}", asked.stderr);
    assert!(
        asked.stderr.contains("r  tick 3  intent.description  (written after the value)"),
        "{}",
        asked.stderr
    );
    assert!(asked.stderr.contains("E0467") && !less.exists());
    let named = ["--also", "action.params", "--although", "3:intent.description"];
    let (code, dry) = place.json(&[&withheld[..], &named, &["-n"]].concat());
    assert_eq!(code, 0, "{dry}");
    assert!(!less.exists() && dry.to_string().contains(r#""schema":"dendrer.withhold/1""#), "{dry}");
    // A place that was not asked for is not let pass.
    let idle = place.run(&[&export[..], &named, &["--also", "1:intent"]].concat());
    assert_eq!((idle.code, less.exists()), (2, false), "{}", idle.stderr);
    place.ok(&[&export[..], &named].concat());
    let text = std::fs::read_to_string(&less).unwrap();
    assert!(text.starts_with(r#"{"although":["3:intent.description"],"bundle":1,"#), "{text}");
    assert!(!text.contains("4711") && text.contains("pay in full"));
    let ran = place.run(&["verify", "less.dnd"]);
    let lost = "state     INCOMPLETE   from tick 2: a change is missing, erased or withheld";
    assert!(ran.code == 6 && ran.stdout.contains(lost), "{}", ran.stdout);
    std::fs::copy(&less, there.path().join("less.dnd")).unwrap();
    there.ok(&["import", "less.dnd", "--from", "ann"]);
    there.ok(&["fork", "ann/r@1", "--as", "on"]);
    assert_eq!(there.run(&["fork", "ann/r@2", "--as", "no"]).code, 6);
    assert_eq!(there.ok(&["state", "on", "--path", "n"]).trim(), "1");
}
