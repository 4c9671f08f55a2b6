//! Files in the spelling of a source document, compared with its hashes, as lines and as a document.
//!
//! A file that passes is what those documents call verified. That is less than INTACT: their formulas leave fields
//! uncovered, so the word is never used here.

use dendrer::evidence::branches::BranchReport;
use dendrer_object::{Code, Value, document};

use crate::answer::{End, ItemAnswer, Line, Page};
use crate::branches::{FileBranch, branch_lines};
use crate::quote;

/// The code of a line whose hash does not fit.
const HASH: Code = Code::E0303;

/// A file that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFile {
    /// The file, as it was named.
    pub file: String,
    /// The number of its lines.
    pub lines: u64,
    /// The first line that does not fit, from 1, and why; `None` if all do.
    pub fault: Option<(u64, String)>,
    /// The branches of a file of nodes, and the members that its formula does not cover.
    pub branches: Option<(Vec<BranchReport>, &'static [&'static str])>,
    /// Of a chain: how many rows each rule is of, and the lines of those that break it.
    pub rules: Vec<RowRule>,
}

impl ProfileFile {
    /// A file without branches and rules of rows.
    pub fn new(file: &str, lines: u64, fault: Option<(u64, String)>) -> ProfileFile {
        ProfileFile { file: file.to_owned(), lines, fault, branches: None, rules: Vec::new() }
    }
}

/// A rule of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowRule {
    /// Its name.
    pub rule: &'static str,
    /// How many rows it was checked of.
    pub rows: u64,
    /// The lines of those that break it.
    pub broken: Vec<u64>,
}

/// The check of some files: counts those that fail.
#[derive(Debug, Clone)]
pub struct ProfileAnswer {
    name: &'static str,
    failed: u64,
}

impl ProfileAnswer {
    /// Begins the answer for the profile with a name.
    pub fn new(name: &'static str) -> ProfileAnswer {
        ProfileAnswer { name, failed: 0 }
    }
}

document! {
    /// Files checked against the hashes of a source document
    pub object ProfileDocument: "profile" (name: &str) {
        /// The source document
        profile: ["paper" | "cfd" | "carl"] = name,
        /// The files
        items: stream CheckedFile,
    }

    /// A file that was checked
    object CheckedFile(checked: &ProfileFile) {
        let (line, why) = checked.fault.as_ref().map(|(line, why)| (*line, why)).unzip();
        let (branches, uncovered) = checked.branches.as_ref().map(|(list, names)| (list, *names)).unzip();
        /// The file, as it was named
        file: &str = &checked.file,
        /// The number of lines
        lines: u64 = checked.lines,
        /// Whether every line fits
        ok: bool = checked.fault.is_none(),
        /// The first line that does not fit, from 1; null if all do
        line: Option<u64> = line,
        /// The reason why it does not fit
        why: Option<&String> = why,
        /// The branch of each agent, for a file of nodes
        branches?: Vec<FileBranch> = branches.map(|branches| branches.iter().map(FileBranch::of).collect()),
        /// The members that the formula does not cover
        uncovered?: &[&str] = uncovered,
        /// The rules of the rows, for a chain
        rules?: Vec<RowRuleObject> =
            (!checked.rules.is_empty()).then(|| checked.rules.iter().map(RowRuleObject::of).collect()),
    }

    /// A rule of rows
    object RowRuleObject(checked: &RowRule) {
        /// The rule
        rule: ["row" | "content_hash" | "prev_hash"] = checked.rule,
        /// The number of rows that it was checked for
        rows: u64 = checked.rows,
        /// The lines that break it
        broken: &[u64] = &checked.broken,
    }
}

impl ItemAnswer for ProfileAnswer {
    type Item = ProfileFile;

    fn item(&mut self, item: &ProfileFile) -> Option<Value> {
        self.failed += u64::from(item.fault.is_some());
        Some(CheckedFile::of(item).into())
    }

    fn item_lines(&mut self, item: &ProfileFile, _: &Page) -> Vec<Line> {
        self.failed += u64::from(item.fault.is_some());
        if let Some((branches, uncovered)) = &item.branches {
            let mut lines: Vec<Line> = vec![
                "=== CORTEX FORENSIC DEBUGGER (CFD) v2.0.0 ===".into(),
                format!("Loaded {} trace nodes from DATG.", item.lines).into(),
            ];
            lines.extend(branch_lines(branches));
            lines.push(format!("not covered by the formula: {}", uncovered.join(", ")).into());
            return lines;
        }
        let file = quote::escape(&item.file);
        if !item.rules.is_empty() {
            let ok = if item.fault.is_some() { "FAIL" } else { "OK" };
            let broken = |rule: &RowRule| match rule.broken.first() {
                None => String::new(),
                Some(line) => format!(", broken {} (first at line {line})", rule.broken.len()),
            };
            let rule = |rule: &RowRule| {
                format!("      {:<12}  {} of {} rows{}", rule.rule, rule.rows, item.lines - 1, broken(rule))
            };
            let mut lines = vec![Line::from(format!("{ok:<4}  {file}"))];
            lines.extend(item.rules.iter().map(|each| Line::from(rule(each))));
            lines.extend(item.fault.iter().map(|(line, why)| {
                let why = quote::escape(&format!("line {line}: {why}"));
                Line::from(format!("      error[{HASH}]: {why}"))
            }));
            return lines;
        }
        vec![Line::from(match &item.fault {
            None => format!("OK    {file}: {} lines bear out their {} hashes", item.lines, self.name),
            Some((line, why)) => {
                let why = quote::escape(&format!("line {line}: {why}"));
                format!("FAIL  {file}: error[{HASH}]: {why}")
            }
        })]
    }

    fn summary(&self) -> Value {
        ProfileDocument::of(self.name).into()
    }

    fn kept_lines(&mut self, _: &Page) -> Vec<Line> {
        Vec::new()
    }

    fn last_lines(&mut self, _: &Page) -> Vec<Line> {
        Vec::new()
    }

    fn end(&self) -> End {
        if self.failed > 0 { End::Problem(HASH) } else { End::Answered }
    }
}
