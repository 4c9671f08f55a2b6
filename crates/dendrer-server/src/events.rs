//! New runs and transitions as server-sent events.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use dendrer::problem::Problem;
use dendrer::watch::Watch;
use dendrer_object::{Object, Value};
use dendrer_view::quote;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use crate::answer::Refusal;
use crate::served::Served;

/// How often the log is looked at.
const PAUSE: Duration = Duration::from_millis(200);
/// How many events wait for a client; it reads the others with `log`.
const LATE: usize = 1000;
/// How many transitions are read at a time.
const WINDOW: u64 = 200;

/// Sends a `run` event for each run that began or became longer.
pub(crate) fn runs(served: Arc<Served>) -> Response {
    let (sender, receiver) = mpsc::channel(LATE);
    tokio::spawn(async move {
        let mut known: BTreeMap<String, u64> = BTreeMap::new();
        let mut is_first = true;
        while !sender.is_closed() {
            let served = Arc::clone(&served);
            let listed = tokio::task::spawn_blocking(move || tips(&served)).await;
            for (name, tip) in listed.ok().and_then(Result::ok).unwrap_or_default() {
                let before = known.insert(name.clone(), tip);
                if before == Some(tip) || is_first {
                    continue;
                }
                let run = Value::record([
                    ("name", Value::from(name)),
                    ("tip", Value::from(tip)),
                    ("ticks", Value::from(tip)),
                ]);
                let event = Event::default().event("run").data(quote::json(&run));
                // A late client asks for `runs` when it reads the next event.
                if matches!(sender.try_send(event), Err(mpsc::error::TrySendError::Closed(_))) {
                    return;
                }
            }
            is_first = false;
            tokio::time::sleep(PAUSE).await;
        }
    });
    stream(receiver)
}

fn tips(served: &Served) -> Result<Vec<(String, u64)>, Refusal> {
    let runs = dendrer::trace::all_runs(&*served.reader()?).map_err(Problem::from)?;
    Ok(runs.into_iter().map(|run| (run.name.to_string(), run.head.tick.unwrap_or(0))).collect())
}

/// A run as far as its events were sent.
#[derive(Debug, Clone)]
struct Followed {
    run: String,
    /// The tick of the next event.
    next: u64,
    /// How many refusals the run had; `None` before it was read.
    refusals: Option<u64>,
    is_ended: bool,
}

/// Sends an event for each tick after `after`, for each refusal and for the end, also while the run is recorded.
///
/// # Errors
///
/// The problem of a run that is not there.
pub(crate) async fn transitions(served: Arc<Served>, run: String, after: u64) -> Result<Response, Refusal> {
    let (sender, receiver) = mpsc::channel(LATE);
    let mut followed = Followed { run, next: after + 1, refusals: None, is_ended: false };
    let (asked, name) = (Arc::clone(&served), followed.run.clone());
    let found = tokio::task::spawn_blocking(move || asked.run(&asked.reader()?, &name)).await;
    found.map_err(|_| Refusal::failed())??;
    tokio::spawn(async move {
        // The tick of the first event that a late client did not get.
        let mut first_lost: Option<u64> = None;
        while !sender.is_closed() {
            let (asked, before) = (Arc::clone(&served), followed.clone());
            let read = tokio::task::spawn_blocking(move || before.read(&asked)).await;
            // A store that cannot be read now is read again.
            let Ok(Ok((now, events))) = read else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            followed = now;
            let has_more = !events.is_empty();
            for (name, tick, item) in events {
                if let Some(missed) = first_lost
                    && sender.capacity() == LATE
                    && sender.try_send(lost(missed)).is_ok()
                {
                    first_lost = None;
                }
                let event = Event::default().event(name).data(quote::json(&item));
                let event = if name == "transition" { event.id(tick.to_string()) } else { event };
                if first_lost.is_none() && sender.try_send(event).is_err() {
                    first_lost = Some(tick);
                }
            }
            if !has_more {
                tokio::time::sleep(PAUSE).await;
            }
        }
    });
    Ok(stream(receiver))
}

fn lost(next: u64) -> Event {
    Event::default().event("lost").data(quote::json(&Value::record([("next", Value::from(next))])))
}

impl Followed {
    /// Reads the next events, each with its name and tick, and where the run was read to.
    fn read(self, served: &Served) -> Result<(Followed, Vec<(&'static str, u64, Value)>), Problem> {
        let (summary, tip) = served.run(&served.reader()?, &self.run)?;
        let mut followed = self;
        let mut events = Vec::new();
        if followed.next <= tip {
            for item in followed.items(served, false)? {
                let tick = item.get("tick").and_then(Value::as_u64).unwrap_or(followed.next);
                followed.next = tick + 1;
                events.push(("transition", tick, item));
            }
            return Ok((followed, events));
        }
        let known = *followed.refusals.get_or_insert(summary.refusals);
        if summary.refusals > known {
            let is_refusal = |item: &Value| item.get("kind").and_then(Value::as_str) == Some("refusal");
            let all: Vec<Value> = followed.items(served, true)?.into_iter().filter(is_refusal).collect();
            let new = usize::try_from(summary.refusals - known).unwrap_or(usize::MAX);
            let begin = all.len().saturating_sub(new);
            events.extend(all.into_iter().skip(begin).map(|item| ("refusal", tip, item)));
            followed.refusals = Some(summary.refusals);
        }
        if summary.ended && !followed.is_ended {
            followed.is_ended = true;
            events.push(("end", tip, Value::record([("tick", Value::from(tip))])));
        }
        Ok((followed, events))
    }

    /// Returns the next transitions, or the last ones with the refusals between them.
    fn items(&self, served: &Served, with_refusals: bool) -> Result<Vec<Value>, Problem> {
        let from = if with_refusals { self.next.saturating_sub(WINDOW) } else { self.next };
        let mut question = Object::default();
        question.set("schema", Value::from("dendrer.log-question/1"));
        question.set("run", Value::from(&*self.run));
        question.set("from", Value::from(from));
        question.set("limit", Value::from(if with_refusals { 0 } else { WINDOW }));
        question.set("refusals", Value::from(with_refusals));
        let answered = served.ask(&Value::Object(question), Watch::new())?;
        let items = answered.document.get("items").and_then(Value::as_array);
        Ok(items.into_iter().flat_map(|items| items.iter()).cloned().collect())
    }
}

fn stream(receiver: mpsc::Receiver<Event>) -> Response {
    let events = ReceiverStream::new(receiver).map(Ok::<_, Infallible>);
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}
