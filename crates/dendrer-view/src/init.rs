//! The answer of `init`: a new store, its id, and the key of its log.

use dendrer_object::{Value, document};

use crate::answer::{Answer, Line, Page};
use crate::quote;

/// A store that was made.
#[derive(Debug, Clone)]
pub struct InitAnswer {
    /// The directory of the store, or its address on a server.
    pub path: String,
    /// The server of the store; `None` for a directory.
    pub server: Option<String>,
    /// The id of the store.
    pub id: String,
    /// The key that checks its checkpoints.
    pub verifier: String,
    /// The file of the key that signs them.
    pub key: String,
    /// The command that commits to this store, quoted for a shell.
    pub commit: String,
}

document! {
    /// A store that was made
    pub object InitDocument: "init" (answer: &InitAnswer) {
        /// The directory of the store, or its address on a server
        path: &str = &answer.path,
        /// The address of the store on a server, without secrets
        url?: &str = answer.server.as_ref().map(|_| &*answer.path),
        /// The server and its version
        server?: &str = answer.server.as_deref(),
        /// The id of the store, 32 hex digits
        id: &str = &answer.id,
        /// The key that checks the checkpoints
        verifier: &str = &answer.verifier,
        /// The file of the key that signs them
        key: &str = &answer.key,
    }
}

impl Answer for InitAnswer {
    fn document(&self) -> Value {
        InitDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let line = "'{\"type\":\"observation.add\",\"intent\":{\"description\":\"hello\"}}'";
        let place = match &self.server {
            Some(server) => format!("at {} ({})", quote::escape(&self.path), quote::escape(server)),
            None => format!("in {}", quote::escape(&self.path)),
        };
        vec![
            Line::from(format!("created a store {place}")),
            Line::from(format!("verifier  {}", self.verifier)),
            Line::note(format!(
                "note: the key of its log is in {}, readable by you alone; it is not part of the store",
                quote::escape(&self.key)
            )),
            Line::note(
                "note: a run is recorded at stage 1; at stage 2 if its pack or policy ask for enforcement",
            ),
            Line::note(format!("help: echo {line} | {}", self.commit)),
        ]
    }
}
