//! Files that are damaged or made to harm, in each format: an error and nothing recorded, or marked gaps, within bounded time.

use std::time::{Duration, Instant};

use dendrer_object::json::parse_door;
use dendrer_wire::import::{ImportError, ImportOptions};

use super::model::{Dice, Model};
use super::{Written, formats};
use crate::import;
use crate::spans::changed;

/// Written conversations of each format.
fn written() -> Vec<Written> {
    let mut all = Vec::new();
    for (_, can, write) in formats() {
        let made = (0..).filter_map(|seed| {
            let mut dice = Dice(seed ^ 0xbad);
            let model = Model::draw(&mut dice, can);
            (model.entries.len() > 3).then(|| write(&mut dice, &model))
        });
        let fits = |written: &Written| {
            written.may_fail.is_none() && written.choice.index.is_none() && written.main.list.len() > 6
        };
        all.extend(made.filter(fits).take(2));
    }
    all
}

/// Imports a source that may be refused; returns whether something was recorded.
fn try_import(text: &str, options: ImportOptions) -> Option<u64> {
    let start = Instant::now();
    let found = match import(text.as_bytes(), options) {
        Ok((plan, _)) => Some(plan.tally.gaps() + u64::from(plan.layout.is_cut)),
        Err(error) => {
            assert!(!matches!(error, ImportError::Repository(_)), "{error}");
            None
        }
    };
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    found
}

#[test]
fn cut_files_are_refused_or_have_gaps() {
    for written in written() {
        let text = &written.text;
        for end in (1..text.len()).step_by(text.len() / 25 + 1).filter(|end| text.is_char_boundary(*end)) {
            let is_whole = text[..end].ends_with('\n') || text[end..].starts_with('\n');
            let found = try_import(&text[..end], written.options());
            assert!(is_whole || found != Some(0), "{}", &text[..end]);
        }
    }
}

#[test]
fn values_of_other_types_are_no_panic() {
    for written in written() {
        let lines: Vec<&str> = match parse_door(written.text.as_bytes()) {
            Ok(_) => vec![&*written.text],
            Err(_) => written.text.lines().collect(),
        };
        let mut dice = Dice(7);
        for (place, line) in lines.iter().enumerate() {
            let value = parse_door(line.as_bytes()).unwrap();
            let mut at = 0;
            while let Some(other) = {
                let with =
                    dice.one(&["null", "7", "-1.5", "\"x\"", "[]", "{}", "[[1]]", r#"{"a":[null]}"#, "true"]);
                changed(&value, &mut at.clone(), &parse_door(with.as_bytes()).unwrap())
            } {
                let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
                lines[place] = other.to_string();
                try_import(&lines.join("\n"), written.options());
                // Each value of a short file, and some of a long one.
                at += 1 + dice.below(written.text.len() as u64 / 400 + 1) as usize;
            }
        }
    }
}

#[test]
fn very_deep_values_and_repeated_lines_are_bounded() {
    for written in written() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for (from, to) in [
            ("\"n\":", format!("\"deep\":{deep},\"n\":")),
            ("\"role\":", format!("\"deep\":{deep},\"role\":")),
        ] {
            let text = written.text.replacen(from, &to, 1);
            let found = try_import(&text, written.options());
            assert!(text == written.text || found != Some(0), "{}", written.format);
        }
        // The same items very often: ids, parents and calls are there again.
        let Ok(_) = parse_door(written.text.as_bytes()) else {
            let many = vec![&*written.text; 200].join("\n");
            try_import(&many, written.options());
            continue;
        };
    }
}
