//! APIs that do a program harm: it gets what it would get without the recorder, and the record says what is missing.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use dendrer_capture::proxy::{Copies, PassedCopy};
use dendrer_capture::{Base, Proxy};
use dendrer_object::Value;

use crate::passing::{POST, asks, request};
use crate::taped::{ASKS, Desk, SAYS};

/// An API that answers each connection by this. It lives as long as the tests.
fn api(answer: impl Fn(u64, &mut TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for (stream, number) in listener.incoming().zip(0..) {
            let (mut stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            thread::spawn(move || {
                request(&mut stream);
                answer(number, &mut stream);
            });
        }
    });
    port
}

fn start(port: u16) -> (Proxy, Copies) {
    Proxy::start(vec![Base::new("OPENAI_BASE_URL", &format!("http://127.0.0.1:{port}/v1")).unwrap()]).unwrap()
}

fn asked() -> Vec<u8> {
    format!(r#"{{"model":"m","messages":[{ASKS}]}}"#).into_bytes()
}

fn answer() -> Vec<u8> {
    format!(r#"{{"id":"x","choices":[{{"message":{SAYS}}}]}}"#).into_bytes()
}

/// An answer with these lines of its head.
fn whole(head: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{head}\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// Records what was copied.
fn record(proxy: Proxy, copies: Copies) -> Desk {
    proxy.end();
    let mut desk = Desk::new();
    for copy in copies {
        desk.tape.take(copy).unwrap();
    }
    desk
}

/// The gaps of a run, in their order.
fn gaps(desk: &Desk) -> Vec<String> {
    let noted = (1..=desk.trace().tip()).filter_map(|tick| desk.content(tick).get("anomalies").cloned());
    let noted: Vec<Value> =
        noted.flat_map(|all| all.as_array().unwrap().iter().cloned().collect::<Vec<_>>()).collect();
    let why = |one: &Value| Some(one.get("why")?.as_str()?.to_owned());
    noted.iter().filter_map(why).collect()
}

/// The most memory that this process had, in KiB; 0 where the system does not tell.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn bodies_that_do_not_inflate_pass_and_leave_a_gap() {
    let bomb = gzip(&vec![b' '; 65 << 20]);
    let cases = [
        ("Content-Encoding: gzip", bomb, "too_large"),
        ("Content-Encoding: gzip", answer(), "not_inflated"),
        ("Content-Encoding: br", answer(), "not_inflated"),
        ("Content-Encoding: zstd", answer(), "not_inflated"),
        ("Content-Encoding: compress", answer(), "encoding_unknown"),
        ("Content-Encoding: gzip", gzip(&answer())[..40].to_vec(), "not_inflated"),
        ("Content-Type: text/event-stream; charset=latin-1", vec![0xff; 1000], ""),
        ("Content-Type: application/json", vec![0xff; 1000], "no_json"),
    ];
    let sent: Vec<Vec<u8>> = cases.iter().map(|(head, body, _)| whole(head, body)).collect();
    let port = api(move |number, stream| stream.write_all(&sent[number as usize]).unwrap());
    let (proxy, copies) = start(port);
    for (head, body, _) in &cases {
        let came = asks(&proxy, POST, &asked());
        assert!(came.ends_with(&[b"\r\n\r\n", body.as_slice()].concat()), "{head}");
    }
    let desk = record(proxy, copies);
    let expected: Vec<&str> = cases.iter().map(|(.., why)| *why).filter(|why| !why.is_empty()).collect();
    assert_eq!(gaps(&desk), expected);
    assert_eq!((desk.tape.tally().calls, desk.tape.tally().failed), (8, 8));
}

#[test]
fn an_endless_stream_is_copied_up_to_a_limit() {
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    let port = api(move |_, stream| {
        let event =
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", "x".repeat(1 << 20));
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        while stream.write_all(chunk.as_bytes()).is_ok() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let (proxy, copies) = start(port);
    let before = peak();
    let given = proxy.bases()[0].given(proxy.address());
    let path = given.strip_prefix(&format!("http://{}", proxy.address())).unwrap();
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    let head = POST.replace("BASE", path).replace("LENGTH", &asked().len().to_string());
    stream.write_all(&[head.into_bytes(), asked()].concat()).unwrap();
    let (mut came, mut buffer) = (0, vec![0; 1 << 20]);
    while came < 512 << 20 {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "it goes on");
        came += read;
    }
    drop(stream);
    // The API learns that the program has gone.
    let mut last = u64::MAX;
    while last != sent.load(Ordering::Relaxed) {
        last = sent.load(Ordering::Relaxed);
        thread::sleep(std::time::Duration::from_millis(200));
    }
    proxy.end();
    let grown = peak().saturating_sub(before);
    // Another test of the same process has a bomb meanwhile.
    assert!(grown < 320 << 10, "{grown} KiB for 512 MiB");
    let mut desk = Desk::new();
    for copy in copies {
        if let PassedCopy::Answered(answered) = &copy {
            assert!(answered.body.bytes.len() <= 64 << 20 && answered.body.left_out > 400 << 20);
        }
        desk.tape.take(copy).unwrap();
    }
    assert_eq!(gaps(&desk), ["too_large"]);
    let exact = desk.content(2).get("intent").unwrap().get("capture").unwrap().get("exact").cloned();
    assert!(exact.is_none_or(|exact| exact.get("answer").is_none()), "half an answer is not exact");
}

#[test]
fn a_head_of_100_mb_closes_the_connection_and_nothing_else() {
    let port = api(|number, stream| {
        if number > 0 {
            return stream.write_all(&whole("Content-Type: application/json", &answer())).unwrap();
        }
        let line = format!("X-Line: {}\r\n", "y".repeat(1 << 20));
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        for _ in 0..100 {
            if stream.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    });
    let (proxy, copies) = start(port);
    let before = peak();
    assert_eq!(asks(&proxy, POST, &asked()), b"", "closed as an API closes it");
    assert!(asks(&proxy, POST, &asked()).ends_with(&answer()));
    let grown = peak().saturating_sub(before);
    let desk = record(proxy, copies);
    assert!(grown < 64 << 10, "{grown} KiB");
    assert_eq!((desk.tape.tally().calls, desk.tape.tally().failed), (2, 1));
    assert!(desk.shown().last().unwrap().ends_with(r#"plan.update "twelve""#), "{:?}", desk.shown());
}

#[test]
fn many_connections_at_once_are_all_answered_and_recorded() {
    let port = api(|_, stream| {
        thread::sleep(std::time::Duration::from_millis(50));
        // Ignored: a client that ends early has its own failure.
        let _ = stream.write_all(&whole("Content-Type: application/json", &answer()));
    });
    let (proxy, copies) = start(port);
    let proxy = Arc::new(proxy);
    let calls = (0..300).map(|number| {
        let proxy = Arc::clone(&proxy);
        thread::spawn(move || {
            let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{number}"}}]}}"#);
            asks(&proxy, POST, body.as_bytes())
        })
    });
    let calls: Vec<_> = calls.collect();
    for call in calls {
        assert!(call.join().unwrap().ends_with(&answer()));
    }
    let desk = record(Arc::into_inner(proxy).unwrap(), copies);
    let tally = desk.tape.tally();
    assert_eq!((tally.calls, tally.failed, tally.gaps), (300, 0, 0));
}

#[test]
fn a_stream_that_was_cut_is_cut_for_the_program_and_failed_on_record() {
    let port = api(|_, stream| {
        let event = r#"data: {"choices":[{"delta":{"content":"tw"}}]}"#;
        let chunk = format!("{:x}\r\n{event}\n\n\r\n", event.len() + 2);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(&[head.as_bytes(), chunk.as_bytes(), b"400\r\ndata: {"].concat()).unwrap();
    });
    let (proxy, copies) = start(port);
    let came = String::from_utf8(asks(&proxy, POST, &asked())).unwrap();
    assert!(came.contains("tw") && !came.ends_with("0\r\n\r\n"), "{came}");
    let desk = record(proxy, copies);
    assert_eq!((desk.tape.tally().failed, desk.tape.tally().gaps), (1, 0));
    let noted = desk.content(2).get("anomalies").unwrap().as_array().unwrap().get(0).unwrap().to_string();
    assert_eq!(noted, r#"{"ended":"upstream","kind":"model_call_failed","retry_of":null,"status":200}"#);
}
