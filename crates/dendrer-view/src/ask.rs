//! Questions as documents: one door for Python and for every server.
//!
//! [`ask`] reads a question from its document, asks it, and returns the document of the answer with its head. The desk opens what
//! the question names.

use dendrer::ask::bisect::question::BisectQuestion;
use dendrer::ask::commitments::question::CommitmentsQuestion;
use dendrer::ask::compare::question::{CompareQuestion, HeatmapQuestion};
use dendrer::ask::diff::question::{DiffQuestion, DiffReply};
use dendrer::ask::gate::question::AssertQuestion;
use dendrer::ask::graphs::{GraphFrontierQuestion, GraphShowQuestion};
use dendrer::ask::layout::LayoutQuestion;
use dendrer::ask::log::LogDetails;
use dendrer::ask::log::log as each_logged;
use dendrer::ask::log::question::{LogQuestion, OpenedLog};
use dendrer::ask::predicates::question::{
    PredicateListQuestion, PredicateShowQuestion, PredicateTestQuestion,
};
use dendrer::ask::runs::question::RunsQuestion;
use dendrer::ask::secrets::SecretsScanQuestion;
use dendrer::ask::show::question::{ShowQuestion, ShowReply};
use dendrer::ask::state::question::StateQuestion;
use dendrer::ask::steps::question::{CoherenceQuestion, StepsQuestion, StepsReply};
use dendrer::ask::timeline::question::TimelineQuestion;
use dendrer::ask::transcript::question::TranscriptQuestion;
use dendrer::ask::why::question::{BacktrackQuestion, WhyQuestion};
use dendrer::care::erase::question::EraseQuestion;
use dendrer::care::verify::question::{VerifyQuestion, VerifyReply};
use dendrer::change::conflicts::question::{ConflictsListQuestion, ConflictsShowQuestion, ResolveQuestion};
use dendrer::change::extend::question::ExtendQuestion;
use dendrer::change::findings::{LabelQuestion, NoteQuestion};
use dendrer::change::replay::{ReplayQuestion, ReplayReply};
use dendrer::cherrypick::question::CherrypickQuestion;
use dendrer::contract::question::{
    ContractCheckQuestion, ContractDiffQuestion, ContractLintQuestion, ContractListQuestion,
    ContractShowQuestion, ContractSuggestQuestion,
};
use dendrer::delegate::question::{AcceptQuestion, DelegateQuestion};
use dendrer::fork::question::ForkQuestion;
use dendrer::merge::question::MergeQuestion;
use dendrer::problem::Problem;
use dendrer::rebase::question::RebaseQuestion;
use dendrer::reduce::question::ReduceQuestion;
use dendrer::source::{Asked, Desk};
use dendrer_object::document::{PublishedDocument, PublishedSchema, document_name};
use dendrer_object::question::{Question, QuestionFault};
use dendrer_object::text::nearest;
use dendrer_object::{Code, Object, Value};

use crate::answer::{Answer, End, ItemAnswer};
use crate::bisect::BisectReplyShown;
use crate::cherrypick::CherrypickAnswer;
use crate::compare::CompareAnswer;
use crate::contract::check::ContractCheckAnswer;
use crate::contract::found::{ContractAnswer, ContractDiffAnswer};
use crate::contract::lint::LintAnswer;
use crate::contract::suggest::SuggestAnswer;
use crate::diff::{DiffAnswer, DiffForm, DiffFound};
use crate::draw::svg::Frame;
use crate::draw::{bisect as bisect_drawing, timeline};
use crate::graphs::GraphAnswer;
use crate::graphs::record_divergence;
use crate::head;
use crate::log::{LogAnswer, LogEnd};
use crate::picture::LayoutAnswer;
use crate::predicate::{PredicateTestAnswer, TickRow};
use crate::replay::ReplayAnswer;
use crate::show::{RawRecordAnswer, ShowAnswer, ShowParts};
use crate::steps::{CoherenceAnswer, CoherenceDiffAnswer, CompositionAnswer, StepsAnswer};
use crate::verify::VerifyAnswer;

/// An answer as data.
#[derive(Debug, Clone)]
pub struct AnsweredQuestion {
    /// The document, with its head.
    pub document: Value,
    /// The exit code of the command that asks the same.
    pub exit: u8,
    /// The problem with which the answer ends.
    pub problem: Option<Problem>,
}

/// The documents of each file that publishes some.
const DOCUMENTS: &[&[&[PublishedSchema]]] = &[
    crate::action::DOCUMENTS,
    crate::backup::DOCUMENTS,
    crate::badge::DOCUMENTS,
    crate::bisect::DOCUMENTS,
    crate::branches::DOCUMENTS,
    crate::casebook::DOCUMENTS,
    crate::cherrypick::DOCUMENTS,
    crate::commit::DOCUMENTS,
    crate::commitments::DOCUMENTS,
    crate::compare::DOCUMENTS,
    crate::conflicts::DOCUMENTS,
    crate::contract::check::DOCUMENTS,
    crate::contract::extend::DOCUMENTS,
    crate::contract::found::DOCUMENTS,
    crate::contract::lint::DOCUMENTS,
    crate::contract::suggest::DOCUMENTS,
    crate::demo::DOCUMENTS,
    crate::diff::DOCUMENTS,
    crate::doctor::DOCUMENTS,
    crate::erase::DOCUMENTS,
    crate::export::DOCUMENTS,
    crate::fleet::DOCUMENTS,
    crate::foreign::DOCUMENTS,
    crate::fork::DOCUMENTS,
    crate::fsck::DOCUMENTS,
    crate::gate::DOCUMENTS,
    crate::gc::DOCUMENTS,
    crate::graphs::DOCUMENTS,
    crate::help::DOCUMENTS,
    crate::import::DOCUMENTS,
    crate::init::DOCUMENTS,
    crate::key::DOCUMENTS,
    crate::log::DOCUMENTS,
    crate::merge::DOCUMENTS,
    crate::pack::DOCUMENTS,
    crate::picture::DOCUMENTS,
    crate::predicate::DOCUMENTS,
    crate::problem::DOCUMENTS,
    crate::profile::DOCUMENTS,
    crate::progress::DOCUMENTS,
    crate::rebase::DOCUMENTS,
    crate::recording::DOCUMENTS,
    crate::reduce::DOCUMENTS,
    crate::replay::DOCUMENTS,
    crate::restore::DOCUMENTS,
    crate::runs::DOCUMENTS,
    crate::secrets::DOCUMENTS,
    crate::serve::DOCUMENTS,
    crate::show::DOCUMENTS,
    crate::state::DOCUMENTS,
    crate::steps::DOCUMENTS,
    crate::suite::DOCUMENTS,
    crate::timeline::DOCUMENTS,
    crate::transcript::DOCUMENTS,
    crate::verify::DOCUMENTS,
    crate::version::DOCUMENTS,
    crate::why::DOCUMENTS,
];

/// The schemas of questions and answers.
pub(crate) fn schemas() -> impl Iterator<Item = &'static PublishedSchema> {
    DOCUMENTS.iter().copied().flatten().copied().flatten().chain(SCHEMAS)
}

/// Whether the head of a document names what was read.
pub fn is_read(document: &Object) -> bool {
    let name = document_name(document);
    schemas().any(|known| known.is_read && Some(known.name) == name)
}

type AskFn = fn(&Value, &mut dyn Desk) -> Result<AnsweredQuestion, Problem>;

/// Makes the table of the questions, and that of their schemas.
macro_rules! questions {
    ($($question:ty => $ask:expr,)*) => {
        /// The questions, by the names of their documents.
        const QUESTIONS: &[(&str, AskFn)] = &[$((<$question as PublishedDocument>::NAME, $ask)),*];

        /// The schema of every question.
        const SCHEMAS: &[PublishedSchema] = &[$(PublishedSchema::of::<$question>(<$question as PublishedDocument>::NAME)),*];
    };
}

questions! {
    AcceptQuestion => plain::<AcceptQuestion>,
    AssertQuestion => plain::<AssertQuestion>,
    BacktrackQuestion => plain::<BacktrackQuestion>,
    BisectQuestion => bisect,
    CherrypickQuestion => cherrypick,
    CoherenceQuestion => coherence,
    CommitmentsQuestion => plain::<CommitmentsQuestion>,
    CompareQuestion => compare,
    ConflictsListQuestion => plain::<ConflictsListQuestion>,
    ConflictsShowQuestion => plain::<ConflictsShowQuestion>,
    ContractCheckQuestion => contract_check,
    ContractDiffQuestion => contract_diff,
    ContractLintQuestion => contract_lint,
    ContractListQuestion => plain::<ContractListQuestion>,
    ContractShowQuestion => contract_show,
    ContractSuggestQuestion => contract_suggest,
    DelegateQuestion => plain::<DelegateQuestion>,
    DiffQuestion => diff,
    EraseQuestion => plain::<EraseQuestion>,
    ExtendQuestion => plain::<ExtendQuestion>,
    ForkQuestion => plain::<ForkQuestion>,
    GraphFrontierQuestion => frontier,
    GraphShowQuestion => graph,
    HeatmapQuestion => plain::<HeatmapQuestion>,
    LabelQuestion => plain::<LabelQuestion>,
    LayoutQuestion => layout,
    LogQuestion => log,
    MergeQuestion => plain::<MergeQuestion>,
    NoteQuestion => plain::<NoteQuestion>,
    PredicateListQuestion => plain::<PredicateListQuestion>,
    PredicateShowQuestion => plain::<PredicateShowQuestion>,
    PredicateTestQuestion => predicate_test,
    RebaseQuestion => plain::<RebaseQuestion>,
    ReduceQuestion => plain::<ReduceQuestion>,
    ReplayQuestion => replay,
    ResolveQuestion => plain::<ResolveQuestion>,
    RunsQuestion => plain::<RunsQuestion>,
    SecretsScanQuestion => plain::<SecretsScanQuestion>,
    ShowQuestion => show,
    StateQuestion => state,
    StepsQuestion => steps,
    TimelineQuestion => plain::<TimelineQuestion>,
    TranscriptQuestion => plain::<TranscriptQuestion>,
    VerifyQuestion => verify,
    WhyQuestion => plain::<WhyQuestion>,
}

/// Asks a question that is given as its document.
///
/// # Errors
///
/// A [`Problem`]: E0106 names the member that does not fit; any other is that of the command.
pub fn ask(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let schema = question.get("schema").and_then(Value::as_str).unwrap_or_default();
    let name = question.as_object().and_then(document_name);
    let found = name.and_then(|name| QUESTIONS.iter().find(|(known, _)| *known == name));
    let Some((_, ask)) = found else {
        let problem = Problem::new(Code::E0106, format!("\"{schema}\" is not the schema of a question"));
        let near = nearest(name.unwrap_or(schema), QUESTIONS.iter().map(|(name, _)| *name));
        let near = near.map(|near| format!("did you mean dendrer.{near}/1?"));
        return Err(near.into_iter().fold(problem, Problem::note).help(&["dendrer", "schema"]));
    };
    ask(question, desk)
}

/// Draws the answer of a question that is given as its document.
///
/// # Errors
///
/// A [`Problem`] if the question has no picture, or more nodes than one has.
pub fn draw(question: &Value, desk: &mut dyn Desk) -> Result<String, Problem> {
    match question.as_object().and_then(document_name).unwrap_or_default() {
        "layout-question" => LayoutAnswer::of(&read(question)?, desk)?.svg(),
        "timeline-question" => {
            let reply = read::<TimelineQuestion>(question)?.ask(desk)?;
            Ok(timeline::picture(&reply, Frame::File))
        }
        "bisect-question" => {
            let reply = read::<BisectQuestion>(question)?.ask(desk)?;
            Ok(bisect_drawing::picture(&reply, Frame::File))
        }
        name => Err(Problem::new(Code::E0106, format!("{name} has no picture"))),
    }
}

/// Reads a question.
fn read<Q: Question>(document: &Value) -> Result<Q, Problem> {
    Q::read(document).map_err(|fault| {
        let problem = Problem::new(Code::E0106, fault.to_string());
        let problem = match &fault {
            QuestionFault::Unknown { near: Some(near), .. } => problem.note(format!("did you mean {near}?")),
            _ => problem,
        };
        problem.help(&["dendrer", "schema", Q::NAME])
    })
}

/// Returns an answer with its head.
fn answered(answer: &impl Answer, desk: &dyn Desk, problem: Option<Problem>) -> AnsweredQuestion {
    headed(&answer.document(), answer.end(), desk, problem)
}

/// Returns an answer of items with its head.
fn listed(
    answer: &impl ItemAnswer,
    items: Vec<Value>,
    desk: &dyn Desk,
    problem: Option<Problem>,
) -> AnsweredQuestion {
    headed(&answer.whole(items), answer.end(), desk, problem)
}

fn headed(document: &Value, end: End, desk: &dyn Desk, problem: Option<Problem>) -> AnsweredQuestion {
    let document = document.as_object().cloned().unwrap_or_default();
    let is_read = is_read(&document);
    let document = Value::Object(head::complete(document, is_read, &desk.head()));
    AnsweredQuestion { document, exit: end.exit(), problem }
}

/// Asks a question whose reply is its answer.
fn plain<Q>(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem>
where
    Q: Asked<Reply: Answer>,
{
    let reply = read::<Q>(question)?.ask(desk)?;
    Ok(answered(&reply, desk, None))
}

fn bisect(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let question: BisectQuestion = read(question)?;
    let reply = question.ask(desk)?;
    let shown = BisectReplyShown { reply: &reply, question: &question, recorded: &[], is_paper: false };
    let recorded = shown.record(desk)?;
    let shown = BisectReplyShown { recorded: &recorded, ..shown };
    Ok(answered(&shown, desk, reply.problem.clone()))
}

fn coherence(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let found = read::<CoherenceQuestion>(question)?.ask(desk)?;
    Ok(answered(&CoherenceAnswer(&found), desk, None))
}

fn compare(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let found = read::<CompareQuestion>(question)?.ask(desk)?;
    Ok(answered(&CompareAnswer { found: &found, is_profile: false }, desk, None))
}

fn log(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let OpenedLog { trace, terms, found_intact, trust } = read::<LogQuestion>(question)?.ask(desk)?;
    let LogDetails { whole, links, .. } = terms.details;
    let mut answer = LogAnswer::new(trace.name().clone(), whole).with_links(links);
    let mut items = Vec::new();
    let summary = each_logged(&trace, terms, &mut |record| {
        items.extend(answer.item(&record));
        Ok::<(), Problem>(())
    })?;
    answer.ends(LogEnd::Summed { summary, found_intact, trust });
    Ok(listed(&answer, items, desk, None))
}

fn graph(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let found = read::<GraphShowQuestion>(question)?.ask(desk)?;
    let tested = Some(found.hosts());
    let shown = GraphAnswer { graph: &found.graph, digest: found.digest, form: &found.form, tested };
    Ok(answered(&shown, desk, None))
}

fn frontier(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let found = read::<GraphFrontierQuestion>(question)?.ask(desk)?;
    Ok(answered(&found, desk, None))
}

fn layout(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let found = LayoutAnswer::of(&read(question)?, desk)?;
    Ok(answered(&found, desk, None))
}

fn show(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    Ok(match read::<ShowQuestion>(question)?.ask(desk)? {
        ShowReply::Raw(record) => answered(&RawRecordAnswer(&record), desk, None),
        ShowReply::Shown(shown) => {
            answered(&ShowAnswer { shown: &shown, parts: ShowParts::default() }, desk, None)
        }
    })
}

fn diff(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let question: DiffQuestion = read(question)?;
    let compared = match question.ask(desk)? {
        DiffReply::Coherence([a, b]) => return Ok(answered(&CoherenceDiffAnswer { a, b }, desk, None)),
        DiffReply::Runs(compared) => compared,
    };
    let (mut answer, mut items) =
        (DiffAnswer::new(DiffForm::of(&question, compared.terms.align)), Vec::new());
    let report = compared.each(&mut |pair| {
        items.extend(answer.item(pair));
        Ok(())
    })?;
    let mut found = DiffFound::of(&compared, report);
    if question.record {
        found.record(&compared, desk)?;
    }
    answer.ends(found);
    Ok(listed(&answer, items, desk, None))
}

fn verify(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    Ok(match read::<VerifyQuestion>(question)?.ask(desk)? {
        VerifyReply::Branches(branches) => answered(&branches, desk, None),
        VerifyReply::Logs(outcomes) => {
            answered(&VerifyAnswer { outcomes: &outcomes, is_list: false }, desk, None)
        }
    })
}

fn state(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let reply = read::<StateQuestion>(question)?.ask(desk)?;
    Ok(answered(&reply, desk, None))
}

fn steps(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let question: StepsQuestion = read(question)?;
    let opened = match question.ask(desk)? {
        StepsReply::Composition(made) => return Ok(answered(&CompositionAnswer(&made), desk, None)),
        StepsReply::Steps(opened) => opened,
    };
    let mut answer = StepsAnswer::new(question.full, question.stats, opened.traces.len() > 1);
    let mut items = Vec::new();
    answer.stats = opened.each(&mut |step| {
        items.extend(answer.item(step));
        Ok::<(), Problem>(())
    })?;
    Ok(listed(&answer, items, desk, None))
}

fn cherrypick(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let reply = &read::<CherrypickQuestion>(question)?.ask(desk)?;
    let answer = CherrypickAnswer { reply, show_hash: false };
    Ok(answered(&answer, desk, answer.problem()))
}

fn replay(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let question: ReplayQuestion = read(question)?;
    let ticks = match question.ask(desk)? {
        ReplayReply::Ticks(ticks) => ticks,
        ReplayReply::Graph(replayed) => {
            if question.record {
                record_divergence(&replayed, desk)?;
            }
            return Ok(answered(&*replayed, desk, None));
        }
    };
    let (mut answer, mut items) = (ReplayAnswer::new(question.detect), Vec::new());
    let replayed = ticks.each(&mut |_, listed| {
        items.extend(listed.and_then(|listed| answer.item(&listed)));
        Ok(())
    })?;
    answer.replayed = Some(replayed);
    let problem = answer.failure();
    Ok(listed(&answer, items, desk, problem))
}

fn predicate_test(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let reply = read::<PredicateTestQuestion>(question)?.ask(desk)?;
    let rows = TickRow::listed(&reply)?;
    let answer = PredicateTestAnswer { tested: &reply.tested, rows: rows.as_deref() };
    Ok(answered(&answer, desk, None))
}

fn contract_check(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let checked = &read::<ContractCheckQuestion>(question)?.ask(desk)?;
    Ok(answered(&ContractCheckAnswer { checked, all_violations: true }, desk, None))
}

fn contract_diff(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let found = read::<ContractDiffQuestion>(question)?.ask(desk)?;
    let (old, new, changes) = (&found.old, &found.new, &found.changes);
    Ok(answered(&ContractDiffAnswer { old, new, changes, fails: false }, desk, None))
}

fn contract_lint(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let found = read::<ContractLintQuestion>(question)?.ask(desk)?;
    Ok(answered(&LintAnswer { file: &found.named, linted: &found.linted }, desk, None))
}

fn contract_show(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let shown = read::<ContractShowQuestion>(question)?.ask(desk)?;
    Ok(answered(&ContractAnswer { found: &shown.found, only: shown.only.as_ref() }, desk, None))
}

fn contract_suggest(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let question: ContractSuggestQuestion = read(question)?;
    let found = &question.ask(desk)?;
    Ok(answered(&SuggestAnswer { runs: &question.runs, found }, desk, None))
}
