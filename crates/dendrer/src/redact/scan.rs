//! Finds secrets in a text: by shape, by syntax, in an address, by value, and in what a part of the text decodes to.
//!
//! Every pass is linear: a run of characters is looked at once, a name looks at most at [`VALUE_MAX`] bytes after it, and a part
//! that decodes to a text is at most [`DEPTH_MAX`] times decoded.

use std::cell::LazyCell;
use std::ops::Range;
use std::sync::Arc;

use super::carl;
use super::headers;
use super::json::{self, Region};
use super::judge;
use super::named;
use super::part::{Depth, Present};
use super::prefilter;
use super::rules::{RedactionProfile, Rules};
use super::taken::TakenSecrets;
use super::vendor;
use super::views::{Segment, Writing};
use super::{command, encoded, frame, phrase, prose, views, wrapped, yaml};

pub(crate) use super::vendor::NAMED;
pub(super) use super::vendor::{SecretSpan, named_span};

/// The kind of values that are known to be secret.
pub(crate) const KNOWN: &str = "known";

/// How long a private key may be; a longer one ends there.
pub(super) const PRIVATE_KEY_MAX: usize = 16 << 10;

/// Finds the secrets of a text, in order, none overlapping another.
pub(super) fn find(text: &str, rules: &Rules) -> Vec<SecretSpan> {
    let mut found = find_at(text, rules, Depth::new(find_at, syntax_of));
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

/// The name of a thing without its secrets. Values that are known are no secret there: a word that was chosen as a password
/// may be the name of a tool.
pub(super) fn name(rules: &Rules, text: &str) -> (String, TakenSecrets) {
    let marker = |one: &SecretSpan| {
        (&*one.kind != KNOWN).then(|| rules.name_marker(&one.kind, &text[one.start..one.end]))
    };
    text_by(rules, text, &marker)
}

/// Whether a text has a word that may name a secret.
pub(crate) fn has_hint(text: &str) -> bool {
    named::NAMES.is_match(text)
}

fn text_by(
    rules: &Rules,
    text: &str,
    marker: &dyn Fn(&SecretSpan) -> Option<String>,
) -> (String, TakenSecrets) {
    let mut taken = TakenSecrets::default();
    let made = match rules.profile {
        RedactionProfile::None => text.to_owned(),
        RedactionProfile::Carl1 => carl::text(text, &mut taken).unwrap_or_else(|| text.to_owned()),
        RedactionProfile::Default => spliced(text, &find(text, rules), marker, &mut taken),
    };
    (made, taken)
}

/// A text with markers in place of the secrets that were found in it; one without a marker stays.
pub(super) fn spliced(
    text: &str,
    found: &[SecretSpan],
    marker: &dyn Fn(&SecretSpan) -> Option<String>,
    taken: &mut TakenSecrets,
) -> String {
    let mut made = String::with_capacity(text.len());
    let mut upto = 0;
    for one in found {
        let Some(marker) = marker(one) else { continue };
        let quote = quote(one.quotes);
        made.push_str(&text[upto..one.start]);
        made.push_str(&quote);
        made.push_str(&marker);
        made.push_str(&quote);
        taken.take(&one.kind, &text[one.start..one.end]);
        upto = one.end;
    }
    made.push_str(&text[upto..]);
    made
}

/// The quote around a marker in JSON that is a text in JSON so many times.
fn quote(quotes: u8) -> String {
    match quotes {
        0 => String::new(),
        deep => format!("{}\"", "\\".repeat((1usize << (deep - 1).min(10)) - 1)),
    }
}

/// Finds the secrets of a text that was decoded `depth` times.
fn find_at(text: &str, rules: &Rules, depth: Depth) -> Vec<SecretSpan> {
    let mut found = Vec::new();
    if text.len() < 4 {
        return found;
    }
    let bytes = text.as_bytes();
    let present = Present::of(bytes);
    known(text, rules, &mut found);
    let runs: Vec<_> = prefilter::runs(bytes, vendor::BODY_MIN).collect();
    vendor::find(bytes, &runs, &mut found);
    by_fixed_texts(text, &present, &mut found);
    for (kind, shape) in &rules.shapes {
        found.extend(
            shape
                .find_iter(text)
                .filter(|one| !one.is_empty())
                .map(|one| SecretSpan::new(one.start(), one.end(), Arc::clone(kind))),
        );
    }
    encoded::find(text, &runs, rules, depth, &mut found);
    phrase::find(text, &mut found);
    let segments = match depth.may_decode() {
        true => views::segments(text, &present, depth.is_mail),
        false => Vec::new(),
    };
    let regions = by_syntax(text, rules, depth, &segments, &mut found);
    if present.has_all(b"<redacted") {
        markers(bytes, &mut found);
    }
    // A kind that is switched off covers nothing that another rule finds.
    if !rules.off.is_empty() {
        found.retain(|one| !rules.is_off(&one.kind));
    }
    let mut found = disjoint(found);
    if depth.may_decode() {
        if present.has(b'\n') {
            wrapped::find(text, rules, depth, &mut found);
            found = disjoint(found);
            framed(text, rules, depth, &mut found);
        }
        let escaped = if present.has(b'\\') { views::escaped(text) } else { Vec::new() };
        for segment in segments.iter().chain(&escaped).filter(|one| !is_within(&regions, &one.lines)) {
            rewritten(text, segment, rules, depth, &mut found);
        }
        found = disjoint(found);
    }
    found
}

/// Finds secrets next to fixed texts: heads of keys, the sign of an address, names of headers.
fn by_fixed_texts(text: &str, present: &Present, found: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    if present.has_all(b"-PRIVATE KEY") {
        private_keys(bytes, found);
    }
    if present.has_all(b"Private-Lines:") {
        private_lines(text, found);
    }
    if present.has_all(b"://") {
        addresses(text, found);
    }
    if present.has_all(b"uthorization:") {
        headers::proofs(text, found);
    }
    if present.has_all(b":5432") || present.has_all(b"*:") {
        logins(text, found);
    }
}

/// Finds secrets in lines that are in another writing.
fn rewritten(text: &str, segment: &Segment, rules: &Rules, depth: Depth, found: &mut Vec<SecretSpan>) {
    let Some(view) = segment.view(text) else { return };
    let is_mail = depth.is_mail || segment.writing == Writing::Mail;
    let more = find_at(&view.text, rules, depth.deeper().of_mail(is_mail));
    let is_whole = |one: &SecretSpan| text.is_char_boundary(one.start) && text.is_char_boundary(one.end);
    found.extend(view.placed(more).map(|one| one.shifted(segment.lines.start)).filter(is_whole));
}

/// Finds secrets in lines without their frames.
fn framed(text: &str, rules: &Rules, depth: Depth, found: &mut Vec<SecretSpan>) {
    if !named::is_in(text, rules) && !command::is_in(text) {
        return;
    }
    for lines in frame::blocks(text) {
        let own = &text[lines.clone()];
        if !named::is_in(own, rules) && !command::is_in(own) {
            continue;
        }
        let Some(view) = frame::view(own) else { continue };
        let mut inner = Vec::new();
        let present = Present::of(view.text.as_bytes());
        let segments = views::segments(&view.text, &present, depth.is_mail);
        let regions = by_syntax(&view.text, rules, depth, &segments, &mut inner);
        wrapped::find(&view.text, rules, depth, &mut inner);
        for segment in segments.iter().filter(|one| !is_within(&regions, &one.lines)) {
            rewritten(&view.text, segment, rules, depth.deeper(), &mut inner);
        }
        markers(view.text.as_bytes(), &mut inner);
        found.extend(view.placed(disjoint(inner)).map(|one| one.shifted(lines.start)));
    }
}

/// Whether lines are in a value of JSON, which was read with its escapes.
fn is_within(regions: &[Region], lines: &Range<usize>) -> bool {
    let at = regions.partition_point(|region| region.end <= lines.start);
    regions.get(at).is_some_and(|region| region.start <= lines.start + 1 && lines.end <= region.end + 1)
}

/// Finds secrets by syntax alone.
fn syntax_of(text: &str, rules: &Rules, depth: Depth) -> Vec<SecretSpan> {
    let mut found = Vec::new();
    by_syntax(text, rules, depth, &[], &mut found);
    found
}

/// Finds secrets by the syntax around them: in JSON, and in the lines between. Lines in another writing are read there; of those of
/// HTML the tags are read here. Returns where JSON is.
fn by_syntax(
    text: &str,
    rules: &Rules,
    depth: Depth,
    segments: &[Segment],
    found: &mut Vec<SecretSpan>,
) -> Vec<Region> {
    if !depth.may_read_json() {
        return Vec::new();
    }
    let has = |c: u8| memchr::memchr(c, text.as_bytes()).is_some();
    let regions = if has(b'{') || has(b'[') { json::read(text, rules, depth, found) } else { Vec::new() };
    let mut others: Vec<(Range<usize>, bool)> = segments
        .iter()
        .filter(|one| matches!(one.writing, Writing::Terminal | Writing::Mail | Writing::Html))
        .filter(|one| !is_within(&regions, &one.lines))
        .map(|one| (one.lines.clone(), one.writing == Writing::Html))
        .collect();
    others.sort_by_key(|(lines, is_html)| (lines.start, *is_html));
    let mut upto = 0;
    for region in &regions {
        between(text, upto..region.start, &others, rules, found);
        upto = region.end;
    }
    between(text, upto..text.len(), &others, rules, found);
    regions
}

/// Finds secrets in lines that are no JSON, but for those in another writing.
fn between(
    text: &str,
    part: Range<usize>,
    others: &[(Range<usize>, bool)],
    rules: &Rules,
    found: &mut Vec<SecretSpan>,
) {
    let mut upto = part.start;
    let first = others.partition_point(|(lines, _)| lines.end <= part.start);
    for (lines, is_html) in &others[first.min(others.len())..] {
        if lines.start >= part.end {
            break;
        }
        let start = lines.start.clamp(upto, part.end);
        let end = lines.end.clamp(start, part.end);
        by_line(&text[upto..start], upto, rules, false, found);
        if *is_html {
            by_line(&text[start..end], start, rules, true, found);
        }
        upto = end;
    }
    by_line(&text[upto..part.end], upto, rules, false, found);
}

/// Finds secrets in lines that are no JSON.
fn by_line(text: &str, offset: usize, rules: &Rules, is_html: bool, found: &mut Vec<SecretSpan>) {
    if text.len() < 4 {
        return;
    }
    let mut own = Vec::new();
    if named::find(text, rules, is_html, &mut own) {
        yaml::manifests(text, &mut own);
    }
    if !is_html {
        command::find(text, &mut own);
        prose::logins(text, &mut own);
    }
    found.extend(own.into_iter().map(|one| one.shifted(offset)));
}

/// Leaves out what overlaps: what begins first, and of those the longest, is kept, and grows over what reaches out of it.
fn disjoint(mut found: Vec<SecretSpan>) -> Vec<SecretSpan> {
    found.sort_by(|a, b| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
    let mut kept: Vec<SecretSpan> = Vec::with_capacity(found.len());
    for one in found {
        match kept.last_mut() {
            Some(last) if one.start < last.end => {
                // A kind of its own says more than the name beside it.
                if &*one.kind != MARKER && rank(&last.kind) < rank(&one.kind) {
                    last.kind = one.kind;
                }
                if one.end > last.end || one.start > last.start {
                    // Quotes are those of a value that was taken as it is.
                    last.quotes = if one.end > last.end { 0 } else { last.quotes };
                    last.end = last.end.max(one.end);
                }
            }
            _ => kept.push(one),
        }
    }
    kept.retain(|one| &*one.kind != MARKER);
    kept
}

/// How much a kind says of a secret: that it is known, that a name was beside it, or what it is.
fn rank(kind: &str) -> u8 {
    match kind {
        KNOWN => 0,
        NAMED => 1,
        _ => 2,
    }
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
            found.push(SecretSpan::new(at - prefix, at + close + 1, MARKER));
        }
    }
}

fn known(text: &str, rules: &Rules, found: &mut Vec<SecretSpan>) {
    let hits = rules.known.iter().flat_map(|values| values.finder.find_iter(text));
    let hits = hits.filter(|hit| !is_in_digest(text.as_bytes(), hit.start(), hit.end()));
    found.extend(hits.map(|hit| SecretSpan::new(hit.start(), hit.end(), KNOWN)));
}

/// Whether digits of base 16 are a part of a longer digest or UUID, which is no spelling of them.
fn is_in_digest(bytes: &[u8], start: usize, end: usize) -> bool {
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_hexdigit);
    let is_dash = |at: Option<usize>| at.and_then(|at| bytes.get(at)) == Some(&b'-');
    let (before, after) = (start.checked_sub(1), Some(end));
    let is_hex = bytes[start..end].iter().all(|c| c.is_ascii_hexdigit() || *c == b'-');
    is_hex
        && (is_digit(before)
            || is_digit(after)
            || (is_dash(before) && is_digit(start.checked_sub(2)))
            || (is_dash(after) && is_digit(Some(end + 1))))
}

/// Blocks of PEM and PGP with a private key, also where a newline is written as `\n`, and where the end was cut.
fn private_keys(bytes: &[u8], found: &mut Vec<SecretSpan>) {
    let mut upto = 0;
    // The next end of a block, and runs of base64, looked for once.
    let mut next_end = 0;
    let runs = LazyCell::new(|| {
        prefilter::runs(bytes, LINE_RUN).filter(|run| is_in_frame(bytes, run.start)).collect()
    });
    for at in memchr::memmem::find_iter(bytes, b"PRIVATE KEY") {
        if at < upto {
            continue;
        }
        let line = at.saturating_sub(60);
        // SSH2 has four dashes and a blank.
        let begin = memchr::memmem::rfind(&bytes[line..at], b"-----BEGIN ")
            .or_else(|| memchr::memmem::rfind(&bytes[line..at], b"---- BEGIN "));
        let Some(begin) = begin else { continue };
        let start = line + begin;
        let limit = bytes.len().min(start + PRIVATE_KEY_MAX);
        if next_end <= at {
            next_end = memchr::memmem::find(&bytes[at..], b"-----END ").map_or(bytes.len(), |end| at + end);
        }
        let end = (next_end + 9 <= limit).then(|| {
            let end = next_end + 9;
            memchr::memmem::find(&bytes[end..bytes.len().min(end + 60)], b"-----")
                .map_or(end, |close| end + close + 5)
        });
        upto = key_lines(bytes, start..end.unwrap_or(limit), at, &runs, found).max(at + 1);
    }
}

/// How many characters a line of a key has that something was left out before, at least.
const LINE_RUN: usize = 16;

/// Finds the lines of a block that are of a key: the first ones, with its head, and others further down where something was
/// left out. A line is of base64, of a head such as `Proc-Type:`, or one of the text around. Returns the end of the last.
fn key_lines(
    bytes: &[u8],
    block: Range<usize>,
    head: usize,
    runs: &LazyCell<Vec<Range<usize>>, impl FnOnce() -> Vec<Range<usize>>>,
    found: &mut Vec<SecretSpan>,
) -> usize {
    // A page that shows how such a block begins has nothing in it.
    const LEAST: usize = 32;
    let begin = end_of_head(bytes, head, block.end);
    let (line_end, next) = end_of_key_line(bytes, begin, block.end);
    let body = |part: Range<usize>| bytes[part].iter().filter(|c| c.is_ascii_alphanumeric()).count();
    let first = begin + run_of_key(&bytes[begin..line_end]);
    let mut spans: Vec<(Range<usize>, usize)> = vec![(block.start..first, body(begin..first))];
    let mut open = bytes[first..line_end].iter().all(is_frame);
    let mut at = next;
    while at < block.end {
        if !open {
            let next = runs.partition_point(|run| run.end <= at);
            let Some(run) = runs.get(next).filter(|run| run.start < block.end) else { break };
            at = key_line(bytes, at, run.start.max(at));
        }
        let (end, next) = end_of_key_line(bytes, at, block.end);
        let line = &bytes[at..end];
        let is_foot = memchr::memmem::find(line, b"-----END ").is_some();
        // The last line may be short, and of small letters alone.
        let is_last = bytes[next..block.end].starts_with(b"-----END ") && !line.contains(&b' ');
        open &= is_key_line(line) || is_foot || is_last;
        let count = body(at..end);
        if open || (count >= LINE_RUN && is_key_line(line) && !line.contains(&b':')) {
            let count = if is_foot { 0 } else { count };
            match spans.last_mut().filter(|(span, _)| span.end + 4 >= at) {
                Some((span, all)) => (span.end, *all) = (end, *all + count),
                None => spans.push((at..end, count)),
            }
        }
        at = next;
    }
    let all: usize = spans.iter().map(|(_, body)| body).sum();
    let last = spans.last().map_or(block.start, |(span, _)| span.end);
    if all >= LEAST {
        let kind: Arc<str> = "private-key".into();
        found.extend(
            spans.into_iter().map(|(span, _)| SecretSpan::new(span.start, span.end, Arc::clone(&kind))),
        );
    }
    last
}

/// The end of the head of a block: the signs after `PRIVATE KEY`.
fn end_of_head(bytes: &[u8], head: usize, limit: usize) -> usize {
    let from = (head + "PRIVATE KEY".len()).min(limit);
    let rest = bytes[from..limit].strip_prefix(b" BLOCK").unwrap_or(&bytes[from..limit]);
    let signs = rest.iter().take_while(|c| matches!(c, b'-' | b' ')).count().min(6);
    limit - rest.len() + signs
}

/// How many bytes at the begin of a line are of a key: base64, with blanks between its parts, and the foot of the block.
fn run_of_key(line: &[u8]) -> usize {
    let is_base64 = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'=');
    let mut at = 0;
    loop {
        at += line[at..].iter().take_while(|c| is_base64(c)).count();
        let rest = &line[at..];
        let blank = rest.iter().take_while(|c| **c == b' ').count();
        let part = &rest[blank..];
        if part.starts_with(b"-----END ") {
            let close = memchr::memmem::find(&part[9..], b"-----").map_or(part.len(), |close| close + 14);
            return at + blank + close;
        }
        if blank == 0 || part.iter().take_while(|c| is_base64(c)).count() < 16 {
            return at;
        }
        at += blank;
    }
}

/// Whether a byte is of the frame around a line: quotes, the sign of a listing or a quotation.
fn is_frame(c: &u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\r' | b'"' | b'\'' | b',' | b'+' | b'|' | b'>' | b'#' | b'*' | b'\\' | b'-')
}

/// The end of a line, and the begin of the next one: at a newline, or at one that is written as `\n`.
fn end_of_key_line(bytes: &[u8], at: usize, limit: usize) -> (usize, usize) {
    let rest = &bytes[at..limit];
    let newline = memchr::memchr(b'\n', rest);
    let escaped = memchr::memmem::find(&rest[..newline.unwrap_or(rest.len())], b"\\n");
    match (escaped, newline) {
        (Some(end), _) => (at + end, at + end + 2),
        (None, Some(end)) => (at + end, at + end + 1),
        (None, None) => (limit, limit),
    }
}

/// Whether a run begins its line, but for a frame.
fn is_in_frame(bytes: &[u8], start: usize) -> bool {
    const WIDEST: usize = 200;
    let is_escape = |at: usize| at > 0 && bytes[at - 1] == b'\\' && bytes.get(at) == Some(&b'n');
    let frame = bytes[..start].iter().rev().take(WIDEST).take_while(|c| is_frame(c)).count();
    let begin = start - frame;
    frame == WIDEST || begin == 0 || bytes[begin - 1] == b'\n' || is_escape(begin - 1) || is_escape(start)
}

/// The begin of the line of this place, from a begin of a line on.
fn key_line(bytes: &[u8], from: usize, at: usize) -> usize {
    let before = &bytes[from..=at];
    let newline = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
    let escaped = memchr::memmem::rfind(before, b"\\n").map_or(0, |end| end + 2);
    from + newline.max(escaped)
}

/// Whether a line is of base64, in whatever frame: no words with blanks between them.
fn is_key_line(line: &[u8]) -> bool {
    let from = line.iter().position(|c| !is_frame(c)).unwrap_or(line.len());
    let to = line.iter().rposition(|c| !is_frame(c)).map_or(from, |last| last + 1);
    let own = &line[from..to];
    let is_of_head =
        [&b"Proc-Type:"[..], b"DEK-Info:", b"Version:", b"Comment:"].iter().any(|name| own.starts_with(name));
    let is_base64 = own.iter().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'='));
    own.is_empty()
        || is_of_head
        || (is_base64 && (own.len() > 20 || own.iter().any(|c| !c.is_ascii_lowercase())))
}

/// The private lines of a key of PuTTY, and its checksum: `Private-Lines: 1` and what it counts.
fn private_lines(text: &str, found: &mut Vec<SecretSpan>) {
    for at in memchr::memmem::find_iter(text.as_bytes(), b"Private-Lines:") {
        let line = super::part::line_at(text, at);
        let count =
            text[at..line.end].split_once(':').and_then(|(_, count)| count.trim().parse::<usize>().ok());
        let start = super::part::after_line(text, line.end);
        let (mut next, mut end) = (start, start);
        for _ in 0..count.unwrap_or(0).min(1_000) {
            end = super::part::line_at(text, next).end;
            next = super::part::after_line(text, end);
        }
        if end >= start + 20 {
            found.push(SecretSpan::new(start, end, "private-key"));
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
        let end = if memchr::memchr(b'@', &bytes[start..end]).is_some() {
            end
        } else {
            end_of_user(text, start, end, limit)
        };
        upto = end;
        let Some(sign) = memchr::memrchr(b'@', &bytes[start..end]) else { continue };
        let user = &text[start..start + sign];
        let (value, from) = match user.split_once(':') {
            Some((name, password)) => (password, start + name.len() + 1),
            None if judge::looks_secret(user) && user.len() >= 16 => (user, start),
            None => continue,
        };
        // The key of a DSN is public.
        let is_public =
            text[start + sign..end].contains("sentry") && value.bytes().all(|c| c.is_ascii_hexdigit());
        if !value.is_empty() && !is_public && !judge::is_placeholder(value) {
            found.push(SecretSpan::new(from, from + value.len(), "url-password"));
        }
    }
}

/// The end of a password and its sign, in which there are `/`, `?` or `#`; otherwise `end`: a port follows `:`.
fn end_of_user(text: &str, start: usize, end: usize, limit: usize) -> usize {
    let bytes = text.as_bytes();
    let Some((user, rest)) = text[start..end].split_once(':') else { return end };
    let is_user = !user.is_empty()
        && user.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.'));
    let is_port = rest.bytes().all(|c| c.is_ascii_digit());
    let is_sign = bytes.get(end).is_some_and(|c| matches!(c, b'/' | b'?' | b'#'));
    if !is_user || is_port || !is_sign {
        return end;
    }
    let is_end =
        |c: &u8| c.is_ascii_whitespace() || matches!(c, b'"' | b'\'' | b'<' | b'>' | b'`' | b',' | b'\\');
    let whole = bytes[end..limit].iter().position(is_end).map_or(limit, |at| end + at);
    match memchr::memrchr(b'@', &bytes[end..whole]) {
        Some(sign) if bytes.get(end + sign + 1).is_some_and(u8::is_ascii_alphanumeric) => end + sign + 1,
        _ => end,
    }
}

/// Lines of `.pgpass`: `host:port:database:user:X`.
fn logins(text: &str, found: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let ports =
        memchr::memmem::find_iter(bytes, b":5432:").chain(memchr::memmem::find_iter(bytes, b"*:*:*:"));
    for at in ports {
        let line = super::part::line_at(text, at);
        let own = &text[line.clone()];
        let fields: Vec<&str> = own.trim().splitn(5, ':').collect();
        if let [_, _, _, _, value] = &fields[..]
            && !value.contains(' ')
            && value.len() >= 3
            && !judge::is_placeholder(value)
        {
            let end = line.start + own.trim_end().len();
            found.push(named_span(end - value.len(), end));
        }
    }
}
