//! Reads a suite of traces and verifies each of them.

use std::io::Read as _;
use std::path::Path;

use dendrer::address::Address;
use dendrer::care::verify::question::{malformed, tip, verify_bundle};
use dendrer::verify::VerifyTerms;
use dendrer::verify::suite::{SuiteCase, SuiteResult};
use dendrer_object::Code;
use dendrer_object::json;
use dendrer_view::suite::SuiteAnswer;
use dendrer_wire::foreign::CfdTerms;

use super::profile::{self, ProfileChoice};
use crate::context::{self, keys};
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::{Out, files};
use crate::progress::Progress;

/// Runs the cases of a suite one by one.
pub(super) fn verify(global: &Global, path: &str, out: &mut Out) -> Result {
    let cases = read(path)?;
    let dir = Path::new(path).parent().unwrap_or(Path::new("."));
    let progress = Progress::start(global, "verify", "cases", Some(cases.len() as u64));
    let mut answer = SuiteAnswer::default();
    for (at, case) in (1..).zip(cases) {
        out.take(&mut answer, &judge(global, dir, case)?)?;
        progress.set(at);
    }
    drop(progress);
    out.end(&mut answer)
}

fn read(path: &str) -> Result<Vec<SuiteCase>> {
    let mut text = Vec::new();
    let read = files::open(path)?.read_to_end(&mut text);
    read.map_err(|error| files::cannot_read(path, &error))?;
    let suite = json::parse_door(&text)
        .map_err(|error| Failure::new(error.code(), error.to_string()).at("file", path))?;
    SuiteCase::read(&suite).map_err(|why| Failure::new(Code::E0106, why).at("file", path))
}

fn judge(global: &Global, dir: &Path, case: SuiteCase) -> Result<SuiteResult> {
    let tips = case.tip.iter().map(|text| tip(text)).collect::<std::result::Result<_, _>>()?;
    let terms = VerifyTerms { replay: true, tips, ..VerifyTerms::default() };
    let file = dir.join(&case.file).display().to_string();
    if case.profile.is_some() {
        return match profile::check_file(ProfileChoice::Cfd, &file, &CfdTerms::default()) {
            Ok(checked) => Ok(case.judge_profile(checked.fault.map(|_| Code::E0303))),
            Err(failure) if failure.code == Code::E0108 => Err(failure),
            Err(failure) => Ok(case.reject(failure.code)),
        };
    }
    let found = match context::open_bundle(None, &file) {
        Ok(opened) => {
            let whole = Address { bundle: Some(file), run: None, pos: None };
            verify_bundle(&whole, &opened, &terms, None, &*keys::trust(global))
        }
        Err(failure) => malformed(&file, failure),
    };
    match found {
        Ok(log) => Ok(case.judge(&log.report)),
        // A file that is missing says nothing about a verifier; a file that cannot be opened is rejected.
        Err(failure) if failure.code == Code::E0108 => Err(failure),
        Err(failure) => Ok(case.reject(failure.code)),
    }
}
