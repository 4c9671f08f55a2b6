//! Patterns of `matches`: what RE2 and the `regex-lite` crate both take and both take the same way.
//!
//! A pattern is compiled when an expression is parsed and never at evaluation. Its weight, which a match costs for
//! every few bytes of text, is computed from the pattern alone, so that another version of the crate cannot change
//! what a verdict costs.

use regex_lite::{Regex, RegexBuilder};

/// How many bytes a pattern may have.
pub(super) const PATTERN_SIZE_MAX: usize = 1000;

/// How heavy a pattern may be.
pub(super) const PATTERN_WEIGHT_MAX: u64 = 2000;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    weight: u64,
}

/// Why a text is not a pattern.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PatternError {
    Syntax(String),
    Limit(String),
    Unsupported(&'static str),
}

impl Pattern {
    pub(super) fn new(text: &str) -> Result<Pattern, PatternError> {
        if text.len() > PATTERN_SIZE_MAX {
            let message = format!("a pattern has at most {PATTERN_SIZE_MAX} bytes");
            return Err(PatternError::Limit(message));
        }
        let weight = weigh(text)?;
        if weight > PATTERN_WEIGHT_MAX {
            let message = format!("the pattern repeats too much: it weighs more than {PATTERN_WEIGHT_MAX}");
            return Err(PatternError::Limit(message));
        }
        match RegexBuilder::new(text).build() {
            Ok(regex) => Ok(Pattern { regex, weight }),
            Err(error) => Err(PatternError::Syntax(error.to_string())),
        }
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Returns the cost of a search in this number of bytes.
    pub(super) fn price(&self, bytes: usize) -> u64 {
        (bytes as u64 + 1) * self.weight / 8
    }
}

/// Counts what a pattern is made of: one for every character, class and group, times the repetitions around it.
/// Refuses by name what the crate has and RE2 has not.
fn weigh(text: &str) -> Result<u64, PatternError> {
    // For each open group what it holds so far, and what the item before the place weighs.
    let mut groups = vec![0u64];
    let mut last = 0;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '(' => {
                check_flags(rest.clone())?;
                groups.push(1);
                last = 0;
            }
            ')' => {
                last = if groups.len() > 1 { groups.pop().unwrap_or(1) } else { 1 };
                add(&mut groups, last);
            }
            '{' => {
                let count: String = rest.by_ref().take_while(|c| *c != '}').collect();
                let times =
                    count.split(',').filter_map(|part| part.trim().parse().ok()).max().unwrap_or(1u64);
                let more = last.saturating_mul(times.saturating_sub(1));
                last = last.saturating_add(more);
                add(&mut groups, more);
            }
            '[' => {
                skip_class(&mut rest);
                last = 2;
                add(&mut groups, last);
            }
            '\\' => {
                match rest.next() {
                    Some('<' | '>') => return Err(PatternError::Unsupported("a word edge other than \\b")),
                    Some('b') if rest.peek() == Some(&'{') => {
                        return Err(PatternError::Unsupported("a word edge other than \\b"));
                    }
                    _ => {}
                }
                last = 1;
                add(&mut groups, last);
            }
            '*' | '+' | '?' => {
                last = last.saturating_add(1);
                add(&mut groups, 1);
            }
            _ => {
                last = 1;
                add(&mut groups, last);
            }
        }
    }
    Ok(groups.into_iter().fold(1, u64::saturating_add))
}

fn add(groups: &mut [u64], weight: u64) {
    if let Some(group) = groups.last_mut() {
        *group = group.saturating_add(weight);
    }
}

fn check_flags(mut rest: std::iter::Peekable<std::str::Chars<'_>>) -> Result<(), PatternError> {
    if rest.next() != Some('?') || matches!(rest.peek(), Some('P' | '<')) {
        return Ok(());
    }
    let flags = rest.take_while(|c| !matches!(c, ':' | ')'));
    if flags.into_iter().any(|flag| matches!(flag, 'x' | 'R')) {
        return Err(PatternError::Unsupported("this flag of a pattern"));
    }
    Ok(())
}

/// Goes behind the `]` that ends a class. The first character is a member, whatever it is.
fn skip_class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    if rest.peek() == Some(&'^') {
        rest.next();
    }
    let mut first = true;
    let mut named = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            '[' if rest.peek() == Some(&':') => named = true,
            ']' if named => named = false,
            ']' if !first => return,
            _ => {}
        }
        first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_follows_what_is_written_and_how_often_it_repeats() {
        for (text, expected) in [
            ("", 1),
            ("abc", 4),
            ("[a-z]{3}", 7),
            ("(ab){10}", 31),
            ("((a{10}){10}){10}", 1 + (1 + (1 + 10) * 10) * 10),
            ("a{2,5}b", 7),
            ("a{1000}{1000}", 1_000_001),
            (r"\d+\.\d{2}", 6),
            ("(abc)+{10}", 1 + 50),
            ("[]a]x[[:alpha:]]", 6),
        ] {
            assert_eq!(weigh(text), Ok(expected), "{text}");
        }
        assert!(matches!(Pattern::new("(a{100}){100}"), Err(PatternError::Limit(_))));
        assert!(matches!(Pattern::new(&"a".repeat(1001)), Err(PatternError::Limit(_))));
        assert!(matches!(Pattern::new("(a"), Err(PatternError::Syntax(_))));
        assert!(matches!(Pattern::new("(?x) a"), Err(PatternError::Unsupported(_))));
        assert!(matches!(Pattern::new(r"\<a"), Err(PatternError::Unsupported(_))));
        assert!(Pattern::new("(?i)ab|(?P<x>c)").unwrap().is_match("xAB"));
    }
}
