//! Requests that read: each becomes a question, and its answer the response.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use dendrer::problem::Problem;
use dendrer_object::{Code, Object, Value, json};
use dendrer_view::answer::Answer as _;
use dendrer_view::ask::AnsweredQuestion;
use dendrer_view::version::VersionAnswer;
use dendrer_view::{quote, schemas};

use crate::answer::{CSV, EXIT, JSON, Refusal, SVG, document, exit_of, typed};
use crate::api;
use crate::path::{Form, Target};
use crate::progress;
use crate::route::{ROUTES, Route, refuse};
use crate::served::Served;
use crate::table;
use crate::work::Work;

/// The documents that have a table.
const TABLES: [&str; 3] = ["runs-question", "log-question", "diff-question"];
/// The documents that have a picture.
const PICTURES: [&str; 3] = ["bisect-question", "layout-question", "timeline-question"];

/// Answers a `GET` for a document.
///
/// # Errors
///
/// The refusal of a path without a document, or the problem of the question.
pub(crate) async fn get(
    served: &Arc<Served>,
    work: &Work,
    mut target: Target,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    if let Some(found) = fixed(&target)? {
        return Ok(document(&found, 0));
    }
    let segments: Vec<&str> = target.segments.iter().map(String::as_str).collect();
    if let ["run", _, "t", _, "value"] = segments[..] {
        return value(served, work, target).await;
    }
    let is_picture = matches!((target.form, &segments[..]), (Form::Svg, ["run", _, "log"]));
    if is_picture {
        // The picture of a log is its timeline.
        target.segments[2] = "timeline".to_owned();
    }
    let Some(route) = Route::find(&target.segments) else { return Err(no_document(&target)) };
    let has_form = match target.form {
        Form::Csv => TABLES.contains(&route.question),
        Form::Svg => PICTURES.contains(&route.question),
        _ => true,
    };
    if !has_form {
        return Err(no_document(&target));
    }
    let question = route.question(&target)?;
    match target.form {
        Form::Svg => {
            let served = Arc::clone(served);
            let drawn = work.run(move |watch| Ok(served.draw(&question, watch)?)).await?;
            Ok(typed(StatusCode::OK, SVG, drawn))
        }
        Form::Lines => progress::answer(Arc::clone(served), work.clone(), question).await,
        form => answer(served, work, question, form, headers).await,
    }
}

/// Answers a question that a request has as a document.
///
/// # Errors
///
/// 404 if no route asks it; else its problem.
pub(crate) async fn post(
    served: &Arc<Served>,
    work: &Work,
    name: &str,
    body: Bytes,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let schema = format!("{name}-question");
    if !ROUTES.iter().any(|route| route.question == schema) {
        return Err(Refusal::new(StatusCode::NOT_FOUND, format!("no question is named {name}")));
    }
    let question = json::parse_door(&body)
        .map_err(|error| Problem::new(Code::E0106, format!("the question is no JSON: {}", error.kind)))?;
    let expected = format!("dendrer.{schema}/1");
    if question.get("schema").and_then(Value::as_str) != Some(&*expected) {
        return Err(Problem::new(Code::E0106, format!("the schema of the question is {expected}")).into());
    }
    for (member, value) in question.as_object().into_iter().flat_map(Object::iter) {
        refuse(member, member, value)?;
    }
    answer(served, work, question, Form::Json, headers).await
}

/// Asks a question, and returns its answer in a form.
async fn answer(
    served: &Arc<Served>,
    work: &Work,
    question: Value,
    form: Form,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let served = Arc::clone(served);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
    let answered = work.run(move |watch| {
        let tag = served.tag(&question)?;
        if known.as_ref().is_some_and(|known| has_tag(known, &tag)) {
            return Ok((tag, None));
        }
        Ok((tag, Some(served.ask(&question, watch)?)))
    });
    let (tag, answered) = answered.await?;
    let mut response = match answered {
        None => typed(StatusCode::NOT_MODIFIED, JSON, ""),
        Some(answered) => formed(&answered, form),
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// Whether a list of known tags has a tag: a weak one counts as it does for `GET` (RFC 9110 13.1.2).
fn has_tag(known: &str, tag: &str) -> bool {
    known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag)
}

fn formed(answered: &AnsweredQuestion, form: Form) -> Response {
    let exit = exit_of(answered);
    if form != Form::Csv {
        return document(&answered.document, exit);
    }
    let mut response = typed(StatusCode::OK, CSV, table::of(&answered.document));
    response.headers_mut().insert(EXIT, HeaderValue::from(u16::from(exit)));
    response
}

/// Returns a value of a state as it is.
async fn value(served: &Arc<Served>, work: &Work, target: Target) -> Result<Response, Refusal> {
    let segments = [&target.segments[..4], &["state".to_owned()]].concat();
    let asked = Target { segments, form: Form::Json, query: target.query };
    let Some(route) = Route::find(&asked.segments) else { return Err(no_document(&asked)) };
    let question = route.question(&asked)?;
    let served = Arc::clone(served);
    let found = work.run(move |watch| Ok(served.ask(&question, watch)?)).await?;
    let value = found.document.get("value").cloned().unwrap_or(Value::Null);
    let (kind, body) = match &value {
        Value::String(text) => ("text/plain; charset=utf-8", text.as_bytes().to_vec()),
        other => ("application/octet-stream", quote::json(other).into_bytes()),
    };
    let mut response = typed(StatusCode::OK, kind, body);
    response.headers_mut().insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    Ok(response)
}

/// Returns a document that depends on no record.
fn fixed(target: &Target) -> Result<Option<Value>, Refusal> {
    let segments: Vec<&str> = target.segments.iter().map(String::as_str).collect();
    Ok(match segments[..] {
        ["schema", name] => {
            let schema = schemas::find(name);
            Some(schema.ok_or_else(|| Problem::new(Code::E0109, format!("no schema is named {name}")))?)
        }
        ["openapi"] => Some(api::document()),
        ["version"] => Some(VersionAnswer { program: env!("CARGO_PKG_VERSION") }.document()),
        _ => None,
    })
}

/// Returns the refusal of a path that has no document.
pub(crate) fn no_document(target: &Target) -> Refusal {
    let path = target.segments.join("/");
    Refusal::new(
        StatusCode::NOT_FOUND,
        format!("/{path} has no document of this form; /openapi.json lists them"),
    )
}
