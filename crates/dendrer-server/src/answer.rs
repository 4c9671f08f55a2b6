//! Responses to questions: a status, headers and bytes.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use dendrer::problem::Problem;
use dendrer_object::{Code, Value};
use dendrer_view::ask::AnsweredQuestion;
use dendrer_view::problem::ShownProblem as _;
use dendrer_view::quote;

/// The header that has the exit code of the command which asks the same.
pub(crate) const EXIT: HeaderName = HeaderName::from_static("dendrer-exit");

/// The type of a document.
pub(crate) const JSON: &str = "application/json";
/// The type of items, one a line.
pub(crate) const LINES: &str = "application/jsonl";
/// The type of a table.
pub(crate) const CSV: &str = "text/csv; charset=utf-8";
/// The type of a picture.
pub(crate) const SVG: &str = "image/svg+xml";
/// The type of a page.
pub(crate) const HTML: &str = "text/html; charset=utf-8";

/// Sources that a page may load: its own files, and nothing that a text of a trace names.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// A refused request: its status, and what it lacks.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The status.
    pub(crate) status: StatusCode,
    /// The problem.
    pub(crate) problem: Problem,
}

impl Refusal {
    /// A refusal with the code of a request that the server does not take.
    pub(crate) fn new(status: StatusCode, what: impl Into<String>) -> Refusal {
        Refusal { status, problem: Problem::new(Code::E0123, what) }
    }

    /// A question whose thread ended without an answer.
    pub(crate) fn failed() -> Refusal {
        let problem = Problem::new(Code::E0810, "the question was ended before it had an answer");
        Refusal { status: StatusCode::SERVICE_UNAVAILABLE, problem }
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Refusal {
        let status = match problem.exit() {
            2 => StatusCode::BAD_REQUEST,
            3 => StatusCode::NOT_FOUND,
            5 => StatusCode::CONFLICT,
            8 => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Refusal { status, problem }
    }
}

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Response {
        let mut body = quote::json(&refusal.problem.to_json());
        body.push('\n');
        let mut response = typed(refusal.status, JSON, body);
        response.headers_mut().insert(EXIT, HeaderValue::from(u16::from(refusal.problem.exit())));
        if refusal.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// Returns a response with a body of a type.
pub(crate) fn typed(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Returns the response for a document, with the exit code of its command.
pub(crate) fn document(document: &Value, exit: u8) -> Response {
    let mut body = quote::json(document);
    body.push('\n');
    let mut response = typed(StatusCode::OK, JSON, body);
    response.headers_mut().insert(EXIT, HeaderValue::from(u16::from(exit)));
    response
}

/// Returns the exit code of the command that asks the same.
pub(crate) fn exit_of(answered: &AnsweredQuestion) -> u8 {
    answered.problem.as_ref().map_or(answered.exit, |problem| problem.exit())
}

/// Returns a document as `--jsonl` prints it: its items, then what sums them up.
pub(crate) fn lines(document: &Value) -> String {
    let (items, summary) = dendrer_view::answer::stream(document);
    let all = items.iter().chain([&summary]);
    all.map(|value| format!("{}\n", quote::json(value))).collect()
}

/// Adds the headers that every response has.
pub(crate) fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let mut always = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    always(header::CONTENT_SECURITY_POLICY, POLICY);
    always(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    always(header::REFERRER_POLICY, "no-referrer");
    always(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    response
}
