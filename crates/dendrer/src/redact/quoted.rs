//! Values in quotes and without: where they begin, and where they end.

use super::part::{VALUE_MAX, next_boundary};

/// The end of a value without quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// At a blank.
    Token,
    /// At a blank, a comma or a bracket of the line.
    Line,
    /// At the end of the line.
    Whole,
    /// At a sign of an address.
    Query,
}

/// The value that begins here, and whether it is in quotes.
pub(super) fn value_at(text: &str, at: usize, ends: Ends) -> Option<(usize, usize, bool)> {
    let bytes = text.as_bytes();
    // `b"..."`, `f'...'`, `@"..."`: signs of a program before a quote.
    let lead =
        pass_over(bytes, at, 2, |c| matches!(c, b'b' | b'r' | b'f' | b'u' | b'@' | b'$' | b'B' | b'R'));
    let at = if matches!(bytes.get(lead), Some(b'"' | b'\'')) { lead } else { at };
    let (begin, quote, is_escaped) = match bytes.get(at)? {
        b'\\' if matches!(bytes.get(at + 1), Some(b'"' | b'\'')) => (at + 2, bytes[at + 1], true),
        quote @ (b'"' | b'\'' | b'`') => (at + 1, *quote, false),
        _ => {
            let end = next_boundary(text, bare_end(bytes, at, ends));
            return (end > at).then_some((at, end, false));
        }
    };
    let limit = bytes.len().min(begin - 1 + VALUE_MAX);
    if bytes[begin..].starts_with(&[quote, quote]) && !is_escaped && quote != b'`' {
        let start = begin + 2;
        let close = memchr::memmem::find(&bytes[start..limit.max(start)], &[quote; 3])?;
        let own = &text[start..start + close];
        let lead = own.len() - own.trim_start().len();
        let end = start + lead + own.trim().len();
        return (end > start + lead).then_some((start + lead, end, true));
    }
    let mut close = begin;
    while close < limit && bytes[close] != quote && bytes[close] != b'\n' {
        close += 1 + usize::from(bytes[close] == b'\\' && !is_escaped);
    }
    // `'it''s'` in SQL, `'it'\''s'` in a shell.
    let mut close = close.min(limit);
    while quote == b'\'' && close < limit {
        let rest = &bytes[close + 1..limit];
        let size = if rest.starts_with(b"'") && close > begin {
            2
        } else if rest.starts_with(b"\\''") {
            4
        } else {
            break;
        };
        let from = close + size;
        match memchr::memchr2(b'\'', b'\n', &bytes[from.min(limit)..limit]) {
            Some(next) if bytes[from + next] == b'\'' => close = from + next,
            _ => break,
        }
    }
    if bytes.get(close) != Some(&quote) && quote != b'"' {
        // An apostrophe that nothing closes.
        return None;
    }
    // The backslash belongs to the quote that closes.
    let is_of_quote = is_escaped && close > begin && bytes[close - 1] == b'\\';
    let close = next_boundary(text, close - usize::from(is_of_quote));
    (close > begin).then_some((begin, close, true))
}

/// The end of a value without quotes.
fn bare_end(bytes: &[u8], at: usize, ends: Ends) -> usize {
    let limit = bytes.len().min(at + VALUE_MAX);
    let mut open = 0usize;
    let mut end = at;
    while end < limit {
        let c = bytes[end];
        let is_end = match c {
            b'\n' | b'\r' | 0 => true,
            _ if ends == Ends::Whole => false,
            c if c.is_ascii_whitespace() => true,
            b'"' | b'\'' | b'`' if ends != Ends::Query => is_closing(bytes, at, end),
            b'"' | b'\'' | b'`' | b'<' | b'>' | b'|' => true,
            b'#' | b'&' | b',' | b';' if ends == Ends::Query => true,
            b',' | b';' | b'&' => ends_here(bytes, end + 1),
            b'\\' => {
                matches!(bytes.get(end + 1), None | Some(b'n' | b'r' | b't' | b'"' | b'\'' | b'\\' | b'\n'))
            }
            b'(' | b'[' | b'{' => {
                open += 1;
                false
            }
            b')' | b']' | b'}' if open > 0 => {
                open -= 1;
                false
            }
            b')' | b']' | b'}' => {
                ends == Ends::Query
                    || ends_here(bytes, end + 1)
                    || bytes
                        .get(end + 1)
                        .is_some_and(|c| matches!(c, b'.' | b',' | b';' | b':' | b'!' | b'?' | b'<' | b'\\'))
            }
            // An escape of a terminal.
            0x1b => true,
            _ => false,
        };
        if is_end {
            break;
        }
        end += 1;
    }
    let signs: &[u8] = if ends == Ends::Whole { b" \t,;." } else { b".:,;" };
    while end > at && signs.contains(&bytes[end - 1]) {
        end -= 1;
    }
    end
}

/// Whether a quote in a value without quotes ends it: it was opened before, or nothing of a value follows.
fn is_closing(bytes: &[u8], from: usize, at: usize) -> bool {
    let quote = bytes[at];
    let near = bytes[..from].iter().rev().take(200).take_while(|c| **c != b'\n');
    let is_open = near.filter(|c| **c == quote).count() % 2 == 1;
    let next = bytes.get(at + 1).copied().unwrap_or(b'\n');
    is_open
        || !(next.is_ascii_alphanumeric()
            || matches!(
                next,
                b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'*' | b'_' | b'-' | b'+' | b'"' | b'\''
            ))
}

/// Whether what follows a comma or a semicolon is another thing: a blank, a bracket, a quote, a name with its sign.
fn ends_here(bytes: &[u8], at: usize) -> bool {
    let Some(next) = bytes.get(at) else { return true };
    if next.is_ascii_whitespace() || matches!(next, b'"' | b'\'' | b')' | b']' | b'}' | b'&' | b'`') {
        return true;
    }
    let name = bytes[at..]
        .iter()
        .take(40)
        .take_while(|c| {
            c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.' | b' ' | b'%' | b'[' | b']')
        })
        .count();
    name > 0 && matches!(bytes.get(at + name), Some(b'=' | b':'))
}

/// Passes over at most `most` bytes of a kind.
pub(super) fn pass_over(bytes: &[u8], at: usize, most: usize, is_kind: impl Fn(u8) -> bool) -> usize {
    at + bytes[at.min(bytes.len())..].iter().take(most).take_while(|c| is_kind(**c)).count()
}
