//! Runs of characters of a token: web tokens, and what decodes to a text with a secret in it.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::judge;
use super::part::Depth;
use super::rules::Rules;
use super::vendor::SecretSpan;

/// The longest run that is decoded.
const DECODED_MAX: usize = 1 << 20;

/// Finds web tokens, and runs that decode to a text with a secret in it, in runs of [`super::vendor::BODY_MIN`] characters and more.
pub(super) fn find(
    text: &str,
    runs: &[Range<usize>],
    rules: &Rules,
    depth: Depth,
    found: &mut Vec<SecretSpan>,
) {
    for Range { start, end: at } in runs.iter().cloned() {
        let is_short = at - start < 20;
        if is_short {
            if is_argument_of_decoder(text, start) && is_encoded_secret(&text[start..at]) {
                found.push(SecretSpan::new(start, at, super::vendor::NAMED));
            }
            continue;
        }
        web_tokens(text, start, at, found);
        bot_tokens(text, start, at, found);
        if is_argument_of_decoder(text, start) && is_encoded_secret(&text[start..at]) {
            found.push(SecretSpan::new(start, at, super::vendor::NAMED));
        }
        if depth.may_decode() && at - start <= DECODED_MAX {
            let mut part = start;
            // `name=` and what follows are one run.
            for piece in text[start..at].split('.') {
                for (offset, value) in pieces(piece) {
                    if let Some(kind) = decoded(value, rules, depth) {
                        let begin = part + offset;
                        found.push(SecretSpan::new(begin, begin + value.len(), kind));
                    }
                }
                part += piece.len() + 1;
            }
        }
    }
}

/// A run, and what follows its first `=` that is no padding.
fn pieces(run: &str) -> Vec<(usize, &str)> {
    let mut pieces = vec![(0, run)];
    if let Some(sign) = run.find('=').filter(|sign| run[sign + 1..].len() >= 20) {
        pieces.push((sign + 1, &run[sign + 1..]));
    }
    pieces.retain(|(_, piece)| piece.len() >= 20);
    pieces
}

/// The token of a bot of Discord: an id in base64, a time, a signature.
fn bot_tokens(text: &str, start: usize, end: usize, found: &mut Vec<SecretSpan>) {
    let run = &text[start..end];
    if !(56..=120).contains(&run.len()) {
        return;
    }
    let lead = run.find('=').map_or(0, |sign| sign + 1);
    let parts: Vec<&str> = run[lead..].split('.').collect();
    let [id, time, sign] = parts[..] else { return };
    let is_id = (22..=28).contains(&id.len()) && id.starts_with(['M', 'N', 'O']);
    if is_id && time.len() == 6 && (25..=45).contains(&sign.len()) && judge::is_mixed(id) {
        found.push(SecretSpan::new(start + lead, end, "discord-token"));
    }
}

/// `ey...` in three parts, or in two where it was cut.
fn web_tokens(text: &str, start: usize, end: usize, found: &mut Vec<SecretSpan>) {
    let mut from = start;
    while let Some(at) = text[from..end].find("ey").map(|at| from + at) {
        let is_word = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
        let bytes = text.as_bytes();
        let part = |from: usize| from + bytes[from..end].iter().take_while(|c| is_word(**c)).count();
        let head = part(at);
        let is_begin = at == start || !is_word(bytes[at - 1]);
        if is_begin && head - at >= 12 && bytes.get(head) == Some(&b'.') && head < end {
            let body = part(head + 1);
            if body - head > 10 {
                let close = if body < end && bytes[body] == b'.' { part(body + 1) } else { body };
                found.push(SecretSpan::new(at, close, "jwt"));
                from = close;
                continue;
            }
        }
        // The rest of this part was looked at.
        from = head.max(at + 2);
    }
}

/// Whether a run is the argument of a call that decodes base64.
/// The text that a run of base64 decodes to; `None` for any other run.
pub(super) fn text_of(run: &str) -> Option<String> {
    let bare = run.trim_end_matches('=');
    let bytes = STANDARD_NO_PAD.decode(bare).or_else(|_| URL_SAFE_NO_PAD.decode(bare)).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let text = text.trim_end_matches(['\n', '\r']);
    text.bytes().all(|c| c.is_ascii_graphic()).then(|| text.to_owned())
}

fn is_argument_of_decoder(text: &str, start: usize) -> bool {
    let bytes = &text.as_bytes()[start.saturating_sub(24)..start];
    let Some(call) = bytes.strip_suffix(b"(\"").or_else(|| bytes.strip_suffix(b"('")) else { return false };
    let call = call.to_ascii_lowercase();
    [&b"b64decode"[..], b"frombase64string", b"atob", b"base64decode", b"decode64", b"base64_decode"]
        .iter()
        .any(|one| call.ends_with(one))
}

/// Whether base64 has one word that looks like a secret.
fn is_encoded_secret(run: &str) -> bool {
    let bytes = STANDARD_NO_PAD.decode(run.trim_end_matches('='));
    let text = bytes.ok().filter(|bytes| is_text(bytes)).and_then(|bytes| String::from_utf8(bytes).ok());
    text.is_some_and(|text| judge::looks_secret(&text) && !judge::is_placeholder(&text))
}

/// The kind of the secret in what a run decodes to.
fn decoded(run: &str, rules: &Rules, depth: Depth) -> Option<Arc<str>> {
    let bare = run.trim_end_matches('=');
    if bare.len() < 20 {
        return None;
    }
    let is_hex =
        bare.len() >= 32 && bare.len().is_multiple_of(2) && bare.bytes().all(|c| c.is_ascii_hexdigit());
    let digit = |at: usize| (bare.as_bytes()[at] as char).to_digit(16).unwrap_or(0) as u8;
    let byte = |at: usize| digit(2 * at) << 4 | digit(2 * at + 1);
    if is_hex && !(0..8).all(|at| is_text(&[byte(at)])) {
        return None;
    }
    let bytes = match is_hex {
        true => (0..bare.len() / 2).map(byte).collect(),
        false => {
            // The head says soon whether it is text at all.
            let head =
                STANDARD_NO_PAD.decode(&bare[..16]).or_else(|_| URL_SAFE_NO_PAD.decode(&bare[..16])).ok()?;
            if !is_text(&narrowed(head)) {
                return None;
            }
            let whole = match bare.len() % 4 {
                1 => &bare[..bare.len() - 1],
                _ => bare,
            };
            STANDARD_NO_PAD
                .decode(whole)
                .or_else(|_| URL_SAFE_NO_PAD.decode(whole))
                .or_else(|_| {
                    // The last bits of a run that was cut belong to nothing.
                    let cut = &whole[..whole.len() / 4 * 4];
                    STANDARD_NO_PAD.decode(cut).or_else(|_| URL_SAFE_NO_PAD.decode(cut))
                })
                .ok()?
        }
    };
    let bytes = narrowed(bytes);
    if !is_text(&bytes) {
        return None;
    }
    let text = String::from_utf8(bytes).ok()?;
    let found = depth.deeper().find(&text, rules);
    if let Some(first) = found.first() {
        return Some(Arc::clone(&first.kind));
    }
    // `user:password`, as basic authentication writes it.
    let (user, password) = text.split_once(':')?;
    let is_pair = !user.is_empty()
        && user.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.' | b'@'));
    (is_pair && password.len() >= 8 && judge::looks_secret(password) && !password.contains(':'))
        .then(|| "named".into())
}

/// Text in UTF-16, as PowerShell encodes commands, with one byte a character.
fn narrowed(bytes: Vec<u8>) -> Vec<u8> {
    let is_wide = bytes.len() >= 8 && bytes.iter().skip(1).step_by(2).all(|c| *c == 0);
    if is_wide { bytes.into_iter().step_by(2).collect() } else { bytes }
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|c| matches!(c, b'\n' | b'\r' | b'\t' | 0x20..=0x7e))
}
