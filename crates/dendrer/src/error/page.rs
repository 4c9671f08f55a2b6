//! Why no bundle was read out of a page.

use dendrer_object::Code;

/// Why no bundle was read out of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// There is no bundle.
    #[error("there is no bundle in the page, so nothing in it can be checked")]
    NoBundle,
    /// There are several.
    #[error("there is a second bundle in the page")]
    Second,
    /// A `<` is not written as it is in a bundle inside a page.
    #[error("there is a tag in the bundle of the page")]
    Tag,
}

impl PageError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(self) -> Code {
        match self {
            PageError::NoBundle => Code::E0315,
            PageError::Second | PageError::Tag => Code::E0306,
        }
    }
}
