//! A run as one file of HTML: to attach to an issue, to read without a program, to check with one.
//!
//! [`one_file`] opens the bytes of a bundle and asks all of them: no store, no note, no label, no name of the machine. The page is
//! complete without its script, which adds scrubbing, search and folding; the policy in the page allows that script and its
//! style by their digests, and nothing else. The same bundle gives the same bytes.
//!
//! Rule: text of a record enters the page escaped by [`quote`](crate::quote) and as entities; test `nothing_of_a_hostile_run_acts`.

use std::path::PathBuf;
use std::sync::Arc;

use dendrer::bundle;
use dendrer::page::{BEGIN, END, escape};
use dendrer::problem::Problem;
use dendrer::source::QuestionPlace;
use dendrer::trust::{MemoryTrust, Trust};
use dendrer_object::{Code, Digest, RunName};

use self::answers::{Answers, Signed};
pub use self::terms::{FILE, HtmlTerms, MAX_BYTES};
use self::words::Html;
use crate::{draw, thousands};

mod answers;
mod terms;
mod ticks;
mod words;

/// Makes the file of a bundle.
///
/// # Errors
///
/// E0106 names the sizes of page and bundle if the file is too large; any other [`Problem`] is that of a question.
pub fn one_file(text: &[u8], terms: &HtmlTerms) -> Result<Vec<u8>, Problem> {
    let opened = bundle::open(PathBuf::from(FILE), text)?;
    // A reader of the page has the bundle inside of it.
    let opened = opened.in_page();
    let trust: Arc<dyn Trust> = Arc::new(MemoryTrust::new());
    let signed = Signed::of(&opened, &*trust, terms.has_bundle)?;
    let place = QuestionPlace::Bundle(Box::new(opened));
    let mut answers = Answers { place: &place, trust: &trust, terms, html: Html::default(), figures: 0 };
    let title = title(terms);
    answers.page(&title, &signed)?;
    let [head, tail] = frame(&title);
    let page = [head.as_bytes(), answers.html.text().as_bytes()].concat();
    let inside = if terms.has_bundle { escape(text) } else { Vec::new() };
    let tags = if terms.has_bundle { [BEGIN, END] } else { [""; 2] };
    let sizes = (page.len() + tail.len(), tags.concat().len() + inside.len());
    // A bundle that is left out has the size that it would have inside.
    let inside_size = if terms.has_bundle { sizes.1 } else { text.len() };
    refuse_large(sizes, inside_size, terms)?;
    Ok([&page, tags[0].as_bytes(), &inside, tags[1].as_bytes(), tail.as_bytes()].concat())
}

/// Refuses a file that is larger than it may be.
fn refuse_large((page, inside): (usize, usize), bundle: usize, terms: &HtmlTerms) -> Result<(), Problem> {
    let size = (page + inside) as u64;
    if size <= terms.max_bytes {
        return Ok(());
    }
    let bytes = |count: usize| format!("{} bytes", thousands(count as u64));
    let message = format!(
        "the file would have {} bytes, and --max-bytes is {}",
        thousands(size),
        thousands(terms.max_bytes)
    );
    let problem = Problem::new(Code::E0106, message).at("page", bytes(page)).at("bundle", bytes(bundle));
    let problem = match terms.has_bundle && page as u64 <= terms.max_bytes {
        true => problem.note("--no-bundle leaves the bundle out; nothing in such a file can be checked"),
        false => problem.note("--range A..B shows fewer ticks"),
    };
    Err(problem.note("nothing was written"))
}

fn title(terms: &HtmlTerms) -> String {
    let names = || terms.runs.iter().map(RunName::as_str).collect::<Vec<_>>().join(", ");
    terms.title.clone().unwrap_or_else(names)
}

const STYLE: &str = include_str!("html/file.css");
const SCRIPT: &str = include_str!("html/file.js");

/// Returns what is in front of the sections of a page, and what is after its bundle.
fn frame(title: &str) -> [String; 2] {
    let style = format!("{STYLE}{}", draw::svg::STYLE);
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        base64(SCRIPT),
        base64(&style)
    );
    let title = draw::svg::markup(&crate::quote::escape(title));
    let head = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title} - dendrer</title>\n<style>{style}</style>\n</head>\n<body>\n"
    );
    [head, format!("<script>{SCRIPT}</script>\n</body>\n</html>\n")]
}

/// The digest of a text as a policy has it.
fn base64(text: &str) -> String {
    let text = Digest::of(text.as_bytes()).base64url();
    format!("{}=", text.replace('-', "+").replace('_', "/"))
}
