//! The server: the same answers over HTTP, and who may ask.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use dendrer_object::Value;

use crate::support::{Place, parse};

/// Paths, each with the command whose document it answers.
const ROWS: &[(&str, &[&str])] = &[
    ("/runs.json", &["runs", "-n", "200"]),
    (
        "/runs.json?tree=true&where=ticks%20%3E%2060",
        &["runs", "-n", "200", "--tree", "--where", "ticks > 60"],
    ),
    ("/labels.json", &["label"]),
    ("/notes.json", &["note"]),
    ("/predicates.json", &["predicate", "list"]),
    ("/run/logistics-run-47/log.json", &["log", "logistics-run-47", "--from", "0", "-n", "200"]),
    (
        "/run/logistics-run-47/log.json?type=plan.update&type=observation.add&limit=3",
        &[
            "log",
            "logistics-run-47",
            "--from",
            "0",
            "-n",
            "3",
            "--type",
            "plan.update",
            "--type",
            "observation.add",
        ],
    ),
    (
        "/run/logistics-run-47/timeline.json?bins=8&holds=state.risk_score+%3C%3D+0.75",
        &["log", "logistics-run-47", "--bins", "8", "--holds", "state.risk_score <= 0.75"],
    ),
    (
        "/run/logistics-run-47/transcript.json?from=20&limit=5",
        &["log", "logistics-run-47", "--transcript", "--from", "20", "-n", "5"],
    ),
    ("/run/logistics-run-47/first.json", &["bisect", "logistics-run-47", "--all-of", "standard"]),
    ("/run/logistics-run-47/t/22/show.json", &["show", "logistics-run-47@22"]),
    ("/run/logistics-run-47/t/tip/show.json", &["show", "logistics-run-47@tip"]),
    (
        "/run/logistics-run-47/t/22/why.json?path=state.risk_score",
        &["why", "logistics-run-47@22", "state.risk_score"],
    ),
    ("/run/logistics-run-47/t/22/state.json", &["state", "logistics-run-47@22"]),
    (
        "/run/logistics-run-47/t/22/state.json?path=risk_score&base=logistics-run-47%4020",
        &["state", "logistics-run-47@22", "--path", "risk_score", "--base", "logistics-run-47@20"],
    ),
    (
        "/run/logistics-run-47/bisect.json?holds=state.risk_score+%3C%3D+0.75&from=1",
        &["bisect", "logistics-run-47", "--holds", "state.risk_score <= 0.75", "--from", "1"],
    ),
    (
        "/run/logistics-run-47/predicate-test.json?predicate=kernel.policy_compliant",
        &["predicate", "test", "kernel.policy_compliant", "logistics-run-47"],
    ),
    (
        "/run/logistics-run-47/diff.json?with=logistics-planner-1",
        &["diff", "logistics-run-47", "logistics-planner-1"],
    ),
    (
        "/run/logistics-run-47/compare.json?a=router&b=dispatcher",
        &["compare", "logistics-run-47:router", "logistics-run-47:dispatcher"],
    ),
    (
        "/run/logistics-run-47/backtrack.json?path=state.risk_score",
        &["backtrack", "logistics-run-47", "state.risk_score"],
    ),
    ("/run/logistics-run-47/heatmap.json", &["heatmap", "logistics-run-47"]),
    ("/run/logistics-run-47/steps.json", &["steps", "logistics-run-47"]),
    ("/run/logistics-run-47/commitments.json", &["commitments", "logistics-run-47"]),
    ("/run/logistics-run-47/branches.json", &["verify", "logistics-run-47", "--branches"]),
    (
        "/run/logistics-run-47/log.json?limit=7&links=true",
        &["log", "logistics-run-47", "--from", "0", "-n", "7", "--links"],
    ),
    (
        "/run/logistics-run-47/t/22/state.json?max=40&depth=3",
        &["state", "logistics-run-47@22", "--max", "40", "--depth", "3"],
    ),
    ("/run/logistics-run-47/contract.json", &["contract", "check", "logistics-run-47"]),
    ("/run/missing/log.json", &["log", "missing", "--from", "0", "-n", "200"]),
    ("/run/logistics-run-47/t/999/show.json", &["show", "logistics-run-47@999"]),
    ("/version.json", &["version"]),
];

#[test]
fn a_path_answers_as_its_command_prints() {
    let place = Place::with_demo();
    for (path, argv) in ROWS {
        let got = place.run(&["serve", "--get", path]);
        let printed = place.run(&[argv, &["--json"][..]].concat());
        assert_eq!(got.code, printed.code, "{path}: {}{}", got.stdout, got.stderr);
        assert_eq!(got.stdout, printed.stdout, "{path}");
    }
}

#[test]
fn a_bundle_is_served_as_it_is_read() {
    let place = Place::with_demo();
    place.ok(&["export", "logistics-run-47", "-o", "a.dnd"]);
    for path in ["/run/logistics-run-47/log.json", "/run/logistics-run-47/t/22/show.json"] {
        let got = place.run(&["serve", "a.dnd", "--get", path]);
        assert_eq!(got.code, 0, "{}", got.stderr);
        assert_eq!(
            parse(&got.stdout).get("read_from"),
            Some(&Value::array([Value::from("a.dnd")])),
            "{path}"
        );
    }
    assert_eq!(place.run(&["serve", "a.dnd", "--get", "/run/nope/log.json"]).code, 3);
}

#[test]
fn what_writes_or_names_a_file_is_no_word_of_a_query() {
    let place = Place::with_demo();
    place.ok(&["export", "logistics-run-47", "-o", "a.dnd"]);
    let refused = [
        "/run/logistics-run-47/bisect.json?holds=true&record=true",
        "/run/logistics-run-47/bisect.json?all_of=/etc/passwd",
        "/run/logistics-run-47/bisect.json?output=x",
        "/run/logistics-run-47/diff.json?with=a.dnd",
        "/run/logistics-run-47/diff.json?with=a.dnd%23logistics-run-47",
        "/run/a.dnd/log.json",
        "/run/logistics-run-47/t/22/state.json?base=a.dnd%4020",
        "/run/logistics-run-47/verify.json?verifier=k",
        "/run/logistics-run-47/verify.json?targets=a.dnd",
        "/run/logistics-run-47/contract.json?pack=a.yaml",
        "/run/logistics-run-47/commitments.json?admissible=a.json",
        "/predicates.json?file=a.yaml",
        "/labels.json?name=x&rev=logistics-run-47%402",
        "/notes.json?text=x&rev=logistics-run-47%402",
        "/runs.json?store=/tmp",
        "/run/..%2f..%2fetc/log.json",
        "/run/%2e%2e/log.json",
        "/run/logistics-run-47%4020/log.json",
    ];
    for path in refused {
        let got = place.run(&["serve", "--get", path]);
        assert_eq!(got.code, 2, "{path}: {}", got.stdout);
        assert_eq!(parse(&got.stdout).get("schema"), Some(&Value::from("dendrer.error/1")), "{path}");
    }
}

fn write(place: &Place, token: &str) {
    std::fs::write(place.path().join("token"), token).unwrap();
}

/// A server that ends with its test.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) port: u16,
    pub(crate) token: String,
}

/// A response.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Serving {
    pub(crate) fn of(place: &Place, more: &[&str]) -> Serving {
        let argv = [&["serve", "--addr", "127.0.0.1:0", "--no-open", "--json"], more].concat();
        let mut child = place.command(&argv).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let document = parse(&line);
        let url = document.get("url").and_then(Value::as_str).unwrap();
        let (address, token) = url.strip_prefix("http://127.0.0.1:").unwrap().split_once("/?token=").unwrap();
        Serving { child, port: address.parse().unwrap(), token: token.to_owned() }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// Sends a request with these lines of its head.
    pub(crate) fn send(&self, first: &str, head: &[&str], body: &str) -> Response {
        let mut stream = self.connect();
        let head: String = head.iter().map(|line| format!("{line}\r\n")).collect();
        let size =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        write!(stream, "{first} HTTP/1.1\r\n{head}{size}Connection: close\r\n\r\n{body}").unwrap();
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Response { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn host(&self) -> String {
        format!("Host: 127.0.0.1:{}", self.port)
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    /// Sends a request of a program that has the token.
    pub(crate) fn ask(&self, first: &str, body: &str) -> Response {
        self.send(first, &[&self.host(), &self.bearer()], body)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn no_request_without_the_token_is_answered() {
    let place = Place::with_demo();
    let serving = Serving::of(&place, &[]);
    let path = "GET /run/logistics-run-47/log.json";
    let (host, bearer) = (serving.host(), serving.bearer());
    let cookie = format!("Cookie: dendrer-{}={}", serving.port, serving.token);
    let own = format!("Origin: http://127.0.0.1:{}", serving.port);
    let local = format!("Host: localhost:{}", serving.port);
    let rows: &[(&[&str], u16)] = &[
        (&[&host], 401),
        (&[&host, "Authorization: Bearer x"], 401),
        (&[&host, "Cookie: dendrer-1=x"], 401),
        (&[&host, &bearer], 200),
        (&[&local, &bearer], 200),
        (&[&host, &cookie], 200),
        (&[&host, &cookie, &own, "Sec-Fetch-Site: same-origin"], 200),
        (&["Host: evil.example", &bearer], 403),
        (&["Host: 127.0.0.1", &bearer], 403),
        (&[&host, &cookie, "Origin: http://evil.example"], 403),
        (&[&host, &cookie, "Origin: null"], 403),
        (&[&host, &bearer, "Origin: http://127.0.0.1:1"], 403),
        (&[&host, &cookie, "Sec-Fetch-Site: cross-site"], 403),
        (&[&host, &cookie, "Sec-Fetch-Site: same-site"], 403),
        (&[&host, &bearer, "Host: evil.example"], 403),
        (&[&host, &bearer, "Origin: https://127.0.0.1:1"], 403),
    ];
    for (head, status) in rows {
        let response = serving.send(path, head, "");
        assert_eq!(response.status, *status, "{head:?}: {}", response.body);
        assert!(response.head.contains("content-security-policy: default-src 'none'"), "{}", response.head);
        assert!(response.head.contains("x-content-type-options: nosniff"), "{}", response.head);
        if *status != 200 {
            assert!(!response.body.contains("feed-reader"), "{}", response.body);
        }
    }
}

#[test]
fn a_name_that_was_given_may_have_tls_in_front() {
    let place = Place::with_demo();
    let serving =
        Serving::of(&place, &["--allow-host", "runs.example:443", "--allow-host", "other.example:8443"]);
    let bearer = serving.bearer();
    for (host, origin, status) in [
        ("runs.example", "https://runs.example", 200),
        ("runs.example:443", "https://runs.example:443", 200),
        ("other.example:8443", "https://other.example:8443", 200),
        ("other.example", "https://other.example", 403),
        ("other.example:8443", "https://runs.example", 403),
        ("other.example:8443", "null", 403),
    ] {
        let head = [format!("Host: {host}"), format!("Origin: {origin}")];
        let asked = serving.send("GET /runs.json", &[&head[0], &head[1], &bearer], "");
        assert_eq!(asked.status, status, "{host} {origin}: {}", asked.body);
    }
    let loopback = format!("Origin: https://127.0.0.1:{}", serving.port);
    assert_eq!(serving.send("GET /runs.json", &[&serving.host(), &loopback, &bearer], "").status, 403);
    let absolute = serving.send("GET http://evil.example/runs.json", &[&serving.host(), &bearer], "");
    assert_eq!(absolute.status, 403);
}

#[test]
fn clients_that_begin_one_run_at_once_all_succeed() {
    let place = Place::with_store();
    let serving = Serving::of(&place, &["--allow-write"]);
    for round in 0..5 {
        let answers: Vec<Response> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        serving.ask(&format!("POST /run/r{round}/commit"), "{\"type\":\"plan.update\"}\n")
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        assert!(
            answers.iter().all(|answer| answer.status == 200 && answer.body.contains("\"tick\"")),
            "{round}"
        );
        let log = parse(&place.ok(&["log", &format!("r{round}"), "--json"]));
        assert_eq!(log.get("total"), Some(&Value::from(4_u64)));
    }
}

#[test]
fn a_post_takes_no_words_of_a_query() {
    let place = Place::with_demo();
    let serving = Serving::of(&place, &["--allow-write"]);
    let fork = serving.ask("POST /run/logistics-run-47/fork?dry_run=true", "{\"from\":21,\"as\":\"dry\"}");
    assert_eq!(fork.status, 400, "{}", fork.body);
    for path in ["/label?x=1", "/note?author=x", "/ask/log?from=3"] {
        assert_eq!(serving.ask(&format!("POST {path}"), "{}").status, 400, "{path}");
    }
    assert_eq!(place.run(&["log", "dry"]).code, 3);
}

#[test]
fn the_address_sets_the_cookie_and_loses_its_token() {
    let place = Place::with_demo();
    let serving = Serving::of(&place, &[]);
    let opened = serving.send(&format!("GET /run/a?t=3&token={}", serving.token), &[&serving.host()], "");
    assert_eq!(opened.status, 200);
    assert!(opened.head.contains("httponly; samesite=strict"), "{}", opened.head);
    assert!(
        opened.body.contains("url=/run/a?t=3\"") && !opened.body.contains(&serving.token),
        "{}",
        opened.body
    );
    let wrong = serving.send("GET /run/a?token=x", &[&serving.host()], "");
    assert!(wrong.status == 401 && !wrong.head.contains("set-cookie"), "{}", wrong.head);
    let bare = serving.send("GET /run/%22%3E%3Cscript%3E?t=\"><script>", &[&serving.host()], "");
    assert!(bare.status == 400 || !bare.body.contains("<script>"), "{}", bare.body);
}

#[test]
fn nothing_is_written_without_the_flag() {
    let place = Place::with_demo();
    let serving = Serving::of(&place, &[]);
    let before = place.run(&["log", "logistics-run-47", "--json"]).stdout;
    for (path, body) in [
        ("/run/logistics-run-47/commit", "{\"type\":\"plan.update\"}\n"),
        ("/run/logistics-run-47/fork", "{\"from\":21}"),
        ("/label", "{\"name\":\"x\",\"run\":\"logistics-run-47\",\"tick\":2}"),
        ("/note", "{\"run\":\"logistics-run-47\",\"tick\":2,\"text\":\"x\"}"),
    ] {
        assert_eq!(serving.ask(&format!("POST {path}"), body).status, 403, "{path}");
        assert_eq!(serving.ask(&format!("GET {path}.json"), "").status, 404, "{path}");
    }
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS"] {
        assert_eq!(serving.ask(&format!("{method} /runs.json"), "").status, 405, "{method}");
    }
    let gzip =
        serving.send("POST /ask/runs", &[&serving.host(), &serving.bearer(), "Content-Encoding: gzip"], "x");
    assert_eq!(gzip.status, 415);
    let large = format!("{{\"schema\":\"{}\"}}", "x".repeat(2 << 20));
    assert_eq!(serving.ask("POST /ask/runs", &large).status, 413);
    assert_eq!(place.run(&["log", "logistics-run-47", "--json"]).stdout, before);
}

#[test]
fn a_question_is_posted_as_its_document() {
    let place = Place::with_demo();
    let serving = Serving::of(&place, &[]);
    let question = r#"{"schema":"dendrer.show-question/1","rev":"logistics-run-47@22"}"#;
    let asked = serving.ask("POST /ask/show", question);
    assert_eq!((asked.status, asked.body), (200, place.ok(&["show", "logistics-run-47@22", "--json"])));
    for (name, question, status) in [
        ("show", r#"{"schema":"dendrer.log-question/1","run":"logistics-run-47"}"#, 400),
        ("erase", r#"{"schema":"dendrer.erase-question/1"}"#, 404),
        (
            "diff",
            r#"{"schema":"dendrer.diff-question/1","run_a":"logistics-run-47","run_b":"/etc/a.dnd"}"#,
            400,
        ),
        (
            "bisect",
            r#"{"schema":"dendrer.bisect-question/1","run":"logistics-run-47","holds":["true"],"record":true}"#,
            400,
        ),
        ("show", "{", 400),
    ] {
        let asked = serving.ask(&format!("POST /ask/{name}"), question);
        assert_eq!(asked.status, status, "{name} {question}: {}", asked.body);
    }
}

#[test]
fn a_commit_is_durable_when_it_is_answered() {
    let place = Place::with_store();
    let serving = Serving::of(&place, &["--allow-write"]);
    let body = "{\"type\":\"plan.update\",\"delta\":[{\"set\":\"/n\",\"value\":1}]}\n{\"type\":\"nope\"}\n{\"type\":\"plan.update\"}\n";
    let mut stream = serving.connect();
    let head = format!("{}\r\n{}\r\n", serving.host(), serving.bearer());
    write!(
        stream,
        "POST /run/web/commit HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n",
        body.len()
    )
    .unwrap();
    let mut seen = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while !seen.contains("\"tick\":2") {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "{seen}");
        seen.push_str(&line);
    }
    // The connection is open, and another process reads what was acknowledged.
    let logged = parse(&place.ok(&["log", "web", "--json"]));
    assert_eq!(logged.get("items").and_then(Value::as_array).unwrap().len(), 2);
    write!(stream, "0\r\n\r\n").unwrap();
    let mut rest = String::new();
    reader.read_line(&mut rest).unwrap();
    assert_eq!(serving.ask("POST /run/web/commit?as=user", body).status, 403);
    assert_eq!(serving.ask("POST /run/x.dnd/commit", body).status, 400);
}

#[test]
fn a_fork_a_label_and_a_note_are_made() {
    let place = Place::with_demo();
    let serving = Serving::of(&place, &["--allow-write"]);
    let forked = serving
        .ask("POST /run/logistics-run-47/fork", r#"{"from":21,"as":"web-fork","set":{"risk_score":0.1}}"#);
    assert_eq!(forked.status, 200, "{}", forked.body);
    assert_eq!(serving.ask("POST /label", r#"{"name":"seen","run":"web-fork","tick":22}"#).status, 200);
    assert_eq!(serving.ask("POST /note", r#"{"run":"web-fork","tick":22,"text":"looks right"}"#).status, 200);
    assert_eq!(serving.ask("POST /note", r#"{"run":"web-fork","tick":22,"by":"x"}"#).status, 400);
    let labels = serving.ask("GET /labels.json", "").body;
    assert!(labels.contains("\"seen\""), "{labels}");
    assert_eq!(place.ok(&["label", "--json"]), labels);
}

#[test]
fn a_tag_is_another_one_after_a_commit() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n");
    let serving = Serving::of(&place, &[]);
    let tag = |response: &Response| {
        let line = response.head.lines().find(|line| line.starts_with("etag: ")).unwrap();
        line["etag: ".len()..].to_owned()
    };
    let first = tag(&serving.ask("GET /run/r/log.json", ""));
    let known = format!("If-None-Match: {first}");
    let again = serving.send("GET /run/r/log.json", &[&serving.host(), &serving.bearer(), &known], "");
    assert_eq!(again.status, 304);
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n");
    let later = serving.send("GET /run/r/log.json", &[&serving.host(), &serving.bearer(), &known], "");
    assert_eq!(later.status, 200);
    assert_ne!(tag(&later), first);
}

/// Reads lines of events until one begins with a word.
fn until(reader: &mut impl BufRead, word: &str) {
    let begin = Instant::now();
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0);
        if line.starts_with(word) {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "no line begins with {word}");
    }
}

#[test]
fn new_transitions_are_sent_while_a_run_is_recorded() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n");
    let serving = Serving::of(&place, &[]);
    let mut stream = serving.connect();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!("{}\r\n{}\r\n", serving.host(), serving.bearer());
    write!(stream, "GET /run/r/events HTTP/1.1\r\n{head}\r\n").unwrap();
    let mut reader = BufReader::new(stream);
    let mut until = |word: &str| until(&mut reader, word);
    until("id: 1");
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\",\"agent\":\"late\"}\n");
    until("id: 2");
}

#[test]
fn a_refusal_is_an_event() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n");
    let serving = Serving::of(&place, &[]);
    let mut stream = serving.connect();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!("{}\r\n{}\r\nLast-Event-ID: 1\r\n", serving.host(), serving.bearer());
    write!(stream, "GET /run/r/events HTTP/1.1\r\n{head}\r\n").unwrap();
    let mut reader = BufReader::new(stream);
    let mut until = |word: &str| until(&mut reader, word);
    // The first look at the run counts its refusals.
    until("HTTP/1.1 200");
    std::thread::sleep(Duration::from_secs(1));
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"no.such.type\"}\n");
    until("event: refusal");
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n");
    until("event: transition");
    assert_eq!(serving.ask("GET /run/nope/events", "").status, 404);
}

/// Reads a list page by page, and returns the names of its items as `name` finds them.
fn pages(place: &Place, path: &str, word: &str, name: fn(&Value) -> Option<String>) -> (Vec<String>, usize) {
    let (mut found, mut asked, mut at) = (Vec::new(), 0, String::new());
    loop {
        let got = place.run(&["serve", "--get", &format!("{path}{at}")]);
        assert_eq!(got.code, 0, "{path}{at}: {}", got.stdout);
        let document = parse(&got.stdout);
        let items = document.get("items").and_then(Value::as_array).unwrap();
        found.extend(items.iter().filter_map(name));
        asked += 1;
        at = match document.get("next").unwrap() {
            Value::Null => return (found, asked),
            Value::String(next) => format!("&{word}={next}"),
            next => format!("&{word}={next:?}").replace("Number(", "").replace(')', ""),
        };
    }
}

#[test]
fn pages_of_a_list_are_the_list() {
    let place = Place::with_demo();
    let id = |item: &Value| Some(item.get("id")?.as_str()?.to_owned());
    let run_name = |item: &Value| Some(item.get("name")?.as_str()?.to_owned());
    let of = |document: &str, name: fn(&Value) -> Option<String>| {
        let document = parse(document);
        let items = document.get("items").and_then(Value::as_array).unwrap();
        items.iter().filter_map(name).collect::<Vec<String>>()
    };
    for size in [1, 3, 64, 100] {
        let whole = of(&place.ok(&["log", "logistics-run-47", "--refusals", "-n", "0", "--json"]), id);
        let path = format!("/run/logistics-run-47/log.json?refusals=true&limit={size}");
        let (read, asked) = pages(&place, &path, "from", id);
        assert_eq!(read, whole, "{size}");
        assert!(asked >= whole.len() / size / 2);
        for more in ["", "&tree=true", "&sort=name"] {
            let flags = more.trim_start_matches('&').replace("=true", "").replace("sort=", "sort ");
            let flags = if flags.is_empty() { String::new() } else { format!("--{flags}") };
            let argv: Vec<&str> = flags.split_whitespace().collect();
            let whole = of(&place.ok(&[&["runs", "-n", "0", "--json"], &argv[..]].concat()), run_name);
            let (read, _) = pages(&place, &format!("/runs.json?limit={size}{more}"), "after", run_name);
            assert_eq!(read, whole, "{size}{more}");
        }
    }
    let got = place.run(&["runs", "--after", "nope"]);
    assert_eq!(got.code, 3, "{}", got.stderr);
}

#[test]
fn a_picture_has_the_nodes_and_edges_of_its_document() {
    let place = Place::with_demo();
    let number = |value: &Value, name: &str| value.get(name).and_then(Value::as_u64).unwrap();
    let drawn = |path: &str| {
        let got = place.run(&["serve", "--get", path]);
        assert_eq!(got.code, 0, "{path}: {}", got.stdout);
        parse(&got.stdout)
    };
    for of in ["causal", "commitments", "steps", "forks"] {
        let document = drawn(&format!("/run/logistics-run-47/layout.json?of={of}"));
        let (width, height) = (number(&document, "width"), number(&document, "height"));
        let nodes = document.get("nodes").and_then(Value::as_array).unwrap();
        let place_of: Vec<[u64; 4]> =
            nodes.iter().map(|node| ["x", "y", "w", "h"].map(|name| number(node, name))).collect();
        for (at, [x, y, w, h]) in place_of.iter().enumerate() {
            assert!(*w > 0 && *h > 0 && x + w <= width && y + h <= height, "{of}");
            for [a, b, c, d] in &place_of[..at] {
                assert!(a + c <= *x || x + w <= *a || b + d <= *y || y + h <= *b, "{of}: two boxes overlap");
            }
        }
        for edge in document.get("edges").and_then(Value::as_array).unwrap().iter() {
            assert!(edge.get("points").and_then(Value::as_array).unwrap().len() > 1, "{of}");
        }
        assert!(drawn(&format!("/run/logistics-run-47/layout.json?of={of}")) == document);
    }
    // A fork of a fork is in the picture of each of them.
    place.ok(&["fork", "logistics-run-47", "--from", "21", "--as", "one"]);
    place.run_with(&["commit", "--run", "one"], b"{\"type\":\"plan.update\"}\n");
    place.ok(&["fork", "one", "--from", "22", "--as", "two"]);
    let forks = drawn("/run/two/layout.json?of=forks");
    let edges = forks.get("edges").and_then(Value::as_array).unwrap();
    let ends = |edge: &Value| [edge.get("from").cloned(), edge.get("to").cloned()];
    let expected = [Some(Value::from("one")), Some(Value::from("two"))];
    assert!(edges.iter().any(|edge| ends(edge) == expected));
    // Near tick 22 alone.
    let near = drawn("/run/logistics-run-47/layout.json?focus=22&depth=1");
    let nodes = near.get("nodes").and_then(Value::as_array).unwrap().len();
    assert!((2..20).contains(&nodes), "{nodes}");
    assert_eq!(place.run(&["serve", "--get", "/run/logistics-run-47/layout.json?focus=999"]).code, 3);
    let svg = place.run(&["serve", "--get", "/run/logistics-run-47/layout.svg?focus=22&depth=1"]);
    assert!(svg.stdout.contains("<svg"), "{}", svg.stdout);
    for (path, argv) in [
        (
            "/run/logistics-run-47/log.svg?holds=state.risk_score+%3C%3D+0.75",
            &["log", "logistics-run-47", "--holds", "state.risk_score <= 0.75"][..],
        ),
        (
            "/run/logistics-run-47/bisect.svg?holds=state.risk_score+%3C%3D+0.75",
            &["bisect", "logistics-run-47", "--holds", "state.risk_score <= 0.75"],
        ),
    ] {
        let got = place.run(&["serve", "--get", path]);
        let printed = place.run(&[argv, &["--format", "svg"]].concat());
        assert_eq!(got.stdout, printed.stdout, "{path}");
    }
    let place = Place::new();
    place.ok(&["demo", ".", "--size", "600", "-q"]);
    let many = place.run(&["serve", "--get", "/run/generated-600/layout.json"]);
    assert_eq!(many.code, 6, "{}", many.stdout);
    assert!(many.stdout.contains("601 nodes"), "{}", many.stdout);
}

#[test]
fn a_badge_is_of_the_log_as_it_is() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n");
    let serving = Serving::of(&place, &[]);
    let until = |state: &str, is_stale: bool| {
        let begin = Instant::now();
        loop {
            let badge = parse(&serving.ask("GET /run/r/badge.json", "").body);
            let is_so = badge.get("state") == Some(&Value::from(state))
                && badge.get("stale") == Some(&Value::from(is_stale));
            if is_so {
                return badge;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "{badge:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let first = until("checked", false);
    let verify = first.get("verify").unwrap();
    let printed = parse(&place.ok(&["verify", "r", "--json"]));
    assert_eq!(verify, &printed);
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n");
    let later = until("checked", false);
    assert_ne!(later.get("log_size"), first.get("log_size"));
    assert_eq!(later.get("tip"), Some(&Value::from(2_u64)));
    assert_eq!(serving.ask("GET /run/nope/badge.json", "").status, 404);
    let got = parse(&place.ok(&["serve", "--get", "/run/r/badge.json"]));
    assert_eq!(got.get("state"), Some(&Value::from("checked")));
}

#[test]
fn no_answer_is_kept_in_the_store() {
    let place = Place::new();
    place.ok(&["demo", ".", "--size", "6000", "-q"]);
    let rows = || {
        let index = place.path().join(".dendrer/index.sqlite");
        let open =
            rusqlite::Connection::open_with_flags(index, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        ["verdict", "tile", "snapshot"].map(|table| {
            let sql = format!("SELECT count(*) FROM {table}");
            open.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
        })
    };
    let before = rows();
    for path in [
        "/run/generated-6000/bisect.json?holds=state.counters.tool_errors+%3D%3D+0",
        "/run/generated-6000/timeline.json?bins=8",
        "/run/generated-6000/first.json",
    ] {
        assert!(place.run(&["serve", "--get", path]).code < 2, "{path}");
    }
    assert_eq!(rows(), before);
}

#[test]
fn a_run_whose_name_ends_like_a_document_has_its_page() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "a.json"], b"{\"type\":\"plan.update\"}\n");
    let serving = Serving::of(&place, &[]);
    let page = serving.ask("GET /run/a.json", "");
    assert_eq!(page.status, 200);
    assert!(page.head.contains("text/html"), "{}", page.head);
    let log = serving.ask("GET /run/a.json/log.json", "");
    assert_eq!(ticks(&parse(&log.body)), [1]);
}

#[test]
fn a_closed_connection_ends_its_question() {
    let place = Place::new();
    place.ok(&["demo", ".", "--size", "20000", "-q"]);
    let serving = Serving::of(&place, &[]);
    let begin = Instant::now();
    for _ in 0..40 {
        let mut stream = serving.connect();
        let head = format!("{}\r\n{}\r\n", serving.host(), serving.bearer());
        write!(stream, "GET /run/generated-20000/verify.json?replay=true HTTP/1.1\r\n{head}\r\n").unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    // Every question but this one was stopped: four run at a time.
    let asked = serving.ask("GET /version.json", "");
    assert_eq!(asked.status, 200);
    let mut last = serving.ask("GET /runs.json?limit=1", "");
    while last.status == 503 && begin.elapsed() < Duration::from_secs(20) {
        last = serving.ask("GET /runs.json?limit=1", "");
    }
    assert_eq!(last.status, 200, "{}", last.body);
}

#[test]
fn a_server_beyond_this_machine_needs_a_token_of_a_file() {
    let place = Place::with_store();
    assert_eq!(place.run(&["serve", "--addr", "0.0.0.0:0", "--no-open"]).code, 2);
    write(&place, "0123456789");
    assert_eq!(place.run(&["serve", "--addr", "127.0.0.1:0", "--token-file", "token"]).code, 2);
    write(&place, "0123456789abcdef0123456789abcdef\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let path = place.path().join("token");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(place.run(&["serve", "--addr", "127.0.0.1:0", "--token-file", "token"]).code, 2);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let serving = Serving::of(&place, &["--token-file", "token"]);
    assert_eq!(serving.token, "0123456789abcdef0123456789abcdef");
    let taken = format!("127.0.0.1:{}", serving.port);
    assert_eq!(place.run(&["serve", "--addr", &taken, "--no-open"]).code, 8);
}

#[test]
fn the_description_names_every_route_and_each_answers() {
    let place = Place::with_demo();
    let api = parse(&place.ok(&["serve", "--get", "/openapi.json"]));
    let paths = api.get("paths").and_then(Value::as_object).unwrap();
    assert!(paths.iter().count() > 40);
    for (path, operations) in paths.iter().filter(|(path, _)| path.ends_with(".json")) {
        let path = path.replace("{run}", "logistics-run-47").replace("{tick}", "22").replace("{name}", "log");
        let asked = operations.get("get").unwrap();
        let needed = match &*path {
            path if path.ends_with("diff.json") => "?with=logistics-planner-1",
            path if path.ends_with("compare.json") => "?a=router&b=dispatcher",
            path if path.ends_with("backtrack.json") => "?path=risk_score",
            path if path.ends_with("bisect.json") => "?holds=true",
            path if path.ends_with("predicate-test.json") => "?predicate=kernel.policy_compliant",
            _ => "",
        };
        let got = place.run(&["serve", "--get", &format!("{path}{needed}")]);
        let document = parse(&got.stdout);
        let schema = document.get("schema").and_then(Value::as_str).unwrap_or_default();
        // The run has no pack, so it has no contract to check, and no graph.
        let is_code =
            |end: &str, code: &str| path.ends_with(end) && document.get("code") == Some(&Value::from(code));
        let is_known = is_code("contract.json", "E0909") || is_code("graph.json", "E0938");
        assert!(is_known || !schema.starts_with("dendrer.error"), "{path}: {}", got.stdout);
        assert!(got.code < 7, "{path}");
        assert!(asked.get("responses").is_some());
    }
}

/// The ticks of the items of a document.
fn ticks(document: &Value) -> Vec<u64> {
    let items = document.get("items").and_then(Value::as_array).unwrap();
    let mut ticks: Vec<u64> = items.iter().filter_map(|item| item.get("tick")?.as_u64()).collect();
    ticks.dedup();
    ticks
}

#[test]
fn each_transition_is_in_the_transcript() {
    let place = Place::with_demo();
    let threads = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/threads/threads.dnd");
    let chat = r#"[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"pay"}]},
        {"role":"assistant","content":"paying","tool_calls":[
            {"id":"a","function":{"name":"pay","arguments":"{\"n\":3}"}},
            {"id":"b","function":{"name":"note","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"a","content":"{\"ok\":true}"},{"role":"tool","tool_call_id":"b","content":"done"},
        {"role":"assistant","content":null,"refusal":"I cannot do that"}]"#;
    std::fs::write(place.path().join("chat.json"), chat).unwrap();
    place.ok(&["import", "chat.json", "--run", "chat"]);
    let runs = parse(&place.ok(&["runs", "--json"]));
    let names = runs.get("items").and_then(Value::as_array).unwrap();
    let mut targets: Vec<String> =
        names.iter().map(|run| run.get("name").unwrap().as_str().unwrap().into()).collect();
    targets.push(format!("{threads}#t-a"));
    assert!(targets.len() > 15);
    for target in &targets {
        let logged = parse(&place.ok(&["log", target, "-n", "0", "--json"]));
        let read = parse(&place.ok(&["log", target, "--transcript", "-n", "0", "--json"]));
        let mut expected = ticks(&logged);
        if target.starts_with(threads) {
            // The log leaves writes to the checkpoint that has them.
            let total = logged.get("total").and_then(Value::as_u64).unwrap();
            expected = (1..=total).collect();
        }
        assert_eq!(ticks(&read), expected, "{target}");
    }
    let read = parse(&place.ok(&["log", "chat", "--transcript", "--json"]));
    let items = read.get("items").and_then(Value::as_array).unwrap();
    let words = |item: &Value| {
        let one = |name: &str| match item.get(name) {
            None | Some(Value::Null) => "-".to_owned(),
            Some(Value::String(text)) => text.to_string(),
            Some(value) => value.to_string(),
        };
        ["kind", "role", "name", "params", "text", "of"].map(one).join(" ")
    };
    let found: Vec<String> = items.iter().map(words).collect();
    let has = |line: &str| assert!(found.iter().any(|one| one == line), "{line}: {found:#?}");
    has("message user observation.add - pay -");
    has("call agent pay {\"n\":3} - -");
    has("call agent note {} - -");
    assert!(
        found.iter().any(|one| one.starts_with("result tool pay") && one.contains("{\"ok\":true}")),
        "{found:#?}"
    );
    assert!(found.iter().any(|one| one.contains("I cannot do that")), "{found:#?}");
}
