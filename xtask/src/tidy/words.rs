//! Counts phrases in comments that hide the noun of the code.

use super::limits::Count;
use super::source::Source;

struct Phrases {
    key: &'static str,
    meaning: &'static str,
    /// Lower case. `*` stands for one word.
    any: &'static [&'static str],
}

const COUNTED: [Phrases; 4] = [
    Phrases {
        key: "words.people",
        meaning: "times a comment names people for code: whoever, nobody, somebody",
        any: &["whoever", "nobody", "somebody", "anybody", "everybody"],
    },
    Phrases {
        key: "words.body",
        meaning: "times a comment names a body for a state: stands, rests on, goes on",
        any: &["stands", "rests on", "goes on", "comes about", "brought about"],
    },
    Phrases {
        key: "words.none",
        meaning: "times a comment says is none, are none, is no X that",
        any: &["is none", "are none", "is no * that"],
    },
    Phrases {
        key: "words.newcomer",
        meaning: "times a comment says a newcomer would break",
        any: &["a newcomer would break"],
    },
];

/// Counts every row in the comments of `crates/*/src`.
pub(super) fn count(sources: &[Source]) -> Vec<Count> {
    let count = |row: &Phrases| {
        let places = sources.iter().flat_map(|source| found(row, source)).collect();
        Count::of(row.key, row.meaning, places)
    };
    COUNTED.iter().map(count).collect()
}

fn found(row: &Phrases, source: &Source) -> Vec<String> {
    let mut places = Vec::new();
    // A phrase may go over the end of a line.
    let words: Vec<(usize, String)> =
        source.comments.iter().flat_map(|(line, text)| words(*line, text)).collect();
    for phrase in row.any {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        let is_match = |words: &&[(usize, String)]| {
            words
                .iter()
                .zip(&phrase)
                .all(|((_, word), wanted)| word == wanted || *wanted == "*" && word != ".")
        };
        let matches = words.windows(phrase.len()).filter(is_match);
        places.extend(matches.map(|words| {
            let said: Vec<&str> = words.iter().map(|(_, word)| word.as_str()).collect();
            format!("{}:{}: {}", source.name, words[0].0, said.join(" "))
        }));
    }
    places
}

/// Words of a comment, lower case, with `.` between sentences.
fn words(line: usize, text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    for piece in text.split_whitespace() {
        let word = piece.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if !word.is_empty() {
            words.push((line, word));
        }
        if piece.ends_with(['.', ',', ':', ';', '?']) {
            words.push((line, ".".to_owned()));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[usize]) {
        let source = Source::of("crates/x/src/a.rs", text).unwrap();
        let numbers: Vec<usize> = count(&[source]).iter().map(|count| count.number).collect();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn phrases_are_counted_in_comments_alone() {
        check("// Nobody, and whoever.\nlet nobody = \"whoever\";", &[2, 0, 0, 0]);
        check("/// It rests\n/// on this. That stands.\nfn a() {}", &[0, 2, 0, 0]);
        check("// This is no run that is. There is none.\n//! A newcomer would break it.", &[0, 0, 2, 1]);
    }

    #[test]
    fn a_phrase_does_not_go_over_the_end_of_a_sentence() {
        check("// It rests. On this.\n// This is no run. That is.", &[0, 0, 0, 0]);
    }
}
