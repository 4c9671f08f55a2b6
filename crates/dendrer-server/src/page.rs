//! The files of the page, and what a browser without the token sees.

use std::fmt::Write as _;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::answer::{HTML, typed};

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The member of an address that was loaded once more.
pub(crate) const AGAIN: &str = "_again";

/// Returns a file of the page, by its path.
pub(crate) fn file(path: &str) -> Option<Response> {
    let (_, kind, bytes) = ASSETS.iter().find(|(known, _, _)| *known == path)?;
    let mut response = typed(StatusCode::OK, kind, *bytes);
    // The name of the file has the digest of its bytes.
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(header::CACHE_CONTROL, forever);
    Some(response)
}

/// Returns the page; without the built files one that names the command which builds them.
pub(crate) fn index() -> Response {
    match ASSETS.iter().find(|(known, _, _)| *known == "/index.html") {
        Some((_, kind, bytes)) => typed(StatusCode::OK, kind, *bytes),
        None => typed(
            StatusCode::OK,
            HTML,
            html(
                "dendrer serve",
                "<p>The page was not built into this program: <code>npm ci &amp;&amp; npm run build</code> in \
                <code>web/</code>, then build the program again. Every document is there: <a href=\"/runs.json\">/runs.json</a>, \
                <a href=\"/openapi.json\">/openapi.json</a>.</p>",
                None,
            ),
        ),
    }
}

/// Returns a page that leads to an address of this server: the cookie of the token is set, and the address loses it.
pub(crate) fn goes_to(address: &str) -> Response {
    typed(StatusCode::OK, HTML, html("dendrer serve", "<p>One moment.</p>", Some(address)))
}

/// Returns the page of a browser without the token. A navigation from elsewhere brings no cookie, so it loads itself once
/// more, and then has the way in.
pub(crate) fn without_token(address: &str, is_again: bool) -> Response {
    let words = "<p>This page needs the token of the server. Open the address that <code>dendrer serve</code> printed \
        first, then this one again.</p>";
    let again = (!is_again).then(|| {
        let joint = if address.contains('?') { '&' } else { '?' };
        format!("{address}{joint}{AGAIN}=1")
    });
    typed(StatusCode::UNAUTHORIZED, HTML, html("dendrer serve: no token", words, again.as_deref()))
}

fn html(title: &str, body: &str, goes_to: Option<&str>) -> String {
    let mut page = String::from("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">");
    // A text of the address is escaped: it comes from the author of the link.
    let refresh =
        goes_to.map(|to| format!("<meta http-equiv=\"refresh\" content=\"0;url={}\">", escaped(to)));
    let _ = write!(page, "<title>{title}</title>{}<body>{body}</body></html>", refresh.unwrap_or_default());
    page
}

/// Spells a text so that HTML reads it as a text.
fn escaped(text: &str) -> String {
    let one = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\'' => "&#39;".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(one).collect()
}
