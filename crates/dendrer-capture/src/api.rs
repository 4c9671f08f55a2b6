//! The APIs of models, one file each.
//!
//! Rule: nothing outside a file of `api/` asks which API a call has; a difference is a member of [`Api`].

mod anthropic;
mod chat;
mod gemini;
mod merge;
mod responses;

pub use crate::spoken::Api;

/// All APIs.
pub static APIS: [&Api; 4] = [&chat::CHAT, &responses::RESPONSES, &anthropic::MESSAGES, &gemini::CONTENT];

/// Returns the API of a request by its path, which may have a query; `None` if it is another one.
pub fn of_path(method: &str, path: &str) -> Option<&'static Api> {
    let path = path.split('?').next().unwrap_or_default().trim_end_matches('/');
    APIS.into_iter().find(|api| method == "POST" && api.paths.iter().any(|end| path.ends_with(end)))
}
