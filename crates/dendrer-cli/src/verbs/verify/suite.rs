//! A suite of traces: which of them must verify, and which must be rejected (CFD spec 5).
//!
//! The lines are the ones that the forensic debugger's own suite prints, to the letter, so that whatever reads
//! those reads these. A suite is a JSON file: `{"cases":[{"case":...,"file":...,"expect":"verified"|"rejected"}]}`,
//! with files beside it, and `code` where a trace must be rejected for one reason and no other.

use std::io::Read as _;
use std::path::Path;

use dendrer::verify::Options;
use dendrer_object::{Value, json};
use dendrer_view::verify::word;
use dendrer_view::{document, quote};

use super::parse_tip;
use super::verify_bundle;
use crate::address::Rev;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;
use crate::out::Style;
use crate::out::files;
use crate::progress::Progress;

/// What a case expects.
struct Case {
    name: String,
    file: String,
    /// Whether the trace must verify.
    good: bool,
    /// The code that must be among the findings.
    code: Option<String>,
    /// A tip kept elsewhere.
    tip: Option<String>,
}

/// What became of a case.
struct Found {
    /// The verdict; `None` if the file is no bundle at all.
    verdict: Option<&'static str>,
    codes: Vec<String>,
    /// Whether it was verified (`Some(true)`), rejected (`Some(false)`), or neither.
    accepted: Option<bool>,
}

/// Runs a suite: exit code 0 if every case came out as expected, else 1.
pub(super) fn run(global: &Global, path: &str, out: &mut Out) -> Result {
    let cases = read(path)?;
    let dir = Path::new(path).parent().unwrap_or(Path::new("."));
    let progress = Progress::start(global, "verify", "cases", Some(cases.len() as u64));
    let mut items = Vec::new();
    let mut failed = 0u64;
    for (at, case) in cases.iter().enumerate() {
        let found = look(&dir.join(&case.file).display().to_string(), case)?;
        let pass = found.accepted == Some(case.good)
            && case.code.as_ref().is_none_or(|code| found.codes.contains(code));
        failed += u64::from(!pass);
        if out.is_text() {
            print(case, &found, pass, out)?;
        }
        items.push(item(case, &found, pass));
        progress.set(at as u64 + 1);
    }
    drop(progress);
    if out.is_text() {
        match failed {
            0 => out.line("--- ALL TESTS PASSED ---")?,
            _ => out.line(format!("--- {failed} OF {} TESTS FAILED ---", cases.len()))?,
        }
    } else {
        let passed = cases.len() as u64 - failed;
        out.document(&document(
            "suite",
            [
                ("passed", Value::from(passed)),
                ("failed", Value::from(failed)),
                ("items", Value::array(items)),
            ],
        ))?;
    }
    Ok(u8::from(failed > 0))
}

fn read(path: &str) -> Result<Vec<Case>> {
    let mut text = Vec::new();
    let read = files::open(path)?.read_to_end(&mut text);
    read.map_err(|error| files::cannot_read(path, &error))?;
    let value = json::parse_door(&text)
        .map_err(|error| Failure::new(error.code(), error.to_string()).at("file", path))?;
    let bad = |why: String| Failure::new("E0106", why).at("file", path);
    let cases = value.get("cases").and_then(Value::as_array);
    let cases = cases.ok_or_else(|| bad("a suite is an object with a list \"cases\"".to_owned()))?;
    let case = |(at, case): (usize, &Value)| {
        let text = |name: &str| case.get(name).and_then(Value::as_str).map(str::to_owned);
        let need =
            |name: &str| text(name).ok_or_else(|| bad(format!("case {} has no text \"{name}\"", at + 1)));
        let good = match need("expect")?.as_str() {
            "verified" => true,
            "rejected" => false,
            other => {
                let why =
                    format!("case {} expects \"{other}\", which is neither verified nor rejected", at + 1);
                return Err(bad(why));
            }
        };
        Ok(Case { name: need("case")?, file: need("file")?, good, code: text("code"), tip: text("tip") })
    };
    cases.iter().enumerate().map(case).collect()
}

fn look(file: &str, case: &Case) -> Result<Found> {
    let tip = case.tip.as_deref().map(parse_tip).transpose()?;
    let options = Options { replay: true, tip, ..Options::default() };
    let whole = Rev { bundle: Some(file.to_owned()), run: None, pos: None };
    match verify_bundle(None, file, &whole, &options, None, None) {
        Ok(answer) => {
            let (word, exit) = word(answer.report.verdict);
            let mut codes: Vec<String> =
                answer.report.findings.iter().map(|finding| finding.code.to_owned()).collect();
            codes.dedup();
            let accepted = match exit {
                0 => Some(true),
                4 | 7 => Some(false),
                _ => None,
            };
            Ok(Found { verdict: Some(word), codes, accepted })
        }
        // A file that is not there says nothing about a verifier; one that is no bundle is rejected.
        Err(failure) if failure.code == "E0108" => Err(failure),
        Err(failure) => {
            Ok(Found { verdict: None, codes: vec![failure.code.to_owned()], accepted: Some(false) })
        }
    }
}

fn print(case: &Case, found: &Found, pass: bool, out: &mut Out) -> Result<()> {
    let name = quote::escape(&case.name);
    out.line(format!("--- RUNNING {name} ---"))?;
    let line = match (pass, case.good) {
        (true, true) => format!("[PASS] Replay CLI successfully verified the trace ({name})."),
        (true, false) => format!("[PASS] Replay CLI correctly rejected the corrupted trace ({name})."),
        (false, _) => {
            let expected = if case.good { "verified" } else { "rejected" };
            let code = case.code.as_deref().map(|code| format!(" with {}", quote::escape(code)));
            let said: Vec<&str> = [found.verdict.unwrap_or("NOT A BUNDLE")]
                .into_iter()
                .chain(found.codes.iter().map(String::as_str))
                .collect();
            format!(
                "[FAIL] Replay CLI said {} ({name}), expected: {expected}{}.",
                said.join(" "),
                code.unwrap_or_default()
            )
        }
    };
    let line = out.paint(if pass { Style::Good } else { Style::Bad }, &line);
    out.line(line)
}

fn item(case: &Case, found: &Found, pass: bool) -> Value {
    Value::record([
        ("case", Value::from(case.name.as_str())),
        ("file", Value::from(case.file.as_str())),
        ("expect", Value::from(if case.good { "verified" } else { "rejected" })),
        ("verdict", Value::from(found.verdict.map(str::to_owned))),
        ("codes", Value::array(found.codes.iter().map(|code| Value::from(code.as_str())))),
        ("pass", Value::from(pass)),
    ])
}
