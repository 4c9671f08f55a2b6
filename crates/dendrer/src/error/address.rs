//! Why a text is no address, no range or no path.

use dendrer_object::Code;
use dendrer_object::pointer::PointerError;

/// Why a text is no address, no range or no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// A text is no address.
    #[error("\"{0}\" is not an address")]
    NotAnAddress(String),
    /// A text with `..` is no range of ticks.
    #[error("\"{0}\" is not a range of ticks")]
    NotARange(String),
    /// A range of ticks is named where one tick is asked for.
    #[error("\"{0}\" names several ticks, not one")]
    Several(String),
    /// A text is no path of the state.
    #[error("\"{0}\" is not a path")]
    NotAPath(String),
    /// A text that begins with `/` is no JSON pointer.
    #[error(transparent)]
    NotAPointer(#[from] PointerError),
}

impl AddressError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            AddressError::NotAnAddress(_) | AddressError::NotARange(_) | AddressError::Several(_) => {
                Code::E0105
            }
            AddressError::NotAPath(_) | AddressError::NotAPointer(_) => Code::E0104,
        }
    }
}
