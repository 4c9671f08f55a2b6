//! Counts phrases in comments that hide the noun of the code.

use super::limits::Count;
use super::source::Source;

struct Phrases {
    key: &'static str,
    meaning: &'static str,
    /// Lower case. `*` stands for one word.
    any: &'static [&'static str],
}

const COUNTED: [Phrases; 7] = [
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
    Phrases { key: "words.says", meaning: "times a comment has says for an action", any: &["says"] },
    Phrases {
        key: "words.tells",
        meaning: "times a comment has tells or told for an action",
        any: &["tells", "told"],
    },
    Phrases {
        key: "words.behind",
        meaning: "times a comment names a place for a meaning: behind, beside",
        any: &["behind", "beside"],
    },
];

/// Beginnings of a sentence without a noun of the code. The capital makes a beginning of them.
const HEADLESS: [&[&str]; 6] =
    [&["What"], &["Where"], &["Whoever"], &["That"], &["Of", "the"], &["Of", "one"]];

/// Counts every row in the comments of `crates/*/src`.
pub(super) fn count(sources: &[Source]) -> Vec<Count> {
    let count = |row: &Phrases| {
        let places = sources.iter().flat_map(|source| found(row, source)).collect();
        Count::of(row.key, row.meaning, places)
    };
    let headless = sources.iter().flat_map(headless).collect();
    let headless = Count::of("words.no_head", "sentences of comments begin without a noun", headless);
    COUNTED.iter().map(count).chain([headless]).collect()
}

/// Returns the sentences of comments that begin without a noun.
fn headless(source: &Source) -> Vec<String> {
    let words = source.comments.iter().flat_map(|(line, text)| {
        let words = text.split_whitespace().map(|word| word.trim_matches(['/', '!', '(', '"', '*', ',']));
        words.filter(|word| !word.is_empty()).map(move |word| (*line, word))
    });
    let words: Vec<(usize, &str)> = words.collect();
    let begins = |at: &usize| {
        let said = words[*at..].iter().map(|(_, word)| *word);
        HEADLESS.iter().any(|wanted| said.clone().take(wanted.len()).eq(wanted.iter().copied()))
    };
    let place = |at: usize| {
        let said: Vec<&str> = words[at..].iter().take(4).map(|(_, word)| *word).collect();
        format!("{}:{}: {}", source.name, words[at].0, said.join(" "))
    };
    (0..words.len()).filter(begins).map(place).collect()
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
        assert_eq!(numbers[..expected.len()], *expected);
    }

    #[test]
    fn verbs_and_places_of_speech_are_counted() {
        check("// It says so, and beside it tells.\n// Behind it is told.", &[0, 0, 0, 0, 1, 2, 2, 0]);
    }

    #[test]
    fn sentences_without_a_noun_are_counted_by_their_beginning() {
        check("/// What it is. Of one run. Of\n/// the rest.", &[0, 0, 0, 0, 0, 0, 0, 3]);
        check("// The run, of the other. Off the chain, what is that?", &[0; 8]);
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
