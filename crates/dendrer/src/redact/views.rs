//! Other writings of a text: without escapes of a terminal, of JSON, of an address, of HTML, of mail, with pieces joined.
//!
//! A [`View`] maps each of its bytes to the text that it is made of, so what is found in it is taken there.

use super::scan::Present;
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
        rewritten(text, of_json)
    }

    /// A text of these lines without so many bytes at the begin of each.
    pub(super) fn without_fronts(text: &str, lines: &[(usize, usize)], cuts: &[usize]) -> View {
        let mut view = View {
            text: String::with_capacity(text.len()),
            from: Vec::with_capacity(text.len() + 1),
            cuts: Vec::new(),
        };
        for ((start, end), cut) in lines.iter().zip(cuts) {
            let begin = super::scan::next_boundary(text, start + cut).min(*end);
            if *cut > 0 {
                view.cuts.push(*start);
            }
            let close = text.len().min(end + 1);
            view.text.push_str(&text[begin..close]);
            for (at, c) in text[begin..close].char_indices() {
                view.from.extend(std::iter::repeat_n(begin + at, c.len_utf8()));
            }
        }
        view.from.push(text.len());
        view
    }

    /// What was found in this view, in the text that it is made of.
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

/// The other writings of a text.
pub(super) struct Views {
    pub(super) views: Vec<View>,
    /// Whether a writing is that of the whole text, so that its syntax is read there: a terminal's, a mail's.
    pub(super) is_whole: bool,
    /// The same for HTML, of which tags are read as they are.
    pub(super) is_html: bool,
    /// Whether a mail's writing is among them.
    pub(super) is_mail: bool,
}

/// The texts that a text is in another writing.
pub(super) fn views(text: &str, present: &Present, was_mail: bool) -> Views {
    let bytes = text.as_bytes();
    let has_any =
        |parts: &[&str]| parts.iter().any(|one| memchr::memmem::find(bytes, one.as_bytes()).is_some());
    let has_zero_width = || {
        present.has_others && has_any(&["\u{200b}", "\u{feff}", "\u{200c}", "\u{200d}", "\u{2060}", "\u{ad}"])
    };
    let has_escapes = memchr::memchr(0x1b, bytes).is_some() || has_zero_width();
    let has_codes =
        present.has(b'%') && (memchr::memchr_iter(b'%', bytes).take(2).count() == 2 || has_any(&["%3"]));
    let has_entities = present.has(b'&') && has_any(&["&#", "&amp;", "&quot;", "&lt;", "&apos;"]);
    let has_sums = present.has(b'+') && has_any(&["\" +", "' +", "\"+\"", "'+'"])
        || present.has(b'.') && has_any(&["\" . \"", "' . '"])
        || present.has(b'\n') && has_any(&["\"\n", "'\n"]);
    let has_mail = !was_mail
        && present.has(b'=')
        && (has_any(&["quoted-printable", "=5F", "=2D", "=2E", "=5f"])
            || has_soft_breaks(bytes)
            || memchr::memmem::find_iter(bytes, b"=3D").take(2).count() > 1);
    let has_doubled = present.has(b'"') && has_any(&["\"\""]);
    let writings: [(bool, Step); 6] = [
        (has_doubled, of_table),
        (has_escapes, of_terminal),
        (has_codes, of_address),
        (has_entities, of_html),
        (has_sums, of_sum),
        (has_mail, of_mail),
    ];
    let made =
        |step: Step| writings.iter().any(|(is_there, one)| *is_there && std::ptr::fn_addr_eq(*one, step));
    let is_mail = made(of_mail as Step);
    let mut views = Views { views: Vec::new(), is_whole: false, is_html: false, is_mail };
    for (is_there, step) in writings {
        let Some(view) = is_there.then(|| rewritten(text, step)).flatten() else { continue };
        let is = |one: Step| std::ptr::fn_addr_eq(step, one);
        views.is_whole |= is(of_terminal) || is(of_mail);
        views.is_html |= is(of_html);
        views.views.push(view);
    }
    views
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
        (60..=78).contains(&width)
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
