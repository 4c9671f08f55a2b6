//! Compares counts with `xtask/limits.txt`, which may only shrink.
//!
//! A count over its limit is a finding. A count below it is only printed: two branches that both lower a count would
//! otherwise conflict in the table. `cargo run -p xtask -- limits` writes what is lower; raising a limit takes an editor.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::read;

/// Path below the root of the repository.
const TABLE: &str = "xtask/limits.txt";

/// Lines of one count that a report prints.
const LINES_MAX: usize = 20;

/// Something that is counted because it should be less.
pub(super) struct Count {
    /// Name in the table.
    pub(super) key: String,
    /// Reads on after the number.
    pub(super) meaning: String,
    pub(super) number: usize,
    /// Where it was found, for a reader; a line may stand for several or for none of the number.
    pub(super) lines: Vec<String>,
}

impl Count {
    /// Counts lines.
    pub(super) fn of(key: &str, meaning: &str, lines: Vec<String>) -> Count {
        Count { key: key.to_owned(), meaning: meaning.to_owned(), number: lines.len(), lines }
    }
}

/// Compares counts with the table. Returns notes, then findings.
pub(super) fn compare(counts: &[Count], table: &str) -> (Vec<String>, Vec<String>) {
    let (limits, mut findings) = parse(table);
    let mut notes = Vec::new();
    for Count { key, meaning, number, lines } in counts {
        let limit = limits.get(key.as_str()).copied().unwrap_or(0);
        if *number > limit {
            let mut finding =
                format!("{key}: {number} {meaning}; the limit is {limit}. `tidy {key}` prints all");
            for line in lines.iter().take(LINES_MAX) {
                let _ = write!(finding, "\n    {line}");
            }
            if lines.len() > LINES_MAX {
                let _ = write!(finding, "\n    and {} more", lines.len() - LINES_MAX);
            }
            findings.push(finding);
        } else if *number < limit {
            notes.push(format!("{key}: {number} {meaning}; the limit is {limit}, `limits` lowers it"));
        } else if *number > 0 {
            notes.push(format!("{key}: {number} {meaning}"));
        }
    }
    let is_unknown = |key: &&&str| !counts.iter().any(|count| count.key == **key);
    let unknown = limits.keys().filter(is_unknown);
    findings.extend(unknown.map(|key| format!("{TABLE} has a limit for {key}, which is not counted")));
    (notes, findings)
}

/// Returns the table.
pub(super) fn table(root: &Path) -> String {
    read(&root.join(TABLE))
}

/// Writes every count that is lower than its limit into the table.
pub(super) fn lower(root: &Path, counts: &[Count]) -> Result<(), String> {
    fs::write(root.join(TABLE), lowered(counts, &table(root))).map_err(|error| format!("{TABLE}: {error}"))
}

fn lowered(counts: &[Count], table: &str) -> String {
    let line = |line: &str| {
        let limit = limit(line);
        let count = limit
            .and_then(|(key, limit)| counts.iter().find(|count| count.key == key && count.number < limit));
        count.map_or_else(|| line.to_owned(), |count| format!("{} = {}", count.key, count.number)) + "\n"
    };
    table.lines().map(line).collect()
}

/// Returns the limits and a finding for each line that is none.
fn parse(table: &str) -> (BTreeMap<&str, usize>, Vec<String>) {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (limits, others): (Vec<_>, Vec<_>) =
        lines.map(|line| limit(line).ok_or(line)).partition(Result::is_ok);
    let others = others.into_iter().filter_map(Result::err);
    (
        limits.into_iter().flatten().collect(),
        others.map(|line| format!("{TABLE}: \"{line}\" is not KEY = NUMBER")).collect(),
    )
}

fn limit(line: &str) -> Option<(&str, usize)> {
    let (key, limit) = line.split_once(" = ")?;
    Some((key, limit.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Vec<Count> {
        let lines = |number| (0..number).map(|line| format!("line {line}")).collect();
        vec![Count::of("a", "x", lines(2)), Count::of("b", "y", lines(0)), Count::of("c", "z", lines(1))]
    }

    #[test]
    fn a_count_over_its_limit_is_a_finding() {
        let (notes, findings) = compare(&counts(), "# Limits\n\na = 2\nc = 0\n");
        assert_eq!(notes, ["a: 2 x"]);
        assert_eq!(findings, ["c: 1 z; the limit is 0. `tidy c` prints all\n    line 0"]);
    }

    #[test]
    fn a_key_without_a_limit_may_not_occur() {
        let (_, findings) = compare(&counts(), "a = 2\n");
        assert_eq!(findings.len(), 1);
    }

    #[test]
    fn a_line_that_is_no_limit_and_a_key_that_is_not_counted_are_findings() {
        let (_, findings) = compare(&counts(), "a = 2\nc = 1\nd = 1\ne: 2\n");
        assert_eq!(
            findings,
            [
                "xtask/limits.txt: \"e: 2\" is not KEY = NUMBER",
                "xtask/limits.txt has a limit for d, which is not counted"
            ]
        );
    }

    #[test]
    fn limits_are_lowered_and_never_raised() {
        assert_eq!(lowered(&counts(), "# Limits\na = 3\nb = 1\nc = 0\n"), "# Limits\na = 2\nb = 0\nc = 0\n");
    }
}
