//! `dendrer contract check` for programs that gather findings: SARIF 2.1.0, annotations of GitHub, JUnit.
//!
//! All three say the same: a transition that lacked what it requires is a failure, a violation is a failure, and what could
//! not be judged is neither passed nor failed.

use dendrer::Trace;
use dendrer::contract::{Checked, Judged};
use dendrer::kernel::predicate::Verdict;
use dendrer_object::Value;
use dendrer_view::quote;

use crate::failure::Result;
use crate::out::Out;

/// The rule that a transition without what it requires has broken.
const REQUIRED: &str = "required_state";

/// One finding, whatever it is written as.
struct Row {
    rule: String,
    /// What the rule says, in words.
    words: String,
    /// What was found, with where; nothing where all is well.
    found: Vec<(u64, String)>,
    /// Why it cannot be judged.
    open: Option<(u64, String)>,
}

/// Writes the answer in one of the forms.
pub(super) fn write(form: &str, trace: &Trace, checked: &Checked, all: bool, out: &mut Out) -> Result<()> {
    let rows = rows(checked, all);
    let run = trace.name().as_str();
    match form {
        "sarif" => out.document(&sarif(run, &rows)),
        "github" => github(run, &rows).into_iter().try_for_each(|line| out.line(line)),
        _ => junit(run, &rows).into_iter().try_for_each(|line| out.line(line)),
    }
}

fn rows(checked: &Checked, all: bool) -> Vec<Row> {
    let lacking = checked.lacking.iter().map(|lacking| {
        let fields = lacking.lacks.iter().map(|lack| format!("{}: {}", lack.name, lack.why));
        let fields = fields.collect::<Vec<_>>().join(", ");
        (lacking.tick, format!("{} lacks what it requires: {fields}", lacking.type_name))
    });
    let words = "a transition is committed where the state has what its contract requires".to_owned();
    let mut rows = vec![Row { rule: REQUIRED.to_owned(), words, found: lacking.collect(), open: None }];
    for terms in &checked.in_force {
        for judged in &terms.violations {
            let contracts = &terms.contracts;
            let rule = format!("{}/{}/{}", contracts.name, contracts.version, judged.predicate.name());
            // One pack may be in force twice, with another between.
            match rows.iter_mut().find(|row| row.rule == rule) {
                Some(row) => {
                    row.found.extend(stretches(judged, all));
                    row.open = row.open.take().or_else(|| open(judged));
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

fn open(judged: &Judged) -> Option<(u64, String)> {
    let (tick, why) = judged.uncertain()?;
    Some((tick, format!("{} cannot be judged at tick {tick}: {why}", judged.predicate.name())))
}

/// SARIF says where in words: a run is no file that an editor opens.
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
        // What is neither passed nor failed has no level.
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
    let errors = rows.iter().filter(|row| row.found.is_empty() && row.open.is_some()).count();
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", rows.len());
    let mut lines = vec![
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>".to_owned(),
        format!("<testsuites {counts}>"),
        format!("  <testsuite name=\"contract check {}\" {counts}>", escape(run)),
    ];
    for row in rows {
        let (class, name) = row.rule.rsplit_once('/').unwrap_or(("contract", &row.rule));
        let case = format!("    <testcase classname=\"{}\" name=\"{}\"", escape(class), escape(name));
        let told = |kind: &str, what: &[&str]| {
            let first = escape(what.first().copied().unwrap_or_default());
            let all = what.iter().map(|what| escape(what)).collect::<Vec<_>>().join("\n");
            format!("      <{kind} message=\"{first}\">{all}</{kind}>")
        };
        let found: Vec<&str> = row.found.iter().map(|(_, what)| &**what).collect();
        match (&found[..], &row.open) {
            ([], None) => lines.push(format!("{case}/>")),
            ([], Some((_, what))) => {
                lines.extend([format!("{case}>"), told("error", &[what]), "    </testcase>".to_owned()]);
            }
            (found, _) => {
                lines.extend([format!("{case}>"), told("failure", found), "    </testcase>".to_owned()]);
            }
        }
    }
    lines.extend(["  </testsuite>".to_owned(), "</testsuites>".to_owned()]);
    lines
}
