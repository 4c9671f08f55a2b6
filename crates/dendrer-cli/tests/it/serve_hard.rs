//! The server under hostile requests, many clients, slow ones, and kills.
//!
//! `DENDRER_SERVE_HARD=1` runs 100,000 requests, 64 readers beside 8 writers, and 50 kills.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dendrer_object::Value;
use dendrer_testkit::Dice;

use crate::serve::Serving;
use crate::support::{Place, parse};

/// Returns the small number, or the large one in the deep run.
fn sized(small: u64, large: u64) -> u64 {
    if std::env::var_os("DENDRER_SERVE_HARD").is_some() { large } else { small }
}

/// Parts that requests are made of: those that are right, and those that are not.
const SEGMENTS: &[&str] = &[
    "run",
    "runs.json",
    "r",
    "logistics-run-47",
    "t",
    "22",
    "tip",
    "-1",
    "99999999999999999999",
    "log.json",
    "log.jsonl",
    "log.csv",
    "log.svg",
    "show.json",
    "state.json",
    "why.json",
    "value",
    "bisect.json",
    "bisect.svg",
    "diff.json",
    "diff.csv",
    "timeline.json",
    "transcript.json",
    "verify.json",
    "badge.json",
    "layout.json",
    "layout.svg",
    "graph.json",
    "frontier.json",
    "branches.json",
    "compare.json",
    "backtrack.json",
    "heatmap.json",
    "steps.json",
    "coherence.json",
    "commitments.json",
    "conflicts.json",
    "contract.json",
    "first.json",
    "predicate-test.json",
    "labels.json",
    "notes.json",
    "predicates.json",
    "schema",
    "bisect-question.json",
    "openapi.json",
    "version.json",
    "assets",
    "index.html",
    "ask",
    "..",
    "%2e%2e",
    "%00",
    "%ff",
    "a%2fb",
    "etc%2Fpasswd",
    "%F0%9F%92%A5",
    "",
    ".",
    "a.dnd",
    "logistics-run-47%4022",
    "logistics-run-47%3Arouter",
];
const NAMES: &[&str] = &[
    "from",
    "to",
    "limit",
    "bins",
    "holds",
    "predicate",
    "path",
    "base",
    "window",
    "max",
    "depth",
    "with",
    "a",
    "b",
    "of",
    "at",
    "focus",
    "type",
    "agent",
    "grep",
    "where",
    "sort",
    "after",
    "tree",
    "all",
    "links",
    "refusals",
    "reverse",
    "full",
    "replay",
    "record",
    "output",
    "store",
    "all_of",
    "file",
    "key",
    "token",
    "ignore",
    "metric",
    "x",
    "%00",
    "__proto__",
    "run",
    "schema",
];
const VALUES: &[&str] = &[
    "1",
    "0",
    "-1",
    "22",
    "tip",
    "true",
    "false",
    "18446744073709551615",
    "99999999999999999999999",
    "1e400",
    "NaN",
    "",
    "state.risk_score+%3C%3D+0.75",
    "state.",
    "((((((((",
    "logistics-run-47",
    "router",
    "risk_score",
    "%2Frisk_score",
    "after",
    "before",
    "causal",
    "forks",
    "compiled",
    "standard",
    "%2Fetc%2Fpasswd",
    "a.dnd%23r",
    "%ff",
    "%00",
    "(a*)*b",
    "%5B",
    "kernel.anomaly_free",
    "logistics-planner-1",
    "name",
];

/// Makes a request that is right, nearly right, or no request at all.
fn request(dice: &mut Dice, serving: &Serving) -> Vec<u8> {
    let pick = |dice: &mut Dice, words: &[&str]| words[dice.below(words.len() as u64) as usize].to_owned();
    let mut path = String::new();
    for _ in 0..=dice.below(5) {
        path.push('/');
        path.push_str(&pick(dice, SEGMENTS));
    }
    for at in 0..dice.below(4) {
        path.push(if at == 0 { '?' } else { '&' });
        path.push_str(&format!("{}={}", pick(dice, NAMES), pick(dice, VALUES)));
    }
    let method = if dice.below(8) == 0 {
        pick(dice, &["POST", "HEAD", "PUT", "get", "OPTIONS"])
    } else {
        "GET".to_owned()
    };
    let mut text = format!("{method} {path} HTTP/1.1\r\n{}\r\n{}\r\n", serving.host(), serving.bearer());
    if dice.below(10) == 0 {
        text.push_str(&format!("X-Long: {}\r\n", "a".repeat(dice.below(100_000) as usize)));
    }
    if method == "POST" {
        let body =
            pick(dice, &["{}", "{", "[]", "null", r#"{"schema":"dendrer.runs-question/1"}"#, "\u{1F4A5}"]);
        text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    } else {
        text.push_str("Connection: close\r\n\r\n");
    }
    let mut bytes = text.into_bytes();
    // Some have a byte that is another one.
    if dice.below(6) == 0 {
        let at = dice.below(bytes.len() as u64) as usize;
        bytes[at] = dice.below(256) as u8;
    }
    bytes
}

/// Sends bytes, and returns the status; `None` if the connection was closed without one.
fn status(serving: &Serving, bytes: &[u8]) -> Option<u16> {
    let mut stream = serving.connect();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // The server may have closed before all was sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    line.split(' ').nth(1)?.parse().ok()
}

#[test]
fn no_request_ends_the_server_or_changes_the_store() {
    let place = Place::with_demo();
    let before = place.run(&["runs", "-n", "0", "--all", "--json"]).stdout;
    let serving = Serving::of(&place, &["--allow-write"]);
    let requests = sized(1_500, 100_000);
    let answered = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (serving, answered) = (&serving, &answered);
            scope.spawn(move || {
                let mut dice = Dice(7 + worker);
                for number in 0..requests / 4 {
                    let bytes = request(&mut dice, serving);
                    let Some(status) = status(serving, &bytes) else { continue };
                    let text = String::from_utf8_lossy(&bytes);
                    let text = &text[..text.len().min(300)];
                    assert!(status < 500 || status == 503, "{worker}.{number}: {status} of {text}");
                    answered.fetch_add(u64::from(status == 200), Ordering::Relaxed);
                }
            });
        }
    });
    assert!(answered.load(Ordering::Relaxed) > requests / 20);
    assert_eq!(serving.ask("GET /version.json", "").status, 200);
    drop(serving);
    let after = place.run(&["runs", "-n", "0", "--all", "--json"]).stdout;
    assert_eq!(after, before);
}

/// Sends a line to `commit`, and returns the tick that was acknowledged.
fn commit(port: u16, token: &str, run: &str) -> Option<u64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let body = "{\"type\":\"plan.update\"}\n";
    let head = format!("Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n");
    write!(stream, "POST /run/{run}/commit HTTP/1.1\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len())
        .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (_, rest) = text.split_once("\r\n\r\n")?;
    // The reply to a line comes after that of the beginning.
    rest.lines()
        .filter(|line| line.contains("\"tick\""))
        .filter_map(|line| parse(line).get("tick")?.as_u64())
        .max()
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let place = Place::with_store();
    let writers = sized(4, 8);
    let readers = sized(8, 64);
    let mut acknowledged = vec![0_u64; writers as usize];
    for round in 0..sized(3, 50) {
        let mut serving = Serving::of(&place, &["--allow-write"]);
        let stop = AtomicBool::new(false);
        let (port, token) = (serving.port, serving.token.clone());
        let newest = std::thread::scope(|scope| {
            let writing: Vec<_> = (0..writers)
                .map(|writer| {
                    let (stop, token) = (&stop, &token);
                    scope.spawn(move || {
                        let mut newest = 0;
                        while !stop.load(Ordering::Relaxed) {
                            match commit(port, token, &format!("w{writer}")) {
                                Some(tick) => newest = tick,
                                None => std::thread::sleep(Duration::from_millis(5)),
                            }
                        }
                        newest
                    })
                })
                .collect();
            for reader in 0..readers {
                let (stop, token) = (&stop, &token);
                scope.spawn(move || {
                    let paths = [
                        "/runs.json",
                        "/run/w0/log.json",
                        "/run/w1/timeline.json",
                        "/run/w0/transcript.json",
                    ];
                    let path = paths[reader as usize % paths.len()];
                    let head = format!(
                        "Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
                    );
                    while !stop.load(Ordering::Relaxed) {
                        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return };
                        let _ = write!(stream, "GET {path} HTTP/1.1\r\n{head}\r\n");
                        let mut text = Vec::new();
                        let _ = stream.read_to_end(&mut text);
                        let first = String::from_utf8_lossy(&text[..text.len().min(20)]).into_owned();
                        let is_known = ["HTTP/1.1 200", "HTTP/1.1 404", "HTTP/1.1 503"]
                            .iter()
                            .any(|one| first.starts_with(one));
                        // A server that is killed ends in the middle of an answer.
                        assert!(
                            is_known || stop.load(Ordering::Relaxed) || first.is_empty(),
                            "{path}: {first}"
                        );
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(400 + 97 * round));
            serving.child.kill().unwrap();
            stop.store(true, Ordering::Relaxed);
            writing.into_iter().map(|one| one.join().unwrap()).collect::<Vec<u64>>()
        });
        drop(serving);
        for (writer, newest) in newest.into_iter().enumerate() {
            acknowledged[writer] = acknowledged[writer].max(newest);
            let runs = parse(&place.ok(&["runs", "-n", "0", "--json"]));
            let items = runs.get("items").and_then(Value::as_array).unwrap();
            let name = Value::from(format!("w{writer}"));
            let run = items.iter().find(|run| run.get("name") == Some(&name));
            let ticks = run.and_then(|run| run.get("ticks")?.as_u64()).unwrap_or(0);
            assert!(
                ticks >= acknowledged[writer],
                "round {round}, w{writer}: {ticks} of {}",
                acknowledged[writer]
            );
        }
    }
    assert!(acknowledged.iter().all(|newest| *newest > 0), "{acknowledged:?}");
    place.ok(&["verify"]);
}

#[test]
fn clients_that_do_not_read_stop_nobody() {
    let place = Place::new();
    place.ok(&["demo", ".", "--size", "5000", "-q"]);
    let serving = Serving::of(&place, &["--allow-write"]);
    let head = format!("{}\r\n{}\r\n", serving.host(), serving.bearer());
    let slow: Vec<TcpStream> = (0..40)
        .map(|number| {
            let mut stream = serving.connect();
            let path = [
                "/run/generated-5000/log.json?limit=5000",
                "/run/generated-5000/events",
                "/run/generated-5000/transcript.json?limit=5000",
            ][number % 3];
            write!(stream, "GET {path} HTTP/1.1\r\n{head}\r\n").unwrap();
            stream
        })
        .collect();
    // And some that do not end their headers.
    let half: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = serving.connect();
            write!(stream, "GET /runs.json HTTP/1.1\r\n").unwrap();
            stream
        })
        .collect();
    let begin = Instant::now();
    loop {
        let asked = serving.ask("GET /runs.json?limit=1", "");
        if asked.status == 200 {
            break;
        }
        assert!(asked.status == 503 && begin.elapsed() < Duration::from_secs(60), "{}", asked.status);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(commit(serving.port, &serving.token, "w"), Some(1));
    drop((slow, half));
}

#[test]
fn two_servers_in_one_browser_keep_apart() {
    let (place, other) = (Place::with_demo(), Place::with_store());
    let (first, second) = (Serving::of(&place, &[]), Serving::of(&other, &[]));
    let opened = first.send(&format!("GET /?token={}", first.token), &[&first.host()], "");
    let cookie = opened.head.lines().find(|line| line.starts_with("set-cookie: ")).unwrap();
    let cookie = cookie.trim_start_matches("set-cookie: ").split(';').next().unwrap();
    // Every port of a host gets the cookies of all others.
    assert!(cookie.starts_with(&format!("dendrer-{}=", first.port)), "{cookie}");
    let cookies = [&first, &second].map(|one| format!("dendrer-{}={}", one.port, one.token));
    let both = format!("Cookie: {}; {}", cookies[0], cookies[1]);
    let own = format!("Cookie: {}", cookies[0]);
    assert_eq!(first.send("GET /runs.json", &[&first.host(), &both], "").status, 200);
    assert_eq!(second.send("GET /runs.json", &[&second.host(), &both], "").status, 200);
    assert_eq!(second.send("GET /runs.json", &[&second.host(), &own], "").status, 401);
}
