//! A caret under a place in a line of text, in columns of a terminal.

use dendrer::problem::MarkedText;

use crate::layout::columns;
use crate::quote::escape;

/// Columns of a line that are shown before the place, and after its beginning.
const SHOWN: usize = 34;

/// Draws the line, and carets under the place.
pub fn lines(marked: &MarkedText) -> Vec<String> {
    let MarkedText { line, place } = marked;
    let (before, rest) = (line[..place.start].trim_start(), &line[place.start..]);
    let kept = fitting(before.chars().rev());
    let tail = &before[before.len() - kept..];
    let before = if tail.len() < before.len() { format!("...{}", escape(tail)) } else { escape(tail) };
    let shown = &rest[..fitting(rest.chars())];
    let end = if shown.len() < rest.len() { "..." } else { "" };
    let (word, after) = shown.split_at(place.len().min(shown.len()));
    let word = escape(word);
    let carets = "^".repeat(columns(&word).max(1));
    vec![
        format!("  | {before}{word}{}{end}", escape(after)),
        format!("  | {}{carets}", " ".repeat(columns(&before))),
    ]
}

/// Returns how many bytes of characters fit.
fn fitting(chars: impl Iterator<Item = char>) -> usize {
    let (mut used, mut bytes) = (0, 0);
    for c in chars {
        used += columns(&escape(c.encode_utf8(&mut [0; 4])));
        if used > SHOWN {
            break;
        }
        bytes += c.len_utf8();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, place: std::ops::Range<usize>, expected: &[&str]) {
        assert_eq!(lines(&MarkedText { line: line.to_owned(), place }), expected);
    }

    #[test]
    fn the_caret_is_below_its_place() {
        check("state.a =< 3", 8..10, &["  | state.a =< 3", "  |         ^^"]);
        // Two columns a letter.
        check("\"\u{30db}\" + x", 8..9, &["  | \"\u{30db}\" + x", "  |        ^"]);
        // The end of a text.
        check("state.a <", 9..9, &["  | state.a <", "  |          ^"]);
    }

    #[test]
    fn a_long_line_is_shown_around_the_place() {
        let line = format!("{} =< {}", "a".repeat(100), "b".repeat(100));
        let drawn = lines(&MarkedText { line, place: 101..103 });
        assert!(drawn.iter().all(|line| line.len() <= 80), "{drawn:?}");
        assert_eq!(drawn[0].find("=<"), drawn[1].find("^^"));
    }
}
