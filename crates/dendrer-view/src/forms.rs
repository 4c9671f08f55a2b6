//! A check of a run in the forms of other programs: SARIF 2.1.0, annotations of GitHub, JUnit.
//!
//! The three have the same findings: a transition that lacked what its contract requires is a failure, a violation is a
//! failure, and a predicate that cannot be judged is neither passed nor failed.

use dendrer::contract::{CheckedContract, Judged};
use dendrer::kernel::predicate::Verdict;
use dendrer_object::Value;

use crate::answer::{Answer, End, Line, Page};
use crate::certainty::reasons_words;
use crate::contract::check::ContractCheckAnswer;
use crate::quote;

/// The rule that a transition breaks if the state lacks what the contract requires.
const REQUIRED: &str = "required_state";

/// One rule with its findings, for every form.
struct Row {
    rule: String,
    /// The rule in words.
    words: String,
    /// The ticks of the failures, with words; empty if the rule holds.
    found: Vec<(u64, String)>,
    /// The ticks that cannot be judged: the first tick of each reason, with words. Empty if all can.
    open: Vec<(u64, String)>,
}

/// The forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingsForm {
    /// SARIF 2.1.0, a document.
    Sarif,
    /// Annotations of GitHub, one a line.
    Github,
    /// JUnit, XML in lines.
    Junit,
}

impl FindingsForm {
    /// Reads the name of a form; `None` for another one.
    pub fn parse(name: &str) -> Option<FindingsForm> {
        match name {
            "sarif" => Some(FindingsForm::Sarif),
            "github" => Some(FindingsForm::Github),
            "junit" => Some(FindingsForm::Junit),
            _ => None,
        }
    }
}

/// A check in one of the forms. SARIF is a document for people as well; the others have lines alone.
#[derive(Debug, Clone, Copy)]
pub struct FindingsAnswer<'c> {
    /// The form.
    pub form: FindingsForm,
    /// The check.
    pub answer: ContractCheckAnswer<'c>,
}

impl Answer for FindingsAnswer<'_> {
    fn document(&self) -> Value {
        let ContractCheckAnswer { checked, all_violations } = self.answer;
        sarif(checked.run.as_str(), &rows(checked, all_violations))
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let ContractCheckAnswer { checked, all_violations } = self.answer;
        let (run, rows) = (checked.run.as_str(), rows(checked, all_violations));
        let lines = match self.form {
            FindingsForm::Sarif => vec![quote::json(&self.document())],
            FindingsForm::Github => github(run, &rows),
            FindingsForm::Junit => junit(run, &rows),
        };
        lines.into_iter().map(Line::from).collect()
    }

    fn end(&self) -> End {
        self.answer.end()
    }
}

fn rows(checked: &CheckedContract, all: bool) -> Vec<Row> {
    let lacking = checked.lacking.iter().map(|lacking| {
        let fields = lacking.lacks.iter().map(|lack| format!("{}: {}", lack.name, lack.why));
        let fields = fields.collect::<Vec<_>>().join(", ");
        (lacking.tick, format!("{} lacks what it requires: {fields}", lacking.type_name))
    });
    let words = "a transition is committed where the state has what its contract requires".to_owned();
    let mut rows = vec![Row { rule: REQUIRED.to_owned(), words, found: lacking.collect(), open: Vec::new() }];
    for terms in &checked.in_force {
        for judged in &terms.violations {
            let contracts = &terms.contracts;
            let rule = format!("{}/{}/{}", contracts.name, contracts.version, judged.predicate.name());
            // One pack may be in force twice, with another between.
            match rows.iter_mut().find(|row| row.rule == rule) {
                Some(row) => {
                    row.found.extend(stretches(judged, all));
                    row.open.extend(open(judged));
                }
                None => rows.push(Row {
                    rule,
                    words: judged.predicate.words(),
                    found: stretches(judged, all),
                    open: open(judged),
                }),
            }
        }
    }
    rows
}

fn stretches(judged: &Judged, all: bool) -> Vec<(u64, String)> {
    let stretches = judged.intervals.iter().filter(|interval| interval.verdict == Verdict::Violation);
    let words = |from: u64, to: u64| {
        let name = judged.predicate.name();
        format!("{name} from tick {from} to tick {to}: {}", judged.predicate.words())
    };
    let found = stretches.map(|one| (one.from, words(one.from, one.to)));
    found.take(if all { usize::MAX } else { 1 }).collect()
}

fn open(judged: &Judged) -> Vec<(u64, String)> {
    let unjudged = judged.reasons.iter().filter(|one| matches!(one.verdict, Verdict::Uncertain(_)));
    let name = judged.predicate.name();
    let words = reasons_words(&judged.reasons).into_iter();
    unjudged
        .zip(words)
        .map(|(one, words)| (one.from, format!("{name} cannot be judged at {words}")))
        .collect()
}

/// Writes SARIF. A location is a name and not a file: an editor cannot open a run.
fn sarif(run: &str, rows: &[Row]) -> Value {
    let text = |text: &str| Value::record([("text", Value::from(quote::escape(text)))]);
    let rules = rows.iter().map(|row| {
        Value::record([("id", Value::from(row.rule.as_str())), ("shortDescription", text(&row.words))])
    });
    let result = |index: usize, tick: u64, what: &str, kind: (&str, &str)| {
        let name = format!("{run}@{tick}");
        let place = [("fullyQualifiedName", Value::from(name)), ("kind", Value::from("member"))];
        let location = Value::record([("logicalLocations", Value::array([Value::record(place)]))]);
        Value::record([
            ("ruleId", Value::from(rows[index].rule.as_str())),
            ("ruleIndex", Value::from(index as u64)),
            ("kind", Value::from(kind.0)),
            ("level", Value::from(kind.1)),
            ("message", text(what)),
            ("locations", Value::array([location])),
        ])
    };
    let results = rows.iter().enumerate().flat_map(|(index, row)| {
        let found = row.found.iter().map(move |(tick, what)| result(index, *tick, what, ("fail", "error")));
        // A result that is neither passed nor failed has no level.
        found.chain(row.open.iter().map(move |(tick, what)| result(index, *tick, what, ("open", "none"))))
    });
    let driver = Value::record([
        ("name", Value::from("dendrer")),
        ("version", Value::from(env!("CARGO_PKG_VERSION"))),
        ("rules", Value::array(rules)),
    ]);
    let analysis = Value::record([
        ("tool", Value::record([("driver", driver)])),
        ("automationDetails", Value::record([("id", Value::from(format!("dendrer/contract-check/{run}")))])),
        ("results", Value::array(results)),
    ]);
    Value::record([("runs", Value::array([analysis])), ("version", Value::from("2.1.0"))])
}

fn github(run: &str, rows: &[Row]) -> Vec<String> {
    let data = |text: &str| quote::escape(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    let line = |level: &str, rule: &str, tick: u64, what: &str| {
        format!("::{level} title={}::{}", property(rule), data(&format!("{run}@{tick}: {what}")))
    };
    let mut lines = Vec::new();
    for row in rows {
        lines.extend(row.found.iter().map(|(tick, what)| line("error", &row.rule, *tick, what)));
        lines.extend(row.open.iter().map(|(tick, what)| line("warning", &row.rule, *tick, what)));
    }
    lines
}

fn junit(run: &str, rows: &[Row]) -> Vec<String> {
    let escape = |text: &str| {
        let text = quote::escape(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        text.replace('"', "&quot;").replace('\'', "&apos;")
    };
    let failures = rows.iter().filter(|row| !row.found.is_empty()).count();
    let errors = rows.iter().filter(|row| row.found.is_empty() && !row.open.is_empty()).count();
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", rows.len());
    let mut lines = vec![
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>".to_owned(),
        format!("<testsuites {counts}>"),
        format!("  <testsuite name=\"contract check {}\" {counts}>", escape(run)),
    ];
    for row in rows {
        let (class, name) = row.rule.rsplit_once('/').unwrap_or(("contract", &row.rule));
        let case = format!("    <testcase classname=\"{}\" name=\"{}\"", escape(class), escape(name));
        let element = |kind: &str, what: &[&str]| {
            let first = escape(what.first().copied().unwrap_or_default());
            let all = what.iter().map(|what| escape(what)).collect::<Vec<_>>().join("\n");
            format!("      <{kind} message=\"{first}\">{all}</{kind}>")
        };
        let all = row.found.iter().chain(&row.open).map(|(_, what)| &**what).collect::<Vec<&str>>();
        if all.is_empty() {
            lines.push(format!("{case}/>"));
            continue;
        }
        let kind = if row.found.is_empty() { "error" } else { "failure" };
        lines.extend([format!("{case}>"), element(kind, &all), "    </testcase>".to_owned()]);
    }
    lines.extend(["  </testsuite>".to_owned(), "</testsuites>".to_owned()]);
    lines
}
