//! One look at the bytes of a text for all rules: runs of characters of a token, and bytes that a rule needs.
//!
//! Skips only what finds nothing: with and without it the same is found (the tests compare them).

use std::ops::Range;

/// Whether a byte belongs to a token: letters, digits and `_-+/=.`.
pub(super) fn is_token(c: u8) -> bool {
    TOKEN[usize::from(c)]
}

const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut c = 0;
    while c < 128 {
        let byte = c as u8;
        table[c] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=' | b'.');
        c += 1;
    }
    table
};

#[cfg(test)]
thread_local! {
    /// Whether nothing is skipped, so that tests can compare.
    pub(super) static IS_OFF: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether nothing is skipped.
pub(super) fn is_off() -> bool {
    #[cfg(test)]
    return IS_OFF.get();
    #[cfg(not(test))]
    false
}

/// The runs of so many characters of a token and more, in order. Of other text one byte in `least` is looked at.
pub(super) fn runs(bytes: &[u8], least: usize) -> impl Iterator<Item = Range<usize>> + '_ {
    // No character of a token is right before this place.
    let mut at = 0;
    std::iter::from_fn(move || {
        while at + least <= bytes.len() {
            // A run that is long enough and begins here has this byte in it.
            let last = at + least - 1;
            let own = bytes[at..=last].iter().rev().take_while(|c| is_token(**c)).count();
            if own < least {
                at = last - own + 1;
                continue;
            }
            let start = at;
            let end = last + 1 + bytes[last + 1..].iter().take_while(|c| is_token(**c)).count();
            at = end + 1;
            return Some(start..end);
        }
        None
    })
}

/// Makes one list of parts of a text, in order and apart.
pub(super) fn joined(mut parts: Vec<Range<usize>>) -> Vec<Range<usize>> {
    parts.sort_unstable_by_key(|part| part.start);
    parts.dedup_by(|next, last| {
        let is_one = next.start <= last.end;
        if is_one {
            last.end = last.end.max(next.end);
        }
        is_one
    });
    parts
}
