//! `dendrer bisect`

use std::io::Write as _;

use dendrer::ask::bisect::question::{BisectQuestion, BisectReplyKind};
use dendrer::ask::named::STANDARD;
use dendrer::bisect::BisectReport;
use dendrer::source::Asked as _;
use dendrer_view::answer::Answer as _;
use dendrer_view::bisect::{BisectCommand, BisectReplyShown};
use dendrer_view::draw::Frame;
use dendrer_view::draw::bisect::picture;
use dendrer_view::thousands;

use self::args::DiagnosisChoice;
use crate::context::desk::CommandDesk;
use crate::context::named::of_file;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

pub(crate) use self::args::Bisect;

mod args;
mod causes;

pub(crate) fn run(global: &Global, args: &Bisect, out: &mut Out) -> Result {
    let question = question(args)?;
    let mut desk = CommandDesk::new(global, out);
    desk.names("all_of", args.all_of.as_deref());
    if args.diagnosis == Some(DiagnosisChoice::Ask) {
        desk.decides(|offer| causes::ask(&BisectCommand::of(&question), offer));
    }
    let asked = question.ask(&mut desk);
    drop(desk);
    let reply = asked?;
    if let BisectReplyKind::One(answer) = &reply.answer {
        say_known(global, &answer.found.report);
    }
    let is_paper = global.format.as_deref() == Some("paper");
    let shown = BisectReplyShown { reply: &reply, question: &question, recorded: &[], is_paper };
    let recorded = shown.record(&mut CommandDesk::new(global, out))?;
    if global.format.as_deref() == Some("svg") {
        out.bytes(picture(&reply, Frame::File).as_bytes())?;
        return reply.problem.clone().map_or_else(|| Ok(shown.end().exit()), Err);
    }
    out.answer_or(&BisectReplyShown { recorded: &recorded, ..shown }, reply.problem.clone())
}

/// Returns the question of the flags.
fn question(args: &Bisect) -> Result<BisectQuestion> {
    Ok(BisectQuestion {
        run: args.run.clone(),
        predicate: args.predicate.clone(),
        holds: args.holds.clone(),
        anomaly: args.anomaly.clone(),
        policy_flip: args.policy_flip.clone(),
        divergence: args.divergence.clone(),
        ignore: args.ignore.clone(),
        align: args.align,
        regression: args.regression.clone(),
        all_of: match args.all_of.as_deref() {
            // A word and never a file; a file of this name is ./standard.
            Some(STANDARD) => Some(STANDARD.to_owned()),
            named => named.map(of_file).transpose()?,
        },
        lift: args.lift,
        window: args.window,
        from: args.from.clone(),
        to: args.to.clone(),
        no_chain: args.no_chain,
        chain_limit: Some(args.chain_limit as u64),
        scan: args.scan,
        expect_onset: args.expect_onset,
        contributors: args.contributors,
        diagnosis: args.diagnosis.and_then(DiagnosisChoice::class),
        record: args.record,
    })
}

/// With `--verbose`, says which verdicts were worked out before.
fn say_known(global: &Global, report: &BisectReport) {
    if let (true, Some(tick)) = (global.verbose, report.known_to) {
        let known = format!("verdicts up to tick {} were worked out before", thousands(tick));
        // Ignored: there is no other place to report a closed stderr.
        let _ = writeln!(std::io::stderr(), "{known}, and signed by the key of the store");
    }
}
