//! `dendrer bisect --regression`: where a score fell, compared with the hard predicates (dendrer paper, appendix D).

use dendrer::Trace;
use dendrer::ask::bisect::gather::{HardFound, RegressionAnswer};
use dendrer::ask::regression::Metric;
use dendrer::bisect::Range;
use dendrer_object::Code;
use dendrer_object::text::nearest;
use dendrer_view::bisect::RegressionShown;
use dendrer_view::certainty::reasons_list;

use super::unexpected;
use crate::failure::{Failure, Result};
use crate::out::Out;
use crate::progress::Progress;

/// The question that is offered where there is no score.
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
    let answer = RegressionAnswer::of(trace, &pack, &metric, range)?;
    drop(progress);
    let HardFound { predicate: hard, report, .. } = answer.decisive();
    let failure = unexpected(expected, report);
    let unknown = answer.unknown().filter(|_| expected.is_none()).map(|(name, tick, why, unjudged)| {
        let what = format!("{name} cannot be judged at tick {tick} of {}", trace.name());
        Failure::new(Code::E0509, what).at("why", reasons_list(why, unjudged)).help(&[
            "dendrer",
            "bisect",
            run,
            "--predicate",
            hard.name(),
        ])
    });
    let code = out.answer_or(&RegressionShown { answer: &answer, run }, failure.or(unknown))?;
    // An onset that was expected is the answer, whatever the score says.
    Ok(if expected.is_some() && expected == report.onset() { 0 } else { code })
}

/// Offers the question that needs no score.
fn without(run: &str, failure: Failure) -> Failure {
    failure.help(&["dendrer", "bisect", run, "--predicate", INVARIANT])
}
