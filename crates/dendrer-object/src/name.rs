//! Names that stand in headers: printable ASCII, checked where they are made, so that a header is plain text
//! for every reader and no name can be mistaken for part of an address.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::Code;
use crate::digest::{hex, unhex};

/// The longest name, in bytes.
pub const NAME_SIZE_MAX: usize = 128;

/// Why a text is not a name of its kind. `E0210` to `dendrer explain`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {kind}: {rule}")]
pub struct NameError {
    /// The kind of name that was expected.
    pub kind: &'static str,
    /// The form of such a name, in words.
    pub rule: &'static str,
    /// The text, cut to 160 characters.
    pub text: String,
}

impl NameError {
    fn new(kind: &'static str, rule: &'static str, text: &str) -> NameError {
        NameError { kind, rule, text: text.chars().take(160).collect() }
    }

    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        Code::E0210
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<$name, NameError> {
                let check: fn(&[u8]) -> bool = $check;
                if text.is_empty() || text.len() > NAME_SIZE_MAX || !check(text.as_bytes()) {
                    return Err(NameError::new($kind, $rule, text));
                }
                Ok($name(text.into()))
            }
        }

        // Equal names are equal texts, and hash alike.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name!(
    /// The id of a run: letters, digits, `.`, `_`, `-` and `+`, beginning with a letter or a digit. A foreign run has the name of its
    /// store and a `/` in front.
    RunName,
    "run id",
    "letters, digits, `.`, `_`, `-` and `+`, beginning with a letter or a digit, at most 128",
    |text| text.iter().filter(|c| **c == b'/').count() < 2
        && text.split(|c| *c == b'/').all(|name| name.first().is_some_and(u8::is_ascii_alphanumeric)
            && name.iter().all(|c| c.is_ascii_alphanumeric() || b"._-+".contains(c)))
);

name!(
    /// A transition type: lower-case words joined by dots, as in `observation.add` (dendrer paper, appendix A).
    TypeName,
    "transition type",
    "lower-case words of letters, digits and `_`, joined by dots, at most 128 characters",
    |text| text.split(|c| *c == b'.').all(|word| {
        word.first().is_some_and(u8::is_ascii_lowercase)
            && word.iter().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == b'_')
    })
);

/// The id of a store: 16 random bytes, shown as hex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub [u8; 16]);

impl StoreId {
    /// The name under which the store's log signs its checkpoints (C2SP tlog-checkpoint: origin).
    pub fn origin(&self) -> String {
        format!("dendrer/{self}")
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for StoreId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<StoreId, NameError> {
        unhex(text)
            .and_then(|bytes| Some(StoreId(bytes.try_into().ok()?)))
            .ok_or_else(|| NameError::new("store id", "32 lower-case hex digits", text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_their_rule_says() {
        for good in ["a", "ab12cd34/logistics", "logistics-run-47", "Run_1.2", "0", &"x".repeat(128)] {
            assert_eq!(good.parse::<RunName>().unwrap().as_str(), good);
        }
        for bad in
            ["", "-a", ".a", "a b", "a@1", "a#b", "a/", "/b", "a/b/c", "a/.b", "ä", "a:b", &"x".repeat(129)]
        {
            assert!(bad.parse::<RunName>().is_err(), "{bad}");
        }
        for good in ["observation.add", "execute_transaction", "a.b2.c_d"] {
            assert!(good.parse::<TypeName>().is_ok(), "{good}");
        }
        for bad in ["", ".", "a.", ".a", "A.b", "a b", "1a", "a..b", "a-b"] {
            assert!(bad.parse::<TypeName>().is_err(), "{bad}");
        }
        let id = StoreId([0xab; 16]);
        assert_eq!(id.to_string().parse::<StoreId>(), Ok(id));
        assert!("AB".repeat(16).parse::<StoreId>().is_err());
    }
}
