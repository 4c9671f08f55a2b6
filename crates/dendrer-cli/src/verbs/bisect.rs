//! `dendrer bisect`

use std::io::Write as _;

use dendrer::Trace;
use dendrer::address::Address;
use dendrer::ask::bisect::question::{BisectDesk, BisectQuestion, BisectReplyKind, nothing_to_diagnose};
use dendrer::bisect::BisectReport;
use dendrer::casebook::{self, Bisected};
use dendrer::diagnosis::{DiagnosisClass, Offer};
use dendrer::source::{Desk, QuestionSource};
use dendrer::watch::Watch;
use dendrer_object::record::Record;
use dendrer_view::bisect::{BisectAll, BisectCommand, BisectShown, RegressionShown};
use dendrer_view::thousands;

use self::args::DiagnosisChoice;
use crate::context;
use crate::context::compared::AlignChoice;
use crate::context::desk::CommandDesk;
use crate::context::named::{of_file, window};
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

pub(crate) use self::args::Bisect;

mod args;
mod causes;

/// The desk of a command, at which a person may be asked for the class of a failure.
struct AskingDesk<'d> {
    desk: CommandDesk<'d>,
    command: &'d BisectCommand,
    asks: bool,
}

impl Desk for AskingDesk<'_> {
    fn open(&mut self, address: &Address) -> Result<QuestionSource> {
        self.desk.open(address)
    }

    fn watch(&mut self, what: &'static str) -> Watch {
        self.desk.watch(what)
    }

    fn asks(&mut self, trace: &Trace) {
        self.desk.asks(trace);
    }

    fn note(&mut self, note: String) {
        self.desk.note(note);
    }

    fn name_of(&self, member: &'static str) -> String {
        self.desk.name_of(member)
    }
}

impl BisectDesk for AskingDesk<'_> {
    fn decide(&mut self, offer: Option<&Offer>) -> Result<Option<DiagnosisClass>> {
        match offer {
            _ if !self.asks => Ok(None),
            None => Err(nothing_to_diagnose()),
            Some(offer) => causes::ask(self.command, offer),
        }
    }
}

pub(crate) fn run(global: &Global, args: &Bisect, out: &mut Out) -> Result {
    let question = question(args)?;
    let command = BisectCommand::of(&question);
    let asks = args.diagnosis == Some(DiagnosisChoice::Ask);
    let mut desk = AskingDesk { desk: CommandDesk::new(global, out), command: &command, asks };
    desk.desk.names("all_of", args.all_of.as_deref());
    let asked = question.ask(&mut desk);
    drop(desk);
    let reply = asked?;
    let problem = reply.problem.clone();
    match &reply.answer {
        BisectReplyKind::Several(run, found) => {
            out.answer(&BisectAll { run: run.clone(), found: found.clone() })
        }
        BisectReplyKind::Regression(answer) => {
            let is_expected = args.expect_onset.is_some() && problem.is_none();
            let code = out.answer_or(&RegressionShown { answer, run: &args.run }, problem)?;
            // An onset that was expected is the answer, whatever the score says.
            Ok(if is_expected { 0 } else { code })
        }
        BisectReplyKind::One(answer) => {
            say_known(global, &answer.found.report);
            let shown = BisectShown { answer, command: &command, recorded: &[] };
            let recorded = match command.records && !answer.is_refused() {
                true => record(global, &reply.finding(&shown.with_recorded(None))?)?,
                false => Vec::new(),
            };
            out.answer_or(&BisectShown { recorded: &recorded, ..shown }, problem)
        }
    }
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
        align: args.align.map(AlignChoice::align),
        regression: args.regression.clone(),
        all_of: args.all_of.as_deref().map(of_file).transpose()?,
        lift: args.lift,
        window: args.window.map(window),
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

/// Writes the answer into the casebook.
fn record(global: &Global, found: &Bisected) -> Result<Vec<Record>> {
    context::write_down(global, |store, surroundings| casebook::record_bisect(store, found, surroundings))
}
