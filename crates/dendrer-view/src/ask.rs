//! Questions as documents: one door for Python and for every server.
//!
//! [`ask`] reads a question from its document, asks it, and returns the document of the answer with its head. The desk opens what
//! the question names.

use dendrer::ask::bisect::question::BisectQuestion;
use dendrer::ask::why::question::{BacktrackQuestion, WhyQuestion};
use dendrer::care::erase::question::EraseQuestion;
use dendrer::casebook;
use dendrer::change::conflicts::question::ResolveQuestion;
use dendrer::change::extend::question::ExtendQuestion;
use dendrer::change::findings::{LabelQuestion, NoteQuestion};
use dendrer::cherrypick::question::CherrypickQuestion;
use dendrer::delegate::question::{AcceptQuestion, DelegateQuestion};
use dendrer::fork::question::ForkQuestion;
use dendrer::merge::question::MergeQuestion;
use dendrer::problem::Problem;
use dendrer::rebase::question::RebaseQuestion;
use dendrer::reduce::question::ReduceQuestion;
use dendrer::source::{Asked, Desk};
use dendrer_object::document::PublishedDocument;
use dendrer_object::question::{Question, QuestionFault};
use dendrer_object::text::nearest;
use dendrer_object::{Code, Value};

use crate::answer::Answer;
use crate::bisect::BisectReplyShown;
use crate::cherrypick::CherrypickAnswer;
use crate::head;

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

type AskFn = fn(&Value, &mut dyn Desk) -> Result<AnsweredQuestion, Problem>;

/// Makes the table of the questions, and that of their schemas.
macro_rules! questions {
    ($($question:ty => $ask:expr,)*) => {
        /// The questions, by the names of their documents.
        const QUESTIONS: &[(&str, AskFn)] = &[$((<$question as PublishedDocument>::NAME, $ask)),*];

        /// Name and schema of every question.
        pub(crate) const SCHEMAS: &[(&str, fn() -> Value)] =
            &[$((<$question as PublishedDocument>::NAME, <$question as PublishedDocument>::published)),*];
    };
}

questions! {
    BacktrackQuestion => plain::<BacktrackQuestion>,
    BisectQuestion => bisect,
    CherrypickQuestion => cherrypick,
    AcceptQuestion => plain::<AcceptQuestion>,
    DelegateQuestion => plain::<DelegateQuestion>,
    ResolveQuestion => plain::<ResolveQuestion>,
    ExtendQuestion => plain::<ExtendQuestion>,
    EraseQuestion => plain::<EraseQuestion>,
    ForkQuestion => plain::<ForkQuestion>,
    LabelQuestion => plain::<LabelQuestion>,
    MergeQuestion => plain::<MergeQuestion>,
    NoteQuestion => plain::<NoteQuestion>,
    RebaseQuestion => plain::<RebaseQuestion>,
    ReduceQuestion => plain::<ReduceQuestion>,
    WhyQuestion => plain::<WhyQuestion>,
}

/// Asks a question that is given as its document.
///
/// # Errors
///
/// A [`Problem`]: E0106 names the member that does not fit; any other is that of the command.
pub fn ask(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let schema = question.get("schema").and_then(Value::as_str).unwrap_or_default();
    let name = schema.strip_prefix("dendrer.").and_then(|schema| schema.strip_suffix("/1"));
    let found = name.and_then(|name| QUESTIONS.iter().find(|(known, _)| *known == name));
    let Some((_, ask)) = found else {
        let problem = Problem::new(Code::E0106, format!("\"{schema}\" is not the schema of a question"));
        let near = nearest(name.unwrap_or(schema), QUESTIONS.iter().map(|(name, _)| *name));
        let near = near.map(|near| format!("did you mean dendrer.{near}/1?"));
        return Err(near.into_iter().fold(problem, Problem::note).help(&["dendrer", "schema"]));
    };
    ask(question, desk)
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
    let exit = answer.end().exit();
    let document = answer.document().as_object().cloned().unwrap_or_default();
    AnsweredQuestion { document: Value::Object(head::complete(document, &desk.head())), exit, problem }
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
    let shown = BisectReplyShown { reply: &reply, question: &question, recorded: &[] };
    let found = shown.finding()?;
    let recorded = found.map_or_else(
        || Ok(Vec::new()),
        |found| desk.write_down(|store, environment| casebook::record_bisect(store, &found, environment)),
    )?;
    let shown = BisectReplyShown { recorded: &recorded, ..shown };
    Ok(answered(&shown, desk, reply.problem.clone()))
}

fn cherrypick(question: &Value, desk: &mut dyn Desk) -> Result<AnsweredQuestion, Problem> {
    let reply = &read::<CherrypickQuestion>(question)?.ask(desk)?;
    let answer = CherrypickAnswer { reply, show_hash: false };
    Ok(answered(&answer, desk, answer.problem()))
}
