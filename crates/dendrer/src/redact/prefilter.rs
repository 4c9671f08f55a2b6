//! One look at the bytes of a text for all rules: runs of characters of a token, and bytes that a rule needs.
//!
//! Rule: with and without it the same is found; test `what_is_skipped_has_nothing`.

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

#[cfg(test)]
mod tests {
    use dendrer_testkit::tool_outputs::{HOSTILE_KINDS, harmless_cases, secret_cases, typical_texts};
    use proptest::prelude::*;

    use super::*;
    use crate::redact::{PackRules, RedactionProfile, Redactor};

    fn check(redactor: &Redactor, text: &str) {
        IS_OFF.set(true);
        let whole = redactor.find(text);
        IS_OFF.set(false);
        assert_eq!(redactor.find(text), whole, "{text:?}");
    }

    #[test]
    fn what_is_skipped_has_nothing() {
        let known = ["sk-Known1".to_owned(), "ghp_aB3dE".to_owned()];
        let redactor = Redactor::new(RedactionProfile::Default, &PackRules::default(), &known, None)
            .expect("no pattern of a pack");
        for case in secret_cases(3, 1_000).iter().chain(&harmless_cases(3, 500)) {
            let text = &case.text;
            check(&redactor, text);
            for part in 1..4 {
                let at = text.floor_char_boundary(text.len() * part / 4);
                check(&redactor, &text[..at]);
                check(&redactor, &text[at..]);
            }
        }
        for kind in HOSTILE_KINDS {
            check(&redactor, &kind.text(2_000));
        }
        check(&redactor, &typical_texts(3, 64 << 10).concat());
        check(&redactor, "sk-Known1 and ghp_aB3dE");
    }

    #[test]
    fn shapes_have_the_characters_that_places_need() {
        assert!(crate::redact::vendor::is_found_by_places());
    }

    proptest! {
        #[test]
        fn runs_are_those_of_a_walk_over_each_byte(text in "[a-c_. \n]{0,80}", least in 1..14usize) {
            let mut expected = Vec::new();
            let mut at = 0;
            for part in text.as_bytes().split(|c| !is_token(*c)) {
                if part.len() >= least {
                    expected.push(at..at + part.len());
                }
                at += part.len() + 1;
            }
            prop_assert_eq!(runs(text.as_bytes(), least).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn parts_of_texts_are_read_alike(parts in proptest::collection::vec(0..PARTS.len(), 1..24)) {
            let text: String = parts.into_iter().map(|part| PARTS[part]).collect();
            let redactor = Redactor::new(RedactionProfile::Default, &PackRules::default(), &[], None)
                .expect("no pattern of a pack");
            check(&redactor, &text);
        }
    }

    const PARTS: [&str; 32] = [
        "password",
        "token",
        "\n",
        " ",
        "  ",
        ":",
        "=",
        "\"",
        "{",
        "}",
        "|",
        "\\n",
        "<",
        "-",
        "/",
        "://",
        "bob@",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "SSWS ",
        "00aBcDeFgHiJkLmNoPqRsTuVwXyZ012345",
        "access_token$production$",
        "712345678:AA",
        "re_",
        "curl -u bob:",
        "hunTer2-Blue77",
        "abandon ",
        "ability able about above absent absorb ",
        "abstract\n",
        "eyJhbGciOiJIUzI1NiJ9.",
        "mysql -p",
        "-----BEGIN PRIVATE KEY-----",
        "MIIEowIBAAKCAQEAx7mQabcd",
    ];
}
