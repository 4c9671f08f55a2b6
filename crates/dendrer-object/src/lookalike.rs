//! Names that look like other names (design, 14.1; Unicode Technical Standard 39).
//!
//! The tables are those of one version of `unicode-security`: they are a part of the version of the kernel's rules.

use unicode_normalization::UnicodeNormalization as _;
use unicode_security::mixed_script::AugmentedScriptSet;
use unicode_security::skeleton;

use crate::text::acts;

/// Whether a name mixes scripts, so that a letter of one may pass for a letter of another. Han with kana, Hangul or Bopomofo, and
/// Latin with these, is how people write and no mixture.
pub fn mixes_scripts(name: &str) -> bool {
    if name.is_ascii() || !AugmentedScriptSet::for_str(name).is_empty() {
        return false;
    }
    let others: String = name.chars().filter(|c| !is_latin(*c)).collect();
    let rest = AugmentedScriptSet::for_str(&others);
    let is_east_asian = rest.hanb || rest.jpan || rest.kore;
    !(is_east_asian && others.len() < name.len() && !rest.is_empty())
}

fn is_latin(c: char) -> bool {
    let with_latin = |c: char| !AugmentedScriptSet::for_str(&format!("a{c}")).is_empty();
    let with_greek = |c: char| !AugmentedScriptSet::for_str(&format!("\u{3b1}{c}")).is_empty();
    with_latin(c) && !with_greek(c)
}

/// Whether a name is another one but for case, blanks, invisible characters or, if it is not ASCII, letters that look alike. Equal
/// names do not resemble one another.
pub fn resembles(name: &str, other: &str) -> bool {
    if name == other {
        return false;
    }
    let (plain, plain_other) = (folded(name), folded(other));
    plain == plain_other
        || !name.is_ascii() && skeleton(&plain).eq(skeleton(&plain_other))
        || !name.is_ascii() && skeleton(name).eq(skeleton(other))
}

fn folded(name: &str) -> String {
    let seen = name.chars().filter(|c| !c.is_whitespace() && !acts(*c));
    seen.flat_map(char::to_lowercase).collect()
}

/// Returns the characters at the first place where two texts that look alike differ, with their number from 1 on; `None` of a text
/// that ends there. `None` if the texts are equal, or a reader sees that they differ.
pub fn hidden_difference(a: &str, b: &str) -> Option<(usize, [Option<char>; 2])> {
    if a == b || a.is_ascii() && b.is_ascii() {
        return None;
    }
    let is_alike = a.nfkc().eq(b.nfkc()) || skeleton(a).eq(skeleton(b));
    let (mut left, mut right) = (a.chars(), b.chars());
    let mut number = 0;
    is_alike.then(|| {
        loop {
            number += 1;
            let pair = [left.next(), right.next()];
            if pair[0] != pair[1] || pair[0].is_none() {
                return (number, pair);
            }
        }
    })
}

/// Whether a character that is not ASCII looks like one of ASCII.
pub fn passes_for_ascii(c: char) -> bool {
    !c.is_ascii() && c.is_alphanumeric() && {
        let mut units = [0u8; 4];
        skeleton(c.encode_utf8(&mut units)).all(|shown| shown.is_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_character_that_differs_unseen_is_found() {
        let at = |number, a: char, b: char| Some((number, [Some(a), Some(b)]));
        for (a, b, expected) in [
            ("a\u{2011}b", "a-b", at(2, '\u{2011}', '-')),
            ("\u{410}", "A", at(1, '\u{410}', 'A')),
            ("\u{ff21}1", "A1", at(1, '\u{ff21}', 'A')),
            ("e\u{301}", "\u{e9}", at(1, 'e', '\u{e9}')),
            ("a", "a", None),
            ("l0", "1O", None),
            ("Z\u{fc}rich", "Zurich", None),
        ] {
            assert_eq!(hidden_difference(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn names_that_mix_scripts_are_told_from_those_that_do_not() {
        for (name, mixes) in [
            ("drop_table", false),
            ("dr\u{43e}p_table", true),
            ("поиск", false),
            ("поиск_search", true),
            ("検索する", false),
            ("search検索", false),
            ("검색_search", false),
            ("naïve-search", false),
            ("\u{3b1}lpha", true),
            ("检索ж", true),
            ("tool.1/x", false),
        ] {
            assert_eq!(mixes_scripts(name), mixes, "{name}");
        }
    }

    #[test]
    fn names_resemble_one_another_by_case_blanks_and_letters() {
        for (name, is_alike) in [
            ("Drop_Table", true),
            ("drop_table ", true),
            ("drop _table", true),
            ("drop\u{200b}_table", true),
            ("dr\u{43e}p_table", true),
            ("ԁrop_table", true),
            ("drop_table", false),
            ("drop_tables", false),
            ("drop-table", false),
        ] {
            assert_eq!(resembles(name, "drop_table"), is_alike, "{name}");
        }
    }

    #[test]
    fn letters_that_pass_for_ascii_are_known() {
        for (c, passes) in
            [('\u{43e}', true), ('é', false), ('ж', false), ('o', false), ('検', false), ('Ο', true)]
        {
            assert_eq!(passes_for_ascii(c), passes, "{c}");
        }
    }
}
