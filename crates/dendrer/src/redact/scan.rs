//! Finds secrets in a text: by shape, beside a name, in an address, by value, and in what a part of the text decodes to.
//!
//! Every pass is linear: a run of characters is looked at once, a name looks at most at [`VALUE_MAX`] bytes behind it, and a part
//! that decodes to a text is at most [`DEPTH_MAX`] times decoded.

use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::carl;
use super::names::{self, HINTS, Strength};
use super::rules::{RedactionProfile, Rules};
use super::taken::TakenSecrets;
use super::vendor::{self, SecretSpan};

/// The kind of values that are known to be secret.
pub(crate) const KNOWN: &str = "known";

/// How long a value beside a name may be.
pub(super) const VALUE_MAX: usize = 8 << 10;

/// How long a private key may be; a longer one ends there.
pub(super) const PRIVATE_KEY_MAX: usize = 16 << 10;

/// How often what was decoded is decoded again.
const DEPTH_MAX: usize = 2;

/// The longest run that is decoded.
const DECODED_MAX: usize = 1 << 20;

static NAMES: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .ascii_case_insensitive(true)
        .build(HINTS)
        .expect("some short texts")
});

/// Finds the secrets of a text, in order, none overlapping another.
pub(super) fn find(text: &str, rules: &Rules) -> Vec<SecretSpan> {
    let mut found = find_at(text, rules, 0);
    if !rules.keep.is_empty() && !found.is_empty() {
        let kept: Vec<_> =
            rules.keep.iter().flat_map(|keep| keep.find_iter(text).map(|kept| kept.range())).collect();
        found.retain(|one| !kept.iter().any(|kept| kept.start <= one.start && one.end <= kept.end));
    }
    found
}

/// A text without its secrets.
pub(super) fn text(rules: &Rules, text: &str) -> (String, TakenSecrets) {
    text_by(rules, text, &|one| Some(rules.marker(&one.kind, &text[one.start..one.end])))
}

/// The name of a thing without its secrets. Values that are known are no secret there: a word that somebody chose as a password
/// may be the name of a tool.
pub(super) fn name(rules: &Rules, text: &str) -> (String, TakenSecrets) {
    let marker = |one: &SecretSpan| {
        (&*one.kind != KNOWN).then(|| rules.name_marker(&one.kind, &text[one.start..one.end]))
    };
    text_by(rules, text, &marker)
}

/// Whether a text has a word that may name a secret.
pub(crate) fn has_hint(text: &str) -> bool {
    NAMES.is_match(text)
}

fn text_by(
    rules: &Rules,
    text: &str,
    marker: &dyn Fn(&SecretSpan) -> Option<String>,
) -> (String, TakenSecrets) {
    let mut taken = TakenSecrets::default();
    let found = match rules.profile {
        RedactionProfile::None => return (text.to_owned(), taken),
        RedactionProfile::Carl1 => {
            let made = carl::text(text, &mut taken);
            return (made.unwrap_or_else(|| text.to_owned()), taken);
        }
        RedactionProfile::Default => find(text, rules),
    };
    let mut made = String::with_capacity(text.len());
    let mut upto = 0;
    for one in &found {
        let Some(marker) = marker(one) else { continue };
        made.push_str(&text[upto..one.start]);
        made.push_str(&marker);
        taken.count(&one.kind);
        upto = one.end;
    }
    made.push_str(&text[upto..]);
    (made, taken)
}

fn find_at(text: &str, rules: &Rules, depth: usize) -> Vec<SecretSpan> {
    let mut found = Vec::new();
    if text.len() < 4 {
        return found;
    }
    let bytes = text.as_bytes();
    let present = Present::of(bytes);
    known(text, rules, &mut found);
    vendor::find(bytes, &mut found);
    if present.has(b'-') {
        private_keys(bytes, &mut found);
    }
    if present.has(b':') {
        addresses(text, &mut found);
    }
    named(text, rules, &present, &mut found);
    for (kind, shape) in &rules.shapes {
        found.extend(shape.find_iter(text).filter(|one| !one.is_empty()).map(|one| SecretSpan {
            start: one.start(),
            end: one.end(),
            kind: Arc::clone(kind),
        }));
    }
    runs(text, rules, depth, &mut found);
    if present.has(b'<') {
        markers(bytes, &mut found);
    }
    let mut found = disjoint(found);
    if depth < DEPTH_MAX {
        if present.has(b'\n') {
            wrapped(text, &mut found);
            found = disjoint(found);
        }
        for view in views(text, &present) {
            let more = find_at(&view.text, rules, depth + 1);
            let is_whole =
                |one: &SecretSpan| text.is_char_boundary(one.start) && text.is_char_boundary(one.end);
            let more = more.into_iter().map(|one| view.place(one)).filter(is_whole);
            found.extend(more);
        }
        found = disjoint(found);
    }
    found
}

/// Which bytes of ASCII a text has, so that a pass that begins at one of them is left out where that byte is missing: most texts of a
/// record are short, and setting up a search costs more than searching them.
struct Present {
    ascii: u128,
    has_others: bool,
}

impl Present {
    fn of(bytes: &[u8]) -> Present {
        let (mut low, mut high, mut others) = (0u64, 0u64, 0u8);
        for byte in bytes {
            let bit = 1u64 << (byte & 63);
            low |= if byte & 64 == 0 { bit } else { 0 };
            high |= if byte & 64 == 0 { 0 } else { bit };
            others |= byte;
        }
        Present { ascii: u128::from(low) | u128::from(high) << 64, has_others: others & 128 != 0 }
    }

    /// Tells whether this byte of ASCII is there. True also for some bytes that are not, where the text is not ASCII alone.
    fn has(&self, byte: u8) -> bool {
        self.ascii & (1 << (byte & 127)) != 0
    }
}

/// How long a line is that a program wraps, at least.
const LINE_MIN: usize = 60;

/// Whether what seems to go on over a line's end is a secret that ends with a short line: then the next line is another thing.
fn is_whole_before(bytes: &[u8], found: &[SecretSpan], joined: &SecretSpan) -> bool {
    let at = found.partition_point(|one| one.start < joined.start);
    let Some(whole) = found.get(at).filter(|one| one.start == joined.start) else { return false };
    let line = bytes[..whole.end].iter().rev().take(LINE_MIN).take_while(|c| **c != b'\n').count();
    bytes.get(whole.end) != Some(&b'\\') && line < LINE_MIN
}

/// Leaves out what overlaps: what begins first, and of those the longest, is kept, and grows over what reaches out of it.
fn disjoint(mut found: Vec<SecretSpan>) -> Vec<SecretSpan> {
    found.sort_by(|a, b| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
    let mut kept: Vec<SecretSpan> = Vec::with_capacity(found.len());
    for one in found {
        match kept.last_mut() {
            Some(last) if one.start < last.end => {
                // A kind of its own says more than the name beside it.
                if &*last.kind == "named" && &*one.kind != "named" && &*one.kind != MARKER {
                    last.kind = one.kind;
                }
                last.end = last.end.max(one.end);
            }
            _ => kept.push(one),
        }
    }
    kept.retain(|one| &*one.kind != MARKER);
    kept
}

/// The kind of a marker that is there already: it covers what is found in it, and is no secret.
const MARKER: &str = "\u{0}marker";

/// Markers of this redaction and of `carl-core`, which are no secrets.
fn markers(bytes: &[u8], found: &mut Vec<SecretSpan>) {
    for at in memchr::memmem::find_iter(bytes, b"<redacted") {
        let rest = &bytes[at..bytes.len().min(at + 100)];
        if let Some(close) = memchr::memchr(b'>', rest) {
            // Six characters of the shape precede a marker of `carl-core`.
            let prefix = bytes[..at]
                .iter()
                .rev()
                .take(6)
                .take_while(|c| c.is_ascii_alphanumeric() || matches!(**c, b'-' | b'_'))
                .count();
            found.push(SecretSpan { start: at - prefix, end: at + close + 1, kind: MARKER.into() });
        }
    }
}

fn known(text: &str, rules: &Rules, found: &mut Vec<SecretSpan>) {
    let hits = rules.known.iter().flat_map(|values| values.finder.find_iter(text));
    found.extend(hits.map(|hit| SecretSpan { start: hit.start(), end: hit.end(), kind: KNOWN.into() }));
}

/// Blocks of PEM and PGP with a private key, also where a newline is written as `\n`, and where the end was cut.
fn private_keys(bytes: &[u8], found: &mut Vec<SecretSpan>) {
    let mut upto = 0;
    for at in memchr::memmem::find_iter(bytes, b"PRIVATE KEY") {
        if at < upto {
            continue;
        }
        let line = at.saturating_sub(60);
        let Some(begin) = memchr::memmem::rfind(&bytes[line..at], b"-----BEGIN ") else { continue };
        let start = line + begin;
        let limit = bytes.len().min(start + PRIVATE_KEY_MAX);
        let end = memchr::memmem::find(&bytes[at..limit], b"-----END ").map(|end| {
            let end = at + end + 9;
            memchr::memmem::find(&bytes[end..bytes.len().min(end + 60)], b"-----")
                .map_or(end, |close| end + close + 5)
        });
        let end = end.unwrap_or_else(|| {
            let is_of_key = |c: &u8| {
                c.is_ascii_alphanumeric()
                    || matches!(c, b'+' | b'/' | b'=' | b'\n' | b'\r' | b'\\' | b'-' | b' ' | b':' | b',')
            };
            at + bytes[at..limit].iter().take_while(|c| is_of_key(c)).count()
        });
        // A page that shows how such a block begins has nothing in it.
        let body = bytes[at..end].iter().filter(|c| c.is_ascii_alphanumeric()).count();
        if body >= 40 {
            found.push(SecretSpan { start, end, kind: "private-key".into() });
            upto = end;
        }
    }
}

/// The password, or the token, before `@` in an address.
fn addresses(text: &str, found: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let mut upto = 0;
    for at in memchr::memmem::find_iter(bytes, b"://") {
        if at < upto {
            continue;
        }
        let start = at + 3;
        let is_end = |c: &u8| {
            c.is_ascii_whitespace()
                || matches!(c, b'/' | b'"' | b'\'' | b'<' | b'>' | b'?' | b'#' | b'`' | b',' | b'\\')
        };
        let limit = bytes.len().min(start + 1024);
        let end = bytes[start..limit].iter().position(is_end).map_or(limit, |end| start + end);
        upto = end;
        let Some(sign) = memchr::memrchr(b'@', &bytes[start..end]) else { continue };
        let user = &text[start..start + sign];
        let (value, from) = match user.split_once(':') {
            Some((name, password)) => (password, start + name.len() + 1),
            None if names::looks_secret(user) && user.len() >= 16 => (user, start),
            None => continue,
        };
        if !value.is_empty() && !names::is_placeholder(value) {
            found.push(SecretSpan { start: from, end: from + value.len(), kind: "url-password".into() });
        }
    }
}

/// Values beside a name: members of JSON, YAML, TOML and INI, variables, headers, flags, queries, and prose.
fn named(text: &str, rules: &Rules, present: &Present, found: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let mut upto = 0;
    for hit in NAMES.find_iter(text) {
        if hit.start() < upto {
            continue;
        }
        let Some((name, value)) = beside(text, hit.start(), hit.end()) else { continue };
        upto = name.1;
        if let Some((start, end)) = judged(text, &text[name.0..name.1], value, rules) {
            found.push(SecretSpan { start, end, kind: "named".into() });
            upto = upto.max(end);
        }
    }
    if let Some(names) = &rules.names {
        for hit in names.find_iter(text) {
            if let Some((name, value)) = beside(text, hit.start(), hit.end()) {
                found.extend(
                    judged(text, &text[name.0..name.1], value, rules).map(|(start, end)| SecretSpan {
                        start,
                        end,
                        kind: "named".into(),
                    }),
                );
            }
        }
    }
    if !present.has(b' ') {
        return;
    }
    // curl -u user:password
    for at in memchr::memmem::find_iter(bytes, b"curl ") {
        let line = &text[at..text[at..].find('\n').map_or(text.len(), |end| at + end)];
        for flag in [" -u ", " --user ", " --proxy-user "] {
            let Some(place) = line.find(flag) else { continue };
            let from = at + place + flag.len();
            let quote = usize::from(matches!(bytes.get(from), Some(b'"' | b'\'')));
            let rest = &text[from + quote..text.len().min(next_boundary(text, from + quote + 300))];
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).unwrap_or(rest.len());
            if let Some((user, password)) = rest[..end].split_once(':')
                && !password.is_empty()
                && !names::is_placeholder(password)
            {
                let start = from + quote + user.len() + 1;
                found.push(SecretSpan { start, end: start + password.len(), kind: "named".into() });
            }
        }
    }
}

fn next_boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// How a value follows its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// `name = value`, `name: value` at the beginning of a line or in quotes, `--name value`, `?name=value`.
    Assigned,
    /// The same in the middle of a line, or `name is value`.
    Prose,
    /// `name value`.
    Bare,
}

/// The place of a value that may belong to a name.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: usize,
    end: usize,
    how: Beside,
    is_quoted: bool,
    /// Whether a word such as `Bearer` precedes it.
    has_scheme: bool,
}

/// A name that may say that a value is secret.
#[derive(Debug, Clone, Copy)]
struct Named {
    start: usize,
    end: usize,
    /// The begin of its word, with the signs of a flag and without a word before it.
    front: usize,
    is_flag: bool,
}

/// Words before a name that are part of it: `API key`, `access token`.
const FIRST_WORDS: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "refresh",
    "bearer",
    "client",
    "session",
    "bot",
    "signing",
    "encryption",
];

/// The name around a hit, and the value after it.
fn beside(text: &str, from: usize, to: usize) -> Option<((usize, usize), Place)> {
    let name = name_around(text, from, to)?;
    let (at, how) = sign_after(text, name)?;
    let (at, has_scheme) = after_scheme(text, at);
    let (start, end, is_quoted) = value_at(text, at)?;
    let (start, end) = (next_boundary(text, start), next_boundary(text, end));
    let place = Place { start, end, how, is_quoted, has_scheme };
    (start < end).then_some(((name.start, name.end), place))
}

/// The name around a hit; `None` if nothing after it can name a value.
fn name_around(text: &str, from: usize, to: usize) -> Option<Named> {
    let bytes = text.as_bytes();
    let is_name = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.') || c >= 0x80;
    let mut end = to;
    while end < bytes.len() && end < to + 64 && is_name(bytes[end]) {
        end += 1;
    }
    // Most words that a name may contain are followed by nothing that names a value.
    let is_followed =
        |c: &u8| matches!(c, b'=' | b':' | b'>' | b'"' | b'\'' | b'`' | b']' | b'\\' | b' ' | b'\t' | b'.');
    if !bytes.get(end).is_some_and(is_followed) {
        return None;
    }
    // The sign of the sentence is not of the name.
    while end > to && bytes[end - 1] == b'.' {
        end -= 1;
    }
    let mut start = from;
    while start > 0 && from - start < 64 && is_name(bytes[start - 1]) {
        start -= 1;
    }
    start = next_boundary(text, start);
    end = next_boundary(text, end);
    let is_flag = text[start..end].starts_with('-');
    let front = start;
    while start < end && bytes[start] == b'-' {
        start += 1;
    }
    if start > 0 && bytes[start - 1] == b' ' {
        let word = bytes[..start - 1].iter().rev().take(20).take_while(|c| c.is_ascii_alphabetic()).count();
        if FIRST_WORDS.iter().any(|first| text[start - 1 - word..start - 1].eq_ignore_ascii_case(first)) {
            start -= 1 + word;
        }
    }
    Some(Named { start, end, front, is_flag })
}

/// Passes over at most `most` bytes of a kind.
fn pass_over(bytes: &[u8], at: usize, most: usize, is_kind: impl Fn(u8) -> bool) -> usize {
    at + bytes[at..].iter().take(most).take_while(|c| is_kind(**c)).count()
}

fn is_blank(c: u8) -> bool {
    matches!(c, b' ' | b'\t')
}

/// How a value follows a name, and where it may begin.
fn sign_after(text: &str, name: Named) -> Option<(usize, Beside)> {
    let bytes = text.as_bytes();
    let closed = pass_over(bytes, name.end, 4, |c| matches!(c, b'"' | b'\'' | b'`' | b']' | b'\\'));
    let at = pass_over(bytes, closed, 32, is_blank);
    let (is_closed, has_blank) = (closed > name.end, at > closed);
    let (at, how) = match bytes.get(at)? {
        // `<password>...</password>`
        b'>' if name.front > 0 && bytes[name.front - 1] == b'<' => (at + 1, Beside::Assigned),
        sign @ (b'=' | b':') => {
            let is_near = *sign == b'=' && !has_blank;
            let is_assigned = is_closed || is_near || is_in_front(text, name.front);
            let after = pass_over(bytes, at + 1, usize::MAX, |c| matches!(c, b'=' | b'>' | b'~' | b':'));
            (after, if is_assigned { Beside::Assigned } else { Beside::Prose })
        }
        _ if name.is_flag && has_blank => (at, Beside::Assigned),
        _ if has_blank => {
            let is_word = |word: &&str| {
                text[at..].strip_prefix(word).is_some_and(|rest| rest.starts_with([' ', ':', '\n']))
            };
            let verbs =
                ["is now set to", "is set to", "is now", "is", "was", "will be", "set to", "to", "of"];
            match verbs.into_iter().find(is_word) {
                Some(verb) => {
                    let after = at + verb.len();
                    (after + usize::from(bytes.get(after) == Some(&b':')), Beside::Prose)
                }
                None => (at, Beside::Bare),
            }
        }
        _ => return None,
    };
    // A query such as a regular expression has its sign escaped.
    Some((pass_over(bytes, at, 32, is_blank), how))
}

/// Whether nothing but a lead is before a name in its line: an indent, `export`, a quote or a bracket.
fn is_in_front(text: &str, front: usize) -> bool {
    let line = text.as_bytes()[..front].iter().rev().take(200).take_while(|c| **c != b'\n').count();
    let before = text.get(next_boundary(text, front - line)..front).unwrap_or_default();
    let lead = before
        .trim_start()
        .trim_start_matches("- ")
        .trim_start_matches("export ")
        .trim_start_matches("set ")
        .trim_start_matches("ENV ");
    lead.is_empty()
        || lead.ends_with(['"', '\'', '{', ',', '(', '?', '&', ';', '[', '|', '.', '$', '`'])
        || lead.ends_with("-H ")
}

/// Passes over at most two words such as `Bearer`. Returns whether there is one.
fn after_scheme(text: &str, mut at: usize) -> (usize, bool) {
    let schemes =
        ["Bearer ", "bearer ", "Basic ", "basic ", "Token ", "token ", "ApiKey ", "Digest ", "SSWS ", "Key "];
    let mut has_scheme = false;
    for _ in 0..2 {
        let quote = usize::from(matches!(text.as_bytes().get(at), Some(b'"' | b'\'')));
        if let Some(scheme) = schemes.into_iter().find(|one| text[at + quote..].starts_with(one)) {
            at += quote + scheme.len();
            has_scheme = true;
        }
    }
    (at, has_scheme)
}

/// The value that begins here, and whether it is in quotes.
fn value_at(text: &str, at: usize) -> Option<(usize, usize, bool)> {
    let bytes = text.as_bytes();
    let (begin, quote, is_escaped) = match bytes.get(at)? {
        b'\\' if matches!(bytes.get(at + 1), Some(b'"' | b'\'')) => (at + 2, bytes[at + 1], true),
        quote @ (b'"' | b'\'' | b'`') => (at + 1, *quote, false),
        _ => return Some((at, bare_end(bytes, at), false)),
    };
    let limit = bytes.len().min(begin - 1 + VALUE_MAX);
    let mut close = begin;
    while close < limit && bytes[close] != quote && bytes[close] != b'\n' {
        close += 1 + usize::from(bytes[close] == b'\\' && !is_escaped);
    }
    let close = close.min(limit);
    // The backslash belongs to the quote that closes.
    let is_of_quote = is_escaped && close > begin && bytes[close - 1] == b'\\';
    Some((begin, close - usize::from(is_of_quote), true))
}

/// The end of a value without quotes.
fn bare_end(bytes: &[u8], at: usize) -> usize {
    let is_end = |c: &u8| {
        c.is_ascii_whitespace()
            || matches!(
                c,
                b',' | b';' | b'&' | b'"' | b'\'' | b'<' | b'>' | b')' | b'}' | b'`' | b'|' | b'\\'
            )
    };
    let limit = bytes.len().min(at + VALUE_MAX);
    let mut close = bytes[at..limit].iter().position(is_end).map_or(limit, |close| at + close);
    while close > at && matches!(bytes[close - 1], b'.' | b':' | b'!' | b'?' | b']') {
        close -= 1;
    }
    close
}

/// The value behind a name, if it is a secret.
fn judged(text: &str, name: &str, place: Place, rules: &Rules) -> Option<(usize, usize)> {
    let strength = rules.strength(name)?;
    let value = &text[place.start..place.end];
    if place.how == Beside::Bare {
        let is_chosen = value.len() >= 10 && names::looks_secret(value) && names::is_mixed(value);
        let is_secret = is_chosen && !is_public_digest(value) && !names::is_placeholder(value);
        return is_secret.then_some((place.start, place.end));
    }
    let taken =
        is_secret_beside(value, strength, place.how == Beside::Assigned, place.is_quoted || place.has_scheme);
    taken.then_some((place.start, place.end))
}

/// Whether a value beside a name of this strength is a secret. `is_assigned`: not in the middle of a sentence.
pub(super) fn is_secret_beside(value: &str, strength: Strength, is_assigned: bool, is_quoted: bool) -> bool {
    if names::is_placeholder(value) {
        return false;
    }
    let has_blank = value.contains(char::is_whitespace);
    let has_odd = names::is_mixed(value)
        || value.bytes().any(|c| {
            c.is_ascii_digit()
                || (c.is_ascii_punctuation() && !matches!(c, b'-' | b'_' | b'.' | b'\'' | b'/'))
        });
    match strength {
        Strength::Strong if is_assigned => {
            value.len() >= 4 && (!has_blank || (is_quoted && !is_sentence(value)))
        }
        Strength::Strong => value.len() >= 8 && !has_blank && (has_odd || is_quoted),
        Strength::Weak => names::looks_secret(value) && !is_public_digest(value),
    }
}

/// Whether a text in quotes is said, and no passphrase: `must not be empty`.
fn is_sentence(value: &str) -> bool {
    let words = value.split_whitespace().count();
    words > 6
        || value.ends_with(['.', '!', '?', ':'])
        || ["must", "should", "cannot", "invalid", "required", "missing", "not"]
            .iter()
            .any(|word| value.split_whitespace().any(|one| one.eq_ignore_ascii_case(word)))
}

/// Ids and digests that name something and open nothing.
fn is_public_digest(value: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|c| c.is_ascii_hexdigit());
    let groups: Vec<&str> = value.split('-').collect();
    let is_uuid = groups.len() == 5
        && groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| is_hex(group));
    is_uuid
        || value.starts_with("sha256:")
        || value.starts_with("sha512:")
        || value.starts_with("sha1:")
        || value.starts_with("md5:")
}

/// Runs of characters of a token: web tokens, and what decodes to a text with a secret in it.
fn runs(text: &str, rules: &Rules, depth: usize, found: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_token(&bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_token(&bytes[at]) {
            at += 1;
        }
        if at - start < 20 {
            continue;
        }
        web_tokens(text, start, at, found);
        if depth < DEPTH_MAX && at - start <= DECODED_MAX {
            let mut part = start;
            // `name=` and what follows are one run.
            for piece in text[start..at].split('.') {
                for (offset, value) in pieces(piece) {
                    if let Some(kind) = decoded(value, rules, depth) {
                        let begin = part + offset;
                        found.push(SecretSpan { start: begin, end: begin + value.len(), kind });
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
                found.push(SecretSpan { start: at, end: close, kind: "jwt".into() });
                from = close;
                continue;
            }
        }
        // The rest of this part was looked at.
        from = head.max(at + 2);
    }
}

/// The kind of the secret in what a run decodes to.
fn decoded(run: &str, rules: &Rules, depth: usize) -> Option<Arc<str>> {
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
            if !is_text(&head) {
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
    if !is_text(&bytes) {
        return None;
    }
    let text = String::from_utf8(bytes).ok()?;
    let found = find_at(&text, rules, depth + 1);
    if let Some(first) = found.first() {
        return Some(Arc::clone(&first.kind));
    }
    // `user:password`, as basic authentication writes it.
    let (user, password) = text.split_once(':')?;
    let is_pair = !user.is_empty()
        && user.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.' | b'@'));
    (is_pair && password.len() >= 8 && names::looks_secret(password) && !password.contains(':'))
        .then(|| "named".into())
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|c| matches!(c, b'\n' | b'\r' | b'\t' | 0x20..=0x7e))
}

/// A text that a text decodes to, and where each of its bytes comes from.
struct View {
    text: String,
    /// For each byte, the first byte of the source that it comes from; one more for the end.
    from: Vec<usize>,
    /// The places of the source at which something was left out.
    cuts: Vec<usize>,
}

impl View {
    fn place(&self, found: SecretSpan) -> SecretSpan {
        // The end is behind what the last byte comes from, and not behind what was left out after it.
        let last = found.end.saturating_sub(1).max(found.start);
        let end = self.from[last] + self.length(last);
        SecretSpan { start: self.from[found.start], end, kind: found.kind }
    }

    /// How many bytes of the source the unit of this byte takes.
    fn length(&self, at: usize) -> usize {
        let own = self.from[at];
        let next = self.from[at + 1..].iter().find(|next| **next != own).copied().unwrap_or(own + 1);
        let cut = self.cuts.binary_search_by(|cut| {
            if *cut <= own { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
        });
        let cut = cut.unwrap_or_else(|at| at);
        self.cuts.get(cut).copied().unwrap_or(usize::MAX).min(next) - own
    }
}

/// The texts that a text is in another writing: without escapes of a terminal, of JSON, of an address, and with lines joined.
fn views(text: &str, present: &Present) -> Vec<View> {
    let bytes = text.as_bytes();
    let has_any =
        |parts: &[&str]| parts.iter().any(|one| memchr::memmem::find(bytes, one.as_bytes()).is_some());
    let has_zero_width =
        || present.has_others && has_any(&["\u{200b}", "\u{feff}", "\u{200d}", "\u{2060}", "\u{ad}"]);
    let has_escapes = memchr::memchr(0x1b, bytes).is_some() || has_zero_width();
    let has_backslash = memchr::memchr(b'\\', bytes).is_some();
    let has_codes =
        present.has(b'%') && (memchr::memchr_iter(b'%', bytes).take(2).count() == 2 || has_any(&["%3"]));
    let has_entities = present.has(b'&') && has_any(&["&#", "&amp;", "&quot;"]);
    let writings: [(bool, Step); 4] = [
        (has_escapes, of_terminal),
        (has_backslash, of_json),
        (has_codes, of_address),
        (has_entities, of_html),
    ];
    writings
        .into_iter()
        .filter(|(is_there, _)| *is_there)
        .filter_map(|(_, step)| rewritten(text, step))
        .collect()
}

/// Reads what a text begins with in another writing; `None` if it is nothing of that.
type Step = fn(&str) -> Option<Rewritten>;

/// Leaves out escapes of a terminal, and characters without a width.
fn of_terminal(rest: &str) -> Option<Rewritten> {
    match rest.chars().next()? {
        first @ ('\u{200b}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{ad}') => {
            Some((first.len_utf8(), None))
        }
        '\u{1b}' => {
            let body = rest.as_bytes();
            let is_last = |c: &u8| (0x40..=0x7e).contains(c);
            let end = match body.get(1) {
                Some(b'[') => body.iter().take(40).skip(2).position(is_last).map_or(1, |end| end + 3),
                _ => body.len().min(2),
            };
            Some((if rest.is_char_boundary(end) { end } else { 1 }, None))
        }
        _ => None,
    }
}

/// Reads an escape of JSON.
fn of_json(rest: &str) -> Option<Rewritten> {
    let body = rest.as_bytes();
    if body[0] != b'\\' {
        return None;
    }
    match body.get(1)? {
        c @ (b'"' | b'\'' | b'\\' | b'/') => Some((2, Some(char::from(*c)))),
        b'n' => Some((2, Some('\n'))),
        b't' => Some((2, Some('\t'))),
        b'r' => Some((2, Some('\r'))),
        b'u' => coded(rest, 2, 6),
        b'x' => coded(rest, 2, 4),
        _ => None,
    }
}

/// Reads a code of an address: `%20`.
fn of_address(rest: &str) -> Option<Rewritten> {
    if rest.starts_with('%') { coded(rest, 1, 3) } else { None }
}

/// Reads the code of a character of ASCII, in digits of base 16.
fn coded(rest: &str, from: usize, to: usize) -> Option<Rewritten> {
    let code = u32::from_str_radix(rest.get(from..to)?, 16).ok()?;
    Some((to, Some(char::from_u32(code).filter(char::is_ascii)?)))
}

/// Reads an entity of HTML.
fn of_html(rest: &str) -> Option<Rewritten> {
    let known =
        [("&amp;", '&'), ("&quot;", '"'), ("&#39;", '\''), ("&#34;", '"'), ("&lt;", '<'), ("&gt;", '>')];
    let found = known.into_iter().find(|(entity, _)| rest.starts_with(entity));
    found.map(|(entity, c)| (entity.len(), Some(c)))
}

/// How many bytes are read, and the character that they are; none where they are left out.
type Rewritten = (usize, Option<char>);

/// Makes a view: `step` says how many bytes come next for which character.
fn rewritten(text: &str, step: Step) -> Option<View> {
    let mut view = View {
        text: String::with_capacity(text.len()),
        from: Vec::with_capacity(text.len() + 1),
        cuts: Vec::new(),
    };
    let mut changed = false;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let (taken, made) = match step(&text[at..]) {
            Some((taken, made)) => {
                changed = true;
                if made.is_none() {
                    view.cuts.push(at);
                }
                (taken, made)
            }
            None => (c.len_utf8(), Some(c)),
        };
        if let Some(made) = made {
            view.text.push(made);
            view.from.extend(std::iter::repeat_n(at, made.len_utf8()));
        }
        at += taken;
    }
    view.from.push(text.len());
    changed.then_some(view)
}

/// How long a run before a line's end is where lines of a token are joined, at least.
pub(super) const WRAPPED_MIN: usize = 16;

fn is_token(c: &u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'+' | b'/' | b'=' | b'.')
}

/// Whether a token may go on over a line's end: characters of a token on both sides, and a long run before it.
pub(super) fn is_wrapped(before: &[u8], after: &[u8]) -> bool {
    let before = match before.last() {
        Some(b'\r' | b'\\') => &before[..before.len() - 1],
        _ => before,
    };
    let run = before.iter().rev().take(WRAPPED_MIN).take_while(|c| is_token(c)).count();
    let next = after.iter().find(|c| !matches!(c, b' ' | b'\t'));
    run == WRAPPED_MIN && next.is_some_and(is_token)
}

/// Finds tokens with a shape that are wrapped over the ends of lines.
fn wrapped(text: &str, found: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let (mut upto, mut added) = (0, Vec::new());
    for first in memchr::memchr_iter(b'\n', bytes) {
        if first < upto || !goes_on(bytes, first) {
            continue;
        }
        let least = width(bytes, first).min(1024);
        if least < LINE_MIN {
            continue;
        }
        let parts = joined_lines(bytes, first, least, &mut upto);
        if parts.len() < 2 {
            continue;
        }
        let whole: String = parts.iter().map(|(begin, end)| &text[*begin..*end]).collect();
        let mut more = Vec::new();
        vendor::find(whole.as_bytes(), &mut more);
        web_tokens(&whole, 0, whole.len(), &mut more);
        let more = more.into_iter().map(|one| placed(&parts, one));
        let crosses = |one: &SecretSpan| memchr::memchr(b'\n', &bytes[one.start..one.end]).is_some();
        added.extend(more.filter(|one| crosses(one) && !is_whole_before(bytes, found, one)));
    }
    found.extend(added);
}

/// Whether a token may go on over the end of this line.
fn goes_on(bytes: &[u8], newline: usize) -> bool {
    is_wrapped(&bytes[..newline], &bytes[newline + 1..bytes.len().min(newline + 80)])
}

/// The width of a line. Lines that a program wraps are long and equally long; with a backslash they go on, whatever their width.
fn width(bytes: &[u8], newline: usize) -> usize {
    match bytes[newline - 1] {
        b'\\' => usize::MAX,
        _ => bytes[..newline].iter().rev().take(1024).take_while(|c| **c != b'\n').count(),
    }
}

/// All lines that go together, with where each of them begins and ends. None begins before `upto`, which is moved on.
fn joined_lines(bytes: &[u8], first: usize, least: usize, upto: &mut usize) -> Vec<(usize, usize)> {
    let end = first - usize::from(first > 0 && matches!(bytes[first - 1], b'\r' | b'\\'));
    let before = bytes[*upto..end].iter().rev().take_while(|c| is_token(c)).count();
    let mut parts = vec![(end - before, end)];
    let mut at = first;
    loop {
        let begin = pass_over(bytes, at + 1, usize::MAX, is_blank);
        let next = pass_over(bytes, begin, usize::MAX, |c| is_token(&c));
        *upto = next;
        let has = |is: fn(&u8) -> bool| bytes[begin..next].iter().any(is);
        // A word is the beginning of another thing.
        let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
        if !is_mixed && !has(u8::is_ascii_digit) {
            return parts;
        }
        parts.push((begin, next));
        at = next + usize::from(matches!(bytes.get(next), Some(b'\r' | b'\\')));
        let is_end = bytes.get(at) != Some(&b'\n') || parts.len() > LINES_MAX;
        if is_end || width(bytes, at) < least || !goes_on(bytes, at) {
            return parts;
        }
    }
}

/// The place in a text of what was found in parts of it that were joined.
fn placed(parts: &[(usize, usize)], found: SecretSpan) -> SecretSpan {
    let (mut length, mut start, mut end) = (0, None, 0);
    for (begin, close) in parts {
        let size = close - begin;
        if start.is_none() && found.start < length + size {
            start = Some(begin + found.start - length);
        }
        if found.end > length {
            end = begin + (found.end - length).min(size);
        }
        length += size;
    }
    SecretSpan { start: start.unwrap_or(end), end, kind: found.kind }
}

/// How many lines a token is wrapped over, at most.
const LINES_MAX: usize = 400;
