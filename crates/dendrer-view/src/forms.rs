//! Checks in the forms of other programs: SARIF 2.1.0, annotations of GitHub, JUnit.
//!
//! The three have the same findings: a transition that lacked what its contract requires is a failure, a violation is a
//! failure, and a predicate that cannot be judged is neither passed nor failed. A graph that is refused and a frontier that its
//! graph does not bear out are failures.

use dendrer::ask::gate::GateVerdict;
use dendrer::ask::gate::question::GateAnswer;
use dendrer::contract::{CheckedContract, Judged};
use dendrer::kernel::predicate::Verdict;
use dendrer_object::Value;

use crate::answer::{Answer, End, Line, Page};
use crate::certainty::reasons_words;
use crate::contract::check::ContractCheckAnswer;
use crate::gate::why;
use crate::graphs::{GraphCheckAnswer, GraphTestAnswer};
use crate::{count, quote};

/// The rule that a transition breaks if the state lacks what the contract requires.
const REQUIRED: &str = "required_state";

/// One rule with its findings, for every form.
struct Row {
    rule: String,
    /// The rule in words.
    words: String,
    /// The places of the failures, with words; empty if the rule holds.
    found: Vec<(Place, String)>,
    /// What cannot be judged: the first place of each reason, with words. Empty if all can.
    open: Vec<(Place, String)>,
}

/// Where a finding is.
enum Place {
    /// A moment of a run, a run, or a frontier. An editor cannot open it.
    Name(String),
    /// A place in a file; line 0 for the whole of it.
    File { path: String, line: u32, column: u32 },
}

impl Place {
    fn text(&self) -> String {
        match self {
            Place::Name(name) => name.clone(),
            Place::File { path, line: 0, .. } => path.clone(),
            Place::File { path, line, column } => format!("{path}:{line}:{column}"),
        }
    }
}

/// What was checked: the verb, and its subject.
type Checked<'c> = (&'c str, &'c str);

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
        sarif(("contract check", checked.run.as_str()), &rows(checked, all_violations))
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let ContractCheckAnswer { checked, all_violations } = self.answer;
        in_form(self.form, ("contract check", checked.run.as_str()), &rows(checked, all_violations))
    }

    fn end(&self) -> End {
        self.answer.end()
    }
}

fn in_form(form: FindingsForm, checked: Checked<'_>, rows: &[Row]) -> Vec<Line> {
    let lines = match form {
        FindingsForm::Sarif => vec![quote::json(&sarif(checked, rows))],
        FindingsForm::Github => github(rows),
        FindingsForm::Junit => junit(checked, rows),
    };
    lines.into_iter().map(Line::from).collect()
}

/// The check of a graph in one of the forms.
#[derive(Debug, Clone, Copy)]
pub struct GraphFindingsAnswer<'c> {
    /// The form.
    pub form: FindingsForm,
    /// The check.
    pub answer: &'c GraphCheckAnswer<'c>,
}

impl GraphFindingsAnswer<'_> {
    fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for finding in self.answer.findings {
            let place =
                Place::File { path: self.answer.file.to_owned(), line: finding.line, column: finding.column };
            let (rule, found) = (finding.rule.as_str(), (place, finding.message.clone()));
            match rows.iter_mut().find(|row| row.rule == rule) {
                Some(row) => row.found.push(found),
                None => rows.push(Row {
                    rule: rule.to_owned(),
                    words: finding.rule.bug().to_owned(),
                    found: vec![found],
                    open: Vec::new(),
                }),
            }
        }
        rows
    }
}

impl Answer for GraphFindingsAnswer<'_> {
    fn document(&self) -> Value {
        sarif(("graph check", self.answer.file), &self.rows())
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        in_form(self.form, ("graph check", self.answer.file), &self.rows())
    }

    fn end(&self) -> End {
        self.answer.end()
    }
}

/// Replayed frontiers in one of the forms.
#[derive(Debug, Clone, Copy)]
pub struct GraphTestFindingsAnswer<'c> {
    /// The form.
    pub form: FindingsForm,
    /// The replays.
    pub answer: &'c GraphTestAnswer,
}

impl GraphTestFindingsAnswer<'_> {
    /// A rule is a kind of divergence; for JUnit, a frontier, so that those that pass are cases too.
    fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for tested in &self.answer.0 {
            let name = || match tested.is_file {
                true => Place::File { path: tested.name.clone(), line: 0, column: 0 },
                false => Place::Name(tested.name.clone()),
            };
            let diverged = tested.divergence.as_ref().map(|one| {
                let (expected, got) = (quote::value(&one.expected), quote::value(&one.got));
                let kind = one.kind.as_str();
                (kind, (name(), format!("{kind} at {}: expected {expected}, got {got}", one.path)))
            });
            let unread = tested
                .error
                .as_ref()
                .map(|one| ("error", (name(), format!("{}: {}", one.code, one.message))));
            let unended = tested.is_open().then(|| ("open", (name(), "the run did not end".to_owned())));
            let found = unended.or(diverged).or(unread);
            if self.form == FindingsForm::Junit {
                let found = found.into_iter().map(|(_, found)| found).collect();
                let words = "the graph makes what was recorded".to_owned();
                rows.push(Row { rule: tested.name.clone(), words, found, open: Vec::new() });
            } else if let Some((kind, found)) = found {
                match rows.iter_mut().find(|row| row.rule == kind) {
                    Some(row) => row.found.push(found),
                    None => rows.push(Row {
                        rule: kind.to_owned(),
                        words: "the graph makes something else than was recorded".to_owned(),
                        found: vec![found],
                        open: Vec::new(),
                    }),
                }
            }
        }
        rows
    }
}

impl Answer for GraphTestFindingsAnswer<'_> {
    fn document(&self) -> Value {
        sarif(("graph test", "frontiers"), &self.rows())
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        in_form(self.form, ("graph test", "frontiers"), &self.rows())
    }

    fn end(&self) -> End {
        self.answer.end()
    }
}

/// Gates over steps in one of the forms.
#[derive(Debug, Clone, Copy)]
pub struct GateFindingsAnswer<'c> {
    /// The form.
    pub form: FindingsForm,
    /// The gates.
    pub answer: &'c GateAnswer,
}

impl GateFindingsAnswer<'_> {
    /// A rule is a gate. What failed is where its first failed step is, or the run.
    fn rows(&self) -> Vec<Row> {
        let run = self.answer.run.as_str();
        let gates = self.answer.gates.iter().map(|gate| {
            let step = gate.steps.iter().find(|step| step.success == Some(false));
            let place = step.map_or_else(|| Place::Name(run.to_owned()), |step| moment(run, step.tick));
            let (mut found, mut open) = (Vec::new(), Vec::new());
            match gate.verdict {
                GateVerdict::Passed => {}
                GateVerdict::Failed => found.push((place, why(gate))),
                GateVerdict::NoSteps(_) | GateVerdict::Uncertain(_) => open.push((place, why(gate))),
            }
            let expression = gate.expression.clone();
            Row {
                rule: expression,
                words: format!("of {}", count(gate.steps.len() as u64, "step", "steps")),
                found,
                open,
            }
        });
        gates.collect()
    }
}

impl Answer for GateFindingsAnswer<'_> {
    fn document(&self) -> Value {
        sarif(("assert", self.answer.run.as_str()), &self.rows())
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        in_form(self.form, ("assert", self.answer.run.as_str()), &self.rows())
    }

    fn end(&self) -> End {
        self.answer.end()
    }
}

fn rows(checked: &CheckedContract, all: bool) -> Vec<Row> {
    let run = checked.run.as_str();
    let lacking = checked.lacking.iter().map(|lacking| {
        let fields = lacking.lacks.iter().map(|lack| format!("{}: {}", lack.name, lack.why));
        let fields = fields.collect::<Vec<_>>().join(", ");
        (moment(run, lacking.tick), format!("{} lacks what it requires: {fields}", lacking.type_name))
    });
    let words = "a transition is committed where the state has what its contract requires".to_owned();
    let missing = checked.missing.map(|found| (Place::Name(run.to_owned()), found.words()));
    let (found, open_rows) = (lacking.collect(), missing.into_iter().collect());
    let mut rows = vec![Row { rule: REQUIRED.to_owned(), words, found, open: open_rows }];
    for terms in &checked.in_force {
        for judged in &terms.violations {
            let contracts = &terms.contracts;
            let rule = format!("{}/{}/{}", contracts.name, contracts.version, judged.predicate.name());
            // One pack may be in force twice, with another between.
            match rows.iter_mut().find(|row| row.rule == rule) {
                Some(row) => {
                    row.found.extend(stretches(run, judged, all));
                    row.open.extend(open(run, judged));
                }
                None => rows.push(Row {
                    rule,
                    words: judged.predicate.words(),
                    found: stretches(run, judged, all),
                    open: open(run, judged),
                }),
            }
        }
    }
    rows
}

fn moment(run: &str, tick: u64) -> Place {
    Place::Name(format!("{run}@{tick}"))
}

fn stretches(run: &str, judged: &Judged, all: bool) -> Vec<(Place, String)> {
    let stretches = judged.intervals.iter().filter(|interval| interval.verdict == Verdict::Violation);
    let words = |from: u64, to: u64| {
        let name = judged.predicate.name();
        format!("{name} from tick {from} to tick {to}: {}", judged.predicate.words())
    };
    let found = stretches.map(|one| (moment(run, one.from), words(one.from, one.to)));
    found.take(if all { usize::MAX } else { 1 }).collect()
}

fn open(run: &str, judged: &Judged) -> Vec<(Place, String)> {
    let unjudged = judged.reasons.iter().filter(|one| matches!(one.verdict, Verdict::Uncertain(_)));
    let name = judged.predicate.name();
    let words = reasons_words(&judged.reasons).into_iter();
    unjudged
        .zip(words)
        .map(|(one, words)| (moment(run, one.from), format!("{name} cannot be judged at {words}")))
        .collect()
}

/// Writes SARIF. The location of a moment is a name and not a file: an editor cannot open a run.
fn sarif((verb, subject): Checked<'_>, rows: &[Row]) -> Value {
    let text = |text: &str| Value::record([("text", Value::from(quote::escape(text)))]);
    let rules = rows.iter().map(|row| {
        Value::record([("id", Value::from(row.rule.as_str())), ("shortDescription", text(&row.words))])
    });
    let location = |place: &Place| match place {
        Place::Name(name) => {
            let place = [("fullyQualifiedName", Value::from(name.as_str())), ("kind", Value::from("member"))];
            Value::record([("logicalLocations", Value::array([Value::record(place)]))])
        }
        Place::File { path, line, column } => {
            let file = Value::record([("uri", Value::from(path.as_str()))]);
            let region = (*line > 0).then(|| {
                let at = |number: u32| Value::from(u64::from(number.max(1)));
                ("region", Value::record([("startLine", at(*line)), ("startColumn", at(*column))]))
            });
            let place = Value::record(std::iter::once(("artifactLocation", file)).chain(region));
            Value::record([("physicalLocation", place)])
        }
    };
    let result = |index: usize, place: &Place, what: &str, kind: (&str, &str)| {
        Value::record([
            ("ruleId", Value::from(rows[index].rule.as_str())),
            ("ruleIndex", Value::from(index as u64)),
            ("kind", Value::from(kind.0)),
            ("level", Value::from(kind.1)),
            ("message", text(what)),
            ("locations", Value::array([location(place)])),
        ])
    };
    let results = rows.iter().enumerate().flat_map(|(index, row)| {
        let found = row.found.iter().map(move |(place, what)| result(index, place, what, ("fail", "error")));
        // A result that is neither passed nor failed has no level.
        found.chain(row.open.iter().map(move |(place, what)| result(index, place, what, ("open", "none"))))
    });
    let driver = Value::record([
        ("name", Value::from("dendrer")),
        ("version", Value::from(env!("CARGO_PKG_VERSION"))),
        ("rules", Value::array(rules)),
    ]);
    let analysis = Value::record([
        ("tool", Value::record([("driver", driver)])),
        (
            "automationDetails",
            Value::record([("id", Value::from(format!("dendrer/{}/{subject}", verb.replace(' ', "-"))))]),
        ),
        ("results", Value::array(results)),
    ]);
    Value::record([("runs", Value::array([analysis])), ("version", Value::from("2.1.0"))])
}

fn github(rows: &[Row]) -> Vec<String> {
    let data = |text: &str| quote::escape(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    let line = |level: &str, rule: &str, place: &Place, what: &str| {
        let file = match place {
            Place::Name(_) => String::new(),
            Place::File { path, line: 0, .. } => format!("file={},", property(path)),
            Place::File { path, line, column } => {
                format!("file={},line={line},col={column},", property(path))
            }
        };
        format!("::{level} {file}title={}::{}", property(rule), data(&format!("{}: {what}", place.text())))
    };
    let mut lines = Vec::new();
    for row in rows {
        lines.extend(row.found.iter().map(|(place, what)| line("error", &row.rule, place, what)));
        lines.extend(row.open.iter().map(|(place, what)| line("warning", &row.rule, place, what)));
    }
    lines
}

fn junit((verb, subject): Checked<'_>, rows: &[Row]) -> Vec<String> {
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
        format!("  <testsuite name=\"{verb} {}\" {counts}>", escape(subject)),
    ];
    for row in rows {
        let (class, name) =
            row.rule.rsplit_once('/').unwrap_or((verb.split(' ').next().unwrap_or(verb), &row.rule));
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
