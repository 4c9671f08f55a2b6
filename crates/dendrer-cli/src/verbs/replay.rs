//! `dendrer replay`

use std::ops::ControlFlow;

use dendrer::ask_replay::{self, ReplayedTick};
use dendrer::kernel::replay::ReplayError;
use dendrer_object::Value;
use dendrer_view::replay::ReplayAnswer;

use crate::address::{Rev, state_path};
use crate::args::{Global, PrintChoice, Replay};
use crate::failure::{Failure, Result};
use crate::open;
use crate::out::Out;
use crate::progress::Progress;

pub(crate) fn run(global: &Global, args: &Replay, out: &mut Out) -> Result {
    let rev = Rev::parse(&args.run)?;
    let source = open::sound(global, &rev, out)?;
    let rev = rev.settle(source.store())?;
    let trace = source.trace(&rev)?;
    let from = args.from.as_ref().map_or(Ok(1), |pos| pos.tick(&trace))?;
    let to = args.to.as_ref().or(rev.pos.as_ref()).map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
    let path = args.path.as_deref().map(state_path).transpose()?;
    let mut answer = ReplayAnswer::new(args.detect);
    let mut taken = Ok(());
    // Lines that are printed tick by tick show how far the replay has come.
    let progress =
        (args.print == PrintChoice::None).then(|| Progress::start(global, "replay", "ticks", Some(to)));
    let replayed = ask_replay::replay(&trace, to, args.twice, &mut |head| {
        if let Some(progress) = &progress {
            progress.set(head.tick());
        }
        if head.tick() < from || args.print == PrintChoice::None {
            return ControlFlow::Continue(());
        }
        let state = (args.print == PrintChoice::State).then(|| {
            let value = path.as_ref().map_or(Some(head.state()), |path| path.get(head.state()));
            value.cloned().unwrap_or(Value::Null)
        });
        taken =
            out.take(&mut answer, &ReplayedTick { tick: head.tick(), root: head.state().digest(), state });
        if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    drop(progress);
    taken?;
    let problem = replayed.error.as_ref().map(failure);
    answer.problem = Value::from(problem.as_ref().map(Failure::to_json));
    answer.replayed = Some(replayed);
    let code = out.end(&mut answer)?;
    match problem.filter(|_| out.is_text() && !args.detect) {
        Some(failure) => Err(failure),
        None => Ok(code),
    }
}

/// Reports why a replay ended early.
pub(super) fn failure(error: &ReplayError) -> Failure {
    let failure = Failure::new(error.code(), error.to_string());
    match error {
        ReplayError::Divergence(divergence) => {
            let side = |value: &Option<Value>| {
                value.as_ref().map_or_else(|| "nothing".to_owned(), |value| value.to_string())
            };
            failure
                .at("tick", divergence.tick.to_string())
                .at("path", divergence.path.dotted())
                .at("recorded", side(&divergence.expected))
                .at("computed", side(&divergence.found))
                .note(format!("usual causes: {}", divergence.usual_causes()))
        }
        _ => failure,
    }
}
