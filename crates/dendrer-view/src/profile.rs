//! Files in the spelling of a source document, compared with its hashes, as lines and as a document.
//!
//! A file that passes is what those documents call verified. That is less than INTACT: their formulas leave fields
//! uncovered, so the word is never used here.

use dendrer::evidence::branches::BranchReport;
use dendrer_object::{Code, Value, document};

use crate::answer::{End, ItemAnswer, Line, Page};
use crate::branches::{FileBranch, branch_lines};
use crate::quote;

/// The fact that no file shows whose lines have hashes, and which nothing counts.
const CUT: &str = "whether lines are missing at the end: a file that was cut there has the same hashes";

/// The code of a line whose hash does not fit.
const HASH: Code = Code::E0303;

/// The code of a file that is a part of a chain.
const PARTIAL: Code = Code::E0468;

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
    pub branches: Option<(Vec<BranchReport>, Vec<String>)>,
    /// Spelling of the events of nodes by which the hashes fit.
    pub spelling: Option<&'static str>,
    /// Of a chain: how many rows each rule is of, and the lines of those that break it.
    pub rules: Vec<RowRule>,
    /// First line of a chain that follows a row which is in none of the files.
    pub behind: Option<u64>,
    /// Number of chains in the file.
    pub chains: u64,
    /// Lines of a chain that follow a line which another row follows as well.
    pub forks: Vec<u64>,
    /// Lines of a chain that follow a line of another file.
    pub joins: Vec<RowJoin>,
    /// The files that are checked together, as they were named.
    pub paths: Vec<String>,
}

/// A line of a file that follows one of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowJoin {
    /// The line.
    pub line: u64,
    /// The number of the other file, from 0.
    pub file: usize,
    /// The line there.
    pub there: u64,
}

impl ProfileFile {
    /// A file without branches and rules of rows.
    pub fn new(file: &str, lines: u64, fault: Option<(u64, String)>) -> ProfileFile {
        ProfileFile {
            file: file.to_owned(),
            lines,
            fault,
            branches: None,
            spelling: None,
            rules: Vec::new(),
            behind: None,
            chains: 0,
            forks: Vec::new(),
            joins: Vec::new(),
            paths: Vec::new(),
        }
    }

    /// The name of another file that was checked with it.
    fn other(&self, join: &RowJoin) -> &str {
        self.paths.get(join.file).map_or("", String::as_str)
    }

    /// The sentence on a file that is a part of a chain.
    fn part(&self) -> Option<(u64, String)> {
        let line = self.behind.filter(|_| self.fault.is_none())?;
        let why = "prev_hash is that of a line that is in none of the files, so this is a part of a chain";
        Some((line, why.to_owned()))
    }

    /// Lines on how the rows of a chain follow each other, where that is not one after the other.
    fn shape_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.chains > 1 {
            lines.push(format!("{} chains, each checked by itself", self.chains));
        }
        if let Some(first) = self.forks.first() {
            let text = "forks, where a line is followed by several rows";
            lines.push(format!("{} {text} (first at line {first})", self.forks.len()));
        }
        lines.extend(
            self.joins.first().map(|join| {
                format!("line {} follows line {} of {}", join.line, join.there, self.other(join))
            }),
        );
        lines
    }
}

/// A line of a file that follows one of another, by name.
#[derive(Debug)]
struct NamedJoin<'f>(&'f ProfileFile, &'f RowJoin);

impl ProfileFile {
    fn named_joins(&self) -> impl Iterator<Item = NamedJoin<'_>> {
        self.joins.iter().map(|join| NamedJoin(self, join))
    }
}

/// The spelling of events by which hashes fit, in words.
const SPELLINGS: [(&str, &str); 4] = [
    ("as_written", "events as they are written (Python), and not as RFC 8785"),
    ("rfc8785", "events as RFC 8785, and not as they are written"),
    ("either", "events as they are written (Python), and as RFC 8785"),
    ("mixed", "some events as they are written (Python), others as RFC 8785"),
];

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
    parts: u64,
}

impl ProfileAnswer {
    fn count(&mut self, item: &ProfileFile) {
        self.failed += u64::from(item.fault.is_some());
        self.parts += u64::from(item.part().is_some());
    }

    /// Begins the answer for the profile with a name.
    pub fn new(name: &'static str) -> ProfileAnswer {
        ProfileAnswer { name, failed: 0, parts: 0 }
    }
}

document! {
    /// Files checked against the hashes of a source document
    pub object ProfileDocument: "profile" (name: &str) {
        /// The source document
        profile: ["paper" | "cfd" | "carl"] = name,
        /// The files
        items: stream CheckedFile,
        /// The facts that these hashes do not show of any file
        not_checked: [&str; 1] = [CUT],
    }

    /// A file that was checked
    object CheckedFile(checked: &ProfileFile) {
        let (line, why) = checked.fault.clone().or(checked.part()).unzip();
        let is_chain = !checked.rules.is_empty();
        let (branches, uncovered) = checked.branches.as_ref().map(|(list, names)| (list, &names[..])).unzip();
        /// The file, as it was named
        file: &str = &checked.file,
        /// The number of lines
        lines: u64 = checked.lines,
        /// Whether every line fits, and no row before them is missing
        ok: bool = line.is_none(),
        /// Whether the file is sound and a part of a chain: rows before it are in none of the files
        partial?: bool = is_chain.then(|| checked.part().is_some()),
        /// The first line that does not fit, from 1; null if all do
        line: Option<u64> = line,
        /// The reason why it does not fit
        why: Option<String> = why,
        /// The branch of each agent, for a file of nodes
        branches?: Vec<FileBranch> = branches.map(|branches| branches.iter().map(FileBranch::of).collect()),
        /// The members that the formula does not cover
        uncovered?: &[String] = uncovered,
        /// The spelling of events by which the hashes fit, which the formula leaves open: names sorted and numbers and escapes as
        /// the line has them (as_written), as RFC 8785 has them, either of both, or one for some nodes and the other for others
        spelling?: ["as_written" | "rfc8785" | "either" | "mixed"] = checked.spelling,
        /// The rules of the rows, for a chain
        rules?: Vec<RowRuleObject> =
            is_chain.then(|| checked.rules.iter().map(RowRuleObject::of).collect()),
        /// The number of chains in the file, for a chain
        chains?: u64 = is_chain.then_some(checked.chains),
        /// The lines that follow a line which another row follows as well, for a chain
        forks?: &[u64] = is_chain.then_some(&checked.forks[..]),
        /// The lines that follow a line of another file, for a chain
        joins?: Vec<JoinedLine> = is_chain.then(|| checked.named_joins().map(|join| JoinedLine::of(&join)).collect()),
    }

    /// A line that follows one of another file
    object JoinedLine(join: &NamedJoin<'_>) {
        /// The line
        line: u64 = join.1.line,
        /// The other file, as it was named
        file: &str = join.0.other(join.1),
        /// The line there
        there: u64 = join.1.there,
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
        self.count(item);
        Some(CheckedFile::of(item).into())
    }

    fn item_lines(&mut self, item: &ProfileFile, _: &Page) -> Vec<Line> {
        self.count(item);
        if let Some((branches, uncovered)) = &item.branches {
            let mut lines: Vec<Line> = vec![
                "=== CORTEX FORENSIC DEBUGGER (CFD) v2.0.0 ===".into(),
                format!("Loaded {} trace nodes from DATG.", item.lines).into(),
            ];
            lines.extend(branch_lines(branches));
            let uncovered = quote::escape(&uncovered.join(", "));
            lines.push(format!("not covered by the formula: {uncovered}").into());
            let spelling =
                item.spelling.and_then(|spelling| SPELLINGS.iter().find(|(word, _)| *word == spelling));
            lines.extend(spelling.map(|(_, text)| Line::from(format!("our reading: {text}"))));
            return lines;
        }
        let file = quote::escape(&item.file);
        if !item.rules.is_empty() {
            let (fault, part) = (item.fault.as_ref(), item.part());
            let ok = match (fault, &part) {
                (Some(_), _) => "FAIL",
                (None, Some(_)) => "PART",
                (None, None) => "OK",
            };
            let rows = item.rules[0].rows;
            let broken = |rule: &RowRule| match rule.broken.first() {
                None => String::new(),
                Some(line) => format!(", broken {} (first at line {line})", rule.broken.len()),
            };
            let rule = |rule: &RowRule| {
                format!("      {:<12}  {} of {rows} rows{}", rule.rule, rule.rows, broken(rule))
            };
            let mut lines = vec![Line::from(format!("{ok:<4}  {file}"))];
            lines.extend(item.rules.iter().map(|each| Line::from(rule(each))));
            let shape = item.shape_lines().into_iter();
            lines.extend(shape.map(|text| Line::from(format!("      {}", quote::escape(&text)))));
            let code = if fault.is_some() { HASH } else { PARTIAL };
            lines.extend(fault.or(part.as_ref()).map(|(line, why)| {
                let why = quote::escape(&format!("line {line}: {why}"));
                Line::from(format!("      error[{code}]: {why}"))
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
        vec![Line::from(format!("not checked: {CUT}"))]
    }

    fn end(&self) -> End {
        match (self.failed, self.parts) {
            (0, 0) => End::Answered,
            (0, _) => End::Problem(PARTIAL),
            _ => End::Problem(HASH),
        }
    }
}
