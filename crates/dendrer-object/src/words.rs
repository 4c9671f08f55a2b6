//! Enums whose variants have a word each: one declaration makes the enum and both directions.
//!
//! Rule: the order of the variants is the order of `ALL` and `WORDS`, and it is printed in errors and documents.

/// A word that no variant has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is none of {}", listed(known))]
pub struct UnknownWord {
    /// The word.
    pub word: String,
    /// The words that are known.
    pub known: &'static [&'static str],
}

/// Lists words as a sentence does: `a, b and c`.
pub fn listed(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => words.concat(),
    }
}

/// Declares an enum whose variants have a word each, as documents and records spell it.
///
/// The enum must be `Copy` and `PartialEq`. The macro adds:
///
/// - `ALL`: every variant, in order; `WORDS`: their words, in the same order;
/// - `as_str` and `from_word`, which is `None` for an unknown word;
/// - `FromStr`, whose error lists the words that are known;
/// - `Display`, which writes the word, and `From<_> for Value`, the word as a text; it is a `Shape` of documents and may be
///   a member of a question.
///
/// ```
/// dendrer_object::words! {
///     /// How sure an answer is.
///     #[derive(Debug, Clone, Copy, PartialEq, Eq)]
///     pub enum Certainty {
///         /// It follows from the record.
///         Exact = "exact",
///         /// It is an aid to thought.
///         Heuristic = "heuristic",
///     }
/// }
/// assert_eq!(Certainty::from_word("exact"), Some(Certainty::Exact));
/// assert_eq!(Certainty::WORDS, ["exact", "heuristic"]);
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$case_meta:meta])* $case:ident = $word:expr),* $(,)?
    }) => {
        $(#[$meta])*
        $vis enum $name { $($(#[$case_meta])* $case,)* }

        #[allow(dead_code, reason = "an enum that is not public uses some of these")]
        impl $name {
            /// Every variant, in order.
            $vis const ALL: &'static [$name] = &[$($name::$case),*];

            /// The word of every variant, in order.
            $vis const WORDS: &'static [&'static str] = &[$($word),*];

            /// Returns the word.
            $vis const fn as_str(self) -> &'static str {
                match self { $($name::$case => $word,)* }
            }

            /// Returns the variant of a word; `None` if it is unknown.
            $vis fn from_word(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|each| each.as_str() == word)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(word: &str) -> Result<$name, Self::Err> {
                let unknown = || $crate::words::UnknownWord { word: word.to_owned(), known: $name::WORDS };
                $name::from_word(word).ok_or_else(unknown)
            }
        }

        impl $crate::document::Shape for $name {
            fn schema() -> $crate::Value {
                $crate::document::one_of($name::WORDS)
            }

            fn to_value(&self) -> $crate::Value {
                $crate::Value::from(self.as_str())
            }
        }

        impl $crate::question::QuestionMember for $name {
            fn kind() -> String {
                format!("one of {}", $crate::words::listed($name::WORDS))
            }

            fn read(value: &$crate::Value) -> Option<$name> {
                $name::from_word(value.as_str()?)
            }
        }

        impl From<$name> for $crate::Value {
            fn from(word: $name) -> $crate::Value {
                $crate::Value::from(word.as_str())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    crate::words! {
        /// A size.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Size {
            /// One.
            Small = "small",
            /// Two.
            Middle = "in between",
            /// Three.
            Large = "large",
        }
    }

    #[test]
    fn each_word_is_read_back_and_an_unknown_one_lists_them() {
        assert_eq!(Size::ALL.iter().map(|size| size.as_str()).collect::<Vec<_>>(), Size::WORDS);
        for size in Size::ALL {
            assert_eq!(size.to_string().parse(), Ok(*size));
            assert_eq!(crate::Value::from(*size).as_str(), Some(size.as_str()));
        }
        assert_eq!(Size::from_word("Small"), None);
        let error = "none".parse::<Size>().expect_err("no size");
        assert_eq!(error.to_string(), r#""none" is none of small, in between and large"#);
    }
}
