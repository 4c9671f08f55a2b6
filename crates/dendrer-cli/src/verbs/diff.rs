//! `dendrer diff`

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::address::Position;
use dendrer::ask::diff::question::{DiffQuestion, DiffReply};
use dendrer::diff::{DiffAlign, DiffKind};
use dendrer::source::Asked as _;
use dendrer_object::Code;
use dendrer_view::diff::{DiffAnswer, DiffForm, DiffFound};
use dendrer_view::steps::CoherenceDiffAnswer;

use crate::context::desk::CommandDesk;
use crate::failure::{Failure, Result};
use crate::global::{ALIGN, Format, Global, tick_arg, word};
use crate::offers;
use crate::out::Out;

/// The words of `--type`.
const KINDS: [(&str, &str); 4] = [
    ("structural", "Another type of transition at the same place, or none"),
    ("semantic", "The same type, and another intent, action, result, policy or change of state"),
    ("confidence", "Another confidence"),
    ("outcome", "Another state in the end"),
];

/// `diff`
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// One run, or RUN@TICK to end it there; called a in the answer
    #[arg(value_name = "RUN_A", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) a: String,
    /// The other, called b
    #[arg(value_name = "RUN_B", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) b: String,
    /// The first tick of a to compare
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Position>,
    /// The last tick of a; what b has behind the transition beside it is left alone
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Position>,
    /// Only these kinds of difference
    #[arg(long = "type", value_delimiter = ',', value_name = "KIND", value_parser = word::<DiffKind>(&KINDS))]
    pub(crate) kinds: Vec<DiffKind>,
    /// How transitions are lined up: one by one behind what is shared, by what they mean, or, the default for two
    /// threads, by their steps
    #[arg(long, value_parser = word::<DiffAlign>(&ALIGN))]
    pub(crate) align: Option<DiffAlign>,
    /// Leave out what differs there, like agent_id or state.memory
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) ignore: Vec<String>,
    /// Only what differs there
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) path: Option<String>,
    /// Show the verdicts of a predicate on both runs: a name, or an expression that names the violation
    #[arg(long, value_name = "NAME|EXPR", conflicts_with_all = ["only_changes", "record"], add = ArgValueCompleter::new(offers::predicates))]
    pub(crate) predicate: Option<String>,
    /// Compare the coherence of their steps instead: means of phi, q_hat and crystallizations
    #[arg(long, conflicts_with_all = ["from", "kinds", "ignore", "path", "predicate", "only_changes", "stat", "summary", "record"])]
    pub(crate) coherence: bool,
    /// Print the differences alone, without headline and counts
    #[arg(long, conflicts_with_all = ["stat", "summary"])]
    pub(crate) only_changes: bool,
    /// Count by type of transition, and list no pairs
    #[arg(long, conflicts_with = "summary")]
    pub(crate) stat: bool,
    /// Only the counts
    #[arg(long)]
    pub(crate) summary: bool,
    /// End with exit code 1 if the runs differ
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// Both transitions of each pair in two columns
    #[arg(long, conflicts_with_all = ["stat", "summary"])]
    pub(crate) side_by_side: bool,
    /// Write the answer, without the pairs, into the casebook of the store
    #[arg(long)]
    pub(crate) record: bool,
    /// At most N pairs; 0 for all
    #[arg(short = 'n', long = "limit", default_value_t = 1000)]
    pub(crate) limit: usize,
}

pub(crate) fn run(global: &Global, args: &Diff, out: &mut Out) -> Result {
    let is_stream = out.format() == Format::Jsonl;
    let forms = [
        ("--stat", args.stat && is_stream),
        ("--summary", args.summary && is_stream),
        ("--only-changes", args.only_changes),
        ("--side-by-side", args.side_by_side),
    ];
    refuse_forms(&forms, out)?;
    let question = question(args);
    let mut desk = CommandDesk::new(global, out);
    let reply = question.ask(&mut desk)?;
    let progress = desk.into_progress();
    let compared = match reply {
        DiffReply::Coherence([a, b]) => return out.answer(&CoherenceDiffAnswer { a, b }),
        DiffReply::Runs(compared) => compared,
    };
    let form = DiffForm::of(&question, compared.terms.align);
    let mut answer = DiffAnswer::new(DiffForm {
        only_changes: args.only_changes,
        side_by_side: args.side_by_side,
        tail_in_one: form.tail_in_one && !args.side_by_side,
        fails: args.exit_code,
        ..form
    });
    let report = compared.each(&mut |pair| out.take(&mut answer, pair))?;
    drop(progress);
    let mut found = DiffFound::of(&compared, report);
    if args.record {
        found.record(&compared, &mut CommandDesk::new(global, out))?;
    }
    answer.ends(found);
    out.end(&mut answer)
}

/// Returns the question of the flags.
fn question(args: &Diff) -> DiffQuestion {
    DiffQuestion {
        run_a: args.a.clone(),
        run_b: args.b.clone(),
        from: args.from.clone(),
        to: args.to.clone(),
        r#type: args.kinds.clone(),
        align: args.align,
        ignore: args.ignore.clone(),
        path: args.path.clone(),
        predicate: args.predicate.clone(),
        coherence: args.coherence,
        stat: args.stat,
        summary: args.summary,
        record: args.record,
        limit: Some(args.limit as u64),
    }
}

/// Refuses a form of the text that was asked for together with a document.
fn refuse_forms(forms: &[(&str, bool)], out: &Out) -> Result<()> {
    let form = match out.format() {
        Format::Text => return Ok(()),
        Format::Json => "one document",
        Format::Jsonl => "a stream of items",
    };
    match forms.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            Err(Failure::new(Code::E0106, format!("{flag} is another form of the answer than {form}")))
        }
        None => Ok(()),
    }
}
