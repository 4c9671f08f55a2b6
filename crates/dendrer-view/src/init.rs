//! The answer of `init`: a new store, its id, and the key of its log.

use dendrer_object::{Value, document};

use crate::answer::{Answer, Line, Page};
use crate::quote;

/// A store that was made.
#[derive(Debug, Clone)]
pub struct InitAnswer {
    /// The directory of the store.
    pub path: String,
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
        /// The directory of the store
        path: &str = &answer.path,
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
        vec![
            Line::from(format!("created a store in {}", quote::escape(&self.path))),
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
