//! What a program gets through the server: byte for byte what the API sends.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use dendrer_capture::proxy::{Copies, PassedCopy};
use dendrer_capture::{AnsweredCall, Base, Ended, Proxy};

/// An API that reads a request and sends these pieces, then closes.
fn api(pieces: Vec<Vec<u8>>) -> (u16, thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let request = request(&mut stream);
        for piece in pieces {
            stream.write_all(&piece).unwrap();
            thread::sleep(Duration::from_millis(5));
        }
        request
    });
    (port, served)
}

/// Reads a request with its body.
pub(crate) fn request(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some(end) = text.find("\r\n\r\n") {
            let length = text
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            if bytes.len() >= end + 4 + length.unwrap_or(0) {
                return bytes;
            }
        }
        match stream.read(&mut buffer).unwrap() {
            0 => return bytes,
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Asks the server as a program does, and returns all that came until it was closed.
pub(crate) fn asks(proxy: &Proxy, head: &str, body: &[u8]) -> Vec<u8> {
    let given = proxy.bases()[0].given(proxy.address());
    let path = given.strip_prefix(&format!("http://{}", proxy.address())).unwrap();
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    let head = head.replace("BASE", path).replace("LENGTH", &body.len().to_string());
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut came = Vec::new();
    let _ = stream.read_to_end(&mut came);
    came
}

pub(crate) const POST: &str = "POST BASE/chat/completions HTTP/1.1\r\nHost: x\r\nX-Custom: Kept\r\nConnection: close\r\nContent-Length: LENGTH\r\n\r\n";

fn start(port: u16) -> (Proxy, Copies) {
    Proxy::start(vec![Base::new("OPENAI_BASE_URL", &format!("http://127.0.0.1:{port}/v1")).unwrap()]).unwrap()
}

/// The answers that were copied.
fn answers(copies: Copies) -> Vec<AnsweredCall> {
    copies
        .filter_map(|seen| match seen {
            PassedCopy::Answered(answered) => Some(answered),
            _ => None,
        })
        .collect()
}

#[test]
fn status_headers_and_body_are_those_of_the_api() {
    let body = vec![vec![0, 255, 10, 13], b"gz bytes".to_vec()];
    let head = b"HTTP/1.1 203 Fine With Me\r\nX-One: 1\r\nContent-Type: application/json\r\nX-Two: a\r\nX-Two: b\r\nContent-Length: 12\r\n\r\n".to_vec();
    let (port, served) = api([vec![head.clone()], body.clone()].concat());
    let (proxy, copies) = start(port);
    let came = asks(&proxy, POST, b"{\"q\":1}");
    let asked = String::from_utf8(served.join().unwrap()).unwrap();
    assert!(asked.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("\r\nX-Custom: Kept\r\n") && asked.ends_with("{\"q\":1}"), "{asked}");
    assert!(asked.to_lowercase().contains(&format!("\r\nhost: 127.0.0.1:{port}\r\n")), "{asked}");
    let text = String::from_utf8_lossy(&came);
    let without = text.replace("connection: close\r\n", "").replace("Connection: close\r\n", "");
    assert!(without.as_bytes().starts_with(&String::from_utf8_lossy(&head).as_bytes()[..60]), "{text}");
    assert!(came.ends_with(&body.concat()));
    proxy.end();
    let answers = answers(copies);
    assert_eq!((answers[0].body.bytes.clone(), answers[0].ended), (body.concat(), Ended::Whole));
}

#[test]
fn a_stream_comes_piece_by_piece_and_is_copied_as_it_was_cut() {
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len()).into_bytes();
    let head =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let (port, _) = api(vec![head, chunk("data: 1\n\n"), chunk("data: 2\n\n"), b"0\r\n\r\n".to_vec()]);
    let (proxy, copies) = start(port);
    let came = String::from_utf8(asks(&proxy, POST, b"{}")).unwrap();
    assert!(came.ends_with("9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"), "{came}");
    proxy.end();
    let answers = answers(copies);
    assert_eq!(answers[0].body.pieces, [9, 9]);
    assert_eq!(answers[0].ended, Ended::Whole);
}

#[test]
fn an_api_that_cuts_off_cuts_off_the_program() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this".to_vec();
    let (port, _) = api(vec![head]);
    let (proxy, copies) = start(port);
    let came = asks(&proxy, POST, b"{}");
    assert!(came.ends_with(b"only this"), "{}", String::from_utf8_lossy(&came));
    proxy.end();
    let answers = answers(copies);
    assert_eq!((answers[0].ended, answers[0].body.bytes.as_slice()), (Ended::Upstream, &b"only this"[..]));
}

#[test]
fn an_api_that_is_not_there_is_a_closed_connection() {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let (proxy, copies) = start(port);
    assert_eq!(asks(&proxy, POST, b"{}"), b"");
    proxy.end();
    let answers = answers(copies);
    assert_eq!((answers[0].head.clone(), answers[0].ended), (None, Ended::Upstream));
}

#[test]
fn a_request_without_the_token_is_answered_404_and_not_copied() {
    let (port, _) = api(Vec::new());
    let (proxy, copies) = start(port);
    for path in ["/", "/v1/chat/completions", "/0123456789abcdef/v1/chat/completions", "/../x"] {
        let head = POST.replace("BASE/chat/completions", path);
        let came = asks(&proxy, &head, b"{}");
        assert!(came.starts_with(b"HTTP/1.1 404 "), "{path}: {}", String::from_utf8_lossy(&came));
    }
    assert_eq!(proxy.end(), 4);
    assert_eq!(copies.count(), 0);
}

#[test]
fn the_end_of_an_answer_waits_until_it_is_durable() {
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole".to_vec();
    let cut = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n".to_vec();
    for (answer, end) in [(whole, "whole"), (cut, "whole\r\n0\r\n\r\n")] {
        for is_dropped in [false, true] {
            let (port, _) = api(vec![answer.clone()]);
            let base = Base::new("OPENAI_BASE_URL", &format!("http://127.0.0.1:{port}/v1")).unwrap();
            let (proxy, copies) = Proxy::start_synced(vec![base]).unwrap();
            thread::scope(|scope| {
                let program = scope.spawn(|| asks(&proxy, POST, b"{}"));
                let mut seen = Vec::new();
                for copy in copies {
                    match copy {
                        PassedCopy::Due(due) => {
                            thread::sleep(Duration::from_millis(50));
                            assert!(!program.is_finished(), "it has the end before it is durable");
                            if !is_dropped {
                                due.send(()).unwrap();
                            }
                            break;
                        }
                        PassedCopy::Answered(answered) => seen.push(answered.body.bytes),
                        _ => {}
                    }
                }
                assert_eq!(seen, [b"whole"], "the copy comes first");
                let came = program.join().unwrap();
                assert!(came.ends_with(end.as_bytes()), "{}", String::from_utf8_lossy(&came));
            });
        }
    }
}
