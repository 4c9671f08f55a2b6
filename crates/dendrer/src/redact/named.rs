//! Values after a name: variables, members of YAML, TOML and INI, headers, options, queries, sentences.
//!
//! A name is found by its parts ([`HINTS`]); the syntax around it chooses the reader, and the reader finds where the value ends.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::headers;
use super::judge::{self, Setting};
use super::names::{HINTS, Strength};
use super::part::{self, VALUE_MAX, has_marker, next_boundary};
use super::quoted::{Ends, pass_over, value_at};
use super::rules::Rules;
use super::vendor::{SecretSpan, named_span};
use super::{markup, prose, snapshot, table, yaml};

/// The longest line that is looked at as a whole; of a longer one the part around a name.
const LINE_MAX: usize = 2048;

/// How much of a long line is looked at before a name.
const NEAR: usize = 160;

/// How far the syntax around a name is looked at.
const AROUND: usize = 200;

pub(super) static NAMES: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .ascii_case_insensitive(true)
        .build(HINTS)
        .expect("some short texts")
});

/// Whether a text may have a name of a secret.
pub(super) fn is_in(text: &str, rules: &Rules) -> bool {
    NAMES.is_match(text) || rules.names.as_ref().is_some_and(|names| names.is_match(text))
}

/// A name in a text.
#[derive(Debug, Clone, Copy)]
struct Named {
    start: usize,
    end: usize,
    /// The begin of its word, with the signs of an option and without a word before it.
    front: usize,
    is_option: bool,
    strength: Strength,
}

/// How a value follows its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// `=`, and whether blanks are around it.
    Equal(bool),
    /// `:`.
    Colon,
    /// `=>`, `:=`, `<-`.
    Arrow,
    /// A blank after an option.
    Option,
    /// A blank.
    Blank,
}

/// Finds the values after names. Returns whether the text has a name.
/// `is_html`: the text has entities, so tags alone are read as they are.
pub(super) fn find(text: &str, rules: &Rules, is_html: bool, found: &mut Vec<SecretSpan>) -> bool {
    let mut hits: Vec<(usize, usize)> = NAMES.find_iter(text).map(|hit| (hit.start(), hit.end())).collect();
    if let Some(names) = &rules.names {
        hits.extend(names.find_iter(text).map(|hit| (hit.start(), hit.end())));
        hits.sort_unstable();
    }
    if hits.is_empty() {
        return false;
    }
    let has_markers = memchr::memmem::find(text.as_bytes(), b"<redacted").is_some();
    let mut names = Vec::new();
    let mut line = 0..0;
    let mut upto = 0;
    for (start, end) in hits {
        if start < upto || (has_markers && is_in_marker(text, start)) {
            continue;
        }
        let Some(name) = name_around(text, start, end, rules) else { continue };
        upto = name.end;
        if name.start >= line.end || line.is_empty() {
            line = whole_line(text, name.start);
        }
        let near = near(text, &line, name.start);
        names.push(name.start);
        let before = found.len();
        if is_html {
            found.extend(markup::find(text, &(name.start..name.end), rules));
            continue;
        }
        read(text, &near, name, rules, found);
        upto = found[before..].iter().map(|one| one.end).max().unwrap_or(0).max(upto);
    }
    if !names.is_empty() && !is_html {
        table::find(text, &names, rules, found);
    }
    !names.is_empty()
}

/// Whether a place is in a marker, whose kind may be the name of a secret.
fn is_in_marker(text: &str, at: usize) -> bool {
    let near = &text.as_bytes()[at.saturating_sub(80)..at];
    memchr::memrchr2(b'<', b'>', near).is_some_and(|open| near[open..].starts_with(b"<redacted"))
}

/// The line around a place.
fn whole_line(text: &str, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline);
    start..end
}

/// A line, or the part of it near a name if it is long.
fn near(text: &str, line: &Range<usize>, at: usize) -> Range<usize> {
    if line.len() <= LINE_MAX {
        return line.clone();
    }
    let start = next_boundary(text, line.start.max(at.saturating_sub(NEAR)));
    start..next_boundary(text, line.end.min(at + VALUE_MAX))
}

/// Words before a name that are part of it: `API key`, `access token`, `recovery phrase`.
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
    "seed",
    "recovery",
    "backup",
    "verification",
    "security",
    "master",
    "one-time",
    "onetime",
    "2fa",
    "mfa",
    "authentication",
    "login",
    "wallet",
    "account",
    "shared",
    "webhook",
    "service",
    "de",
    "mot",
    "unseal",
    "root",
    "alarm",
    "door",
    "gate",
    "entry",
];

/// The name around a hit; `None` if it is no name of a secret, or nothing follows that a name has.
fn name_around(text: &str, from: usize, to: usize, rules: &Rules) -> Option<Named> {
    let bytes = text.as_bytes();
    let is_name = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.') || c >= 0x80;
    let mut end = to;
    while end < bytes.len() && end < to + 64 && is_name(bytes[end]) {
        // `：` is a sign, and no letter.
        if bytes[end..].starts_with("：".as_bytes()) {
            break;
        }
        end += 1;
    }
    if bytes.get(end).is_some_and(|c| !is_followed(c)) {
        return None;
    }
    // The sign of the sentence is not of the name.
    while end > to && matches!(bytes[end - 1], b'.' | b'-') {
        end -= 1;
    }
    let mut start = from;
    while start > 0 && from - start < 64 && is_name(bytes[start - 1]) {
        start -= 1;
    }
    start = next_boundary(text, start);
    end = next_boundary(text, end);
    // A run of characters that is longer than names are, or drawn by chance.
    let is_cut = start > 0 && is_name(bytes[start - 1]) && from - start >= 60;
    let own = &text[start..end];
    if is_cut || (own.len() >= 20 && judge::is_mixed(own) && own.bytes().any(|c| c.is_ascii_digit())) {
        return None;
    }
    let is_option = text[start..end].starts_with('-') && text[start..end].trim_start_matches('-').len() > 1;
    let front = start;
    while start < end && matches!(bytes[start], b'-' | b'.') {
        start += 1;
    }
    if !is_option {
        start = with_first_words(text, start);
    }
    // The user of an address: what follows is its password, and then its host.
    if text[..start].ends_with("://") {
        return None;
    }
    let own = &text[start..end];
    // `unexpected token: X`, the message of a parser.
    let before = text[..start].trim_end_matches(' ');
    let is_of_parser = ["unexpected", "illegal", "invalid"].iter().any(|word| {
        before.len() >= word.len()
            && before.is_char_boundary(before.len() - word.len())
            && before[before.len() - word.len()..].eq_ignore_ascii_case(word)
    });
    if is_of_parser && own.eq_ignore_ascii_case("token") {
        return None;
    }
    let strength = rules.strength(own)?;
    Some(Named { start, end, front: front.min(start), is_option, strength })
}

/// Whether a byte may follow a name.
fn is_followed(c: &u8) -> bool {
    c.is_ascii_whitespace()
        || (c.is_ascii_punctuation()
            && !matches!(
                c,
                b'#' | b'$' | b'%' | b'&' | b'+' | b'@' | b'^' | b'{' | b'}' | b'~' | b'_' | b'-'
            ))
        || *c == 0xef
}

/// The begin of a name with the words before it that are part of it.
fn with_first_words(text: &str, mut start: usize) -> usize {
    let bytes = text.as_bytes();
    for _ in 0..3 {
        if start == 0 || bytes[start - 1] != b' ' {
            break;
        }
        let is_part = |c: &u8| c.is_ascii_alphanumeric() || *c == b'-';
        let word = bytes[..start - 1].iter().rev().take(20).take_while(|c| is_part(c)).count();
        let own = &text[start - 1 - word..start - 1];
        if word == 0 || !FIRST_WORDS.iter().any(|first| own.eq_ignore_ascii_case(first)) {
            break;
        }
        start -= 1 + word;
    }
    start
}

/// Reads the value of a name, in the syntax around it.
fn read(text: &str, line: &Range<usize>, name: Named, rules: &Rules, found: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let place = name.start..name.end;
    let from = next_boundary(text, line.start.max(name.start.saturating_sub(AROUND)));
    let own = &text[from..next_boundary(text, line.end.min(name.end + AROUND))];
    let has_quote = memchr::memchr3(b'"', b'\'', b'`', own.as_bytes()).is_some();
    let before = &text[from.min(name.front)..name.front];
    if memchr::memchr2(b'<', b'>', before.as_bytes()).is_some()
        && let Some(one) = markup::find(text, &place, rules)
    {
        found.push(one);
        return;
    }
    if has_quote && let Some(one) = listed(text, line, name).or_else(|| labelled(text, line, name)) {
        found.push(one);
        return;
    }
    if has_quote && let Some(one) = snapshot::find(text, line, &place, rules) {
        found.push(one);
        return;
    }
    let lead = before.trim_end_matches(['"', '\'', '`', ' ', '\\']);
    if lead.ends_with([':', '='])
        && let Some(one) = yaml::pair(text, line, &place, name.strength)
    {
        found.push(one);
        return;
    }
    let sign = sign_after(text, line, name);
    // A verb: `one may pass X`.
    let is_verb = text[name.start..name.end].eq_ignore_ascii_case("pass") && !has_user(before);
    if is_verb && sign.is_none_or(|(_, sign)| sign == Sign::Blank) && !is_login_file(text, line, name) {
        return;
    }
    match sign {
        // The next option is no value.
        Some((at, Sign::Blank | Sign::Option)) if text[at..].starts_with("--") => {}
        Some((at, sign)) if sign != Sign::Blank => assigned(text, line, name, at, sign, found),
        Some((at, _)) => blank(text, line, name, at, found),
        None if bytes.get(name.end).is_some_and(|c| matches!(c, b'=' | b'!')) => {}
        None => found.extend(prose::before(text, line, name.front, name.strength)),
    }
}

/// The value of a numbered list after its name: `1) "requirepass"` and `2) "X"` on the next line.
fn listed(text: &str, line: &Range<usize>, name: Named) -> Option<SecretSpan> {
    let before = text[line.start..name.front.max(line.start)].trim().strip_suffix('"')?.trim();
    let is_number = before.strip_suffix(')').is_some_and(|number| number.bytes().all(|c| c.is_ascii_digit()));
    if !is_number || !text[name.end..line.end].starts_with('"') {
        return None;
    }
    let from = part::after_line(text, line.end);
    let next = part::line_at(text, from.min(text.len()));
    let own = text.get(from..next.end)?;
    let open = own.find(") \"")? + 2;
    let (start, end, _) = value_at(text, from + open, Ends::Line)?;
    let value = &text[start..end];
    (!has_marker(value) && judge::is_secret(value, name.strength, Setting::Data, true))
        .then(|| named_span(start, end))
}

/// The value in the block of a name: `variable "db_password" { default = "X" }`, or of a call: `"--password", default="X"`, or what
/// is sent after it is asked for: `expect "password:" { send "X\r" }`.
fn labelled(text: &str, line: &Range<usize>, name: Named) -> Option<SecretSpan> {
    let limit = next_boundary(text, line.end.min(name.end + AROUND));
    let after = &text[name.end..limit];
    let is_block = after.trim_start_matches(['"', '\'']).trim() == "{";
    let signs =
        ["default=", "default =", "send \"", "send '", "sendline(\"", "sendline('", "value=", "envvar="];
    let is_closed = after.starts_with(['"', '\'', ':']);
    let hit = is_closed.then(|| signs.into_iter().find_map(|sign| Some((after.find(sign)?, sign)))).flatten();
    if let Some((at, sign)) = hit {
        let at = name.end + at + sign.trim_end_matches(['"', '\'']).len();
        let at = pass_over(text.as_bytes(), at, 4, is_blank);
        let (start, end, is_quoted) = value_at(text, at, Ends::Line)?;
        let value = text[start..end].trim_end_matches("\\r").trim_end_matches("\\n").trim_end_matches("\\r");
        let is_secret =
            is_quoted && !has_marker(value) && judge::is_secret(value, name.strength, Setting::Data, true);
        return is_secret.then(|| named_span(start, start + value.len()));
    }
    if !is_block {
        return None;
    }
    let mut from = part::after_line(text, line.end);
    for _ in 0..8 {
        let next = from..part::line_at(text, from.min(text.len())).end;
        let own = text.get(next.clone())?.trim();
        if own.starts_with('}') || own.is_empty() {
            return None;
        }
        let sign = own.find('=')?;
        if matches!(own[..sign].trim(), "default" | "value" | "secret_string" | "string_value") {
            let value = own[sign + 1..].trim_start();
            let at = from + text[next].rfind(value)?;
            let (start, end, is_quoted) = value_at(text, at, Ends::Line)?;
            let value = &text[start..end];
            let is_secret = is_quoted
                && !has_marker(value)
                && judge::is_secret(value, name.strength, Setting::Data, true);
            return is_secret.then(|| named_span(start, end));
        }
        from = part::after_line(text, next.end);
    }
    None
}

/// Whether a user is named before a secret: `user bob pass X`.
fn has_user(before: &str) -> bool {
    let before = before.to_ascii_lowercase();
    before.contains("user") || before.contains("login")
}

fn is_blank(c: u8) -> bool {
    matches!(c, b' ' | b'\t')
}

/// Passes over a group in brackets after a name: `(initial)`, `[None]`, `[32]`.
fn after_group(text: &str, line: &Range<usize>, at: usize) -> usize {
    let rest = &text[at..line.end.max(at)];
    let close = match rest.bytes().next() {
        Some(b'(') if text[..at].ends_with(' ') => ')',
        Some(b'[') => ']',
        _ => return at,
    };
    match rest.find(close).filter(|end| *end < 40) {
        // Only where a sign follows; else the bracket is one of a call or an index.
        Some(end) if rest[end + 1..].trim_start().starts_with([':', '=']) => at + end + 1,
        _ => at,
    }
}

/// How a value follows a name, and where it may begin; `None` if the name is compared, or nothing follows.
fn sign_after(text: &str, line: &Range<usize>, name: Named) -> Option<(usize, Sign)> {
    let bytes = text.as_bytes();
    let closed = pass_over(bytes, name.end, 4, |c| matches!(c, b'"' | b'\'' | b'`' | b']' | b'\\' | b'*'));
    let at = pass_over(bytes, closed, 64, is_blank);
    let at = pass_over(bytes, after_group(text, line, at), 64, is_blank);
    if at >= line.end {
        return None;
    }
    // `Unseal Key 1: X`
    let digits = pass_over(bytes, at, 2, |c| c.is_ascii_digit());
    let at = if digits > at && bytes.get(digits) == Some(&b':') { digits } else { at };
    // `Token ......... X`
    let dots = pass_over(bytes, at, 80, |c| c == b'.');
    if dots - at >= 3 {
        return Some((pass_over(bytes, dots, 64, is_blank), Sign::Colon));
    }
    let has_blank = at > closed;
    let next = bytes.get(at + 1).copied().unwrap_or(b'\n');
    let (size, sign) = match bytes[at] {
        b'=' if next == b'>' => (2, Sign::Arrow),
        b'=' if matches!(next, b'=' | b'~') => return None,
        b'=' => (1, Sign::Equal(has_blank || is_blank(next))),
        // `${TOKEN:-X}`: the value of a variable that has none.
        b':' if next == b'-' && text[..name.front].ends_with("${") => (2, Sign::Colon),
        b'-' if text[..name.front].ends_with("${") => (1, Sign::Colon),
        b':' if next == b'=' => (2, Sign::Arrow),
        b':' if next == b':' => return None,
        // A part of a name such as an ARN: `arn:aws:secretsmanager:eu:1:secret:prod/db`.
        b':' if name.front > 0 && bytes[name.front - 1] == b':' && !is_blank(next) => return None,
        b':' if next == b'/' && bytes.get(at + 2) == Some(&b'/') => return None,
        b':' => (1, Sign::Colon),
        b'?' if next == b'=' => (2, Sign::Equal(true)),
        b'<' if next == b'-' => (2, Sign::Arrow),
        0xef if text[at..].starts_with('：') => (3, Sign::Colon),
        _ if has_blank && name.is_option && closed == name.end => (0, Sign::Option),
        _ if has_blank && is_setter(text, line, name) => (0, Sign::Option),
        _ if has_blank => (0, Sign::Blank),
        _ => return None,
    };
    let at = pass_over(bytes, at + size, 64, is_blank);
    // `**Password:** X`
    let at = pass_over(bytes, at, 2, |c| c == b'*');
    Some((pass_over(bytes, at, 64, is_blank), sign))
}

/// Whether a word before a name sets it to what follows: `setenv TOKEN X`, `aws configure set secret_key X`.
fn is_setter(text: &str, line: &Range<usize>, name: Named) -> bool {
    let before = text[line.start..name.front.max(line.start)].trim_end();
    [
        "setenv",
        "SetEnv",
        "configure set",
        "config set",
        "CONFIG SET",
        "secrets set",
        "secret set",
        "env set",
        "fastcgi_param",
        "set -gx",
        "set -x",
        "set -Ux",
        "requirepass",
        "proxy_set_header",
    ]
    .into_iter()
    .any(|word| before.as_bytes().last() == word.as_bytes().last() && before.ends_with(word))
}

/// Whether nothing but a lead is before a name in its line: an indent, `export`, a quote or a bracket.
fn is_in_front(text: &str, line: &Range<usize>, front: usize) -> bool {
    let mut lead = text.get(line.start..front).unwrap_or_default().trim_start();
    while let Some(rest) = [
        "- ",
        "export ",
        "set ",
        "ENV ",
        "ARG ",
        "$ ",
        "> ",
        "+ ",
        "# ",
        "* ",
        "| ",
        "-e ",
        "--env ",
        "setx ",
        "declare -x ",
    ]
    .into_iter()
    .find_map(|one| lead.strip_prefix(one))
    {
        lead = rest.trim_start();
    }
    lead.is_empty()
        || lead.ends_with(['"', '\'', '{', ',', '(', '?', '&', ';', '[', '|', '.', '$', '`'])
        || lead.ends_with("-H ")
        || lead.ends_with("-e ")
        || lead.ends_with("-D")
}

/// Reads a value after `=`, `:` or an option.
fn assigned(
    text: &str,
    line: &Range<usize>,
    name: Named,
    at: usize,
    sign: Sign,
    found: &mut Vec<SecretSpan>,
) {
    let label = &text[name.start..name.end];
    if label.to_ascii_lowercase().contains("cookie") && text[at..line.end.max(at)].contains('=') {
        let quote = usize::from(text[at..].starts_with(['"', '\'']));
        headers::cookies(text, at + quote, found);
        return;
    }
    if at >= line.end {
        // The value of a member of YAML may be below its name.
        if sign == Sign::Arrow
            && let Some(one) = on_next_line(text, line, name)
        {
            found.push(one);
        }
        if sign == Sign::Colon {
            found.extend(yaml::below(text, line, name.front, at, name.strength));
        }
        return;
    }
    if matches!(sign, Sign::Colon) && text[at..].starts_with(['|', '>']) {
        found.extend(yaml::below(text, line, name.front, at, name.strength));
        return;
    }
    let at = after_type(text, line, at);
    let at = after_call(text, line, at);
    if text[at..line.end.max(at)].starts_with('[') {
        items(text, line, name, at, found);
        return;
    }
    let quote = usize::from(text[at..].starts_with(['"', '\'']));
    let scheme =
        headers::scheme(&text[at + quote..next_boundary(text, line.end.min(at + 60)).max(at + quote)]);
    if scheme > 0 {
        let (start, end, _) = match value_at(text, at + quote + scheme, Ends::Line) {
            Some(value) => value,
            None => return,
        };
        let value = &text[start..end.min(line.end).max(start)];
        let is_secret = judge::is_secret(value, name.strength, Setting::Data, true)
            || (value.len() >= 6 && judge::is_after_scheme(value));
        if is_secret && !has_marker(value) {
            found.push(named_span(start, start + value.len()));
        }
        return;
    }
    if label.to_ascii_lowercase().contains("cred")
        && let Some(one) = prose::of_pair(text, line, at)
    {
        found.push(one);
        return;
    }
    found.extend(value_of(text, line, name, at, sign));
    found.extend(changed_value(text, line, name, at));
}

/// The items of a list in brackets: `passwords: [X, Y]`.
fn items(text: &str, line: &Range<usize>, name: Named, at: usize, found: &mut Vec<SecretSpan>) {
    let inside = &text[at + 1..line.end];
    let inside = &inside[..inside.find(']').unwrap_or(inside.len())];
    let mut from = at + 1;
    for item in inside.split(',') {
        let value = item.trim_matches([' ', '"', '\'']);
        let start = from + item.find(value).unwrap_or(0);
        let is_quoted = item.trim_start().starts_with(['"', '\'']);
        if judge::is_secret(value, name.strength, Setting::Data, is_quoted) && !has_marker(value) {
            found.push(named_span(start, start + value.len()));
        }
        from += item.len() + 1;
    }
}

/// The new value of a plan that shows a change: `"old" -> "new"`.
fn changed_value(text: &str, line: &Range<usize>, name: Named, at: usize) -> Option<SecretSpan> {
    let (_, end, true) = value_at(text, at, Ends::Line)? else { return None };
    let after = text[(end + 1).min(line.end)..line.end].trim_start();
    let new = after.strip_prefix("->").or_else(|| after.strip_prefix("=>"))?.trim_start();
    let from = line.end - new.len();
    new.starts_with(['"', '\'']).then(|| value_of(text, line, name, from, Sign::Equal(true)))?
}

/// The value on the line after `=>`: `string(12) "X"`, as PHP dumps it.
fn on_next_line(text: &str, line: &Range<usize>, name: Named) -> Option<SecretSpan> {
    let from = part::after_line(text, line.end);
    let next = from..part::line_at(text, from.min(text.len())).end;
    let own = text.get(next.clone())?;
    let quote = own.find('"').filter(|quote| *quote < 40)?;
    let (start, end, _) = value_at(text, from + quote, Ends::Line)?;
    judge::is_secret(&text[start..end], name.strength, Setting::Data, true).then(|| named_span(start, end))
}

/// Passes over a type between a name and its value: `password: str = "X"`.
fn after_type(text: &str, line: &Range<usize>, at: usize) -> usize {
    let rest = &text[at..next_boundary(text, line.end.min(at + 60)).max(at)];
    let is_type = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '_' | '[' | ']' | '.' | '<' | '>' | '|' | '&' | ' ' | '?' | '\'' | ':')
    };
    let Some(sign) = rest.find(" = ").filter(|sign| *sign > 0 && rest[..*sign].chars().all(is_type)) else {
        return at;
    };
    let is_begin = rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '&');
    let value = rest[sign + 3..].trim_start();
    if is_begin && value.starts_with(['"', '\'']) { at + rest.len() - value.len() } else { at }
}

/// Calls whose argument is the value: `SecretStr("X")`, `b64decode("X")`; and tags of YAML.
const WRAPPERS: &[&str] = &[
    "secretstr",
    "secret",
    "securestring",
    "from",
    "string",
    "new",
    "bytes",
    "b64decode",
    "decode",
    "frombase64string",
    "atob",
    "buffer",
    "quote",
    "sensitive",
    "nonsensitive",
    "secretstring",
    "password",
    "pydanticsecret",
    "str",
    "tosecurestring",
    "chararray",
    "toarray",
    "getdecoder",
    "some",
    "to_string",
    "into",
    "frombase64",
    "base64decode",
    "secretbox",
    "strdup",
    "wrap",
    "protect",
];

/// Passes over calls around a value.
fn after_call(text: &str, line: &Range<usize>, at: usize) -> usize {
    let rest = &text[at..next_boundary(text, line.end.min(at + 100)).max(at)];
    if let Some(tag) = rest.strip_prefix("!!") {
        let word = tag.find(' ').unwrap_or(0);
        return if word > 0 { at + 2 + word + 1 } else { at };
    }
    let Some(quote) = rest.find(['"', '\'']) else { return at };
    let head = &rest[..quote];
    let is_part = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '_' | '.' | ':' | '(' | ')' | ' ' | '<' | '>' | '[' | ']' | '&' | '!')
    };
    if !head.ends_with('(') || !head.chars().all(is_part) {
        return at;
    }
    let callee = head[..head.len() - 1]
        .rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .next()
        .unwrap_or_default();
    let is_count = !callee.is_empty() && callee.bytes().all(|c| c.is_ascii_digit());
    let is_wrapper = WRAPPERS.contains(&&*callee.to_ascii_lowercase());
    if is_wrapper && !is_count { at + quote } else { at }
}

/// Reads the value itself, and judges it.
fn value_of(text: &str, line: &Range<usize>, name: Named, at: usize, sign: Sign) -> Option<SecretSpan> {
    let bytes = text.as_bytes();
    let before = name.front.checked_sub(1).map_or(b'\n', |at| bytes[at]);
    let is_query = matches!(sign, Sign::Equal(false)) && matches!(before, b'?' | b'&');
    let is_front = is_in_front(text, line, name.front);
    let is_closed = bytes.get(name.end).is_some_and(|c| matches!(c, b'"' | b'\'' | b'`' | b']'));
    let lead = text[line.start..name.front.max(line.start)].trim_end();
    let is_argument = lead.ends_with(['(', ',']) && !is_closed;
    let ends = if is_query { Ends::Query } else { ends_of(text, line, name, at, sign, is_front) };
    let (start, end, is_quoted) = value_at(text, at, ends)?;
    let end = if is_quoted { end } else { end.min(line.end.max(start)) };
    let value = text.get(start..end)?;
    let setting = setting_of(sign, is_quoted, is_argument, is_closed || is_front);
    let is_reference = !is_quoted
        && value.starts_with(['&', '*'])
        && value[1..].starts_with(char::is_alphabetic)
        && !value.bytes().any(|c| c.is_ascii_digit());
    if is_reference || has_marker(value) || (is_test_result(text, line, name) && sign == Sign::Colon) {
        return None;
    }
    // A word without quotes is a value where it is all there is; else a part of a sentence or of a program.
    let rest = text[end..line.end.max(end)].trim_start();
    let is_all = rest.is_empty()
        || rest.starts_with(['#', '}', ']', '&', '"', '\'', '<'])
        || (rest.starts_with([',', ';']) && sign != Sign::Colon);
    let is_command = sign == Sign::Option
        && (rest.starts_with(['-', '/', '"', '\\', '|', '>', '&']) || rest.contains(" -"));
    let is_last = is_quoted
        || is_query
        || is_all
        || is_command
        || (sign == Sign::Equal(false) && !rest.starts_with(['(', '[', '.']));
    // `name: Type,`, `name: Type = value;`
    let is_typed = sign == Sign::Colon
        && (rest.starts_with([';', '=', '{']) || rest == "," || (is_front && rest.starts_with([',', '?'])));
    let setting = match (is_last, setting) {
        (false, Setting::Data | Setting::Prose) if is_typed && !is_quoted => Setting::Code,
        (false, Setting::Data) => Setting::Prose,
        (_, setting) => setting,
    };
    let strength = if ends == Ends::Whole { Strength::Phrase } else { name.strength };
    judge::is_secret(value, strength, setting, is_quoted).then(|| {
        let mut span = named_span(start, end);
        // A number in TOML and in JSON becomes a text; a variable of a shell has no quotes.
        let is_number = !is_quoted && value.bytes().all(|c| c.is_ascii_digit());
        let is_member = is_closed || sign == Sign::Equal(true);
        span.quotes = u8::from(is_number && is_member);
        span
    })
}

/// The end of a value after this sign: of several words it is that of the line.
fn ends_of(text: &str, line: &Range<usize>, name: Named, at: usize, sign: Sign, is_front: bool) -> Ends {
    let rest = &text[at..line.end.max(at)];
    let is_plain = matches!(name.strength, Strength::Strong | Strength::Password) && is_front;
    let is_whole = match (name.strength, sign) {
        (Strength::Phrase, Sign::Colon) => true,
        (Strength::Phrase, Sign::Equal(_)) => is_spoken(rest),
        (_, Sign::Equal(true)) if is_plain && is_constant(&text[name.start..name.end]) => {
            is_joined_phrase(rest.trim()) || is_phrase_line(rest)
        }
        (_, Sign::Equal(_) | Sign::Colon) => is_plain && is_phrase_line(rest),
        _ => false,
    };
    if is_whole { Ends::Whole } else { Ends::Line }
}

/// The setting of a value after this sign.
fn setting_of(sign: Sign, is_quoted: bool, is_argument: bool, is_member: bool) -> Setting {
    match sign {
        Sign::Equal(_) if is_quoted => Setting::Data,
        Sign::Equal(false) if is_argument => Setting::Code,
        Sign::Equal(false) | Sign::Option => Setting::Data,
        Sign::Equal(true) | Sign::Arrow if !is_quoted => Setting::Code,
        Sign::Equal(true) | Sign::Arrow => Setting::Data,
        Sign::Colon if is_member => Setting::Data,
        Sign::Colon | Sign::Blank => Setting::Prose,
    }
}

/// Whether a text without quotes is several words: `correct horse battery staple`.
fn is_spoken(rest: &str) -> bool {
    let rest = rest.trim();
    rest.split(' ').count() >= 3
        && rest.split(' ').all(|word| !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphabetic()))
}

/// Whether a name is in capitals, as a variable of an environment is.
fn is_constant(name: &str) -> bool {
    name.bytes().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_')
}

/// Whether a value is five words and more with one sign between them: a passphrase.
fn is_joined_phrase(value: &str) -> bool {
    ['_', '-', '.'].into_iter().any(|sign| {
        let words = value.split(sign);
        words.clone().count() >= 5
            && words
                .into_iter()
                .all(|word| (3..=9).contains(&word.len()) && word.bytes().all(|c| c.is_ascii_lowercase()))
    })
}

/// Whether a line is small words alone that no sentence has: a passphrase without quotes.
fn is_phrase_line(rest: &str) -> bool {
    let rest = rest.trim();
    let words = rest.split(' ').count();
    (4..=12).contains(&words)
        && rest.split(' ').all(|word| word.len() >= 3 && word.bytes().all(|c| c.is_ascii_lowercase()))
}

/// Whether a name is the result of a test: `--- PASS: TestLogin`.
fn is_test_result(text: &str, line: &Range<usize>, name: Named) -> bool {
    let own = &text[name.start..name.end];
    let before = text[line.start..name.front.max(line.start)].trim();
    matches!(own, "PASS" | "Pass") && (before.is_empty() || before.ends_with(['-', '=', '>', ']', '✓']))
}

/// Reads a value after a blank: a sentence, a file of logins, a protocol, a type before the value.
fn blank(text: &str, line: &Range<usize>, name: Named, at: usize, found: &mut Vec<SecretSpan>) {
    if is_login_file(text, line, name) {
        let Some((start, end, is_quoted)) = value_at(text, at, Ends::Token) else { return };
        let value = &text[start..end];
        if !has_marker(value)
            && judge::is_secret(value, name.strength.max(Strength::Password), Setting::Data, is_quoted)
        {
            found.push(named_span(start, end));
        }
        return;
    }
    // `var password string = "X"`, `SET PASSWORD TO 'X'`
    let typed = after_type(text, line, at);
    if typed != at
        && let Some(one) = value_of(text, line, name, typed, Sign::Equal(true))
    {
        found.push(one);
        return;
    }
    if let Some(one) = prose::after(text, line, name.end, name.strength) {
        found.push(one);
        return;
    }
    if let Some(one) = prose::before(text, line, name.front, name.strength) {
        found.push(one);
        return;
    }
    let at = after_word(text, line, at);
    if is_directive(text, line, name, at) {
        let value = text[at..line.end].trim();
        if !has_marker(value) && judge::is_secret(value, name.strength, Setting::Cell, false) {
            found.push(named_span(at, at + value.len()));
        }
        return;
    }
    let Some((start, end, is_quoted)) = value_at(text, at, Ends::Line) else { return };
    let value = &text[start..end.min(line.end).max(start)];
    let setting = if is_given(text, line, name) { Setting::Prose } else { Setting::Bare };
    if !has_marker(value) && judge::is_secret(value, name.strength, setting, is_quoted) {
        found.push(named_span(start, start + value.len()));
    }
}

/// Whether a line is a name and a value, as files of settings have them: `masterauth X`.
fn is_directive(text: &str, line: &Range<usize>, name: Named, at: usize) -> bool {
    let before = text[line.start..name.front.max(line.start)].trim();
    let value = text[at..line.end.max(at)].trim();
    before.is_empty()
        && name.end < at
        && !value.contains([' ', '\t', '(', '"', '\''])
        && value.len() >= 6
        && at < line.end
}

/// Passes over `to`, `by`, `of` before a value: `set the password to X`, `IDENTIFIED BY 'X'`.
fn after_word(text: &str, line: &Range<usize>, at: usize) -> usize {
    let rest = &text[at..line.end.max(at)];
    let word = ["to ", "TO ", "of ", "by ", "BY "].into_iter().find(|word| rest.starts_with(word));
    word.map_or(at, |word| at + word.len())
}

/// Whether a sentence gives a value right after its name: `with password X`.
fn is_given(text: &str, line: &Range<usize>, name: Named) -> bool {
    let before = text[line.start..name.start.max(line.start)].trim_end();
    let word = before.rsplit([' ', '\t']).next().unwrap_or_default().to_lowercase();
    let after = &text[name.end..line.end.max(name.end)];
    matches!(
        &*word,
        "with"
            | "using"
            | "and"
            | "by"
            | "mit"
            | "con"
            | "avec"
            | "und"
            | "y"
            | "et"
            | "the"
            | "your"
            | "set"
            | "use"
            | "my"
            | "new"
            | "enter"
            | "typed"
            | "entered"
            | "password"
            | "has"
            | "try"
    ) || after.trim_start().starts_with("to ")
}

/// Whether a name is a word of `.netrc`, or of a protocol: `machine h login u password X`, `PASS X`.
fn is_login_file(text: &str, line: &Range<usize>, name: Named) -> bool {
    let own = &text[name.start..name.end];
    let from = next_boundary(text, line.start.saturating_sub(200));
    let before = &text[from..name.start];
    let is_netrc = own == "password" && (before.contains("login ") || before.contains("machine "));
    let is_front = text[line.start..name.start.max(line.start)]
        .trim()
        .trim_matches(['>', '<', 'C', ':', '-', ' ', '*'])
        .is_empty();
    let is_protocol = matches!(own, "PASS" | "AUTH" | "auth")
        && is_front
        && (own != "PASS" || before.contains("USER ") || line.start == 0);
    is_netrc || (is_protocol && own != "auth")
}
