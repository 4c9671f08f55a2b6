//! Questions: plain data that is read from a document, with every unknown member and wrong type refused by its name.
//!
//! [`question!`](crate::question!) declares a question member by member. A member is left out if it has nothing to say: an
//! option that is `None`, an empty list, `false`.
//!
//! Rule: a question that is written and read again is the same; test `a_question_is_read_as_it_was_written`.

use std::collections::BTreeMap;
use std::fmt;

use crate::document::{Shape, schema_name};
use crate::text::nearest;
use crate::{Object, Value};

/// The value of a member of a question.
pub trait QuestionMember: Shape + Sized {
    /// Returns the kind of the value, for messages: `a text`.
    fn kind() -> String;

    /// Reads the value; `None` if its type is another.
    fn read(value: &Value) -> Option<Self>;

    /// Returns the value of a member that is left out; `None` if it must be there.
    fn absent() -> Option<Self> {
        None
    }

    /// Whether the member is left out when it is written.
    fn is_absent(&self) -> bool {
        false
    }
}

/// A question that can be asked as a document.
pub trait Question: crate::document::PublishedDocument {
    /// Reads a question from its document.
    ///
    /// # Errors
    ///
    /// [`QuestionFault`] names the first member that does not fit.
    fn read(document: &Value) -> Result<Self, QuestionFault>
    where
        Self: Sized;
}

/// Why a document is not the question that it is read as.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuestionFault {
    /// The document is not an object, or its `schema` names something else.
    Schema {
        /// The name that is expected.
        expected: String,
    },
    /// A member that the question does not have.
    Unknown {
        /// The member.
        member: String,
        /// A member with a similar name.
        near: Option<&'static str>,
        /// The schema of the question.
        schema: String,
    },
    /// A member that must be there.
    Missing {
        /// The member.
        member: &'static str,
        /// The schema of the question.
        schema: String,
    },
    /// A member whose value has another type.
    Type {
        /// The member.
        member: &'static str,
        /// The kind of value that is expected.
        expected: String,
        /// The type of the value.
        found: &'static str,
    },
}

impl fmt::Display for QuestionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuestionFault::Schema { expected } => {
                write!(f, "a question is an object whose \"schema\" is \"{expected}\"")
            }
            QuestionFault::Unknown { member, schema, .. } => write!(f, "{schema} has no member \"{member}\""),
            QuestionFault::Missing { member, schema } => write!(f, "{schema} needs the member \"{member}\""),
            QuestionFault::Type { member, expected, found } => {
                write!(f, "the member \"{member}\" must be {expected}, and is {found}")
            }
        }
    }
}

impl std::error::Error for QuestionFault {}

/// Reads the members of a question one by one.
#[derive(Debug)]
pub struct QuestionReader<'v> {
    schema: String,
    members: &'v Object,
}

impl<'v> QuestionReader<'v> {
    /// Begins to read a document; every member that is not among `known` is refused.
    ///
    /// # Errors
    ///
    /// [`QuestionFault::Schema`], [`QuestionFault::Unknown`].
    pub fn new(document: &'v Value, name: &str, known: &[&'static str]) -> Result<Self, QuestionFault> {
        let schema = schema_name(name);
        let is_it = |members: &&Object| members.get("schema").and_then(Value::as_str) == Some(&*schema);
        let Some(members) = document.as_object().filter(is_it) else {
            return Err(QuestionFault::Schema { expected: schema });
        };
        let unknown = members.iter().find(|(name, _)| &***name != "schema" && !known.contains(&&***name));
        match unknown {
            Some((name, _)) => Err(QuestionFault::Unknown {
                member: name.to_string(),
                near: nearest(name, known.iter().copied()),
                schema,
            }),
            None => Ok(QuestionReader { schema, members }),
        }
    }

    /// Reads a member.
    ///
    /// # Errors
    ///
    /// [`QuestionFault::Missing`], [`QuestionFault::Type`].
    pub fn member<T: QuestionMember>(&self, member: &'static str) -> Result<T, QuestionFault> {
        match self.members.get(member) {
            Some(value) => T::read(value).ok_or_else(|| QuestionFault::Type {
                member,
                expected: T::kind(),
                found: value.described(),
            }),
            None => T::absent().ok_or_else(|| QuestionFault::Missing { member, schema: self.schema.clone() }),
        }
    }
}

impl QuestionMember for bool {
    fn kind() -> String {
        "a boolean".to_owned()
    }

    fn read(value: &Value) -> Option<bool> {
        value.as_bool()
    }

    fn absent() -> Option<bool> {
        Some(false)
    }

    fn is_absent(&self) -> bool {
        !self
    }
}

impl QuestionMember for u64 {
    fn kind() -> String {
        "a number that counts".to_owned()
    }

    fn read(value: &Value) -> Option<u64> {
        value.as_u64()
    }
}

impl QuestionMember for String {
    fn kind() -> String {
        "a text".to_owned()
    }

    fn read(value: &Value) -> Option<String> {
        value.as_str().map(str::to_owned)
    }
}

impl QuestionMember for Value {
    fn kind() -> String {
        "a value".to_owned()
    }

    fn read(value: &Value) -> Option<Value> {
        Some(value.clone())
    }
}

impl<T: QuestionMember> QuestionMember for Option<T> {
    fn kind() -> String {
        T::kind()
    }

    fn read(value: &Value) -> Option<Option<T>> {
        if *value == Value::Null { Some(None) } else { T::read(value).map(Some) }
    }

    fn absent() -> Option<Option<T>> {
        Some(None)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: QuestionMember> QuestionMember for Vec<T> {
    fn kind() -> String {
        "a list".to_owned()
    }

    fn read(value: &Value) -> Option<Vec<T>> {
        value.as_array()?.iter().map(T::read).collect()
    }

    fn absent() -> Option<Vec<T>> {
        Some(Vec::new())
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl<T: QuestionMember> QuestionMember for BTreeMap<String, T> {
    fn kind() -> String {
        "an object".to_owned()
    }

    fn read(value: &Value) -> Option<BTreeMap<String, T>> {
        value.as_object()?.iter().map(|(name, value)| Some((name.to_string(), T::read(value)?))).collect()
    }

    fn absent() -> Option<BTreeMap<String, T>> {
        Some(BTreeMap::new())
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

/// Declares a question: a struct of plain data that is a document itself.
///
/// ```
/// use dendrer_object::document::Shape as _;
/// use dendrer_object::question::Question as _;
/// use dendrer_object::{json, question};
///
/// question! {
///     /// Asks for a greeting
///     pub struct GreetingQuestion: "greeting-question" {
///         /// The person who is greeted
///         pub name: String,
///         /// Whether the greeting is loud
///         pub loud: bool,
///     }
/// }
/// let document = json::parse_door(br#"{"name":"Ann","schema":"dendrer.greeting-question/1"}"#)?;
/// let question = GreetingQuestion::read(&document)?;
/// assert_eq!(question, GreetingQuestion { name: "Ann".to_owned(), loud: false });
/// assert_eq!(question.to_value(), document);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[macro_export]
macro_rules! question {
    ($(
        $(#[doc = $title:literal])+
        $vis:vis struct $name:ident: $document:literal {
            $($(#[doc = $doc:literal])+ $member_vis:vis $member:ident: $type:ty,)*
        }
    )+) => {$(
        $(#[doc = $title])+
        #[derive(Debug, Clone, PartialEq, Default)]
        $vis struct $name {
            $($(#[doc = $doc])+ $member_vis $member: $type,)*
        }

        impl $crate::document::Shape for $name {
            fn schema() -> $crate::Value {
                let members = <$name as $crate::document::Members>::members();
                $crate::document::closed($crate::document::document_schema($document, &members))
            }

            fn to_value(&self) -> $crate::Value {
                let mut made: Vec<(&'static str, $crate::Value)> = Vec::new();
                made.push(("schema", $crate::Value::from($crate::document::schema_name($document))));
                $(if !$crate::question::QuestionMember::is_absent(&self.$member) {
                    let name = stringify!($member).trim_start_matches("r#");
                    made.push((name, $crate::document::Shape::to_value(&self.$member)));
                })*
                $crate::Value::record(made)
            }
        }

        impl $crate::document::Members for $name {
            fn title() -> String {
                $crate::document::sentence(&[$($title),+])
            }

            fn members() -> Vec<$crate::document::DocumentMember> {
                vec![$($crate::document::DocumentMember {
                    name: stringify!($member).trim_start_matches("r#"),
                    sentence: $crate::document::sentence(&[$($doc),+]),
                    is_required: <$type as $crate::question::QuestionMember>::absent().is_none(),
                    schema: <$type as $crate::document::Shape>::schema(),
                }),*]
            }
        }

        impl $crate::document::PublishedDocument for $name {
            const NAME: &'static str = $document;
        }

        impl $crate::question::Question for $name {
            fn read(document: &$crate::Value) -> Result<$name, $crate::question::QuestionFault> {
                let known = [$(stringify!($member).trim_start_matches("r#")),*];
                #[allow(unused_variables, reason = "a question may have no member")]
                let reader = $crate::question::QuestionReader::new(document, $document, &known)?;
                Ok($name {
                    $($member: reader.member(stringify!($member).trim_start_matches("r#"))?,)*
                })
            }
        }
    )+};
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Members as _;
    use crate::json;

    question! {
        /// Asks for a sample
        struct SampleQuestion: "sample-question" {
            /// The run
            run: String,
            /// The ticks
            ticks: Vec<u64>,
            /// Whether the predicate is lifted
            lift: bool,
            /// The outputs of tools, by tick
            tool_output: BTreeMap<String, Value>,
            /// The limit
            limit: Option<u64>,
            /// The name that a new run gets
            r#as: Option<String>,
        }
    }

    fn check(members: &str, expected: &str) {
        let text = format!(r#"{{"schema":"dendrer.sample-question/1"{members}}}"#);
        let read = SampleQuestion::read(&json::parse_door(text.as_bytes()).unwrap());
        let said = read.map_or_else(|fault| fault.to_string(), |question| question.to_value().to_string());
        assert_eq!(said, expected);
    }

    #[test]
    fn a_question_is_read_as_it_was_written() {
        let all = r#""as":"n","lift":true,"limit":3,"run":"w","#;
        let rest = r#""schema":"dendrer.sample-question/1","ticks":[1,2],"tool_output":{"3":{"a":1}}"#;
        let members = format!(",{all}{}", rest.split_once(',').unwrap().1);
        check(&members, &format!("{{{all}{rest}}}"));
        let least = r#"{"run":"w","schema":"dendrer.sample-question/1"}"#;
        check(r#","run":"w","limit":null,"lift":false,"ticks":[]"#, least);
    }

    #[test]
    fn members_that_do_not_fit_are_refused_by_name() {
        check(r#","rum":"w""#, "dendrer.sample-question/1 has no member \"rum\"");
        check("", "dendrer.sample-question/1 needs the member \"run\"");
        check(r#","run":3"#, "the member \"run\" must be a text, and is a number");
        check(r#","run":"w","ticks":["1"]"#, "the member \"ticks\" must be a list, and is an array");
        let other = json::parse_door(br#"{"schema":"dendrer.bisect/1"}"#).unwrap();
        let expected = "dendrer.sample-question/1".to_owned();
        assert_eq!(SampleQuestion::read(&other), Err(QuestionFault::Schema { expected }));
        let near = SampleQuestion::read(
            &json::parse_door(br#"{"schema":"dendrer.sample-question/1","rum":1}"#).unwrap(),
        );
        assert!(matches!(near, Err(QuestionFault::Unknown { near: Some("run"), .. })));
    }

    #[test]
    fn schema_of_a_question_is_closed() {
        let schema = SampleQuestion::published();
        assert_eq!(schema.get("additionalProperties"), Some(&Value::Bool(false)));
        assert_eq!(schema.get("required").unwrap().to_string(), r#"["schema","run"]"#);
        assert!(schema.get("properties").unwrap().get("as").is_some());
    }
}
