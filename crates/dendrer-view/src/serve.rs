//! The first line of `serve`: where it listens.

use dendrer_object::{Value, document};

use crate::answer::{Answer, Line, Page};

/// The address of a server.
#[derive(Debug, Clone)]
pub struct ServeAnswer {
    /// The address, with the token.
    pub url: String,
    /// Whether requests may write.
    pub write: bool,
}

document! {
    /// The address of a server
    pub object ServeDocument: "serve" (answer: &ServeAnswer) {
        /// The address, with the token
        url: &str = &answer.url,
        /// Whether requests may write
        write: bool = answer.write,
    }
}

impl Answer for ServeAnswer {
    fn document(&self) -> Value {
        ServeDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut url = Line::from(self.url.clone());
        url.is_document = true;
        vec![url]
    }
}
