//! A value that is looked for, and the places of JSON that have it.
//!
//! Pure: reads no run. Texts that hold JSON are read as JSON; other texts have the value as a whole word.
//!
//! Rule: a text of bytes that [`Wanted::may_be_in`] turns away has no equal value; test `the_filter_turns_away_no_match`.

use dendrer_object::number::Number;
use dendrer_object::{Pointer, Value, json};

use memchr::memmem::Finder;

use super::decimal;

/// How many texts of JSON inside each other are read.
const TEXTS_MAX: usize = 8;

/// How many characters of JSON an object around a value may have to be shown.
const WITHIN_MAX: usize = 140;

/// The shortest text that is looked for.
const TEXT_MIN: usize = 3;

/// The shortest text that is looked for as words of a longer one.
const WORDS_MIN: usize = 8;

/// The fewest digits of a number that is looked for as a word of a text.
const DIGITS_MIN: usize = 3;

/// A value that is looked for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// The values that count as equal: the value, and of a number with a tail of noise the number without it.
    equal: Vec<Value>,
    /// Bytes that every canonical text with one of the values has.
    mark: Mark,
}

/// Bytes by which a text that cannot have a value is passed over.
#[derive(Debug, Clone)]
enum Mark {
    /// The text of a number without its sign, and its significant digits for a spelling with an exponent.
    Number(Finder<'static>, Vec<u8>),
    /// A run of letters and digits.
    Text(Finder<'static>),
}

/// A place in JSON that has a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hit {
    /// The names and indexes that lead there, through texts of JSON.
    pub(super) path: Vec<String>,
    /// The value that was found: the one of the values that counts as equal.
    pub(super) value: Value,
    /// The smallest object around it if that is short, else the leaf.
    pub(super) within: Value,
}

impl Wanted {
    /// A value that a write left somewhere; `None` for one that is not looked for.
    pub(super) fn value(value: &Value) -> Option<Wanted> {
        match value {
            Value::Number(number) if decimal::is_trivial(number) => None,
            Value::Number(number) => {
                let plain = decimal::without_noise(number);
                let is_part = decimal::text(&decimal::magnitude(number))
                    .starts_with(&decimal::text(&decimal::magnitude(&plain)));
                // No part of 1.9999999999999998 is one of 2: then no text is passed over.
                let mark =
                    if is_part { Mark::of_number(&plain) } else { Mark::Text(Finder::new("").into_owned()) };
                let plain = Some(Value::Number(plain)).filter(|plain| plain != value);
                Some(Wanted::new(std::iter::once(value.clone()).chain(plain).collect(), mark))
            }
            Value::String(text) if text.chars().count() < TEXT_MIN => None,
            Value::String(text) => Some(Wanted::new(vec![value.clone()], Mark::of_text(text))),
            _ => None,
        }
    }

    /// A change of a number: an equal one, and of a decrease after it one without the minus.
    pub(super) fn changes(change: &Value) -> Vec<Wanted> {
        let magnitude = change.as_number().map(|number| Value::Number(decimal::magnitude(number)));
        let magnitude = magnitude.filter(|magnitude| magnitude != change);
        [change].into_iter().chain(&magnitude).filter_map(Wanted::value).collect()
    }

    fn new(equal: Vec<Value>, mark: Mark) -> Wanted {
        Wanted { equal, mark }
    }

    /// Whether a canonical text may have an equal value.
    pub(super) fn may_be_in(&self, text: &[u8]) -> bool {
        // An escape inside of a text of JSON can spell any letter.
        let is_escaped = || memchr::memmem::find(text, br"\\u").is_some();
        match &self.mark {
            Mark::Number(number, digits) => {
                let has_exponent = || number.needle().contains(&b'e') || has_exponent(text);
                number.find(text).is_some() || (has_exponent() && has_digits(text, digits)) || is_escaped()
            }
            Mark::Text(part) => part.find(text).is_some() || is_escaped(),
        }
    }

    /// Finds the first place in a value that has an equal one.
    pub(super) fn find(&self, value: &Value) -> Option<Hit> {
        let mut search = Search { wanted: self, path: Vec::new() };
        let (value, within) = search.walk(value, None, 0)?;
        Some(Hit { path: search.path, value, within })
    }

    /// Returns the value that a scalar is equal to, or that it has as a word.
    fn equal_to(&self, leaf: &Value) -> Option<&Value> {
        let equal = self.equal.iter().find(|equal| *equal == leaf);
        equal.or_else(|| {
            let text = leaf.as_str()?;
            self.equal.iter().find(|equal| match equal {
                Value::Number(number) => is_word_of(number, text),
                Value::String(words) => are_words_of(words, text),
                _ => false,
            })
        })
    }
}

impl Mark {
    fn of_number(number: &Number) -> Mark {
        let text = decimal::text(&decimal::magnitude(number));
        Mark::Number(Finder::new(&text).into_owned(), decimal::significant(number))
    }

    fn of_text(text: &str) -> Mark {
        let parts = text.split(|c: char| !c.is_ascii_alphanumeric());
        Mark::Text(Finder::new(parts.max_by_key(|part| part.len()).unwrap_or_default()).into_owned())
    }
}

/// Whether a text may have a number with an exponent.
fn has_exponent(text: &[u8]) -> bool {
    let is_one = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        let after = text.get(at + 1);
        before.is_some_and(u8::is_ascii_digit)
            && after.is_some_and(|c| c.is_ascii_digit() || b"+-".contains(c))
    };
    memchr::memchr2_iter(b'e', b'E', text).any(is_one)
}

/// Whether digits follow one another in a text, with at most a point between two of them.
fn has_digits(text: &[u8], digits: &[u8]) -> bool {
    let Some((first, rest)) = digits.split_first() else { return true };
    memchr::memchr_iter(*first, text).any(|at| {
        let mut following = text[at + 1..].iter().filter(|c| **c != b'.');
        rest.iter().all(|digit| following.next() == Some(digit))
    })
}

/// A walk through a value; `path` leads to the place where it is.
struct Search<'w> {
    wanted: &'w Wanted,
    path: Vec<String>,
}

impl Search<'_> {
    /// Returns the equal value and what is shown around it; `path` then leads to it.
    fn walk(&mut self, value: &Value, around: Option<&Value>, texts: usize) -> Option<(Value, Value)> {
        match value {
            Value::Object(members) => {
                members.entries().find_map(|entry| self.step(&entry.key, &entry.value, Some(value), texts))
            }
            Value::Array(items) => items
                .iter()
                .enumerate()
                .find_map(|(at, item)| self.step(&at.to_string(), item, around, texts)),
            leaf => {
                if let Some(equal) = self.wanted.equal.iter().find(|equal| *equal == leaf) {
                    return Some((equal.clone(), self.shown(leaf, around)));
                }
                if let Some(inner) = leaf.as_str().filter(|_| texts < TEXTS_MAX).and_then(json_in) {
                    return self.walk(&inner, around, texts + 1);
                }
                let equal = self.wanted.equal_to(leaf)?.clone();
                Some((equal, self.shown(leaf, around)))
            }
        }
    }

    fn step(
        &mut self,
        name: &str,
        value: &Value,
        around: Option<&Value>,
        texts: usize,
    ) -> Option<(Value, Value)> {
        self.path.push(name.to_owned());
        let found = self.walk(value, around, texts);
        if found.is_none() {
            self.path.pop();
        }
        found
    }

    /// Returns the object around a leaf if it is short, else the leaf; of a long text the part around the value.
    fn shown(&self, leaf: &Value, around: Option<&Value>) -> Value {
        let is_short = |value: &&Value| {
            value.size() <= 4 * WITHIN_MAX as u64 && json::to_string(value).chars().count() <= WITHIN_MAX
        };
        if let Some(object) = around.filter(is_short) {
            return object.clone();
        }
        match leaf.as_str() {
            Some(text) if text.chars().count() > WITHIN_MAX => Value::from(self.part(text)),
            _ => leaf.clone(),
        }
    }

    /// Returns the part of a long text around the first equal value.
    fn part(&self, text: &str) -> String {
        let found = self.wanted.equal.iter().filter_map(|equal| match equal {
            Value::Number(number) => {
                numbers(text).find(|(_, word)| is_number(number, word)).map(|(at, _)| at)
            }
            Value::String(words) => starts_of(words, text).next(),
            _ => None,
        });
        let at = found.min().unwrap_or(0);
        let before = text[..at].chars().rev().take(WITHIN_MAX / 2).map(char::len_utf8).sum::<usize>();
        let begin = at - before;
        let part: String = text[begin..].chars().take(WITHIN_MAX).collect();
        let (front, end) = (begin > 0, begin + part.len() < text.len());
        format!("{}{part}{}", if front { "..." } else { "" }, if end { "..." } else { "" })
    }
}

/// Reads a text that holds JSON as a whole.
fn json_in(text: &str) -> Option<Value> {
    let text = text.trim();
    let begins = |c: u8| matches!(c, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9');
    text.bytes().next().filter(|c| begins(*c))?;
    json::parse_door(text.as_bytes()).ok()
}

/// Whether a text has a number of enough digits as a word.
fn is_word_of(number: &Number, text: &str) -> bool {
    let digits = decimal::text(number).bytes().filter(u8::is_ascii_digit).count();
    digits >= DIGITS_MIN && numbers(text).any(|(_, word)| is_number(number, word))
}

/// The words of a text that are not part of a longer number, such as `1'310`, `12 310`, `11/310` or `044 310 12 12`: groups of digits
/// with one separator between them are one number.
fn numbers(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let joins = |separator: Option<char>, digit: Option<char>| {
        separator.is_some_and(|c| SEPARATORS.contains(&c)) && digit.is_some_and(|c| c.is_ascii_digit())
    };
    words(text).filter(move |(at, word)| {
        let (mut before, mut after) = (text[..*at].chars().rev(), text[at + word.len()..].chars());
        let is_signed = word.starts_with('-');
        let continues = !is_signed && joins(before.next(), before.next());
        !continues && !joins(after.next(), after.next())
    })
}

/// The characters that join groups of digits to one number; points and commas join them to one word ([`words`]).
const SEPARATORS: [char; 11] =
    ['\'', '\u{2019}', ' ', '\u{a0}', '\u{202f}', '\u{2009}', '\u{2007}', ':', '/', '\u{2010}', '\u{2011}'];

fn is_number(number: &Number, word: &str) -> bool {
    Number::parse(word).is_ok_and(|found| found == *number)
}

/// Whether a text has another one of enough characters, and no word is cut at either end.
fn are_words_of(words: &str, text: &str) -> bool {
    words.chars().count() >= WORDS_MIN && starts_of(words, text).next().is_some()
}

/// The places at which a text has another one, with no word cut at either end.
fn starts_of<'t>(words: &'t str, text: &'t str) -> impl Iterator<Item = usize> + 't {
    let is_cut = |inside: Option<char>, outside: Option<char>| {
        inside.is_some_and(is_of_word) && outside.is_some_and(is_of_word)
    };
    text.match_indices(words).map(|(at, _)| at).filter(move |at| {
        let (before, after) = (&text[..*at], &text[at + words.len()..]);
        !is_cut(words.chars().next(), before.chars().next_back())
            && !is_cut(words.chars().next_back(), after.chars().next())
    })
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The words of a text, each with its place: letters and digits, with a minus in front of a digit, and with points, minus signs
/// and, between digits, commas inside. So `1,310`, `O-310` and `v1.310` are one word each, and no 310.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let mut last: Option<char> = None;
        let start = loop {
            let (at, c) = rest.next()?;
            let follows = text[at + c.len_utf8()..].chars().next();
            let is_minus = c == '-' && follows.is_some_and(|c| c.is_ascii_digit());
            if is_of_word(c) || is_minus && !last.is_some_and(is_of_word) {
                last = Some(c);
                break at;
            }
            last = Some(c);
        };
        let mut end = start + last.map_or(0, char::len_utf8);
        while let Some((at, c)) = rest.peek().copied() {
            let follows = text[at + c.len_utf8()..].chars().next();
            let joins = match c {
                '.' | '-' => follows.is_some_and(is_of_word),
                ',' => {
                    last.is_some_and(|c| c.is_ascii_digit()) && follows.is_some_and(|c| c.is_ascii_digit())
                }
                _ => is_of_word(c),
            };
            if !joins {
                break;
            }
            rest.next();
            (last, end) = (Some(c), at + c.len_utf8());
        }
        Some((start, &text[start..end]))
    })
}

/// Returns the pointer of a path below a place.
pub(super) fn below(place: &Pointer, path: &[String]) -> Pointer {
    let above: Vec<String> = place.tokens().map(std::borrow::Cow::into_owned).collect();
    Pointer::of(above.iter().chain(path).map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        json::parse_door(text.as_bytes()).unwrap()
    }

    fn found(wanted: &str, text: &str) -> Option<String> {
        let wanted = Wanted::value(&value(wanted))?;
        let hit = wanted.find(&value(text))?;
        Some(format!("{} {}", hit.path.join("/"), hit.within))
    }

    #[test]
    fn leaves_are_found_with_the_object_around_them() {
        for (wanted, text, expected) in [
            ("310", r#"{"a":[{"price":310.0}]}"#, Some(r#"a/0/price {"price":310}"#)),
            (
                "310",
                r#"{"a":"{\"price\": 310.0, \"c\": \"EUR\"}"}"#,
                Some(r#"a/price {"c":"EUR","price":310}"#),
            ),
            ("310", r#"{"a":"{\"b\":\"[3.1e2]\"}"}"#, Some(r#"a/b/0 {"b":"[3.1e2]"}"#)),
            ("310", r#"["the price is 310.00."]"#, Some(r#"0 "the price is 310.00.""#)),
            ("310", r#"["1,310 O-310 v1.310 3100 -310 310x"]"#, None),
            ("310", r#"["a (310), b"]"#, Some(r#"0 "a (310), b""#)),
            (
                "310",
                r#"["CHF 1'310", "1\u2019310", "1 310", "1\u00a0310", "1\u202f310", "1_310", "1.310"]"#,
                None,
            ),
            (
                "310",
                r#"["310'000", "310 000", "12:310", "11/310", "310:12", "310/450", "044 310 12 12"]"#,
                None,
            ),
            ("310", r#"["CH93 0310 310 6"]"#, None),
            ("310", r#"["310,5 310.50"]"#, None),
            ("310.5", r#"["it is 310.50: cheap"]"#, Some(r#"0 "it is 310.50: cheap""#)),
            ("310", r#"["5, 310; 'x' 310."]"#, Some(r#"0 "5, 310; 'x' 310.""#)),
            ("310", r#"["price: 310"]"#, Some(r#"0 "price: 310""#)),
            ("310", r#"["EUR/310"]"#, Some(r#"0 "EUR/310""#)),
            ("-310", r#"["a -310"]"#, Some(r#"0 "a -310""#)),
            ("88", r#"["a 88 b"]"#, None),
            ("88", r#"["88"]"#, Some("0 88")),
            (r#""EUR""#, r#"{"c":"EUR"}"#, Some(r#"c {"c":"EUR"}"#)),
            (r#""EUR""#, r#"{"c":"in EUR"}"#, None),
            (r#""torque wrench""#, r#"["one torque wrench."]"#, Some(r#"0 "one torque wrench.""#)),
            (r#""torque wrench""#, r#"["torque wrenches"]"#, None),
            ("0", r#"[0]"#, None),
            ("-1", r#"[-1]"#, None),
            ("true", r#"[true]"#, None),
            (r#""ab""#, r#"["ab"]"#, None),
        ] {
            assert_eq!(found(wanted, text).as_deref(), expected, "{wanted} in {text}");
        }
    }

    #[test]
    fn a_decrease_is_looked_for_with_its_sign_and_then_by_its_amount() {
        let found = |change: &str, text: &str| -> Vec<Option<Value>> {
            let find = |wanted: &Wanted| wanted.find(&value(text)).map(|hit| hit.value);
            Wanted::changes(&value(change)).iter().map(find).collect()
        };
        assert_eq!(found("-88", r#"{"a":88}"#), [None, Some(value("88"))]);
        assert_eq!(found("-88", r#"{"a":-88}"#), [Some(value("-88")), None]);
        assert_eq!(found("88", r#"{"a":-88}"#), [None]);
    }

    #[test]
    fn a_number_with_noise_is_found_without_it() {
        assert_eq!(found("0.30000000000000004", "[0.3]").as_deref(), Some("0 0.3"));
        assert_eq!(
            found("0.30000000000000004", "[0.30000000000000004]").as_deref(),
            Some("0 0.30000000000000004")
        );
        let wanted = Wanted::value(&value("0.30000000000000004")).unwrap();
        assert!(wanted.may_be_in(b"[0.3]") && wanted.may_be_in(b"[0.30000000000000004]"));
        let wanted = Wanted::value(&value("1.9999999999999998")).unwrap();
        assert!(
            wanted.may_be_in(b"[2]")
                && wanted.may_be_in(b"[1.9999999999999998]")
                && wanted.find(&value("[2]")).is_some()
        );
    }

    #[test]
    fn a_long_text_is_shown_around_the_value() {
        let text = format!("{} 310 {}", "a".repeat(500), "b".repeat(500));
        let hit = Wanted::value(&value("310")).unwrap().find(&Value::from(text)).unwrap();
        let shown = hit.within.as_str().unwrap().to_owned();
        assert!(shown.starts_with("...a") && shown.contains(" 310 b") && shown.ends_with("b..."), "{shown}");
        assert_eq!(shown.chars().count(), WITHIN_MAX + 6);
    }

    #[test]
    fn the_filter_turns_away_no_match() {
        for (wanted, text) in [
            ("310", r#""310""#),
            ("310", r#""{\"a\":3.1e2}""#),
            ("149.9", r#"{"a":149.90}"#),
            ("1e+22", r#"{"a":10000000000000000000000}"#),
            (r#""a\u0001bcdef""#, r#"["a\u0001bcdef"]"#),
            (r#""hammer""#, r#"["{\"a\":\"h\\u0061mmer\"}"]"#),
            (r#""\u8b1d\u8b1d\u8b1d""#, r#"["{\"a\":\"\\u8b1d\\u8b1d\\u8b1d\"}"]"#),
        ] {
            let wanted = Wanted::value(&value(wanted)).unwrap();
            let text = value(text);
            assert!(wanted.find(&text).is_some(), "{text}");
            assert!(wanted.may_be_in(&json::to_vec(&text)), "{text}");
        }
        assert!(!Wanted::value(&value("310")).unwrap().may_be_in(br#"{"a":130}"#));
    }
}
