//! New runs and transitions as server-sent events.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
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
    let runs = dendrer::trace::all_runs(&*served.reader()?).map_err(dendrer::problem::Problem::from)?;
    Ok(runs.into_iter().map(|run| (run.name.to_string(), run.head.tick.unwrap_or(0))).collect())
}

/// Sends a `transition` event for each tick after `after`, also while the run is recorded.
pub(crate) fn transitions(served: Arc<Served>, run: String, after: u64) -> Response {
    let (sender, receiver) = mpsc::channel(LATE);
    tokio::spawn(async move {
        let mut next = after + 1;
        let mut is_lost = false;
        while !sender.is_closed() {
            let (asked, name, from) = (Arc::clone(&served), run.clone(), next);
            let window = tokio::task::spawn_blocking(move || window(&asked, &name, from)).await;
            let items = window.ok().and_then(Result::ok).unwrap_or_default();
            for item in &items {
                let tick = item.get("tick").and_then(Value::as_u64).unwrap_or(next);
                if is_lost && sender.capacity() == LATE {
                    is_lost = sender.try_send(lost(tick)).is_err();
                }
                let event = Event::default().event("transition").id(tick.to_string()).data(quote::json(item));
                if !is_lost {
                    is_lost = sender.try_send(event).is_err();
                }
                next = tick + 1;
            }
            if items.is_empty() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    });
    stream(receiver)
}

fn lost(next: u64) -> Event {
    Event::default().event("lost").data(quote::json(&Value::record([("next", Value::from(next))])))
}

/// Returns the next transitions of a run.
fn window(served: &Served, run: &str, from: u64) -> Result<Vec<Value>, Refusal> {
    let mut question = Object::default();
    question.set("schema", Value::from("dendrer.log-question/1"));
    question.set("run", Value::from(run));
    let tip = tips(served)?.into_iter().find(|(name, _)| name == run).map_or(0, |(_, tip)| tip);
    if from > tip {
        return Ok(Vec::new());
    }
    question.set("from", Value::from(from));
    question.set("limit", Value::from(WINDOW));
    let answered = served.ask(&Value::Object(question), Watch::new())?;
    let items = answered.document.get("items").and_then(Value::as_array);
    Ok(items.into_iter().flat_map(|items| items.iter()).cloned().collect())
}

fn stream(receiver: mpsc::Receiver<Event>) -> Response {
    let events = ReceiverStream::new(receiver).map(Ok::<_, Infallible>);
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}
