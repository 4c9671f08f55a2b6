//! Exact requests and answers as the vault has them: a line of JSON, and the body.

use dendrer_object::{Value, json};

use crate::exchange::{AnsweredCall, AskedCall, CallNumber, CopiedBody, Ended};

/// Headers that an answer is served again with. No other is kept: any of them may have a secret.
const SERVED: [&str; 6] =
    ["content-type", "content-encoding", "retry-after", "x-should-retry", "retry-after-ms", "request-id"];

/// The place in the vault of a part of a call.
pub(crate) fn locator(call: u64, part: &str) -> String {
    format!("call/{call}/{part}")
}

/// The exact request of a call: API, method, path and query without keys, encoding, and its body.
pub(crate) fn of_request(asked: &AskedCall) -> Vec<u8> {
    let head = [
        ("encoding", asked.encoding.as_deref().map(Value::from)),
        ("base", Some(Value::from(asked.base.as_str()))),
        ("method", Some(Value::from(asked.method.as_str()))),
        ("path", Some(Value::from(without_keys(&asked.path)))),
    ];
    with_head(head, &asked.body.bytes)
}

/// Reads an exact request; `None` if it is of another shape.
pub(crate) fn read_request(call: CallNumber, bytes: &[u8]) -> Option<AskedCall> {
    let (head, body) = split(bytes)?;
    let text = |name: &str| head.get(name).and_then(Value::as_str).map(str::to_owned);
    let body = CopiedBody { bytes: body.to_vec(), ..CopiedBody::default() };
    let (method, path, encoding) = (text("method")?, text("path")?, text("encoding"));
    let base = text("base").unwrap_or_default();
    Some(AskedCall { call, base, method, path, encoding, body, changed: Vec::new(), is_given: false })
}

/// Names of a query whose values are keys, or parts of one.
const KEYS: [&str; 10] =
    ["key", "token", "secret", "sig", "auth", "password", "credential", "session", "x-amz-", "x-goog-"];

/// A path without the parts of its query that may be keys.
pub(crate) fn without_keys(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let is_key = |part: &&str| {
        let name = part.split('=').next().unwrap_or_default().to_ascii_lowercase();
        KEYS.iter().any(|key| name.contains(key))
    };
    let kept: Vec<&str> = query.split('&').filter(|part| !is_key(part)).collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

/// A path without its query, which may have a key.
pub(crate) fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// The exact answer to a call: status, headers, the lengths of its pieces, its end, and its body.
pub(crate) fn of_answer(answered: &AnsweredCall) -> Vec<u8> {
    let headers = answered.head.iter().flat_map(|(_, headers)| headers);
    let served = headers.filter(|(name, _)| SERVED.contains(&name.to_ascii_lowercase().as_str()));
    let served = served.map(|(name, value)| {
        let value = String::from_utf8_lossy(value);
        Value::array([Value::from(name.as_str()), Value::from(&*value)])
    });
    let pieces = answered.body.pieces.iter().map(|length| Value::from(u64::from(*length)));
    let status = answered.head.as_ref().map(|(status, _)| Value::from(u64::from(*status)));
    let head = [
        ("ended", Some(Value::from(answered.ended.as_str()))),
        ("headers", Some(Value::array(served))),
        ("pieces", Some(Value::array(pieces))),
        ("status", status),
    ];
    with_head(head, &answered.body.bytes)
}

/// A message of MCP.
pub(crate) fn of_mcp(line: &[u8]) -> Vec<u8> {
    with_head([], line)
}

fn with_head<const N: usize>(head: [(&str, Option<Value>); N], body: &[u8]) -> Vec<u8> {
    let head = head.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let mut bytes = json::to_vec(&Value::record(head));
    bytes.push(b'\n');
    bytes.extend_from_slice(body);
    bytes
}

/// Splits exact bytes into their head and the body; `None` if they have none.
pub(crate) fn split(bytes: &[u8]) -> Option<(Value, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((json::parse_door(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

/// An answer that is served again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServedAnswer {
    /// Its status; `None` if the API closed the connection without one.
    pub(crate) status: Option<u16>,
    pub(crate) headers: Vec<(String, String)>,
    /// Its body, cut as it came.
    pub(crate) pieces: Vec<Vec<u8>>,
    pub(crate) ended: Ended,
}

impl ServedAnswer {
    /// Reads the exact bytes of an answer; `None` if they are of another shape.
    pub(crate) fn read(bytes: &[u8]) -> Option<ServedAnswer> {
        let (head, mut body) = split(bytes)?;
        let status = head.get("status").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok());
        let headers = head.get("headers")?.as_array()?.iter().filter_map(|pair| {
            let pair = pair.as_array()?;
            Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.as_str()?.to_owned()))
        });
        let mut pieces = Vec::new();
        for length in head.get("pieces")?.as_array()?.iter() {
            let length = usize::try_from(length.as_u64()?).ok()?;
            let (piece, rest) = body.split_at_checked(length)?;
            pieces.push(piece.to_vec());
            body = rest;
        }
        let ended = Ended::from_word(head.get("ended")?.as_str()?)?;
        Some(ServedAnswer { status, headers: headers.collect(), pieces, ended })
    }

    /// A whole answer with success.
    pub(crate) fn whole(kind: &str, pieces: Vec<Vec<u8>>) -> ServedAnswer {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        ServedAnswer { status: Some(200), headers, pieces, ended: Ended::Whole }
    }

    /// It as the answer to a call.
    pub(crate) fn as_answered(&self, call: CallNumber) -> AnsweredCall {
        let headers = self.headers.iter().map(|(name, value)| (name.clone(), value.clone().into_bytes()));
        let pieces = self.pieces.iter().map(|piece| u32::try_from(piece.len()).unwrap_or(u32::MAX)).collect();
        let body = CopiedBody { bytes: self.pieces.concat(), pieces, left_out: 0 };
        let head = self.status.map(|status| (status, headers.collect()));
        AnsweredCall { call, at: 0, head, body, ended: self.ended }
    }

    /// An answer with the reason why nothing is served, in a form that the libraries of all APIs read. They do not ask again.
    pub(crate) fn refusal(message: &str) -> ServedAnswer {
        let error = Value::record([
            ("code", Value::from("dendrer_diverged")),
            ("message", Value::from(message)),
            ("type", Value::from("invalid_request_error")),
        ]);
        let body = json::to_vec(&Value::record([("error", error), ("type", Value::from("error"))]));
        ServedAnswer {
            status: Some(400),
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            pieces: vec![body],
            ended: Ended::Whole,
        }
    }
}
