//! Answers as lines, with the progress of a long question in front of its items.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use dendrer::watch::Watch;
use dendrer_object::{Value, document::document_name};
use dendrer_view::ask::AnsweredQuestion;
use dendrer_view::problem::ShownProblem as _;
use dendrer_view::progress::ProgressDocument;
use dendrer_view::quote;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use crate::answer::{EXIT, LINES, Refusal, exit_of, lines, typed};
use crate::served::Served;
use crate::work::Work;

/// How often progress is sent.
const EVERY: Duration = Duration::from_millis(500);
/// How many lines of progress wait for a slow client.
const QUEUE: usize = 4;

/// Asks a question, and answers with its items, one a line. A question that takes longer than half a second answers at once, with
/// a line of progress twice a second until it has an answer: a problem is its last line then.
///
/// # Errors
///
/// 503 if too many wait; the problem of a question that has one at once.
pub(crate) async fn answer(served: Arc<Served>, work: Work, question: Value) -> Result<Response, Refusal> {
    let watch = Watch::new();
    let name = question.as_object().and_then(document_name).unwrap_or_default();
    let name = name.trim_end_matches("-question").to_owned();
    let counted = watch.clone();
    let mut asked =
        Box::pin(async move { work.run_under(watch, move |watch| Ok(served.ask(&question, watch)?)).await });
    let began = Instant::now();
    if let Ok(answered) = tokio::time::timeout(EVERY, &mut asked).await {
        return Ok(whole(&answered?));
    }
    let (sender, receiver) = mpsc::channel::<Result<Bytes, Infallible>>(QUEUE);
    tokio::spawn(async move {
        let mut turns = tokio::time::interval(EVERY);
        loop {
            tokio::select! {
                // The client is gone: the question is dropped, which stops its reads.
                () = sender.closed() => return,
                answered = &mut asked => {
                    let last = match answered {
                        Ok(answered) => lines(&answered.document),
                        Err(refusal) => format!("{}\n", quote::json(&refusal.problem.to_json())),
                    };
                    // Ignored: the client is gone.
                    let _ = sender.send(Ok(Bytes::from(last))).await;
                    return;
                }
                _ = turns.tick() => {
                    // A client that does not read its lines misses some.
                    let _ = sender.try_send(Ok(Bytes::from(line(&name, counted.done(), began.elapsed()))));
                }
            }
        }
    });
    Ok(typed(StatusCode::OK, LINES, Body::from_stream(ReceiverStream::new(receiver).map(|line| line))))
}

fn whole(answered: &AnsweredQuestion) -> Response {
    let mut response = typed(StatusCode::OK, LINES, lines(&answered.document));
    response.headers_mut().insert(EXIT, HeaderValue::from(u16::from(exit_of(answered))));
    response
}

/// Returns a line of progress.
fn line(name: &str, done: u64, elapsed: Duration) -> String {
    let rate = done.saturating_mul(1000) / u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    let progress: Value = ProgressDocument::of(name, "records", done, None, rate, None).into();
    format!("{}\n", quote::json(&progress))
}
