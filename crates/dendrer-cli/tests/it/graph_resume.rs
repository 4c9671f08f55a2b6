//! Runs of graphs that were interrupted go on, and an effect acts once: outputs as they were printed, limits, calls of which it is
//! not known whether they acted.

use std::path::Path;

use dendrer_object::{Value, json};

use crate::support::{Place, Ran};

/// A place with files, and a store.
fn place_of(files: &[(&str, &str)]) -> Place {
    let place = Place::with_store();
    write(place.path(), files);
    place
}

fn write(dir: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        std::fs::write(dir.join(name), text).unwrap();
    }
}

fn lines(place: &Place, name: &str) -> usize {
    std::fs::read_to_string(place.path().join(name)).unwrap_or_default().lines().count()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_else(|| panic!("{name}: {value}"))
}

/// The content of a tick.
fn content(place: &Place, address: &str) -> Value {
    let (code, shown) = place.json(&["show", address]);
    assert_eq!(code, 0, "{address}");
    shown.get("content").unwrap().clone()
}

/// The edges of an answer that needs a decision: path, call and reason.
fn needs(answer: &Value) -> Vec<String> {
    let needs = answer.get("needs").unwrap().as_array().unwrap();
    let one = |need: &Value| format!("{} {} {}", text(need, "path"), text(need, "call"), text(need, "why"));
    needs.iter().map(one).collect()
}

/// G15: a printed id stays the text that was printed, whatever its characters are.
#[cfg(unix)]
#[test]
fn printed_numbers_stay_text() {
    let graph = "graph rel\nn0 q(req) pure\ne1 git.head(n0) -> rec frontier[1]\nn1 tag(e1) pure\nreplay(graph, frontier) == output required\n";
    let pack = "name: rel\nversion: v1\ndefine:\n  q(req): req.q\n  tag(h): \"{'commit': h}\"\ntools:\n  git.head: {effect: read}\n";
    let json_pack = pack.replace("effect: read", "effect: read, output: json");
    let place = place_of(&[
        ("rel.graph", graph),
        ("rel.yaml", pack),
        ("json.yaml", &json_pack),
        ("req.json", r#"{"q":"x"}"#),
    ]);
    let run = |pack: &str, name: &str, printed: &str| {
        write(place.path(), &[("printed", printed)]);
        let args = ["graph", "run", "rel.graph", "--pack", pack, "--as", name, "--input", "req=req.json"];
        place.json(&[&args[..], &["--exec", "git.head=cat printed"]].concat())
    };
    let cases = [
        ("1234e8\n", r#""1234e8""#),
        ("0005747\n", r#""0005747""#),
        ("5747\n", r#""5747""#),
        ("12e400", r#""12e400""#),
        ("-0\n", r#""-0""#),
        (" 7 \n", r#"" 7 ""#),
        ("1.10\n", r#""1.10""#),
        ("a\n\n", r#""a\n""#),
        ("", r#""""#),
        ("true\n", "true"),
        ("null\n", "null"),
        ("\"5747\"\n", r#""5747""#),
        ("[1234e8]\n", "[123400000000]"),
        ("{\"id\":1}\n", r#"{"id":1}"#),
        ("{\"id\":1} and more\n", r#""{\"id\":1} and more""#),
    ];
    for (number, (printed, expected)) in cases.into_iter().enumerate() {
        let name = format!("r{number}");
        let (code, answer) = run("rel.yaml", &name, printed);
        let expected = json::parse_door(expected.as_bytes()).unwrap();
        assert_eq!(
            (code, answer.get("output").unwrap().get("commit").unwrap()),
            (0, &expected),
            "{printed:?}"
        );
        let (_, frontier) = place.json(&["graph", "frontier", &name]);
        let first = frontier.get("items").unwrap().as_array().unwrap().get(0).unwrap().clone();
        assert_eq!(first.get("value"), Some(&expected), "{printed:?}");
        place.ok(&["replay", &name]);
    }
    // A tool that declares its output: numbers are numbers, and any other text is a failure of a call that has answered.
    let (code, answer) = run("json.yaml", "declared", "5747\n");
    let five = json::parse_door(b"5747").unwrap();
    assert_eq!((code, answer.get("output").unwrap().get("commit").unwrap()), (0, &five));
    write(place.path(), &[("printed", "0005747\n")]);
    let failing =
        ["graph", "run", "rel.graph", "--pack", "json.yaml", "--as", "text", "--input", "req=req.json"];
    let ran = place.run(&[&failing[..], &["--exec", "git.head=cat printed"]].concat());
    assert!(ran.code == 8 && ran.stderr.contains("the answer is not JSON"), "{}", ran.stderr);
    let error = content(&place, "text@tip").get("result").unwrap().get("error").unwrap().clone();
    assert_eq!(text(&error, "ended"), "unread");
}

const PAY: [(&str, &str); 5] = [
    (
        "pay.graph",
        "graph pay\nn0 order(req) pure\ne1 bank.charge(n0) -> rec frontier[1]\ne2 mail.send(e1) -> rec frontier[2]\nn1 done(e1, e2) pure\nreplay(graph, frontier) == output required\n",
    ),
    (
        "pay.yaml",
        "name: pay\nversion: v1\ndefine:\n  order(req): \"{'amount': req.amount, 'to': req.to}\"\n  \"done(c, m)\": \"{'charge': c, 'mail': m}\"\ntools:\n  bank.charge: {effect: effectful}\n  mail.send: {effect: effectful, timeout: 400ms}\n",
    ),
    ("req.json", r#"{"amount": 40.5, "to": "kim"}"#),
    ("charge.sh", "echo charged >> charges.txt\necho '{\"id\": \"ch_1\", \"amount\": 40.5}'\n"),
    ("sent.json", "\"sent\""),
];

const CHARGE: &str = "--exec=bank.charge=sh charge.sh";

/// Runs the graph with a command that sends mail; `more` is what goes with it.
fn pay(place: &Place, mail: &str, more: &[&str]) -> Ran {
    let mail = format!("--exec=mail.send={mail}");
    let args = ["graph", "run", "pay.graph", "--pack", "pay.yaml", CHARGE, &mail];
    let input: &[&str] = if more.contains(&"--resume") { &[] } else { &["--input", "req=req.json"] };
    place.run(&[&args[..], input, more].concat())
}

/// G17: a run that failed goes on, and the card is charged once.
#[cfg(unix)]
#[test]
fn a_failed_run_goes_on_without_charging_again() {
    let place = place_of(&PAY);
    let mail = "if [ -e mail.up ]; then echo sent; else echo 'no mail server' >&2; exit 1; fi";
    let failed = pay(&place, mail, &[]);
    assert_eq!(failed.code, 8, "{}", failed.stderr);
    assert!(
        failed.stderr.contains("no mail server\n") && failed.stderr.contains("--resume pay"),
        "{}",
        failed.stderr
    );
    let error = content(&place, "pay@tip").get("result").unwrap().get("error").unwrap().clone();
    let exit = error.get("exit").unwrap().as_u64();
    assert_eq!(
        (exit, text(&error, "stderr"), text(&error, "ended")),
        (Some(1), "no mail server\n", "answered")
    );
    let taken = pay(&place, mail, &[]);
    assert!(taken.code == 5 && taken.stderr.contains("--resume pay"), "{}", taken.stderr);
    assert!(!taken.stderr.contains("another name"), "{}", taken.stderr);
    // It fails again, and then does not.
    assert_eq!(pay(&place, mail, &["--resume", "pay"]).code, 8);
    write(place.path(), &[("mail.up", "")]);
    let done = pay(&place, mail, &["--resume", "pay"]);
    assert!(done.code == 0 && done.stdout.contains("closed     good"), "{}{}", done.stdout, done.stderr);
    assert_eq!(lines(&place, "charges.txt"), 1);
    // A closed run: its answer, and no executor is needed.
    let (code, again) = place.json(&["graph", "run", "pay.graph", "--pack", "pay.yaml", "--resume", "pay"]);
    assert_eq!((code, text(&again, "closed"), again.get("asked").unwrap().as_u64()), (0, "good", Some(0)));
    assert_eq!(text(again.get("output").unwrap(), "mail"), "sent");
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
    assert_eq!(place.run(&["replay", "pay"]).code, 0);
}

/// Sibling of G17: calls that were ended from outside are asked again only if the caller says so.
#[cfg(unix)]
#[test]
fn a_call_that_may_have_acted_waits_for_a_decision() {
    for (number, (mail, why)) in [
        ("echo sent >> mails.txt; kill -9 $$", "killed"),
        ("echo sent >> mails.txt; exit 143", "killed"),
        // What it begins holds its output open, and is ended with it.
        ("echo sent >> mails.txt; sleep 30 & sleep 30", "timeout"),
    ]
    .into_iter()
    .enumerate()
    {
        let place = place_of(&PAY);
        assert_eq!(pay(&place, mail, &[]).code, 8, "{number}");
        let resume = ["--resume", "pay", "--json"];
        let asked = pay(&place, mail, &resume);
        let answer = json::parse_door(asked.stdout.as_bytes()).unwrap();
        assert_eq!(asked.code, 5, "{}", asked.stderr);
        assert_eq!(needs(&answer), [format!("e2 mail.send {why}")]);
        assert_eq!(answer.get("closed"), Some(&Value::Null));
        assert_eq!(lines(&place, "mails.txt"), 1, "{mail}");
        // An edge that has its answer, and one that the graph does not have.
        for path in ["e1", "e9"] {
            let ran = pay(&place, mail, &["--resume", "pay", "--ask-again", path]);
            assert!(ran.code == 2 && ran.stderr.contains("E0938"), "{path}: {}", ran.stderr);
        }
        let both = ["--resume", "pay", "--ask-again", "e2", "--set", "e2=sent.json"];
        assert_eq!(pay(&place, mail, &both).code, 2);
        assert_eq!(lines(&place, "mails.txt"), 1, "{mail}");
        match number {
            0 => {
                let again = "echo sent >> mails.txt; echo sent";
                let done = pay(&place, again, &["--resume", "pay", "--ask-again", "e2"]);
                assert_eq!(done.code, 0, "{}", done.stderr);
                assert_eq!(lines(&place, "mails.txt"), 2);
            }
            // Nothing is left to be asked, so no executor is needed.
            _ => {
                let set = [
                    "graph",
                    "run",
                    "pay.graph",
                    "--pack",
                    "pay.yaml",
                    "--resume",
                    "pay",
                    "--set",
                    "e2=sent.json",
                ];
                assert_eq!(place.run(&set).code, 0);
                assert_eq!(lines(&place, "mails.txt"), 1);
                let (_, shown) = place.json(&["show", "pay@6"]);
                let given = shown.get("content").unwrap();
                assert!(text(given.get("intent").unwrap(), "description").contains("by hand"), "{given}");
                assert_eq!((text(&shown, "author"), given.get("anomalies")), ("runtime", None));
            }
        }
        assert_eq!((lines(&place, "charges.txt"), place.run(&["replay", "pay"]).code), (1, 0));
    }
}

/// Reads and idempotent writes are asked again by themselves, also when their tool was killed or too slow.
#[cfg(unix)]
#[test]
fn reads_are_asked_again_by_themselves() {
    for class in ["read", "idempotent_write"] {
        let place = place_of(&PAY);
        let pack =
            PAY[1].1.replace("mail.send: {effect: effectful", &format!("mail.send: {{effect: {class}"));
        write(place.path(), &[("pay.yaml", &pack)]);
        assert_eq!(pay(&place, "kill -9 $$", &[]).code, 8);
        assert_eq!(pay(&place, "sleep 30", &["--resume", "pay"]).code, 8);
        assert_eq!(pay(&place, "echo sent", &["--resume", "pay"]).code, 0);
        assert_eq!(lines(&place, "charges.txt"), 1);
    }
}

/// Another graph, pack, input or stage than the run was begun with is refused, and nothing is asked.
#[cfg(unix)]
#[test]
fn a_run_goes_on_with_what_it_was_begun_with() {
    let place = place_of(&PAY);
    assert_eq!(pay(&place, "exit 1", &[]).code, 8);
    let refused = |more: &[&str], what: &str| {
        let ran = pay(&place, "echo sent", &[&["--resume", "pay"], more].concat());
        let is_so = ran.stderr.contains("E0942") && ran.stderr.contains(&format!("another {what}"));
        assert!(ran.code == 2 && is_so, "{what}: {}", ran.stderr);
    };
    write(place.path(), &[("other.json", r#"{"amount": 41, "to": "kim"}"#)]);
    refused(&["--input", "req=other.json"], "input req");
    refused(&["--stage", "2"], "stage");
    write(place.path(), &[("pay.yaml", &PAY[1].1.replace("'mail': m", "'post': m"))]);
    refused(&[], "pack");
    write(
        place.path(),
        &[("pay.yaml", PAY[1].1), ("pay.graph", &PAY[0].1.replace("done(e1, e2)", "done(e2, e1)"))],
    );
    refused(&[], "graph");
    write(place.path(), &[("pay.graph", PAY[0].1)]);
    // A run that no graph wrote, one that is missing, flags that do not go together.
    place.run_with(&["commit", "--run", "plain", "--new"], b"{\"type\":\"observation.add\"}\n");
    for (more, code, words) in [
        (&["--resume", "plain"][..], 2, "E0938"),
        (&["--resume", "gone"], 3, "E0101"),
        (&["--resume", "pay", "--as", "other"], 2, "E0106"),
        (&["--ask-again", "e2"], 2, "E0106"),
        (&["--as", "other", "--ask-again", "e2"], 2, "E0106"),
        (&["--as", "other", "--set", "e2=sent.json"], 2, "E0106"),
        (&["--as", "other", "--exec", "mail.sent=echo sent"], 2, "E0106"),
        (&["--as", "other", "--exec", "mail.send=echo two"], 2, "two executors"),
        (&["--as", "other", "--input", "req=req.json"], 2, "gives req twice"),
        (&["--resume", "pay", "--set", "e2=sent.json", "--set", "e2=req.json"], 2, "gives e2 twice"),
    ] {
        let ran = pay(&place, "echo sent", more);
        assert!(ran.code == code && ran.stderr.contains(words), "{more:?}: {} {}", ran.code, ran.stderr);
    }
    // An effect that is still to be asked has no executor.
    let ran = place.run(&["graph", "run", "pay.graph", "--pack", "pay.yaml", "--resume", "pay", CHARGE]);
    assert!(ran.code == 2 && ran.stderr.contains("nothing answers mail.send"), "{}", ran.stderr);
    // The same inputs may be given; that of an effect which has answered needs no executor.
    let args = ["graph", "run", "pay.graph", "--pack", "pay.yaml", "--resume", "pay"];
    place.ok(&[&args[..], &["--input", "req=req.json", "--exec=mail.send=echo sent"]].concat());
    assert_eq!(lines(&place, "charges.txt"), 1);
}

/// Two processes never run one graph under the same name.
#[cfg(unix)]
#[test]
fn a_second_process_is_refused() {
    let place = place_of(&PAY);
    let mut first = place
        .command(&["graph", "run", "pay.graph", "--pack", "pay.yaml", "--input", "req=req.json"])
        .args([
            "--exec=bank.charge=echo 1 >> begun; while [ ! -e go ]; do sleep 0.01; done; echo ok",
            "--exec=mail.send=echo sent",
        ])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while lines(&place, "begun") == 0 {
        assert!(first.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = pay(&place, "echo sent", &["--resume", "pay", "--ask-again", "e1"]);
    assert!(second.code == 5 && second.stderr.contains("E0943"), "{}", second.stderr);
    write(place.path(), &[("go", "")]);
    assert!(first.wait().unwrap().success());
    assert_eq!(pay(&place, "echo sent", &["--resume", "pay"]).code, 0);
    assert_eq!(lines(&place, "charges.txt"), 0);
}

/// A node that cannot be computed is on record once, without secrets, and what was asked beside it is kept.
#[cfg(unix)]
#[test]
fn a_node_that_fails_is_on_record() {
    let place = place_of(&PAY);
    write(place.path(), &[("pay.yaml", &PAY[1].1.replace("'mail': m", "'mail': m.id"))]);
    let token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let failed = pay(&place, &format!("echo '{{\"token\":\"{token}\"}}'"), &[]);
    assert!(failed.code == 8 && failed.stderr.contains("E0935"), "{}", failed.stderr);
    let fault = content(&place, "pay@tip").get("intent").unwrap().get("node_failed").unwrap().clone();
    assert_eq!(text(&fault, "path"), "n1");
    assert!(!text(&fault, "error").is_empty());
    let before = place.ok(&["log", "pay"]);
    assert_eq!(pay(&place, "echo sent", &["--resume", "pay"]).code, 8);
    assert_eq!(place.ok(&["log", "pay"]), before);
    // What a command writes to stderr is kept without its secrets, at the cut too.
    write(place.path(), &PAY);
    let noisy = format!("head -c 4060 /dev/zero | tr '\\0' x >&2; echo ' token={token}' >&2; exit 3");
    assert_eq!(pay(&place, &noisy, &["--as", "noisy"]).code, 8);
    let error = content(&place, "noisy@tip").get("result").unwrap().get("error").unwrap().clone();
    let stderr = text(&error, "stderr");
    assert!(stderr.len() <= 4096 && stderr.len() > 2000 && !stderr.contains(&token[8..]), "{stderr}");
}

const POLL: [(&str, &str); 3] = [
    (
        "poll.graph",
        "graph poll\nn0 q(req) pure\nr1 repeat(n0) max 3 until n2\ne1 job.status(r1) -> rec frontier[1.*.1]\nn1 ask(e1) pure\nn2 done(n1) pure\nn3 ask(e1) pure\nend r1\nn4 ask(r1) pure\ne2 mail.send(n4) -> rec frontier[2]\nn5 ask(e2) pure\nreplay(graph, frontier) == output required\n",
    ),
    (
        "poll.yaml",
        "name: poll\nversion: v1\ndefine:\n  q(req): req.q\n  ask(x): x\n  done(x): \"x.status == 'done'\"\ntools:\n  job.status: {effect: read}\n  mail.send: {effect: effectful}\n",
    ),
    ("req.json", r#"{"q":"job 7"}"#),
];

/// G18: a repeat at its limit closes the run as `limit`, and nothing after it is asked; `or limit` goes on.
#[cfg(unix)]
#[test]
fn a_repeat_at_its_limit_closes_the_run() {
    let place = place_of(&POLL);
    let run = |name: &str, status: &str, more: &[&str]| {
        let status = format!("--exec=job.status=echo '{{\"status\":\"{status}\"}}'");
        let args = ["graph", "run", "poll.graph", "--pack", "poll.yaml", "--input", "req=req.json", &status];
        let mail = format!("--exec=mail.send=echo {name} >> mails.txt");
        place.json(&[&args[..], &[&mail], more].concat())
    };
    let (code, answer) = run("poll", "pending", &[]);
    assert_eq!((code, text(&answer, "closed"), text(&answer, "limit")), (1, "limit", "r1"));
    assert_eq!((answer.get("output"), lines(&place, "mails.txt")), (Some(&Value::Null), 0));
    let limit = content(&place, "poll@tip").get("intent").unwrap().get("limit").unwrap().clone();
    assert_eq!((text(&limit, "path"), limit.get("max").unwrap().as_u64()), ("r1", Some(3)));
    let (code, frontier) = place.json(&["graph", "frontier", "poll"]);
    assert_eq!((code, text(&frontier, "limit")), (0, "r1"));
    let (code, replayed) = place.json(&["replay", "poll"]);
    assert_eq!((code, text(&replayed, "limit")), (0, "r1"));
    let (code, again) =
        place.json(&["graph", "run", "poll.graph", "--pack", "poll.yaml", "--resume", "poll"]);
    assert_eq!((code, text(&again, "closed")), (1, "limit"));
    // As a file, it replays, and a graph that goes on at the limit does not fit it.
    place.ok(&["export", "poll", "--format", "frontier", "-o", "poll.frontier"]);
    place.ok(&["graph", "test", "poll.frontier"]);
    write(place.path(), &[("on.graph", &POLL[0].1.replace("until n2", "until n2 or limit"))]);
    assert_eq!(place.run(&["graph", "test", "poll.frontier", "--graph", "on.graph"]).code, 7);
    let (code, answer) = run("ok", "done", &["--as", "ok"]);
    assert_eq!((code, text(&answer, "closed"), lines(&place, "mails.txt")), (0, "good", 1));
    // Sibling: a limit inside a child and a repeat ends the whole run; with `or limit` it is asked what comes after.
    write(place.path(), &[("poll.graph", &POLL[0].1.replace("until n2", "until n2 or limit"))]);
    let (code, answer) = run("on", "pending", &["--as", "on"]);
    assert_eq!((code, text(&answer, "closed"), lines(&place, "mails.txt")), (0, "good", 2));
    let outer = "graph outer\nr1 repeat(req) max 2 until n1\ne1 graph.poll(r1) -> rec frontier[1.*.1]\nn1 done(r1) pure\nn2 ask(e1) pure\nend r1\nn3 ask(r1) pure\nreplay(graph, frontier) == output required\n";
    write(
        place.path(),
        &[("child.graph", POLL[0].1), ("poll.graph", outer), ("req.json", r#"{"q":"job 7","status":"x"}"#)],
    );
    let (code, answer) = run("deep", "pending", &["--as", "deep", "--child", "child.graph"]);
    assert_eq!((code, text(&answer, "closed"), text(&answer, "limit")), (1, "limit", "r1.1.e1.r1"));
    assert_eq!((lines(&place, "mails.txt"), place.run(&["replay", "deep"]).code), (2, 0));
}

/// A frontier file with an emptied or an unknown member is refused with its line.
#[cfg(unix)]
#[test]
fn emptied_members_of_a_frontier_are_refused() {
    let place = place_of(&POLL);
    let args = ["graph", "run", "poll.graph", "--pack", "poll.yaml", "--input", "req=req.json"];
    place.ok(&[&args[..], &["--exec=job.status=echo '{\"status\":\"done\"}'", "--exec=mail.send=echo ok"]]
        .concat());
    let text = place.ok(&["export", "poll", "--format", "frontier"]);
    let whole: Vec<Value> = text.lines().map(|line| json::parse_door(line.as_bytes()).unwrap()).collect();
    let tested = |at: usize, change: &dyn Fn(&mut dendrer_object::Object)| {
        let mut lines = whole.clone();
        let mut members = lines[at].as_object().unwrap().clone();
        change(&mut members);
        lines[at] = Value::Object(members);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        write(place.path(), &[("x.frontier", &text)]);
        place.run(&["graph", "test", "x.frontier"])
    };
    assert_eq!(tested(0, &|_| ()).code, 0);
    let empty = [
        ("nodes", "{}"),
        ("nodes", "null"),
        ("inputs", "{}"),
        ("inputs", "null"),
        ("pack", "null"),
        ("graph", "{}"),
    ];
    let more = [("limit", "7"), ("limit", "\"\""), ("run", "\"\""), ("frontier", "9"), ("output_", "1")];
    for (name, value) in empty.into_iter().chain(more) {
        let value = json::parse_door(value.as_bytes()).unwrap();
        let ran = tested(0, &|members| {
            members.set(name, value.clone());
        });
        assert!(ran.code == 7 && ran.stdout.contains("line 1: "), "{name} {value}: {}", ran.stdout);
    }
    for (name, value) in
        [("path", "\"\""), ("index", "\"\""), ("args", "null"), ("effect", "\"\""), ("note", "1")]
    {
        let value = json::parse_door(value.as_bytes()).unwrap();
        let ran = tested(1, &|members| {
            members.set(name, value.clone());
        });
        assert!(ran.code == 7 && ran.stdout.contains("line 2: "), "{name} {value}: {}", ran.stdout);
    }
}

/// Effectful edges are asked one after the other, in canonical order; those that say `at once`, and reads, beside others, at
/// most as many as the pack says.
#[cfg(unix)]
#[test]
fn effectful_edges_are_asked_alone() {
    let calls = "e1 a.act(req, 1) -> rec frontier[1]\ne2 a.act(req, 2) -> rec frontier[2]\ne3 a.look(req) -> rec frontier[3]\ne4 a.look(req) -> rec frontier[4]\ne5 a.look(req) -> rec frontier[5]\n";
    let graph = format!(
        "graph many\n{calls}n1 all(e1, e2, e3, e4, e5) pure\nreplay(graph, frontier) == output required\n"
    );
    let once =
        graph.replace("frontier[1]", "frontier[1] at once").replace("frontier[2]", "frontier[2] at once");
    let pack = "name: many\nversion: v1\nconcurrency: 2\ndefine:\n  \"all(a, b, c, d, e)\": \"[a, b, c, d, e]\"\ntools:\n  a.act: {effect: effectful}\n  a.look: {effect: read}\n";
    let place =
        place_of(&[("many.graph", &graph), ("once.graph", &once), ("many.yaml", pack), ("req.json", "1")]);
    // Each notes how many are there when it begins, and waits a little.
    let act = "read l; p=${l#*path\\\":\\\"}; p=${p%%\\\"*}; : > here.$p; ls here.* | wc -l | tr -d ' ' >> NAME; echo $p >> NAME.order; sleep 0.15; rm here.$p; echo $p";
    let run = |graph: &str, name: &str| {
        let act = act.replace("NAME", name);
        let (one, two) = (format!("--exec=a.act={act}"), format!("--exec=a.look={act}"));
        place.ok(&[
            "graph",
            "run",
            graph,
            "--pack",
            "many.yaml",
            "--input",
            "req=req.json",
            "--as",
            name,
            &one,
            &two,
        ]);
        let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
        let there: Vec<u64> = read(name).lines().map(|line| line.parse().unwrap()).collect();
        let order: Vec<String> = read(&format!("{name}.order")).lines().map(str::to_owned).collect();
        (there, order)
    };
    let (there, order) = run("many.graph", "many");
    assert_eq!(there.iter().max(), Some(&2), "{there:?}");
    assert_eq!((&there[..2], &order[..2]), (&[1, 1][..], &["e1".to_owned(), "e2".to_owned()][..]));
    let (there, order) = run("once.graph", "once");
    assert_eq!(there.iter().max(), Some(&2), "{there:?}");
    assert!(order[..2].iter().all(|path| path == "e1" || path == "e2"), "{order:?}");
}

/// A connection that is cut may have acted; a status is an answer, and one that is refused never began.
#[test]
fn a_cut_connection_is_no_answer() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let place = place_of(&PAY);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        for status in [0, 502, 504, 408, 303, 503] {
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno");
            let answer = if status == 0 { "" } else { &*answer };
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            // The body is the first line that begins with a brace.
            while !line.starts_with('{') {
                line.clear();
                reader.read_line(&mut line).unwrap();
            }
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    let (http, charge) = (format!("mail.send={url}"), "--exec=bank.charge=echo charged >> charges.txt");
    let run = |more: &[&str]| {
        let args = ["graph", "run", "pay.graph", "--pack", "pay.yaml", charge, "--http", &http];
        place.run(&[&args[..], more].concat())
    };
    let cut = run(&["--input", "req=req.json"]);
    assert_eq!(cut.code, 8, "{}", cut.stderr);
    // A cut connection, the words of a gateway, and a redirect that is not followed.
    for why in ["killed", "killed", "killed", "killed", "no_answer"] {
        let needed = run(&["--resume", "pay", "--json"]);
        let answer = json::parse_door(needed.stdout.as_bytes()).unwrap();
        assert_eq!((needed.code, needs(&answer)), (5, vec![format!("e2 mail.send {why}")]));
        assert_eq!(run(&["--resume", "pay", "--ask-again", "e2"]).code, 8);
    }
    served.join().unwrap();
    // The status was an answer, so it is asked again; nobody is there, so it never begins, and may be asked again.
    for _ in 0..2 {
        let ran = run(&["--resume", "pay"]);
        assert_eq!(ran.code, 8, "{}", ran.stderr);
    }
    let error = content(&place, "pay@tip").get("result").unwrap().get("error").unwrap().clone();
    assert_eq!((text(&error, "ended"), lines(&place, "charges.txt")), ("no_start", 1));
}

/// A run that never ended is open and passes no suite; runs are chosen by the name of their graph; `--child` is that of `--graph`.
#[cfg(unix)]
#[test]
fn an_open_run_never_passes_a_suite() {
    let place = place_of(&PAY);
    assert_eq!(pay(&place, "exit 1", &[]).code, 8);
    assert_eq!(pay(&place, "echo sent", &["--as", "whole"]).code, 0);
    place.run_with(&["commit", "--run", "plain", "--new"], b"{\"type\":\"observation.add\"}\n");
    let chosen = ["graph", "test", "--runs", "graph == \"pay\""];
    let (code, tested) = place.json(&chosen);
    let count = |name: &str| tested.get(name).unwrap().as_u64().unwrap();
    assert_eq!((code, count("passed"), count("failed"), count("open")), (7, 1, 0, 1));
    assert_eq!(
        place.run(&chosen).stdout,
        "OPEN  pay: the run did not end\nOK    whole\n1 passed, 0 failed, 1 open\n"
    );
    let junit = place.run(&[&chosen[..], &["--format", "junit"]].concat());
    assert!(junit.code == 7 && junit.stdout.contains("the run did not end"), "{}", junit.stdout);
    let none = place.run(&["graph", "test", "--runs", "graph == \"other\""]);
    assert_eq!(none.code, 2, "{}", none.stdout);
    place.ok(&["export", "pay", "--format", "frontier", "-o", "open.frontier"]);
    let ran = place.run(&["graph", "test", "open.frontier"]);
    assert!(ran.code == 7 && ran.stdout.contains("0 passed, 0 failed, 1 open"), "{}", ran.stdout);
    // It goes on, and passes.
    assert_eq!(pay(&place, "echo sent", &["--resume", "pay"]).code, 0);
    assert_eq!(place.run(&chosen).stdout, "OK    pay\nOK    whole\n2 passed, 0 failed\n");
    // The same edges, in a graph that computes its last node in a child.
    let outer = PAY[0]
        .1
        .replace("n1 done(e1, e2) pure", "e3 graph.last(e1, e2) -> rec frontier[3]\nn1 same(e3) pure");
    let last = "graph last\nn0 done(c, m) pure\nreplay(graph, frontier) == output required\n";
    let pack = PAY[1].1.replace("define:\n", "define:\n  same(a): a\n");
    write(place.path(), &[("outer.graph", &outer), ("last.graph", last), ("outer.yaml", &pack)]);
    let with =
        ["graph", "test", "--runs", "name == \"whole\"", "--graph", "outer.graph", "--pack", "outer.yaml"];
    let without = place.run(&with);
    assert!(without.code != 0 && without.stdout.contains("refused"), "{}", without.stdout);
    let ran = place.run(&[&with[..], &["--child", "last.graph"]].concat());
    assert!(ran.stdout.contains("changed_node") || ran.code == 0, "{}", ran.stdout);
    assert!(!ran.stdout.contains("refused"), "{}", ran.stdout);
}

/// What strangers ran: a payment, a check and a model.
const P: &str = "name: p\nversion: v1\ndefine:\n  id(x): x\n  title(m): m.title\n  done(x): x == 'done'\n  \"two(a,b)\": \"[a,b]\"\n  \"late(a,b)\": \"[a.title,b]\"\n  \"is(a,b)\": a == b\n  \"step(a,b)\": a + 1\ntools:\n  pay.charge: {effect: effectful}\n  pay.json: {effect: effectful, output: json}\n  m.ask: {effect: read}\n";

/// Runs a graph of `P`, which is written first; `more` is what goes with it.
#[cfg(unix)]
fn run_p(place: &Place, name: &str, body: &str, more: &[&str]) -> Ran {
    let graph = format!("graph {name}\n{body}\nreplay(graph, frontier) == output required\n");
    let file = format!("{name}.graph");
    write(place.path(), &[("p.yaml", P), (&file, &graph)]);
    place.run(&[&["graph", "run", &file, "--pack", "p.yaml"], more].concat())
}

const CHARGED: &str = "--exec=pay.charge=echo charged >> ch; echo ch_1";

/// An answer that cannot be read is no reason to act again; what was printed is kept, without secrets.
#[cfg(unix)]
#[test]
fn an_answer_that_cannot_be_read_needs_a_decision() {
    let token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let body = "e1 pay.json(1) -> rec frontier[1]\nn1 id(e1) pure";
    for (number, (printed, kept)) in [
        (format!("echo paid {token}"), "paid "),
        ("printf ''".to_owned(), ""),
        ("printf '{\"id\": NaN}'".to_owned(), "{\"id\": NaN}"),
        ("printf 'ch_\\377'".to_owned(), "ch_\u{fffd}"),
        ("head -c 70000000 /dev/zero | tr '\\0' 1".to_owned(), "1111"),
    ]
    .into_iter()
    .enumerate()
    {
        let (place, exec) = (place_of(&[]), format!("--exec=pay.json=echo charged >> ch; {printed}"));
        assert_eq!(run_p(&place, "bad", body, &[&exec]).code, 8, "{printed}");
        let error = content(&place, "bad@tip").get("result").unwrap().get("error").unwrap().clone();
        let output = text(&error, "output");
        assert!(output.starts_with(kept) && output.len() <= 4096 && !output.contains(token), "{output}");
        assert_eq!(text(&error, "ended"), "unread");
        let asked = run_p(&place, "bad", body, &["--resume", "bad", &exec, "--json"]);
        assert_eq!((asked.code, lines(&place, "ch")), (5, 1), "{}", asked.stderr);
        let answer = json::parse_door(asked.stdout.as_bytes()).unwrap();
        assert_eq!(needs(&answer), ["e1 pay.json no_answer"]);
        write(place.path(), &[("id.json", "{\"id\":1}"), ("nan.json", "[NaN]")]);
        let by_hand = |file: &str| {
            let set = format!("e1={file}");
            run_p(&place, "bad", body, &["--resume", "bad", "--set", &set]).code
        };
        assert_eq!((number, by_hand("nan.json")), (number, 2));
        assert_eq!((number, by_hand("id.json"), lines(&place, "ch")), (number, 0, 1));
    }
    // Without `output: json`, what is no JSON is text, from a command and from a file.
    let body = "e1 pay.charge(1) -> rec frontier[1]\nn1 id(e1) pure";
    let place = place_of(&[("number.json", "0012\n")]);
    for (name, printed) in [("a", "NaN"), ("b", "[NaN]"), ("c", "{\"a\":-Infinity}")] {
        let exec = format!("--exec=pay.charge=printf '%s' '{printed}'");
        let ran = run_p(&place, name, body, &[&exec, "--json"]);
        let answer = json::parse_door(ran.stdout.as_bytes()).unwrap();
        assert_eq!(text(&answer, "output"), printed);
    }
    assert_eq!(run_p(&place, "d", body, &["--exec=pay.charge=kill -9 $$"]).code, 8);
    let ran = run_p(&place, "d", body, &["--resume", "d", "--set", "e1=number.json", "--json"]);
    assert_eq!(text(&json::parse_door(ran.stdout.as_bytes()).unwrap(), "output"), "0012");
}

/// Where a node failed, an edge that it reads is given or asked again, and the newer answer counts; nothing is charged again.
#[cfg(unix)]
#[test]
fn a_node_that_failed_gets_another_answer() {
    let body = "e1 pay.charge(1) -> rec frontier[1]\ne2 m.ask(e1) -> rec frontier[2]\nn1 id(e2) pure\nn0 title(n1) pure";
    let model = "--exec=m.ask=echo '{\"name\":\"x\"}'";
    let better = "--exec=m.ask=echo '{\"title\":\"asked\"}'";
    let cases: [(&[&str], &str); 2] =
        [(&["--set", "e2=t.json"], "given"), (&["--ask-again", "e2", better], "asked")];
    for (more, title) in cases {
        let place = place_of(&[("t.json", "{\"title\":\"given\"}")]);
        let failed = run_p(&place, "b", body, &[CHARGED, model]);
        assert_eq!(failed.code, 8);
        assert!(failed.stderr.contains("--ask-again e2"), "{}", failed.stderr);
        assert!(failed.stderr.contains("--exec pay.charge=.. "), "{}", failed.stderr);
        // An edge that the node does not read, and the wrong answer once more.
        assert_eq!(run_p(&place, "b", body, &["--resume", "b", "--ask-again", "e1", CHARGED]).code, 8);
        assert_eq!(run_p(&place, "b", body, &["--resume", "b", "--ask-again", "e2", model]).code, 8);
        let done = run_p(&place, "b", body, &[&["--resume", "b", "--json"], more].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        let answer = json::parse_door(done.stdout.as_bytes()).unwrap();
        assert_eq!((text(&answer, "output"), lines(&place, "ch")), (title, 1));
        let frontier = place.ok(&["graph", "frontier", "b"]);
        assert!(frontier.contains(title) && frontier.contains("2 edges"), "{frontier}");
        assert!(place.ok(&["log", "b", "--grep", "name"]).contains("action.result"));
        assert_eq!(place.run(&["replay", "b"]).code, 0);
        assert_eq!(place.run(&["graph", "test", "--runs", "name == \"b\""]).code, 0);
        assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
    }
    // A charge is made again only if it is named, and an effect that read the answer stays as it is.
    let body = "e1 pay.charge(1) -> rec frontier[1]\nn0 title(e1) pure";
    let place = place_of(&[]);
    let failed = run_p(&place, "c", body, &[CHARGED]);
    assert!(failed.code == 8 && failed.stderr.contains("--set e1=.."), "{}", failed.stderr);
    assert_eq!((run_p(&place, "c", body, &["--resume", "c", CHARGED]).code, lines(&place, "ch")), (8, 1));
    let body = "e1 m.ask(1) -> rec frontier[1]\ne2 pay.charge(e1) -> rec frontier[2]\nn1 id(e2) pure\nn0 title(e1) if n2 pure";
    let body = body.replace("n1 id(e2) pure", "n2 done(e2) pure");
    let asks = ["--exec=m.ask=echo no", "--exec=pay.charge=echo charged >> ch; echo done"];
    let place = place_of(&[]);
    assert_eq!(run_p(&place, "d", &body, &asks).code, 8);
    let ran = run_p(&place, "d", &body, &[&asks[..], &["--resume", "d", "--ask-again", "e1"]].concat());
    assert!(ran.code == 5 && ran.stderr.contains("e2 has acted"), "{} {}", ran.code, ran.stderr);
    assert_eq!(lines(&place, "ch"), 1);
}

/// An effectful edge that is due is asked before anything after it, so a poll sees what a charge did.
#[cfg(unix)]
#[test]
fn a_charge_is_asked_before_its_poll() {
    let body = "e1 pay.charge(\"o\") -> rec frontier[1]\nr1 repeat(0) max 2 until n1\ne2 m.ask(r1) -> rec frontier[2.*.1]\nn1 done(e2) pure\nn2 id(e2) pure\nend r1\nn3 two(e1, r1) pure";
    let poll = "--exec=m.ask=test -f ch && echo done || echo no";
    let place = place_of(&[]);
    let ran = run_p(&place, "poll", body, &[CHARGED, poll]);
    assert!(ran.code == 0 && ran.stdout.contains(r#"["ch_1","done"]"#), "{}{}", ran.stdout, ran.stderr);
    // A limit does not say that nothing was asked where something was.
    let body = "r1 repeat(0) max 2 until n1\ne1 m.ask(r1) -> rec frontier[1.*.1]\nn1 done(e1) pure\nn2 id(e1) pure\nend r1\ne2 pay.charge(1) -> rec frontier[2] at once\nn3 two(e2, r1) pure";
    let place = place_of(&[]);
    let execs = [CHARGED, "--exec=m.ask=while [ ! -e ch ]; do sleep 0.01; done; echo no"];
    let ran = run_p(&place, "far", body, &execs);
    assert!(ran.code == 1 && ran.stdout.contains("and e2 was under way beside it"), "{}", ran.stdout);
    let (_, again) = place.json(&["graph", "run", "far.graph", "--pack", "p.yaml", "--resume", "far"]);
    assert_eq!(again.get("beside_limit").unwrap().to_string(), r#"["e2"]"#);
    // A value of `until` that is no condition fails.
    let body = body.replace("until n1", "until n2");
    let ran = run_p(&place, "text", &body, &execs);
    assert!(ran.code == 8 && ran.stderr.contains("it takes true or false"), "{}", ran.stderr);
}

/// An edge that only a branch not taken reads is not asked, nor a node computed; a taken branch asks it.
#[cfg(unix)]
#[test]
fn a_branch_that_is_not_taken_is_not_asked() {
    let body = "e1 m.ask(1) -> rec frontier[1]\nn0 done(e1) pure\ne2 pay.charge(1) -> rec frontier[2]\nn2 title(e1) pure\nr1 repeat(n2) max 2 until n4\ne3 pay.json(r1) -> rec frontier[3.*.1]\nn4 done(e3) pure\nn5 id(e3) pure\nend r1\nn1 select(n0, e2, \"none\") pure\nn3 switch(e1, \"pay\", r1, \"done\", n1, e1) pure";
    let place = place_of(&[]);
    let json = "--exec=pay.json=echo charged >> ch; echo '\"done\"'";
    for (name, said, output, charged) in [("a", "no", "no", 0), ("b", "done", "ch_1", 1)] {
        let ask = format!("--exec=m.ask=echo {said}");
        let ran = run_p(&place, name, body, &[CHARGED, json, &ask, "--json"]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        let answer = json::parse_door(ran.stdout.as_bytes()).unwrap();
        assert_eq!((text(&answer, "output"), lines(&place, "ch")), (output, charged), "{name}");
        assert_eq!(place.run(&["replay", name]).code, 0);
        let file = format!("{name}.frontier");
        place.ok(&["export", name, "--format", "frontier", "-o", &file]);
        place.ok(&["graph", "test", &file]);
    }
    // A failure on the way to the taken branch counts; a run that failed goes on in its branch.
    let failed = run_p(&place, "c", body, &[CHARGED, json, "--exec=m.ask=echo pay"]);
    assert!(failed.code == 8 && failed.stderr.contains("n2: title"), "{}", failed.stderr);
    let failed = run_p(&place, "d", body, &["--exec=pay.charge=exit 1", json, "--exec=m.ask=echo done"]);
    assert_eq!(failed.code, 8);
    assert_eq!(run_p(&place, "d", body, &["--resume", "d", CHARGED, json]).code, 0);
}

/// The first answers of the cases below, which lack a title, and answers by hand: the same otherwise, and others.
const ANSWERS: [(&str, &str); 4] = [
    ("first.json", r#"{"x":"done","last":1}"#),
    ("same.json", r#"{"x":"done","last":1,"title":"t"}"#),
    ("other.json", r#"{"x":"no","last":0,"title":"t"}"#),
    ("more.json", r#"{"x":"done","last":2,"title":"t"}"#),
];

/// Resumes a run of `P` with an answer of `e1` by hand, and more.
#[cfg(unix)]
fn resumed(place: &Place, body: &str, answer: &str, more: &[&str]) -> Ran {
    let set = format!("--set=e1={answer}.json");
    run_p(place, "g", body, &[&["--resume", "g", &set, "--child=c.graph"], more].concat())
}

/// F3: an effect that has acted and that the run with another answer does not reach is refused, whatever takes the branch; nothing is
/// asked and nothing recorded. With an answer that takes the same branch the run is closed.
#[cfg(unix)]
#[test]
fn an_effect_off_the_new_path_is_refused() {
    let child = "graph c\ne1 pay.charge(x) -> rec frontier[1]\nn1 id(e1) pure\nreplay(graph, frontier) == output required\n";
    let sends = "e2 pay.charge(1) -> rec frontier[2]\ne3 pay.charge(2) -> rec frontier[3]";
    let branches = [
        (format!("{sends}\nn1 switch(e1.x, \"done\", e2, e3) pure"), "e2"),
        (format!("{sends}\nn1 select(n0, e2, e3) pure"), "e2"),
        (
            "e2 pay.charge(1) -> rec frontier[2]\nn2 id(e2) pure\nn1 select(n0, n2, \"none\") pure".to_owned(),
            "e2",
        ),
        (format!("{sends}\nn2 is(e1.x, e1.x) pure\nn3 select(n0, e2, \"none\") pure\nn1 switch(3, 4, e3, n3) pure"), "e2"),
        ("e2 pay.charge(1) if n0 -> rec frontier[2]\nn1 id(e2) pure".to_owned(), "e2"),
        ("e2 pay.charge(e1.x) -> rec frontier[2]\nn1 id(e2) pure".to_owned(), "e2"),
        ("e2 graph.c(1) -> rec frontier[2]\nn1 select(n0, e2, 0) pure".to_owned(), "e2.e1"),
        ("e2 graph.c(1) if n0 -> rec frontier[2]\nn1 id(e2) pure".to_owned(), "e2.e1"),
        ("r1 repeat(0) max 3 until n4\ne2 pay.charge(r1) -> rec frontier[2.*.1]\nn4 is(r1, e1.last) pure\nn5 step(r1, e2) pure\nend r1\nn1 id(r1) pure".to_owned(), "r1.2.e2"),
        ("r1 repeat(0) max 3 until n4\ne2 pay.charge(r1) -> rec frontier[2.*.1]\nn4 is(r1, e1.last) pure\nn5 step(r1, e2) pure\nend r1\nn1 select(n0, r1, 0) pure".to_owned(), "r1.1.e2"),
    ];
    for (branch, acted) in branches {
        let body =
            format!("e1 m.ask(1) -> rec frontier[1]\nn0 done(e1.x) pure\n{branch}\nn9 late(e1, n1) pure");
        let place = place_of(&[&ANSWERS[..], &[("c.graph", child)]].concat());
        let asks = [CHARGED, "--exec=m.ask=cat first.json", "--child=c.graph"];
        assert_eq!(run_p(&place, "g", &body, &asks).code, 8, "{body}");
        let (charged, log) = (lines(&place, "ch"), place.ok(&["log", "g", "-n", "0"]));
        let by_hand = format!("{acted}=first.json");
        let again = ["--resume", "g", "--ask-again=e1", "--exec=m.ask=cat other.json"];
        let refused = [
            resumed(&place, &body, "other", &[CHARGED]),
            run_p(&place, "g", &body, &[&again[..], &[CHARGED, "--child=c.graph"]].concat()),
        ];
        for ran in refused {
            let said = format!("{acted} has acted or may have, and with the answers now known it is ");
            assert!(ran.code == 5 && ran.stderr.contains(&said), "{body}: {} {}", ran.code, ran.stderr);
            assert!(
                ran.stderr.contains("E0940") && ran.stderr.contains("nothing was recorded"),
                "{}",
                ran.stderr
            );
        }
        // A value by hand of the edge that is not reached is for nothing; one that asks something else is decided so.
        let ran = resumed(&place, &body, "other", &[CHARGED, "--set", &by_hand]);
        let asks_other = branch.contains("(e1.x) ->");
        assert_eq!(ran.code, if asks_other { 0 } else { 5 }, "{body}: {}", ran.stderr);
        assert_eq!(lines(&place, "ch"), charged, "{body}");
        if !asks_other {
            assert_eq!(place.ok(&["log", "g", "-n", "0"]), log, "{body}");
            let ran = resumed(&place, &body, "same", &[]);
            assert_eq!((ran.code, lines(&place, "ch")), (0, charged), "{body}: {}", ran.stderr);
        }
        assert_eq!(place.run(&["graph", "test", "--runs", "name == \"g\""]).code, 0, "{body}");
    }
}

/// F5: an effect that is asked the same byte for byte keeps its answer, also where it is named; a round more is asked alone.
#[cfg(unix)]
#[test]
fn an_effect_that_is_asked_the_same_keeps_its_answer() {
    let one = "e2 pay.charge(e1.x) -> rec frontier[2]\nn1 id(e2) pure";
    let rounds = "r1 repeat(0) max 3 until n4\ne2 pay.charge(r1) -> rec frontier[2.*.1]\nn4 is(r1, e1.last) pure\nn5 step(r1, e2) pure\nend r1\nn1 id(r1) pure";
    let cases: [(&str, &str, &[&str], usize, &str); 6] = [
        (one, "same", &[], 1, r#"["t","ch_1"]"#),
        (one, "more", &[], 1, r#"["t","ch_1"]"#),
        (one, "same", &["--set=e2=number.json"], 1, r#"["t","0012"]"#),
        (one, "same", &["--ask-again=e2", CHARGED], 2, r#"["t","ch_1"]"#),
        (rounds, "same", &[], 2, r#"["t",2]"#),
        (rounds, "more", &[CHARGED], 3, r#"["t",3]"#),
    ];
    for (part, answer, more, charged, output) in cases {
        let body = format!("e1 m.ask(1) -> rec frontier[1]\n{part}\nn9 late(e1, n1) pure");
        let place = place_of(
            &[
                &ANSWERS[..],
                &[
                    ("number.json", "0012"),
                    ("c.graph", "graph c\nn1 id(x) pure\nreplay(graph, frontier) == output required\n"),
                ],
            ]
            .concat(),
        );
        let asks = [CHARGED, "--exec=m.ask=cat first.json", "--child=c.graph"];
        assert_eq!(run_p(&place, "g", &body, &asks).code, 8);
        let ran = resumed(&place, &body, answer, more);
        assert_eq!((ran.code, lines(&place, "ch")), (0, charged), "{part} {more:?}: {}", ran.stderr);
        assert!(ran.stdout.contains(&format!("output     {output}\n")), "{}", ran.stdout);
        assert_eq!(place.run(&["replay", "g"]).code, 0);
    }
}

/// An effect that may have acted is decided about before anything goes on with another answer, also off the new path.
#[cfg(unix)]
#[test]
fn an_effect_that_may_have_acted_is_not_left_behind() {
    let body = "e1 m.ask(1) -> rec frontier[1]\nn0 done(e1.x) pure\ne2 pay.charge(1) if n0 -> rec frontier[2] at once\ne3 pay.json(1) -> rec frontier[3] at once\nn1 late(e1, e3) pure\nn2 two(e2, n1) pure";
    let place = place_of(&ANSWERS);
    let asks = [
        "--exec=m.ask=cat first.json",
        "--exec=pay.json=while [ ! -e ch ]; do sleep 0.01; done; echo 1",
        "--exec=pay.charge=echo charged >> ch; sleep 1; kill -9 $$",
    ];
    let run = |more: &[&str]| run_p(&place, "g", body, more);
    assert_eq!(run(&asks).code, 8);
    let off = run(&["--resume", "g", "--set", "e1=other.json", CHARGED]);
    assert!(off.code == 5 && off.stderr.contains("e2 has acted or may have"), "{} {}", off.code, off.stderr);
    let on = run(&["--resume", "g", "--set", "e1=same.json", CHARGED, "--json"]);
    assert_eq!(needs(&json::parse_door(on.stdout.as_bytes()).unwrap()), ["e2 pay.charge killed"]);
    let decided = run(&["--resume", "g", "--set", "e1=same.json", "--set", "e2=first.json"]);
    assert_eq!((decided.code, lines(&place, "ch")), (0, 1), "{}", decided.stderr);
}

/// A read that is not reached any more leaves the frontier, and one that is asked something else is asked, by a later resume, too.
#[cfg(unix)]
#[test]
fn a_read_off_the_new_path_leaves_the_frontier() {
    let two = "e1 m.ask(1) -> rec frontier[1]\nn0 done(e1.x) pure";
    let parts = [
        "e2 m.ask(2) if n0 -> rec frontier[2]\nn1 id(e2) pure",
        "e2 m.ask(2) -> rec frontier[2]\nn1 select(n0, e2, null) pure",
        "r1 repeat(0) max 3 until n4\ne2 m.ask(r1) -> rec frontier[2.*.1]\nn4 is(r1, e1.last) pure\nn5 step(r1, e2) pure\nend r1\nn1 id(null) pure",
    ];
    let child = "graph c\nn1 id(x) pure\nreplay(graph, frontier) == output required\n";
    let files = [&ANSWERS[..], &[("c.graph", child)]].concat();
    let first = ["--exec=m.ask=cat first.json", "--child=c.graph"];
    for part in parts {
        let body = format!("{two}\n{part}\nn9 late(e1, n1) pure");
        let place = place_of(&files);
        assert_eq!(run_p(&place, "g", &body, &first).code, 8);
        let ran = resumed(&place, &body, "other", &["--exec=m.ask=echo no"]);
        assert_eq!(ran.code, 0, "{part}: {}", ran.stderr);
        let edges = if part.starts_with('r') { "2 edges" } else { "1 edge" };
        assert!(place.ok(&["graph", "frontier", "g"]).contains(edges), "{part}");
        place.ok(&["export", "g", "--format", "frontier", "-o", "g.frontier"]);
        place.ok(&["graph", "test", "g.frontier"]);
        assert_eq!(place.run(&["replay", "g"]).code, 0);
        assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
        // A fork of such a run with another value replays as well.
        let fork =
            place.run(&["replay", "g", "--set", "e1=more.json", "--set", "e2=first.json", "--as", "f"]);
        if fork.stdout.contains("hypothetical") {
            assert_eq!(place.run(&["replay", "f"]).code, 0, "{part}");
        }
    }
    // An answer that was under way when the node failed is on record after the failure.
    let part =
        "e2 m.ask(e1.x) -> rec frontier[2]\ne3 m.ask(e1.last) -> rec frontier[3]\nn9 late(e1, e3) pure";
    let body = format!("{two}\n{part}\nn8 two(n9, e2) pure");
    let place = place_of(&files);
    let slow = r#"--exec=m.ask=read l; case "$l" in *'"e2"'*) sleep 1;; esac; cat first.json"#;
    assert_eq!(run_p(&place, "g", &body, &[slow, "--child=c.graph"]).code, 8);
    let ran = resumed(&place, &body, "other", &["--exec=m.ask=echo second"]);
    let output = r#"[["t","second"],"second"]"#;
    assert!(ran.code == 0 && ran.stdout.contains(output), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(place.run(&["replay", "g"]).code, 0);
    let body = format!("{two}\ne2 m.ask(e1.x) -> rec frontier[2]\nn9 late(e1, e2) pure");
    let place = place_of(&files);
    assert_eq!(run_p(&place, "g", &body, &first).code, 8);
    assert_eq!(resumed(&place, &body, "other", &["--exec=m.ask=exit 3"]).code, 8);
    let ran = run_p(&place, "g", &body, &["--resume", "g", "--exec=m.ask=echo second", "--child=c.graph"]);
    assert!(ran.code == 0 && ran.stdout.contains(r#"["t","second"]"#), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(place.run(&["replay", "g"]).code, 0);
}

/// A pack with problems is refused by `check` as by `run`; an open run says so; each run of a bundle is tested.
#[cfg(unix)]
#[test]
fn open_runs_bundles_and_bad_packs_are_named() {
    let place = place_of(&[]);
    let body = "e1 pay.charge(1) -> rec frontier[1]\ne2 pay.json(2) -> rec frontier[2]\nn1 two(e1, e2) pure";
    let json = "--exec=pay.json=echo no json";
    assert_eq!(run_p(&place, "o", body, &[CHARGED, json]).code, 8);
    let shown = place.ok(&["graph", "frontier", "o"]);
    assert!(shown.contains("e2  pay.json([2])  error") && shown.contains("OPEN         1 edge"), "{shown}");
    let (_, answer) = place.json(&["graph", "frontier", "o"]);
    assert_eq!(answer.get("open"), Some(&Value::Bool(true)));
    write(place.path(), &[("bad.yaml", &P.replace("effect: read", "effect: reads"))]);
    let refused = place.run(&["graph", "check", "o.graph", "--pack", "bad.yaml"]);
    assert!(refused.code == 2 && refused.stderr.contains("E0900"), "{}", refused.stderr);
    let body = "e1 m.ask(1) -> rec frontier[1]\nn1 id(e1) pure";
    for name in ["x", "y"] {
        assert_eq!(run_p(&place, name, body, &["--exec=m.ask=echo ok"]).code, 0);
    }
    place.ok(&["export", "x", "y", "-o", "two.dnd"]);
    assert!(place.ok(&["graph", "test", "two.dnd"]).contains("2 passed"));
    place.ok(&["export", "x", "--format", "frontier", "-o", "x.frontier"]);
    let surplus = std::fs::read_to_string(place.path().join("x.frontier")).unwrap();
    let surplus = surplus.replacen("\"inputs\":{}", "\"inputs\":{\"more\":1}", 1);
    write(place.path(), &[("x.frontier", &surplus)]);
    let ran = place.run(&["graph", "test", "x.frontier"]);
    assert!(ran.code == 7 && ran.stdout.contains("inputs has more"), "{}", ran.stdout);
    let twice = place.run(&["replay", "x", "--set", "e1=p.yaml", "--set", "e1=p.yaml"]);
    assert_eq!(twice.code, 2, "{}", twice.stderr);
}

/// Two runs with one frontier have no difference, whatever it took; a fork with lines of its own is no test.
#[cfg(unix)]
#[test]
fn attempts_are_no_difference_and_forgeries_no_test() {
    let place = place_of(&[("ok.json", "\"ok\"")]);
    let body = "e1 m.ask(1) -> rec frontier[1]\nn1 id(e1) pure";
    let run = |more: &[&str]| run_p(&place, "e", body, more).code;
    let ok = "--exec=m.ask=echo ok";
    assert_eq!(run(&["--as", "e1", ok]), 0);
    assert_eq!((run(&["--as", "e2", "--exec=m.ask=exit 1"]), run(&["--resume", "e2", ok])), (8, 0));
    assert_eq!(run(&["--as", "e3", "--exec=m.ask=exit 1"]), 8);
    assert_eq!(run(&["--resume", "e3", "--set", "e1=ok.json"]), 0);
    for other in ["e2", "e3"] {
        let ran = place.run(&["diff", "e1", other, "--exit-code"]);
        assert_eq!(ran.code, 0, "{other}: {}", ran.stdout);
    }
    assert_eq!(run(&["--as", "e4", "--exec=m.ask=exit 1"]), 8);
    let ran = place.run(&["diff", "e1", "e4"]);
    assert!(ran.stdout.contains("goal.complete") && !ran.stdout.contains("only in b: 2"), "{}", ran.stdout);
    place.ok(&["fork", "e1@1", "--set", "edges.e1=\"forged\"", "--replay-rest", "--as", "set"]);
    place.ok(&["fork", "e1@1", "--replay-rest", "--as", "same"]);
    place.ok(&["fork", "e1@1", "--as", "lines"]);
    place.run_with(
        &["commit", "--run", "lines"],
        b"{\"type\":\"observation.add\",\"intent\":{\"description\":\"x\"}}\n",
    );
    let (_, runs) = place.json(&["runs", "--where", "hypothetical"]);
    let runs: Vec<&str> =
        runs.get("items").unwrap().as_array().unwrap().iter().map(|run| text(run, "name")).collect();
    assert_eq!(runs, ["lines", "set"]);
    for (name, code) in [("set", 7), ("lines", 7), ("same", 0)] {
        let filter = format!("name == \"{name}\"");
        let ran = place.run(&["graph", "test", "--runs", &filter]);
        assert!(ran.code == code && ran.stdout.contains("E0944") == (code == 7), "{name}: {}", ran.stdout);
    }
}

/// A signal that asks the program to end is passed on to the command, with all that it began, and its end is on record.
#[cfg(unix)]
#[test]
fn a_signal_ends_the_command_too() {
    let place = place_of(&[]);
    let body =
        "e1 pay.charge(1) -> rec frontier[1]\ne2 pay.charge(2) -> rec frontier[2]\nn1 two(e1, e2) pure";
    assert_eq!(run_p(&place, "none", body, &[]).code, 2);
    for (name, signal) in [("term", "TERM"), ("hup", "HUP"), ("int", "INT")] {
        let (exec, begun) = (
            format!(
                "--exec=pay.charge=(sleep 1; echo acted >> acted) & echo 1 > {name}.pid; sleep 60; echo ok"
            ),
            format!("{name}.pid"),
        );
        let args = ["graph", "run", "none.graph", "--pack", "p.yaml", "--as", name, &exec];
        let mut child = place.command(&args).stderr(std::process::Stdio::null()).spawn().unwrap();
        while lines(&place, &begun) == 0 {
            assert!(child.try_wait().unwrap().is_none());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let sent =
            std::process::Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
        assert!(sent.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(8), "{name}");
        let error =
            content(&place, &format!("{name}@tip")).get("result").unwrap().get("error").unwrap().clone();
        assert_eq!(text(&error, "ended"), "killed");
        let exec = "--exec=pay.charge=echo ok";
        let (code, answer) =
            place.json(&["graph", "run", "none.graph", "--pack", "p.yaml", "--resume", name, exec]);
        assert_eq!((code, needs(&answer)), (5, vec!["e1 pay.charge killed".to_owned()]));
    }
    // What a command left in the background would act by now.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    assert_eq!(lines(&place, "acted"), 0);
}
