//! The cases of a suite, as lines and as a document.
//!
//! The lines are those of the forensic debugger's own suite, to the letter: a program that reads those reads these.

use dendrer::verify::VerifyVerdict;
use dendrer::verify::suite::SuiteResult;
use dendrer_object::{Value, document};

use crate::answer::{End, ItemAnswer, Line, Page, Style};
use crate::quote;

/// A suite: counts its cases.
#[derive(Debug, Clone, Copy, Default)]
pub struct SuiteAnswer {
    passed: u64,
    failed: u64,
}

impl SuiteAnswer {
    fn count(&mut self, result: &SuiteResult) {
        self.passed += u64::from(result.pass);
        self.failed += u64::from(!result.pass);
    }
}

document! {
    /// A suite of good and corrupted traces
    pub object SuiteDocument: "suite" (answer: &SuiteAnswer) {
        /// The number of cases with the expected verdict
        passed: u64 = answer.passed,
        /// The number of cases with another verdict
        failed: u64 = answer.failed,
        /// The cases
        items: stream CaseObject,
    }

    /// A case of a suite
    object CaseObject(result: &SuiteResult) {
        /// The name of the case
        case: &str = &result.case.name,
        /// The file of the trace
        file: &str = &result.case.file,
        /// The expected verdict
        expect: ["verified" | "rejected"] = expected(result),
        /// The verdict; null if the file cannot be opened, or is one of nodes
        verdict: Option<VerifyVerdict> = result.verdict,
        /// The codes of the findings
        codes: Vec<String> = result.codes.clone(),
        /// Whether the verdict is the expected one
        pass: bool = result.pass,
    }
}

impl ItemAnswer for SuiteAnswer {
    type Item = SuiteResult;

    fn item(&mut self, result: &SuiteResult) -> Option<Value> {
        self.count(result);
        Some(CaseObject::of(result).into())
    }

    fn item_lines(&mut self, result: &SuiteResult, _: &Page) -> Vec<Line> {
        self.count(result);
        let SuiteResult { case, verdict, codes, pass } = result;
        let name = quote::escape(&case.name);
        let text = match (*pass, case.good) {
            (true, true) => format!("[PASS] Replay CLI successfully verified the trace ({name})."),
            (true, false) => format!("[PASS] Replay CLI correctly rejected the corrupted trace ({name})."),
            (false, _) => {
                let code = case.code.as_deref().map(|code| format!(" with {}", quote::escape(code)));
                // A file of nodes has no verdict of a log.
                let found = verdict.map_or_else(
                    || match (codes.is_empty(), case.profile.is_some()) {
                        (true, _) => "VERIFIED",
                        (false, true) => "REJECTED",
                        (false, false) => "NOT READ",
                    },
                    VerifyVerdict::as_str,
                );
                let found: Vec<&str> = [found].into_iter().chain(codes.iter().map(String::as_str)).collect();
                format!(
                    "[FAIL] Replay CLI said {} ({name}), expected: {}{}.",
                    found.join(" "),
                    expected(result),
                    code.unwrap_or_default()
                )
            }
        };
        let style = if *pass { Style::Good } else { Style::Bad };
        vec![Line::from(format!("--- RUNNING {name} ---")), Line::styled(style, text)]
    }

    fn summary(&self) -> Value {
        SuiteDocument::of(self).into()
    }

    fn kept_lines(&mut self, _: &Page) -> Vec<Line> {
        Vec::new()
    }

    fn last_lines(&mut self, _: &Page) -> Vec<Line> {
        vec![match self.failed {
            0 => Line::from("--- ALL TESTS PASSED ---"),
            failed => Line::from(format!("--- {failed} OF {} TESTS FAILED ---", self.passed + failed)),
        }]
    }

    fn end(&self) -> End {
        if self.failed > 0 { End::No } else { End::Answered }
    }
}

fn expected(result: &SuiteResult) -> &'static str {
    if result.case.good { "verified" } else { "rejected" }
}
