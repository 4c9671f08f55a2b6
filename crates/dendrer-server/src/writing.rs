//! Requests that write: lines of `commit`, forks, labels and notes.
//!
//! Rule: a line is answered when its record is durable, in the order of the lines; test `a_commit_is_durable_when_it_is_answered`.

use std::io::{self, Read};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use dendrer::Recorder;
use dendrer::kernel::step::Start;
use dendrer::lines::{self, Authors, LineOptions, LinesStopped, Recording, Reply};
use dendrer::problem::Problem;
use dendrer::repo::new_run::{read_name, refuse_unreachable};
use dendrer::repo::{Mode, Repo};
use dendrer::source::{QuestionPlace, StoreDesk};
use dendrer::store::embedded::Options;
use dendrer::store::prelude::*;
use dendrer_object::{Code, Object, Record, RunName, Value, json};
use dendrer_view::answer::ItemAnswer;
use dendrer_view::ask::ask;
use dendrer_view::commit::CommitAnswer;
use dendrer_view::problem::ShownProblem as _;
use dendrer_view::quote;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use crate::answer::{EXIT, LINES, Refusal, document, exit_of, typed};
use crate::served::Served;

/// The routes that write, each with what it does.
pub(crate) const WRITES: [(&str, &str); 4] = [
    ("/run/{run}/commit", "Records intents, one JSON object a line; one reply a line, once it is durable"),
    ("/run/{run}/fork", "Begins a fork of the run"),
    ("/label", "Names a moment"),
    ("/note", "Notes something on a moment"),
];

/// The largest line of `commit`, in bytes.
const LINE_MAX: usize = 64 << 20;

/// How many parts of a body, and how many replies, wait.
const QUEUE: usize = 64;

/// Opens the store for writing.
fn writable(served: &Served) -> Result<Repo, Problem> {
    let Some(dir) = served.dir() else {
        return Err(Problem::new(Code::E0601, "a bundle is read and never written to"));
    };
    let repo = Repo::open_with(&dir, Arc::clone(served.trust()), Options::write(), Mode::Write)?;
    // A key that is not here, or cannot be used, is reported before anything is made.
    repo.check_writer()?;
    Ok(repo)
}

/// Asks a question that writes: `fork`, `label` or `note`.
///
/// # Errors
///
/// E0106 if the body does not fit; else the problem of the command.
pub(crate) fn change(
    served: &Served,
    name: &str,
    run: Option<&str>,
    body: &Bytes,
) -> Result<Response, Refusal> {
    let given = json::parse_door(body)
        .map_err(|error| Problem::new(Code::E0106, format!("the body is no JSON: {}", error.kind)))?;
    let Some(given) = given.as_object() else {
        return Err(Problem::new(Code::E0106, "the body is an object").into());
    };
    let question = question(name, run, given)?;
    let place = QuestionPlace::Store(writable(served)?);
    let trust = Arc::clone(served.trust());
    let answered = ask(&Value::Object(question), &mut StoreDesk::new(&place, &trust))?;
    Ok(document(&answered.document, exit_of(&answered)))
}

/// The members that the body of each write may have.
const MEMBERS: [(&str, &[&str]); 3] = [
    ("fork", &["from", "as", "reason", "set", "policy", "replay_rest", "tool_output", "dry_run"]),
    ("label", &["name", "run", "tick"]),
    ("note", &["run", "tick", "text"]),
];

/// Makes the question of a write.
fn question(name: &str, run: Option<&str>, given: &Object) -> Result<Object, Problem> {
    let known = MEMBERS.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, members)| members);
    if let Some((member, _)) = given.iter().find(|(member, _)| !known.contains(&&***member)) {
        return Err(Problem::new(Code::E0106, format!("the body has no member \"{member}\" here")));
    }
    let mut question = Object::default();
    question.set("schema", Value::from(format!("dendrer.{name}-question/1")));
    let own = given.iter().filter(|(member, _)| run.is_some() || !matches!(&***member, "run" | "tick"));
    own.for_each(|(member, value)| question.set(member, value.clone()));
    match run {
        Some(run) => question.set("run", Value::from(run)),
        None => {
            let run = given.get("run").and_then(Value::as_str).unwrap_or_default();
            if run.is_empty() || run.contains(['@', '#', '/']) {
                return Err(Problem::new(Code::E0106, "the member run is the name of a run"));
            }
            let Some(tick) = given.get("tick").and_then(Value::as_u64) else {
                return Err(Problem::new(Code::E0106, "the member tick is a number"));
            };
            question.set("rev", Value::from(format!("{run}@{tick}")));
        }
    }
    Ok(question)
}

/// A body, read by the thread that records its lines.
struct BodyReader {
    parts: mpsc::Receiver<Bytes>,
    part: Bytes,
    /// How many bytes were read since the last end of a line.
    line: usize,
}

impl Read for BodyReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            match self.parts.blocking_recv() {
                Some(part) => self.part = part,
                None => return Ok(0),
            }
        }
        let size = self.part.len().min(into.len());
        let taken = self.part.split_to(size);
        into[..size].copy_from_slice(&taken);
        self.line = taken.iter().rev().position(|byte| *byte == b'\n').unwrap_or(self.line + size);
        if self.line > LINE_MAX {
            return Err(io::Error::other("a line has more than 64 MiB"));
        }
        Ok(size)
    }
}

/// Records the lines of a body, and sends one reply a line.
///
/// # Errors
///
/// A problem if the run cannot be continued or begun.
pub(crate) async fn commit(
    served: &Arc<Served>,
    run: &str,
    authors: Authors,
    body: Body,
) -> Result<Response, Refusal> {
    let run = read_name(run)?;
    refuse_unreachable_new(served, &run)?;
    let (parts_in, parts) = mpsc::channel(QUEUE);
    let (replies_in, replies) = mpsc::channel::<Bytes>(QUEUE);
    tokio::spawn(async move {
        let mut body = body.into_data_stream();
        // A part that cannot be read ends the lines: what was acknowledged is durable.
        while let Some(Ok(part)) = body.next().await {
            if parts_in.send(part).await.is_err() {
                return;
            }
        }
    });
    let served = Arc::clone(served);
    let (opened_in, opened) = tokio::sync::oneshot::channel();
    tokio::task::spawn_blocking(move || {
        let input = BodyReader { parts, part: Bytes::new(), line: 0 };
        record(&served, &run, authors, input, opened_in, &replies_in);
    });
    opened.await.map_err(|_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server stops"))??;
    let sent = ReceiverStream::new(replies).map(Ok::<_, io::Error>);
    let mut response = typed(StatusCode::OK, LINES, Body::from_stream(sent));
    // A commit that has begun stays 200: its last line has how it ended.
    response.headers_mut().insert(EXIT, HeaderValue::from_static("0"));
    Ok(response)
}

fn refuse_unreachable_new(served: &Served, run: &RunName) -> Result<(), Problem> {
    if served.reader()?.run(run).map_err(dendrer::Error::from)?.is_none() {
        refuse_unreachable(run)?;
    }
    Ok(())
}

type Opened = tokio::sync::oneshot::Sender<Result<(), Problem>>;

/// Records the lines of an input, and sends the replies.
fn record(
    served: &Served,
    run: &RunName,
    authors: Authors,
    input: BodyReader,
    opened: Opened,
    replies: &mpsc::Sender<Bytes>,
) {
    let begin = || -> Result<_, Problem> {
        let repo = writable(served)?;
        let exists = repo.writer()?.run(run).map_err(dendrer::Error::from)?.is_some();
        let recorder = if exists { repo.recorder(run)? } else { begin_or_go_on(&repo, run)? };
        let lines = lines::read(input).map_err(|error| {
            Problem::new(Code::E0801, "no thread could be begun").at("cause", error.to_string())
        })?;
        Ok((repo, recorder, lines, exists))
    };
    let (repo, mut recorder, mut lines, exists) = match begin() {
        Ok(begun) => begun,
        Err(problem) => return drop(opened.send(Err(problem))),
    };
    if opened.send(Ok(())).is_err() {
        return;
    }
    let send = |value: &Value| replies.blocking_send(Bytes::from(quote::json(value) + "\n")).is_ok();
    let options = LineOptions { authors, ..LineOptions::default() };
    let mut answer = CommitAnswer::new(run.clone(), recorder.head().tick(), false);
    let first = if exists { None } else { lines.first() };
    if matches!(&first, Some(Ok(line)) if options.begins_run(line)) {
        match first_record(&repo, run, &mut recorder) {
            Ok(begun) => {
                begun.map(Reply::Begun).iter().filter_map(|begun| answer.item(begun)).for_each(|item| {
                    send(&item);
                })
            }
            Err(problem) => {
                send(&problem.to_json());
                return;
            }
        }
    }
    let mut recording = Recording::new(&mut recorder, lines, options, false).after(first);
    let mut is_heard = true;
    for reply in recording.by_ref().flatten() {
        // A client that closed its connection hears nothing, and its lines count all the same.
        is_heard = answer.item(&reply).is_none_or(|item| is_heard && send(&item));
    }
    let ended = recording.end();
    drop(recorder);
    let closed = repo.close();
    let problem = ended.err().map(stopped).or_else(|| closed.err().map(Problem::from));
    let last = match problem {
        Some(problem) => problem.to_json(),
        None => Value::record([("summary", answer.summary())]),
    };
    send(&last);
}

/// Begins a run, and returns its first record. Continues it if another client began it meanwhile.
fn first_record(repo: &Repo, run: &RunName, recorder: &mut Recorder) -> Result<Option<Record>, Problem> {
    match recorder.commit() {
        Ok(records) => Ok(records.into_iter().next()),
        Err(error) if error.code() == Code::E0111 => {
            *recorder = goes_on(repo, run)?;
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Prepares to begin a run, or continues it if another client began it meanwhile.
fn begin_or_go_on(repo: &Repo, run: &RunName) -> Result<Recorder, Problem> {
    match repo.begin(&Start::new(run.clone())) {
        Err(error) if error.code() == Code::E0111 => goes_on(repo, run),
        begun => Ok(begun?),
    }
}

/// Continues a run that another client began meanwhile.
fn goes_on(repo: &Repo, run: &RunName) -> Result<Recorder, Problem> {
    repo.writer()?.clone().refresh().map_err(dendrer::Error::from)?;
    Ok(repo.recorder(run)?)
}

/// Returns the problem of lines that stopped.
fn stopped(why: LinesStopped) -> Problem {
    match why {
        LinesStopped::Input(error) => {
            Problem::new(Code::E0801, "cannot read the intents").at("cause", error.to_string())
        }
        LinesStopped::Line { line, error } => Problem::new(error.code(), error.kind.to_string())
            .at("byte", error.offset.to_string())
            .at("line", line.number.to_string()),
        LinesStopped::NoIntent { line, why } => {
            Problem::new(Code::E0209, why.to_string()).at("line", line.to_string()).at("member", "type")
        }
        LinesStopped::Intent { line, error } => Problem::from(*error).at("line", line.to_string()),
        LinesStopped::Store(error) => Problem::from(*error),
    }
}
