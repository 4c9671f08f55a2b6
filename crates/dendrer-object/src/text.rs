//! Small helpers on text that more than one crate needs.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{compose, is_combining_mark};

use crate::lookalike::{mixes_scripts, passes_for_ascii};

/// Tells whether two texts are the same but for their Unicode form: an accent in one character, or in one of its own.
pub fn is_same_but_for_form(a: &str, b: &str) -> bool {
    a != b && !(a.is_ascii() && b.is_ascii()) && a.nfc().eq(b.nfc())
}

/// Returns whether a character would be one with the character before it in the usual Unicode form (NFC): it shows what a text in that form
/// shows as well.
pub fn is_of_the_one_before(before: char, c: char) -> bool {
    !c.is_ascii() && compose(before, c).is_some()
}

/// Tells whether a character would act on a terminal or mislead a reader instead of being seen. White space other than a blank
/// would pass for one.
pub fn acts(c: char) -> bool {
    c.is_control()
        || c.is_whitespace() && c != ' '
        || matches!(c,
            // Zero-width, bidi marks and overrides, line and paragraph separators.
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The marks that one character may carry; a tower of more would cover the lines around it.
const MARKS_MAX: usize = 8;

/// Returns whether the character at a byte of a text is a mark without a character that carries it: the first of a text or
/// of a word, or one mark too many. Drawn, it would change what is around it.
pub fn is_mark_alone(text: &str, at: usize) -> bool {
    let is_mark = |c: char| !c.is_ascii() && is_combining_mark(c);
    if !text[at..].starts_with(is_mark) {
        return false;
    }
    let mut before = text[..at].chars().rev();
    let marks = before.by_ref().take(MARKS_MAX).take_while(|c| is_mark(*c)).count();
    let base = text[..at].chars().rev().nth(marks);
    marks == MARKS_MAX || base.is_none_or(|c| c.is_whitespace() || acts(c) || matches!(c, '"' | '\\' | '\''))
}

/// The letters of a flag of a region, as tags after a black flag.
const FLAG_TAGS: std::ops::RangeInclusive<usize> = 3..=6;

/// Returns whether the tag at a byte of a text is of the flag of a region: a black flag, a few letters or digits, the last tag.
fn is_of_flag(text: &str, at: usize) -> bool {
    let is_letter = |c: &char| matches!(c, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    let before = text[..at].chars().rev().take(FLAG_TAGS.end() + 1).take_while(is_letter).count();
    let begin = at - before * '\u{e0061}'.len_utf8();
    let after = text[begin..].chars().take(FLAG_TAGS.end() + 1).take_while(is_letter).count();
    let end = text[begin..].chars().nth(after);
    text[..begin].ends_with('\u{1f3f4}') && FLAG_TAGS.contains(&after) && end == Some('\u{e007f}')
}

/// Returns whether the character at a byte of a text is a part of an emoji: a joiner between two pictographs, the mark
/// that shows a pictograph in colour, or a tag of a flag. Anywhere else it [`acts`].
pub fn is_of_emoji(text: &str, at: usize) -> bool {
    let is_tone = |c: char| ('\u{1f3fb}'..='\u{1f3ff}').contains(&c);
    let before = text[..at].chars().next_back();
    let after = |c: char| text[at + c.len_utf8()..].chars().next();
    match text[at..].chars().next() {
        Some(c @ '\u{200d}') => {
            let base = text[..at].chars().rev().find(|c| *c != '\u{fe0f}' && !is_tone(*c));
            base.is_some_and(is_pictograph) && after(c).is_some_and(is_pictograph)
        }
        Some(c @ '\u{fe0f}') => {
            let is_keycap = before.is_some_and(|c| c.is_ascii_digit() || "#*".contains(c))
                && after(c) == Some('\u{20e3}');
            is_keycap || before.is_some_and(is_pictograph)
        }
        Some('\u{e0020}'..='\u{e007f}') => is_of_flag(text, at),
        _ => false,
    }
}

/// Returns whether a character is of a block that has emoji, and not a letter, digit or mark.
fn is_pictograph(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{27bf}'
        | '\u{2934}' | '\u{2935}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

/// Writes text on one line with visible escapes for whatever [`acts`], and for marks that make one character with the one
/// before: two names that differ in their Unicode form alone would look alike.
pub fn escape(text: &str) -> String {
    escaped(text, true)
}

/// As [`escape`], for a text that is read and names nothing: a mark is drawn on the character that carries it.
pub fn escape_drawn(text: &str) -> String {
    escaped(text, false)
}

fn escaped(text: &str, shows_forms: bool) -> String {
    // Most texts have nothing to escape.
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let look_alikes = look_alikes(text);
    for (at, c) in text.char_indices() {
        match c {
            // It would be read as the letter that it looks like.
            c if look_alikes.contains(&at) => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c if shows_forms && is_of_the_one_before(before, c) => {
                out.push_str(&format!("\\u{{{:x}}}", c as u32))
            }
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() && (c as u32) < 0x100 => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if acts(c) && !is_of_emoji(text, at) || is_mark_alone(text, at) => {
                out.push_str(&format!("\\u{{{:x}}}", c as u32))
            }
            c => out.push(c),
        }
        before = c;
    }
    out
}

/// Returns the places of letters that look like letters of ASCII, in words that have such letters and mix scripts, in bytes.
pub fn look_alikes(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    if text.is_ascii() {
        return found;
    }
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut begin = 0;
    for word in text.split(|c| !is_of_word(c)) {
        let has_ascii = word.chars().any(|c| c.is_ascii_alphabetic());
        if !word.is_ascii() && has_ascii && mixes_scripts(word) {
            let letters = word.char_indices().filter(|(_, c)| passes_for_ascii(*c));
            found.extend(letters.map(|(at, _)| begin + at));
        }
        let after = begin + word.len();
        begin = after + text[after..].chars().next().map_or(0, char::len_utf8);
    }
    found
}

/// Returns the candidate nearest to `word`, if one is near enough to be what was meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).clamp(1, 3);
    let far = |candidate: &str| match is_same_but_for_form(word, candidate) {
        true => 0,
        false => distance(word, candidate),
    };
    candidates
        .into_iter()
        .map(|candidate| (far(candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Counts the insertions, deletions, substitutions and swaps of neighbours between two words, of which the first
/// 128 characters count.
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(128).collect(), b.chars().take(128).collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

/// Returns the text after a byte order mark, which belongs to the file and not to a value in it.
pub fn behind_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Returns "1 tick", "2 ticks".
pub fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

/// Writes the first so many of a list, and how many more there are; `None` for an empty list.
pub fn list(items: &[String], most: usize) -> Option<String> {
    let more = items.len().saturating_sub(most);
    let shown = items[..items.len() - more].join(", ");
    match (items.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(shown),
        (false, more) => Some(format!("{shown} and {more} more")),
    }
}

/// Writes an integer with commas between thousands.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        assert_eq!(nearest("intnet", ["intent", "action"]), Some("intent"));
        assert_eq!(
            nearest("logistics-run-4", ["logistics-run-47", "planning-run-12"]),
            Some("logistics-run-47")
        );
        assert_eq!(nearest("zzz", ["intent", "action"]), None);
        assert_eq!(nearest("", ["a"]), Some("a"));
    }

    #[test]
    fn marks_are_drawn_on_what_carries_them() {
        for drawn in
            ["e\u{301}", "x\u{301}\u{308}", "\u{1112}\u{1161}\u{11ab}", "\u{928}\u{93f}", "1\u{20e3}"]
        {
            assert_eq!(escape_drawn(drawn), drawn);
        }
        let flag = "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";
        assert_eq!(escape_drawn(&format!("{flag} {flag}")), format!("{flag} {flag}"));
        for (text, shown) in [
            ("\u{301}e", "\\u{301}e"),
            ("a \u{301}", "a \\u{301}"),
            ("\"\u{338}", "\"\\u{338}"),
            ("a\u{e0067}\u{e0062}\u{e0065}\u{e007f}", "a\\u{e0067}\\u{e0062}\\u{e0065}\\u{e007f}"),
            ("\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}", "\u{1f3f4}\\u{e0067}\\u{e0062}\\u{e0065}"),
        ] {
            assert_eq!(escape_drawn(text), shown);
        }
        let tower = escape_drawn(&format!("a{}", "\u{301}".repeat(12)));
        assert_eq!(tower.matches('\u{301}').count(), 8);
        assert_eq!(escape("e\u{301}"), "e\\u{301}", "a name shows its form");
    }

    #[test]
    fn texts_in_two_forms_are_near_and_tell_apart() {
        let (composed, apart) = ("Zo\u{e9}", "Zoe\u{301}");
        assert!(is_same_but_for_form(composed, apart) && !is_same_but_for_form(composed, composed));
        assert!(!is_same_but_for_form("Zoe", apart));
        assert_eq!(nearest(composed, ["by", apart]), Some(apart));
        assert!(is_of_the_one_before('e', '\u{301}') && !is_of_the_one_before('x', '\u{301}'));
        assert!(is_of_the_one_before('\u{1100}', '\u{1161}'), "syllables of Korean");
    }
}
