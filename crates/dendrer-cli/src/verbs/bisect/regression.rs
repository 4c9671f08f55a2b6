//! `dendrer bisect --regression`: where a score fell, compared with what an invariant says (dendrer paper, appendix D).

use dendrer::Trace;
use dendrer::ask::bisect::gather::{BisectFound, RegressionAnswer};
use dendrer::ask::regression::{Metric, regression};
use dendrer::bisect::{BisectOutcome, BisectQuestion, Range, bisect_each};
use dendrer::kernel::predicate::Predicate;
use dendrer_object::Code;
use dendrer_object::text::nearest;
use dendrer_view::bisect::RegressionShown;

use super::unexpected;
use crate::failure::{Failure, Result};
use crate::out::Out;
use crate::progress::Progress;

/// The invariant that is asked with every score, and that counts if they differ.
const INVARIANT: &str = "kernel.anomaly_free";

pub(super) fn run(
    run: &str,
    trace: &Trace,
    name: &str,
    range: &Range,
    expected: Option<u64>,
    progress: Progress,
    out: &mut Out,
) -> Result {
    let Some(pack) = dendrer::run::pack::of_run(trace)? else {
        let message = format!("{} carries no pack, so nothing of it is scored", trace.name());
        return Err(without(run, Failure::new(Code::E0515, message)));
    };
    let Some(metric) = Metric::find(&pack, name) else {
        let names = Metric::names(&pack);
        let failure = Failure::new(Code::E0515, format!("the pack {} declares no score {name}", pack.name));
        let failure = match (nearest(name, names.iter().map(String::as_str)), names.is_empty()) {
            (Some(near), _) => failure.note(format!("did you mean {near}?")),
            (None, true) => failure.note("it declares none at all"),
            (None, false) => failure.note(format!("there are {}", names.join(", "))),
        };
        return Err(without(run, failure));
    };
    let invariant = Predicate::built_in(INVARIANT).expect("it is built in");
    let questions = [regression(trace, &pack, &metric, range)?, BisectQuestion::Predicate(invariant)];
    let mut reports = bisect_each(trace, &questions, range)?.into_iter();
    let [report, beside] = [reports.next(), reports.next()].map(|report| report.expect("one for each"));
    let [question, _] = questions;
    let found = BisectFound::of(trace, question, report)?;
    let answer = RegressionAnswer { found, invariant: INVARIANT, beside };
    drop(progress);
    let failure = unexpected(expected, answer.decisive());
    let unknown = match &answer.found.report.outcome {
        BisectOutcome::Uncertain(tick, why) if expected.is_none() && out.is_text() => {
            let what = format!("{name} cannot be said at tick {tick} of {}", trace.name());
            let note = format!("what is sound is what {INVARIANT} says above");
            Some(Failure::new(Code::E0509, what).at("why", why.clone()).note(note))
        }
        _ => None,
    };
    let code = out.answer_or(&RegressionShown { answer: &answer, run }, failure.or(unknown))?;
    // An onset that was expected is the answer, whatever the score says.
    Ok(if expected.is_some() && expected == answer.decisive().onset() { 0 } else { code })
}

/// Offers the question that needs no score.
fn without(run: &str, failure: Failure) -> Failure {
    failure.help(&["dendrer", "bisect", run, "--predicate", INVARIANT])
}
