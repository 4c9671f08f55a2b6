//! Suites of traces: which of them must verify, and which must be rejected (CFD spec 5).
//!
//! A suite is a JSON document, `{"cases":[{"case":...,"file":...,"expect":"verified"|"rejected"}]}`, with files beside it; a
//! case has `code` if the trace must be rejected for one reason and no other.

use dendrer_object::{Code, Value};

use super::{VerifyReport, VerifyVerdict};

/// One case of a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteCase {
    /// The name.
    pub name: String,
    /// The file of the trace.
    pub file: String,
    /// Whether the trace must verify.
    pub good: bool,
    /// The code that must be among the findings.
    pub code: Option<String>,
    /// A tip kept elsewhere.
    pub tip: Option<String>,
    /// The document whose rules the file is held against: `cfd`; `None` for a bundle.
    pub profile: Option<String>,
}

/// A case with the verdict on its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteResult {
    /// The case.
    pub case: SuiteCase,
    /// The verdict; `None` for a file of nodes, or one that cannot be opened.
    pub verdict: Option<VerifyVerdict>,
    /// The codes of the findings.
    pub codes: Vec<String>,
    /// Whether the verdict is the one that the case expects.
    pub pass: bool,
}

impl SuiteCase {
    /// Reads the cases of a suite; the error is a sentence.
    pub fn read(suite: &Value) -> Result<Vec<SuiteCase>, String> {
        let cases = suite.get("cases").and_then(Value::as_array);
        let cases = cases.ok_or("a suite is an object with a list \"cases\"")?;
        let case = |(at, case): (usize, &Value)| {
            let text = |name: &str| case.get(name).and_then(Value::as_str).map(str::to_owned);
            let need =
                |name: &str| text(name).ok_or_else(|| format!("case {} has no text \"{name}\"", at + 1));
            let good = match need("expect")?.as_str() {
                "verified" => true,
                "rejected" => false,
                other => {
                    let at = at + 1;
                    return Err(format!(
                        "case {at} expects \"{other}\", which is neither verified nor rejected"
                    ));
                }
            };
            Ok(SuiteCase {
                name: need("case")?,
                file: need("file")?,
                good,
                code: text("code"),
                tip: text("tip"),
                profile: match text("profile").as_deref() {
                    None | Some("cfd") => text("profile"),
                    Some(other) => {
                        return Err(format!(
                            "case {} has the profile \"{other}\", and cfd is the only one",
                            at + 1
                        ));
                    }
                },
            })
        };
        cases.iter().enumerate().map(case).collect()
    }

    /// Compares the verdict on the trace with the one that is expected. UNVERIFIABLE is neither verified nor rejected.
    pub fn judge(self, report: &VerifyReport) -> SuiteResult {
        let mut codes: Vec<String> = report.findings.iter().map(|finding| finding.code.to_string()).collect();
        codes.dedup();
        // The tip of a case is that of its trace, which is not an older part of it.
        if self.tip.is_some() && report.witnesses.is_empty() && report.verdict == VerifyVerdict::Unverifiable
        {
            codes.push(Code::E0304.to_string());
            return self.result(Some(report.verdict), codes, Some(false));
        }
        let accepted = match report.verdict {
            VerifyVerdict::Verified | VerifyVerdict::Intact => Some(true),
            VerifyVerdict::Unverifiable => None,
            _ => Some(false),
        };
        self.result(Some(report.verdict), codes, accepted)
    }

    /// Judges a file by the rules of a document.
    pub fn judge_profile(self, fault: Option<Code>) -> SuiteResult {
        self.result(None, fault.map(|code| code.to_string()).into_iter().collect(), Some(fault.is_none()))
    }

    /// Rejects a file that is no bundle.
    pub fn reject(self, code: Code) -> SuiteResult {
        self.result(None, vec![code.to_string()], Some(false))
    }

    fn result(
        self,
        verdict: Option<VerifyVerdict>,
        codes: Vec<String>,
        accepted: Option<bool>,
    ) -> SuiteResult {
        let has_code = self.code.as_ref().is_none_or(|code| codes.contains(code));
        SuiteResult { pass: accepted == Some(self.good) && has_code, case: self, verdict, codes }
    }
}
