//! Findings about the text of a contract: what is wrong with it, and what is most likely not meant.

use dendrer_kernel::pack::lint::LintFinding;
use dendrer_kernel::pack::{Pack, PackFault};
use dendrer_object::{Code, Pointer, Value};

use crate::pack::yaml::Document;
use crate::pack::{Files, PackProblem, TextMark, as_new, check};

/// Something found in the text of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFound {
    /// The code under which `dendrer explain` knows it: an E for a fault, with which it is no pack, a W for all else.
    pub code: Code,
    /// Where in the text.
    pub mark: TextMark,
    /// Where in the pack; empty for the whole.
    pub place: String,
    /// One sentence.
    pub message: String,
    /// What follows from it, if that is not the sentence itself.
    pub why: Option<String>,
    /// What to write instead.
    pub step: Option<String>,
}

impl LintFound {
    /// Whether it is a fault, with which it is no pack.
    pub fn is_fault(&self) -> bool {
        !self.code.is_warning()
    }
}

/// What was found in a text.
#[derive(Debug)]
pub struct Linted {
    /// The pack, if it is one.
    pub pack: Option<Pack>,
    /// What was found, in the order of the text.
    pub found: Vec<LintFound>,
    /// Whether all was looked at: a text that is no pack is read no further than its faults.
    pub is_complete: bool,
}

/// Looks at the text of a pack: faults first, and where there are none but claims of monotonicity, everything else. `files`
/// says where the files that it names are.
pub fn lint(text: &[u8], files: Files<'_>) -> Linted {
    let incomplete = |problems: Vec<PackProblem>| {
        let found = problems.into_iter().map(|problem| LintFound {
            code: problem.code,
            mark: problem.mark,
            place: problem.place,
            message: problem.message,
            why: None,
            step: problem.hint,
        });
        Linted { pack: None, found: found.collect(), is_complete: false }
    };
    let document = match Document::read(text).map(|document| files.fill(document)) {
        Ok((document, missing)) if missing.is_empty() => document,
        Ok((_, missing)) => return incomplete(missing),
        Err(problems) => return incomplete(problems),
    };
    let (value, claims) = take_claims(&document.value);
    let (pack, faults) = match check(&document.value).and_then(as_new) {
        Ok(pack) => (Some(pack), Vec::new()),
        Err(faults) => (None, faults),
    };
    let mut found: Vec<LintFound> = faults.into_iter().map(|fault| of_fault(&document, fault)).collect();
    // What is said of a predicate can be judged where nothing else keeps this from being a pack.
    let judged = if claims.is_empty() { None } else { check(&value).ok() };
    let looked_at = judged.as_ref().or(pack.as_ref());
    if let Some(pack) = looked_at {
        found.extend(pack.lint().into_iter().map(|finding| of_finding(&document, finding)));
        let judged = claims.iter().filter_map(|claim| pack.judge_claim(claim));
        found.extend(judged.map(|finding| of_finding(&document, finding)));
    }
    let is_complete = looked_at.is_some();
    found.sort_by_key(|one| (one.mark, one.code));
    Linted { pack, found, is_complete }
}

fn of_fault(document: &Document, fault: PackFault) -> LintFound {
    LintFound {
        code: fault.code,
        mark: document.mark(&fault.path, fault.at_name, fault.span),
        place: fault.path.dotted(),
        message: fault.message,
        why: None,
        step: fault.hint,
    }
}

fn of_finding(document: &Document, finding: LintFinding) -> LintFound {
    LintFound {
        code: finding.code,
        mark: document.mark(&finding.path, finding.at_name, finding.span),
        place: finding.path.dotted(),
        message: finding.message,
        why: Some(finding.why),
        step: Some(finding.step),
    }
}

/// Takes `monotone: true` out of predicates and violations, and says where it stood. The paper writes it; here nothing is
/// believed.
fn take_claims(pack: &Value) -> (Value, Vec<Pointer>) {
    let Some(members) = pack.as_object() else { return (pack.clone(), Vec::new()) };
    let mut members = members.clone();
    let mut claims = Vec::new();
    let mut take = |entry: &Value, path: [&str; 2]| -> Value {
        match entry.as_object() {
            Some(inner) if entry.get("monotone").and_then(Value::as_bool) == Some(true) => {
                claims.push(Pointer::of([path[0], path[1], "monotone"]));
                let mut inner = inner.clone();
                inner.remove("monotone");
                Value::Object(inner)
            }
            _ => entry.clone(),
        }
    };
    if let Some(map) = pack.get("predicates").and_then(Value::as_object) {
        let pairs: Vec<_> =
            map.iter().map(|(name, entry)| (name.clone(), take(entry, ["predicates", name]))).collect();
        members.set("predicates", Value::record(pairs));
    }
    if let Some(list) = pack.get("violations").and_then(Value::as_array) {
        let entries: Vec<_> = (list.iter().enumerate())
            .map(|(index, entry)| take(entry, ["violations", &index.to_string()]))
            .collect();
        members.set("violations", Value::array(entries));
    }
    (Value::Object(members), claims)
}
