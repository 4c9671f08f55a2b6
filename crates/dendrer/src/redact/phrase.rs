//! Recovery phrases of wallets: twelve words and more of the English list of BIP-39, wherever they are.
//!
//! The list (`bip39.txt`) is that of BIP-39 (bitcoin/bips, `bip-0039/english.txt`), with the four letters at the begin of each word
//! its own.

use std::sync::LazyLock;

use super::prefilter;
use super::vendor::SecretSpan;

/// How many words a phrase has, at least.
const WORDS_MIN: usize = 12;

/// How many bytes two words of a phrase are apart, at most.
const GAP_MAX: usize = 8;

static WORDS: LazyLock<Vec<&'static str>> = LazyLock::new(|| include_str!("bip39.txt").lines().collect());

/// For each four letters, whether a word begins with them: a bit each.
static BEGINS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut bits = vec![0u64; 27usize.pow(4) / 64 + 1];
    for word in WORDS.iter() {
        let code = begin(word.as_bytes());
        bits[code / 64] |= 1 << (code % 64);
    }
    bits
});

/// A number for the first four letters of a word.
fn begin(word: &[u8]) -> usize {
    let letter = |at: usize| word.get(at).map_or(0, |c| usize::from((c | 32).wrapping_sub(b'a').min(25)) + 1);
    ((letter(0) * 27 + letter(1)) * 27 + letter(2)) * 27 + letter(3)
}

fn may_be_word(word: &[u8]) -> bool {
    let code = begin(word);
    (3..=8).contains(&word.len()) && BEGINS[code / 64] & (1 << (code % 64)) != 0
}

/// Whether a word is one of the list.
pub(super) fn is_word(word: &str) -> bool {
    may_be_word(word.as_bytes()) && WORDS.binary_search(&&*word.to_ascii_lowercase()).is_ok()
}

/// How many bytes a phrase takes, at least: words of three letters, with a sign between them.
const LENGTH_MIN: usize = 4 * WORDS_MIN - 1;

/// Finds recovery phrases. One place in half of [`LENGTH_MIN`] is looked at: a phrase has such a place before its middle.
pub(super) fn find(text: &str, found: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let step = if prefilter::is_off() { 1 } else { LENGTH_MIN / 2 + 1 };
    let mut at = step - 1;
    let mut run: Vec<(usize, usize)> = Vec::new();
    while at < bytes.len() {
        let gap = bytes[at..].iter().take(GAP_MAX + 1).take_while(|c| !c.is_ascii_alphabetic()).count();
        let Some(mut first) = word_at(bytes, at + gap) else {
            at += step;
            continue;
        };
        while let Some(before) = word_before(bytes, first.0) {
            first = before;
        }
        run.clear();
        run.push(first);
        let mut last = first.1;
        while let Some(next) = word_after(bytes, last) {
            run.push(next);
            last = next.1;
        }
        add(text, &run, found);
        at = last.max(at) + step;
    }
}

/// The word around a letter, if it may be one of the list.
fn word_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    const LONGER: usize = 9;
    let before = bytes[..at.min(bytes.len())]
        .iter()
        .rev()
        .take(LONGER)
        .take_while(|c| c.is_ascii_alphabetic())
        .count();
    let after =
        bytes[at.min(bytes.len())..].iter().take(LONGER).take_while(|c| c.is_ascii_alphabetic()).count();
    let word = (at - before, at + after);
    (after > 0 && may_be_word(&bytes[word.0..word.1])).then_some(word)
}

/// The word of a phrase before one that begins here.
fn word_before(bytes: &[u8], start: usize) -> Option<(usize, usize)> {
    let gap = bytes[..start].iter().rev().take(GAP_MAX + 1).take_while(|c| !c.is_ascii_alphabetic()).count();
    let end = start - gap;
    (end > 0 && gap <= GAP_MAX && is_gap(&bytes[end..start])).then(|| word_at(bytes, end - 1))?
}

/// The word of a phrase after one that ends here.
fn word_after(bytes: &[u8], end: usize) -> Option<(usize, usize)> {
    let gap = bytes[end..].iter().take(GAP_MAX + 1).take_while(|c| !c.is_ascii_alphabetic()).count();
    (gap <= GAP_MAX && is_gap(&bytes[end..end + gap])).then(|| word_at(bytes, end + gap))?
}

/// Whether what is between two words is blanks, commas, quotes and numbers.
fn is_gap(gap: &[u8]) -> bool {
    // `phrase:` is the name of what follows; `3:` is a number in a list.
    let is_named = gap.first() == Some(&b':');
    !gap.is_empty()
        && !is_named
        && gap.iter().all(|c| {
            c.is_ascii_whitespace()
                || c.is_ascii_digit()
                || matches!(c, b',' | b'"' | b'\'' | b'.' | b')' | b':' | b'|' | b'-' | b'\\')
        })
}

/// Adds the phrases of a run of words that begin as words of the list do.
fn add(text: &str, run: &[(usize, usize)], found: &mut Vec<SecretSpan>) {
    if run.len() < WORDS_MIN {
        return;
    }
    // A phrase on one line ends with it; else a list goes over several.
    let bytes = text.as_bytes();
    let is_line = |two: &(usize, usize), next: &(usize, usize)| !bytes[two.1..next.0].contains(&b'\n');
    let mut lines = run.chunk_by(is_line);
    if run.len() > WORDS_MIN && lines.any(|line| line.len() >= WORDS_MIN) && run.chunk_by(is_line).count() > 1
    {
        for line in run.chunk_by(is_line) {
            add(text, line, found);
        }
        return;
    }
    for words in run.split(|(start, end)| !is_word(&text[*start..*end])) {
        // A list in the order of the alphabet is the list itself.
        let is_sorted = words.windows(2).all(|two| text[two[0].0..two[0].1] < text[two[1].0..two[1].1]);
        let is_small =
            words.iter().all(|(start, end)| text[*start..*end].bytes().all(|c| c.is_ascii_lowercase()));
        // Chance repeats few of two thousand words.
        let distinct: std::collections::BTreeSet<&str> =
            words.iter().map(|(start, end)| &text[*start..*end]).collect();
        let is_drawn = distinct.len() * 5 >= words.len() * 4;
        let is_counted = is_small || matches!(words.len(), 12 | 15 | 18 | 21 | 24);
        if words.len() < WORDS_MIN || is_sorted || !is_drawn || !is_counted {
            continue;
        }
        let is_plain =
            words.windows(2).all(|two| text.as_bytes()[two[0].1..two[1].0].iter().all(|c| matches!(c, b' ')));
        if is_plain {
            found.push(SecretSpan::new(words[0].0, words[words.len() - 1].1, "recovery-phrase"));
        } else {
            found.extend(words.iter().map(|(start, end)| SecretSpan::new(*start, *end, "recovery-phrase")));
        }
    }
}
