//! Other writings of a text: without escapes of a terminal, of JSON, of an address, of HTML, of mail, with pieces joined.
//!
//! A [`View`] maps each of its bytes to the text that it is made of, so what is found in it is taken there.

use std::ops::Range;

use super::part::Present;
use super::vendor::SecretSpan;

/// A text that a text decodes to, and where each of its bytes comes from.
pub(super) struct View {
    pub(super) text: String,
    /// For each byte, the first byte of the source that it comes from; one more for the end.
    from: Vec<usize>,
    /// The places of the source at which something was left out.
    cuts: Vec<usize>,
}

impl View {
    /// A text in quotes without its escapes.
    pub(super) fn of_json(text: &str) -> Option<View> {
        rewritten(text, b"\\", of_json)
    }

    /// A text of these lines without so many bytes at the begin of each.
    pub(super) fn without_fronts(text: &str, lines: &[(usize, usize)], cuts: &[usize]) -> View {
        let mut view = View {
            text: String::with_capacity(text.len()),
            from: Vec::with_capacity(text.len() + 1),
            cuts: Vec::new(),
        };
        for ((start, end), cut) in lines.iter().zip(cuts) {
            let begin = super::part::next_boundary(text, start + cut).min(*end);
            if *cut > 0 {
                view.cuts.push(*start);
            }
            let close = text.len().min(end + 1);
            view.copy(text, begin..close);
        }
        view.from.push(text.len());
        view
    }

    /// Adds a part of the source as it is.
    fn copy(&mut self, source: &str, part: Range<usize>) {
        let own = &source[part.clone()];
        self.text.push_str(own);
        if own.is_ascii() {
            self.from.extend(part);
        } else {
            let places = own.char_indices().map(|(at, c)| (part.start + at, c.len_utf8()));
            self.from.extend(places.flat_map(|(at, size)| std::iter::repeat_n(at, size)));
        }
    }

    /// Places what was found in this view in the text that it is made of.
    pub(super) fn placed(&self, found: Vec<SecretSpan>) -> impl Iterator<Item = SecretSpan> {
        found.into_iter().map(|one| self.place(one))
    }

    pub(super) fn place(&self, found: SecretSpan) -> SecretSpan {
        // The end is behind what the last byte comes from, and not behind what was left out after it.
        let last = found.end.saturating_sub(1).max(found.start);
        let end = self.from[last] + self.length(last);
        SecretSpan { start: self.from[found.start], end, ..found }
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

/// Another way of writing a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    Terminal,
    Mail,
    Html,
    Address,
    Sum,
    Table,
    Json,
}

/// Lines that are in another writing.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) lines: Range<usize>,
    pub(super) writing: Writing,
}

impl Segment {
    /// The text of the lines as it is meant; `None` if it is as it is written.
    pub(super) fn view(&self, text: &str) -> Option<View> {
        let (leads, step): (&[u8], Step) = match self.writing {
            Writing::Terminal => (&[0x1b, 0xe2, 0xef, 0xc2], of_terminal),
            Writing::Mail => (b"=", of_mail),
            Writing::Html => (b"&", of_html),
            Writing::Address => (b"%", of_address),
            Writing::Sum => (b"\"'", of_sum),
            Writing::Table => (b"\"", of_table),
            Writing::Json => (b"\\", of_json),
        };
        rewritten(&text[self.lines.clone()], leads, step)
    }
}

/// The lines of a text that are in another writing, by writing and place. A mail's is looked for once.
pub(super) fn segments(text: &str, present: &Present, was_mail: bool) -> Vec<Segment> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut add = |writing: Writing, byte: u8, gap: usize, is_one: &dyn Fn(&[u8]) -> bool| {
        if present.has(byte) || byte >= 0x80 {
            let lines = lines_with(text, byte, gap, is_one);
            found.extend(lines.into_iter().map(|lines| Segment { lines, writing }));
        }
    };
    if present.has(0x1b) {
        add(Writing::Terminal, 0x1b, 3, &|_| true);
    }
    if present.has_others {
        add(Writing::Terminal, 0xe2, 0, &|rest| {
            rest.starts_with(&[0xe2, 0x80]) && matches!(rest.get(2), Some(0x8b..=0x8d))
                || rest.starts_with(&[0xe2, 0x81, 0xa0])
        });
        add(Writing::Terminal, 0xef, 0, &|rest| rest.starts_with(&[0xef, 0xbb, 0xbf]));
        add(Writing::Terminal, 0xc2, 0, &|rest| rest.starts_with(&[0xc2, 0xad]));
    }
    let is_mail = !was_mail && present.has(b'=') && is_mail(bytes);
    if is_mail {
        found.push(Segment { lines: 0..text.len(), writing: Writing::Mail });
    }
    let mut add = |writing: Writing, byte: u8, gap: usize, is_one: &dyn Fn(&[u8]) -> bool| {
        if present.has(byte) {
            let lines = lines_with(text, byte, gap, is_one);
            found.extend(lines.into_iter().map(|lines| Segment { lines, writing }));
        }
    };
    add(Writing::Html, b'&', 3, &|rest| {
        [&b"&#"[..], b"&amp;", b"&quot;", b"&lt;", b"&gt;", b"&apos;"].iter().any(|one| rest.starts_with(one))
    });
    add(Writing::Address, b'%', 1, &|rest| {
        rest.get(1..3).is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit))
    });
    add(Writing::Table, b'"', 0, &|rest| {
        rest.get(1) == Some(&b'"') && rest.get(2).is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'{')
    });
    if present.has(b'+') || present.has(b'.') || present.has(b'\n') {
        let is_sum = |rest: &[u8]| {
            let after = rest[1..].iter().take(3).find(|c| **c != b' ');
            after.is_some_and(|c| matches!(c, b'+' | b'.' | b'\n'))
        };
        add(Writing::Sum, b'"', 1, &is_sum);
        add(Writing::Sum, b'\'', 1, &is_sum);
    }
    found
}

/// The lines of JSON in a text that is no JSON as a whole.
pub(super) fn escaped(text: &str) -> Vec<Segment> {
    let lines = lines_with(text, b'\\', 0, &|_| true);
    lines.into_iter().map(|lines| Segment { lines, writing: Writing::Json }).collect()
}

/// Whether a text is a mail's: with codes of bytes, or lines that continue.
fn is_mail(bytes: &[u8]) -> bool {
    let has = |part: &[u8]| memchr::memmem::find(bytes, part).is_some();
    let is_code = |rest: &[u8]| [&b"3D"[..], b"5F", b"2D", b"2E"].iter().any(|code| rest.starts_with(code));
    bytes.len() <= MAIL_MAX
        && (has(b"quoted-printable")
            || has_soft_breaks(bytes)
            || memchr::memchr_iter(b'=', bytes).filter(|at| is_code(&bytes[at + 1..])).take(2).count() > 1)
}

/// The longest text that is read as a mail.
const MAIL_MAX: usize = 1 << 18;

/// The lines with a byte at which `is_one` holds, with up to `gap` lines between them.
fn lines_with(text: &str, byte: u8, gap: usize, is_one: &dyn Fn(&[u8]) -> bool) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(hit) = memchr::memchr(byte, &bytes[at..]).map(|hit| at + hit) {
        if !is_one(&bytes[hit..]) {
            at = hit + 1;
            continue;
        }
        let from = found.last().map_or(0, |last| last.end);
        let start = memchr::memrchr(b'\n', &bytes[from..hit]).map_or(from, |newline| from + newline + 1);
        let end = memchr::memchr(b'\n', &bytes[hit..]).map_or(bytes.len(), |newline| hit + newline + 1);
        // A sum continues in the next line.
        let end = if gap > 0 {
            memchr::memchr(b'\n', &bytes[end..]).map_or(bytes.len(), |newline| end + newline + 1)
        } else {
            end
        };
        let is_near = |last: &Range<usize>| {
            start - last.end <= 400 && memchr::memchr_iter(b'\n', &bytes[last.end..start]).count() <= gap
        };
        match found.last_mut() {
            Some(last) if is_near(last) => last.end = end,
            _ => found.push(start..end),
        }
        at = end;
    }
    found
}

/// Reads a quote that is doubled in a cell of a table.
fn of_table(rest: &str) -> Option<Rewritten> {
    let after = rest.strip_prefix("\"\"")?;
    // An empty text, and the three quotes of a program.
    (!after.starts_with(['"', ',', ')', ']', '}', ';', '\n', ' '])).then_some((2, Some('"')))
}

/// Whether lines end in `=`, and are as long as mail wraps them.
fn has_soft_breaks(bytes: &[u8]) -> bool {
    memchr::memmem::find_iter(bytes, b"=\n").any(|at| {
        let width = bytes[..at].iter().rev().take(80).take_while(|c| **c != b'\n').count();
        // Padding of base64 ends a line as well; then nothing of the text follows.
        let is_padding = at > 0 && bytes[at - 1] == b'=';
        let is_followed = bytes.get(at + 2).is_some_and(u8::is_ascii_graphic);
        (70..=77).contains(&width) && !is_padding && is_followed
    })
}

/// Joins the pieces of a text that a program adds: `"..." + "..."`.
fn of_sum(rest: &str) -> Option<Rewritten> {
    let bytes = rest.as_bytes();
    let quote = *bytes.first().filter(|c| matches!(c, b'"' | b'\''))?;
    let blanks =
        |from: usize| from + bytes[from..].iter().take(60).take_while(|c| c.is_ascii_whitespace()).count();
    let at = blanks(1);
    // Pieces of one text on lines of their own.
    if bytes.get(at) == Some(&quote) && bytes[1..at].contains(&b'\n') {
        let piece = rest[at + 1..].find(char::from(quote)).filter(|end| (8..=200).contains(end))?;
        let piece = &rest[at + 1..at + 1 + piece];
        let is_token = piece
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'+' | b'/' | b'=' | b'.'));
        return (is_token && super::judge::is_piece(piece)).then_some((at + 1, None));
    }
    let sign = matches!(bytes.get(at)?, b'+' | b'.').then_some(at + 1)?;
    let close = blanks(sign);
    (*bytes.get(close)? == quote).then_some((close + 1, None))
}

/// Reads the code of a byte in mail, and leaves out the soft end of a line.
fn of_mail(rest: &str) -> Option<Rewritten> {
    let after = rest.strip_prefix('=')?;
    if after.starts_with("\r\n") {
        return Some((3, None));
    }
    if after.starts_with('\n') {
        return Some((2, None));
    }
    coded(rest, 1, 3)
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
        c @ (b'"' | b'\'' | b'\\' | b'/' | b'_' | b'-' | b'.' | b'*' | b'=' | b'&' | b'$' | b'!' | b'#') => {
            Some((2, Some(char::from(*c))))
        }
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
    let after = rest.strip_prefix('&')?;
    let known = [("amp;", '&'), ("quot;", '"'), ("apos;", '\''), ("lt;", '<'), ("gt;", '>'), ("nbsp;", ' ')];
    if let Some((entity, c)) = known.into_iter().find(|(entity, _)| after.starts_with(entity)) {
        return Some((1 + entity.len(), Some(c)));
    }
    let code = after.strip_prefix('#')?;
    let (lead, base) = if code.starts_with(['x', 'X']) { (1, 16) } else { (0, 10) };
    let end = code.bytes().take(8).position(|c| c == b';').filter(|end| *end > lead)?;
    let number = u32::from_str_radix(code.get(lead..end)?, base).ok()?;
    Some((2 + end + 1, Some(char::from_u32(number).filter(char::is_ascii)?)))
}

/// How many bytes are read, and the character that they are; none where they are left out.
type Rewritten = (usize, Option<char>);

/// Makes a view: `step` says how many bytes come next for which character, where one of `leads` is.
fn rewritten(text: &str, leads: &[u8], step: Step) -> Option<View> {
    let bytes = text.as_bytes();
    let next_lead = |at: usize| {
        let rest = &bytes[at..];
        let next = match leads {
            [one] => memchr::memchr(*one, rest),
            [one, two] => memchr::memchr2(*one, *two, rest),
            _ => rest.iter().position(|c| leads.contains(c)),
        };
        next.map_or(text.len(), |next| at + next)
    };
    let first = next_lead(0);
    if first == text.len() {
        return None;
    }
    let mut view = View {
        text: String::with_capacity(text.len()),
        from: Vec::with_capacity(text.len() + 1),
        cuts: Vec::new(),
    };
    let mut changed = false;
    let (mut at, mut lead) = (0, first);
    while at < text.len() {
        // Text before the next lead is as it is written.
        view.copy(text, at..lead);
        at = lead;
        if at == text.len() {
            break;
        }
        let (taken, made) = match step(&text[at..]) {
            Some((taken, made)) => {
                changed = true;
                if made.is_none() {
                    view.cuts.push(at);
                }
                (taken, made)
            }
            None => {
                let c = text[at..].chars().next().expect("the text goes on");
                (c.len_utf8(), Some(c))
            }
        };
        if let Some(made) = made {
            view.text.push(made);
            view.from.extend(std::iter::repeat_n(at, made.len_utf8()));
        }
        at += taken;
        lead = next_lead(at);
    }
    view.from.push(text.len());
    changed.then_some(view)
}

/// Whether a text may be in another writing in part.
pub(super) fn may_be_rewritten(text: &str) -> bool {
    text.bytes().any(|c| matches!(c, b'%' | b'&' | b'=' | 0x1b | 0x80..))
}
