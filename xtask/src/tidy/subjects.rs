//! Holds the subject line of commits to its length.

use std::path::Path;
use std::process::Command;

/// Older commits are not checked.
const BASE: &str = "5c4452bc03129aee3df63b0646fee5f27d23a321";

/// Newest commits that are checked.
const COMMITS_MAX: &str = "50";

const SUBJECT_MAX: usize = 72;

/// Returns a finding for each subject that is too long, or why none could be read.
pub(super) fn check(root: &Path) -> Result<Vec<String>, String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let skipped = |why: &str| format!("subjects of commits are not checked: {why}");
    let is_shallow =
        git(&["rev-parse", "--is-shallow-repository"]).ok_or_else(|| skipped("no git history"))?;
    if is_shallow.trim() == "true" {
        return Err(skipped("the git history is shallow"));
    }
    let range = format!("{BASE}..HEAD");
    let log = git(&["log", "--no-merges", "-n", COMMITS_MAX, "--format=%h %s", &range]);
    Ok(long(&log.ok_or_else(|| skipped("the git history does not have their base"))?))
}

/// Returns a finding for each line of `log`, a hash and a subject, whose subject is too long.
fn long(log: &str) -> Vec<String> {
    let commits = log.lines().filter_map(|line| line.split_once(' '));
    let lengths = commits.map(|(hash, subject)| (hash, subject.chars().count()));
    let long = lengths.filter(|(_, length)| *length > SUBJECT_MAX);
    let finding =
        |(hash, length)| format!("the subject of commit {hash} has {length} characters, not {SUBJECT_MAX}");
    long.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_has_at_most_72_characters() {
        let log = format!("a1 {}\nb2 {}\n", "x".repeat(72), "y".repeat(73));
        assert_eq!(long(&log), ["the subject of commit b2 has 73 characters, not 72"]);
    }
}
