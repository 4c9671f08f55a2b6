//! A call over HTTP, as it was seen.

/// The number of a call: from 1, in the order in which requests came.
pub type CallNumber = u64;

/// The lowest status of a failed call.
pub(crate) const FAILED: u16 = 400;

/// Headers as they were sent, in their order.
pub type Headers = Vec<(String, Vec<u8>)>;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedCall {
    /// Which call it is.
    pub call: CallNumber,
    /// The variable whose address it was sent to.
    pub base: String,
    /// Its method.
    pub method: String,
    /// Its path and query, without the token.
    pub path: String,
    /// Its encoding, if its body is compressed.
    pub encoding: Option<String>,
    /// Its body.
    pub body: CopiedBody,
    /// Ids of calls of tools whose results were replaced in it.
    pub changed: Vec<String>,
    /// Whether a user gives its answer, and no model.
    pub is_given: bool,
}

/// An answer, as far as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredCall {
    /// Which call it answers.
    pub call: CallNumber,
    /// When its end was copied, in nanoseconds of a clock of the machine; 0 if that is not known.
    pub at: u64,
    /// Status and headers; `None` if none came.
    pub head: Option<(u16, Headers)>,
    /// Its body.
    pub body: CopiedBody,
    /// How the body ended.
    pub ended: Ended,
}

impl AnsweredCall {
    /// Whether its status is that of a failed call.
    pub fn is_refused(&self) -> bool {
        self.head.as_ref().is_some_and(|(status, _)| *status >= FAILED)
    }

    /// Returns the text of a header; `None` if it is not there or is no text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, headers) = self.head.as_ref()?;
        let (_, value) = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }
}

dendrer_object::words! {
    /// How an answer ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Ended {
        /// All of it came.
        Whole = "whole",
        /// The API could not be reached, or closed the connection.
        Upstream = "upstream",
        /// The program closed the connection.
        Program = "program",
    }
}

/// The copy of a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopiedBody {
    /// Its bytes; fewer than there were if `left_out` is not 0.
    pub bytes: Vec<u8>,
    /// The lengths of the pieces in which it came.
    pub pieces: Vec<u32>,
    /// How many bytes were not copied, because they were too many.
    pub left_out: u64,
}
