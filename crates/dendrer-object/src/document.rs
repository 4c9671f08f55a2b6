//! Documents: one declaration makes a type, its canonical value, its JSON Schema and its list of members.
//!
//! [`document!`](crate::document!) declares an object member by member: name, sentence, shape and value. A [`Shape`] pairs a
//! value with its schema, so a schema cannot name a member that the value lacks, nor the other way round.
//!
//! Rule: a member has one shape in every place; test `schema_and_value_come_from_one_declaration`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use crate::value::{Array, Object};
use crate::{Code, Delta, Digest, Pointer, RunName, StoreId, Timestamp, TypeName, Value};

/// A value of a document with its JSON Schema (draft 2020-12).
pub trait Shape {
    /// Returns the schema of the values.
    fn schema() -> Value;

    /// Returns the value.
    fn to_value(&self) -> Value;
}

/// A member of an object in a document.
#[derive(Debug, Clone)]
pub struct DocumentMember {
    /// The name.
    pub name: &'static str,
    /// The meaning of the member, one sentence.
    pub sentence: String,
    /// Whether every value of the object has the member.
    pub is_required: bool,
    /// The schema of its values.
    pub schema: Value,
}

/// An object of a document whose members are declared.
pub trait Members: Shape {
    /// Returns the meaning of the object, one sentence.
    fn title() -> String;

    /// Returns the members in the order of their declaration.
    fn members() -> Vec<DocumentMember>;

    /// Returns the published schema.
    fn published() -> Value {
        let mut schema = Self::schema().as_object().cloned().unwrap_or_default();
        schema.set("$schema", Value::from(DRAFT));
        schema.set("title", Value::from(Self::title()));
        Value::Object(schema)
    }
}

/// A schema that is published.
#[derive(Debug, Clone, Copy)]
pub struct PublishedSchema {
    /// The name of the document.
    pub name: &'static str,
    /// Whether the head of the document names what was read.
    pub is_read: bool,
    /// Makes the schema.
    pub schema: fn() -> Value,
}

impl PublishedSchema {
    /// The schema of a document.
    pub const fn of<T: PublishedDocument>(name: &'static str) -> PublishedSchema {
        PublishedSchema { name, is_read: T::IS_READ, schema: T::published }
    }

    /// The schema of a line of which no member names it.
    pub const fn of_line(name: &'static str, schema: fn() -> Value) -> PublishedSchema {
        PublishedSchema { name, is_read: false, schema }
    }
}

/// An object that is printed on its own, under a name.
pub trait PublishedDocument: Members {
    /// The name, as in `dendrer.NAME/1`.
    const NAME: &'static str;

    /// Whether it has the members of [`read_members`].
    const IS_READ: bool = false;
}

/// The first lines of a published schema.
pub const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Returns the schema of an object with these members.
pub fn object_schema(members: &[DocumentMember]) -> Value {
    let properties = members.iter().map(|member| {
        let mut schema = member.schema.as_object().cloned().unwrap_or_default();
        schema.set("description", Value::from(member.sentence.as_str()));
        (member.name, Value::Object(schema))
    });
    let required = members.iter().filter(|member| member.is_required).map(|member| member.name.into());
    Value::record([
        ("type", Value::from("object")),
        ("properties", Value::record(properties)),
        ("required", Value::array(required)),
    ])
}

/// Returns the schema of a document with this name and these members.
pub fn document_schema(name: &str, members: &[DocumentMember]) -> Value {
    let mut members = members.to_vec();
    if members.iter().all(|member| member.name != "tampered") {
        members.push(tampered_member());
        members.push(unfinished_member());
        members.push(incomplete_member());
    }
    let mut schema = object_schema(&members).as_object().cloned().unwrap_or_default();
    let mut properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    properties.set("schema", one_of(&[&schema_name(name)]));
    // The last line of a stream has their number instead.
    if let Some(items) = properties.get("items").cloned() {
        properties.set("items", any_of([items, at_least(0)]));
    }
    schema.set("properties", Value::Object(properties));
    let required = members.iter().filter(|member| member.is_required).map(|member| member.name.into());
    schema.set("required", Value::array([Value::from("schema")].into_iter().chain(required)));
    Value::Object(schema)
}

/// Returns the schema of an object that has no other members than those that are named.
pub fn closed(schema: Value) -> Value {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.set("additionalProperties", Value::Bool(false));
    Value::Object(schema)
}

/// Returns the schema of an object that may have other members than those that are named.
pub fn open(schema: Value) -> Value {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.set("additionalProperties", Value::Bool(true));
    Value::Object(schema)
}

/// Returns the name of a document, by its member `schema`; `None` if it is not one of ours.
pub fn document_name(document: &Object) -> Option<&str> {
    document.get("schema")?.as_str()?.strip_prefix("dendrer.")?.strip_suffix("/1")
}

/// Returns the value of the member `schema` of a document.
pub fn schema_name(name: &str) -> String {
    format!("dendrer.{name}/1")
}

/// Returns the schema of a few words.
pub fn one_of(words: &[&str]) -> Value {
    Value::record([("enum", Value::array(words.iter().map(|word| Value::from(*word))))])
}

/// Returns a schema that also accepts null.
pub fn nullable(schema: Value) -> Value {
    let mut members = schema.as_object().cloned().unwrap_or_default();
    let with_null = |list: &Array| Value::array(list.iter().cloned().chain([Value::Null]));
    match (members.get("enum"), members.get("type")) {
        (Some(Value::Array(words)), None) => members.set("enum", with_null(&words.clone())),
        (None, Some(Value::String(name))) => {
            let either = [Value::from(&**name), Value::from("null")];
            members.set("type", Value::array(either));
        }
        _ if members.is_empty() => {}
        _ => return any_of([schema, typed("null")]),
    }
    Value::Object(members)
}

/// Returns the schema of values that fit one of several.
pub fn any_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    Value::record([("anyOf", Value::array(schemas))])
}

fn typed(name: &str) -> Value {
    Value::record([("type", Value::from(name))])
}

fn at_least(minimum: u64) -> Value {
    Value::record([("type", Value::from("integer")), ("minimum", Value::from(minimum))])
}

fn text_like(pattern: &str) -> Value {
    Value::record([("type", Value::from("string")), ("pattern", Value::from(pattern))])
}

fn list_of(items: Value) -> Value {
    Value::record([("type", Value::from("array")), ("items", items)])
}

fn sized(items: Value, size: u64) -> Value {
    let size = ["minItems", "maxItems"].map(|name| (name, Value::from(size)));
    Value::record([("type", Value::from("array")), ("items", items)].into_iter().chain(size))
}

/// Joins the lines of a doc comment to a sentence.
pub fn sentence(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    let text = lines.join(" ");
    text.trim().trim_end_matches('.').to_owned()
}

/// Implements [`Shape`] for types by a schema and a value each.
macro_rules! shapes {
    ($($type:ty: $schema:expr, |$value:ident| $made:expr;)*) => {$(
        impl Shape for $type {
            fn schema() -> Value {
                $schema
            }

            fn to_value(&self) -> Value {
                let $value = self;
                $made
            }
        }
    )*};
}

shapes! {
    bool: typed("boolean"), |flag| Value::from(*flag);
    u64: at_least(0), |number| Value::from(*number);
    u32: at_least(0), |number| Value::from(u64::from(*number));
    u16: at_least(0), |number| Value::from(u64::from(*number));
    u8: at_least(0), |number| Value::from(u64::from(*number));
    usize: at_least(0), |number| Value::from(*number as u64);
    i64: typed("integer"), |number| Value::from(*number);
    i32: typed("integer"), |number| Value::from(i64::from(*number));
    f64: typed("number"), |number| Value::from(*number);
    str: typed("string"), |text| Value::from(text);
    String: typed("string"), |text| Value::from(text.as_str());
    Arc<str>: typed("string"), |text| Value::String(text.clone());
    Cow<'_, str>: typed("string"), |text| Value::from(&**text);
    Path: typed("string"), |path| Value::from(path.display().to_string());
    Code: typed("string"), |code| Value::from(*code);
    RunName: typed("string"), |name| Value::from(name.as_str());
    TypeName: typed("string"), |name| Value::from(name.to_string());
    StoreId: typed("string"), |id| Value::from(id.to_string());
    Pointer: typed("string"), |place| Value::from(place.written());
    Digest: text_like("^sha256:[0-9a-f]{64}$"), |digest| Value::from(*digest);
    Timestamp: text_like(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"),
        |time| Value::from(time.to_string());
    Delta: list_of(typed("object")), |delta| delta.written();
    Object: typed("object"), |object| Value::Object(object.clone());
    Array: typed("array"), |array| Value::Array(array.clone());
    Value: Value::object(), |value| value.clone();
}

impl<T: Shape + ?Sized> Shape for &T {
    fn schema() -> Value {
        T::schema()
    }

    fn to_value(&self) -> Value {
        (**self).to_value()
    }
}

impl<T: Shape + ?Sized> Shape for Box<T> {
    fn schema() -> Value {
        T::schema()
    }

    fn to_value(&self) -> Value {
        (**self).to_value()
    }
}

impl<T: Shape> Shape for Option<T> {
    fn schema() -> Value {
        nullable(T::schema())
    }

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, Shape::to_value)
    }
}

impl<T: Shape> Shape for [T] {
    fn schema() -> Value {
        list_of(T::schema())
    }

    fn to_value(&self) -> Value {
        Value::array(self.iter().map(Shape::to_value))
    }
}

impl<T: Shape> Shape for Vec<T> {
    fn schema() -> Value {
        <[T]>::schema()
    }

    fn to_value(&self) -> Value {
        self.as_slice().to_value()
    }
}

impl<T: Shape, const N: usize> Shape for [T; N] {
    fn schema() -> Value {
        sized(T::schema(), N as u64)
    }

    fn to_value(&self) -> Value {
        self.as_slice().to_value()
    }
}

/// Implements [`Shape`] for tuples, which are lists of a fixed length.
macro_rules! tuples {
    ($($size:literal: $($name:ident $at:tt),+;)*) => {$(
        impl<$($name: Shape),+> Shape for ($($name,)+) {
            fn schema() -> Value {
                let mut items: Vec<Value> = Vec::new();
                for item in [$($name::schema()),+] {
                    if !items.contains(&item) {
                        items.push(item);
                    }
                }
                let items = if let [item] = &items[..] { item.clone() } else { any_of(items) };
                sized(items, $size)
            }

            fn to_value(&self) -> Value {
                Value::array([$(self.$at.to_value()),+])
            }
        }
    )*};
}

tuples! {
    2: A 0, B 1;
    3: A 0, B 1, C 2;
}

impl<K: AsRef<str>, T: Shape> Shape for BTreeMap<K, T> {
    fn schema() -> Value {
        Value::record([("type", Value::from("object")), ("additionalProperties", T::schema())])
    }

    fn to_value(&self) -> Value {
        Value::record(self.iter().map(|(name, value)| (name.as_ref(), value.to_value())))
    }
}

/// A count that is at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Positive(pub u64);

impl Shape for Positive {
    fn schema() -> Value {
        at_least(1)
    }

    fn to_value(&self) -> Value {
        Value::from(self.0)
    }
}

/// A number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Fraction(pub f64);

impl Shape for Fraction {
    fn schema() -> Value {
        let bounds = [("minimum", Value::from(0u64)), ("maximum", Value::from(1u64))];
        Value::record([("type", Value::from("number"))].into_iter().chain(bounds))
    }

    fn to_value(&self) -> Value {
        self.0.to_value()
    }
}

/// A text that is not empty.
#[derive(Debug, Clone, Copy)]
pub enum NonEmpty {}

impl Shape for NonEmpty {
    fn schema() -> Value {
        Value::record([("type", Value::from("string")), ("minLength", Value::from(1u64))])
    }

    fn to_value(&self) -> Value {
        match *self {}
    }
}

/// A text of 1 to `MAX` bytes.
#[derive(Debug, Clone, Copy)]
pub enum TextUpTo<const MAX: usize> {}

impl<const MAX: usize> Shape for TextUpTo<MAX> {
    fn schema() -> Value {
        let mut schema = NonEmpty::schema().as_object().cloned().unwrap_or_default();
        schema.set("maxLength", Value::from(MAX as u64));
        Value::Object(schema)
    }

    fn to_value(&self) -> Value {
        match *self {}
    }
}

/// The number `NUMBER`, which a member always has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Only<const NUMBER: u64>;

impl<const NUMBER: u64> Shape for Only<NUMBER> {
    fn schema() -> Value {
        Value::record([("enum", Value::array([Only::<NUMBER>.to_value()]))])
    }

    fn to_value(&self) -> Value {
        Value::from(NUMBER)
    }
}

/// The flag of a member that is there only if it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct True;

impl Shape for True {
    fn schema() -> Value {
        Value::record([("enum", Value::array([True.to_value()]))])
    }

    fn to_value(&self) -> Value {
        Value::Bool(true)
    }
}

/// A value that a record or another document has already in the shape of `T`.
#[derive(Debug, Clone)]
pub struct As<T: ?Sized>(Value, PhantomData<fn() -> Box<T>>);

impl<T: ?Sized> As<T> {
    /// Takes a value.
    pub fn new(value: impl Into<Value>) -> As<T> {
        As(value.into(), PhantomData)
    }
}

impl<T: Shape + ?Sized> Shape for As<T> {
    fn schema() -> Value {
        T::schema()
    }

    fn to_value(&self) -> Value {
        self.0.clone()
    }
}

/// A value of one of two shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Either<A, B> {
    /// A value of the first.
    Left(A),
    /// A value of the second.
    Right(B),
}

impl<A: Shape, B: Shape> Shape for Either<A, B> {
    fn schema() -> Value {
        any_of([A::schema(), B::schema()])
    }

    fn to_value(&self) -> Value {
        match self {
            Either::Left(value) => value.to_value(),
            Either::Right(value) => value.to_value(),
        }
    }
}

/// Declares objects of documents, each by its members.
///
/// `/// Title` `pub object NAME: "document" (arguments) { let ..; members }` makes the type `NAME` with `NAME::of(arguments)`. A
/// name in quotes makes it a [`PublishedDocument`], which may have `tampered`; `"document" reads` is one about recorded runs, which
/// has all of [`read_members`], and `"document" part` a part of a document that names it. Each member has a sentence and one of these forms:
///
/// * `name: Shape = value,` is always there.
/// * `name?: Shape = option,` is left out where the option is `None`.
/// * `name: ["a" | "b"] = text,` is one of some words; `["a" | "b" | null]` takes an option. `name?` goes as well.
/// * `name: stream Shape,` is added by the caller, item by item.
/// * `..Object = value,` has the members of another object, and no sentence of its own; `..?Object = option,` all or none.
///
/// ```
/// use dendrer_object::{Value, document};
/// use dendrer_object::document::{Members as _, Shape as _};
///
/// document! {
///     /// A greeting
///     pub object Greeting: "greeting" (name: &str, times: Option<u64>) {
///         /// Who is greeted
///         name: &str = name,
///         /// How often; left out for once
///         times?: u64 = times,
///     }
/// }
/// assert_eq!(Greeting::of("Ann", None).to_value().to_string(), r#"{"name":"Ann","schema":"dendrer.greeting/1"}"#);
/// assert_eq!(Greeting::published().get("required").unwrap().to_string(), r#"["schema","name"]"#);
/// ```
#[macro_export]
macro_rules! document {
    ($(
        $(#[doc = $title:literal])+
        $vis:vis object $name:ident $(: $document:literal $($reads:ident)?)? ($($arg:ident: $arg_type:ty),* $(,)?)
        { $($body:tt)* }
    )+) => {$(
        $(#[doc = $title])+
        #[derive(Debug, Clone)]
        $vis struct $name($crate::Value);

        impl $name {
            /// Returns the object.
            #[allow(clippy::too_many_arguments, reason = "each is named where it is declared")]
            $vis fn of($($arg: $arg_type),*) -> $name {
                #[allow(unused_mut, reason = "an object may have no members")]
                let mut made: Vec<(std::sync::Arc<str>, $crate::Value)> = Vec::new();
                $(made.push(("schema".into(), $crate::Value::from($crate::document::schema_name($document))));)?
                $crate::document_members!(@put made; $($body)*);
                $name($crate::Value::record(made))
            }
        }

        impl $crate::document::Shape for $name {
            fn schema() -> $crate::Value {
                let members = <$name as $crate::document::Members>::members();
                $crate::document_members!(@schema members $($document)?)
            }

            fn to_value(&self) -> $crate::Value {
                self.0.clone()
            }
        }

        impl $crate::document::Members for $name {
            fn title() -> String {
                $crate::document::sentence(&[$($title),+])
            }

            #[allow(clippy::vec_init_then_push, reason = "members of other objects lie between those that are named")]
            fn members() -> Vec<$crate::document::DocumentMember> {
                #[allow(unused_mut, reason = "an object may have no members")]
                let mut listed: Vec<$crate::document::DocumentMember> = Vec::new();
                $crate::document_members!(@list listed; $($body)*);
                $($($crate::document_members!(@$reads listed);)?)?
                listed
            }
        }

        $(impl $crate::document::PublishedDocument for $name {
            const NAME: &'static str = $document;
            $($crate::document_members!(@is $reads);)?
        })?

        impl From<$name> for $crate::Value {
            fn from(object: $name) -> $crate::Value {
                object.0
            }
        }
    )+

        /// The documents that this file publishes.
        #[allow(dead_code, reason = "a file may publish none")]
        pub(crate) const DOCUMENTS: &[&[$crate::document::PublishedSchema]] =
            &[$($($crate::document_members!(@published $name $document $($reads)?),)?)+];
    };
}

/// The members of an object in [`document!`](crate::document!), one after the other.
#[doc(hidden)]
#[macro_export]
macro_rules! document_members {
    (@put $made:ident;) => {};
    (@put $made:ident; let $local:pat = $init:expr; $($rest:tt)*) => {
        let $local = $init;
        $crate::document_members!(@put $made; $($rest)*);
    };
    (@put $made:ident; ..? $type:ty = $value:expr, $($rest:tt)*) => {
        if let Some(value) = $value {
            let value: $type = value;
            $crate::document::put_all(&mut $made, &value);
        }
        $crate::document_members!(@put $made; $($rest)*);
    };
    (@put $made:ident; .. $type:ty = $value:expr, $($rest:tt)*) => {
        let value: $type = $value;
        $crate::document::put_all(&mut $made, &value);
        $crate::document_members!(@put $made; $($rest)*);
    };
    (@put $made:ident; $(#[doc = $doc:literal])+ $name:ident : stream $type:ty, $($rest:tt)*) => {
        $crate::document_members!(@put $made; $($rest)*);
    };
    (@put $made:ident; $(#[doc = $doc:literal])+ $name:ident ? : [$($words:tt)+] = $value:expr, $($rest:tt)*) => {
        if let Some(value) = $value {
            let value: &str = value;
            $made.push((stringify!($name).into(), $crate::Value::from(value)));
        }
        $crate::document_members!(@put $made; $($rest)*);
    };
    (@put $made:ident; $(#[doc = $doc:literal])+ $name:ident ? : $type:ty = $value:expr, $($rest:tt)*) => {
        let value: Option<$type> = $value;
        if let Some(value) = value {
            $made.push((stringify!($name).into(), $crate::document::Shape::to_value(&value)));
        }
        $crate::document_members!(@put $made; $($rest)*);
    };
    (@put $made:ident; $(#[doc = $doc:literal])+ $name:ident : [$($word:literal)|+] = $value:expr, $($rest:tt)*) => {
        let value: &str = $value;
        $made.push((stringify!($name).into(), $crate::Value::from(value)));
        $crate::document_members!(@put $made; $($rest)*);
    };
    (@put $made:ident; $(#[doc = $doc:literal])+ $name:ident : [$($word:literal |)+ null] = $value:expr, $($rest:tt)*) => {
        let value: Option<&str> = $value;
        $made.push((stringify!($name).into(), $crate::Value::from(value)));
        $crate::document_members!(@put $made; $($rest)*);
    };
    (@put $made:ident; $(#[doc = $doc:literal])+ $name:ident : $type:ty = $value:expr, $($rest:tt)*) => {
        let value: $type = $value;
        $made.push((stringify!($name).into(), $crate::document::Shape::to_value(&value)));
        $crate::document_members!(@put $made; $($rest)*);
    };

    (@list $listed:ident;) => {};
    (@list $listed:ident; let $local:pat = $init:expr; $($rest:tt)*) => {
        $crate::document_members!(@list $listed; $($rest)*);
    };
    (@list $listed:ident; ..? $type:ty = $value:expr, $($rest:tt)*) => {
        let optional = |member| $crate::document::DocumentMember { is_required: false, ..member };
        $listed.extend(<$type as $crate::document::Members>::members().into_iter().map(optional));
        $crate::document_members!(@list $listed; $($rest)*);
    };
    (@list $listed:ident; .. $type:ty = $value:expr, $($rest:tt)*) => {
        $listed.extend(<$type as $crate::document::Members>::members());
        $crate::document_members!(@list $listed; $($rest)*);
    };
    (@list $listed:ident; $(#[doc = $doc:literal])+ $name:ident : stream $type:ty, $($rest:tt)*) => {
        $crate::document_members!(@one $listed $name true [$($doc)+] <[$type] as $crate::document::Shape>::schema());
        $crate::document_members!(@list $listed; $($rest)*);
    };
    (@list $listed:ident; $(#[doc = $doc:literal])+ $name:ident ? : [$($word:literal)|+] = $value:expr, $($rest:tt)*) => {
        $crate::document_members!(@one $listed $name false [$($doc)+] $crate::document::one_of(&[$($word),+]));
        $crate::document_members!(@list $listed; $($rest)*);
    };
    (@list $listed:ident; $(#[doc = $doc:literal])+ $name:ident ? : $type:ty = $value:expr, $($rest:tt)*) => {
        $crate::document_members!(@one $listed $name false [$($doc)+] <$type as $crate::document::Shape>::schema());
        $crate::document_members!(@list $listed; $($rest)*);
    };
    (@list $listed:ident; $(#[doc = $doc:literal])+ $name:ident : [$($word:literal)|+] = $value:expr, $($rest:tt)*) => {
        $crate::document_members!(@one $listed $name true [$($doc)+] $crate::document::one_of(&[$($word),+]));
        $crate::document_members!(@list $listed; $($rest)*);
    };
    (@list $listed:ident; $(#[doc = $doc:literal])+ $name:ident : [$($word:literal |)+ null] = $value:expr, $($rest:tt)*) => {
        $crate::document_members!(
            @one $listed $name true [$($doc)+] $crate::document::nullable($crate::document::one_of(&[$($word),+]))
        );
        $crate::document_members!(@list $listed; $($rest)*);
    };
    (@list $listed:ident; $(#[doc = $doc:literal])+ $name:ident : $type:ty = $value:expr, $($rest:tt)*) => {
        $crate::document_members!(@one $listed $name true [$($doc)+] <$type as $crate::document::Shape>::schema());
        $crate::document_members!(@list $listed; $($rest)*);
    };

    (@one $listed:ident $name:ident $is_required:literal [$($doc:literal)+] $schema:expr) => {
        $listed.push($crate::document::DocumentMember {
            name: stringify!($name),
            sentence: $crate::document::sentence(&[$($doc),+]),
            is_required: $is_required,
            schema: $schema,
        });
    };
    (@schema $members:ident) => { $crate::document::object_schema(&$members) };
    (@schema $members:ident $document:literal) => { $crate::document::document_schema($document, &$members) };
    (@is reads) => {
        const IS_READ: bool = true;
    };
    (@is part) => {};
    (@reads $listed:ident) => {
        $listed.extend($crate::document::read_members());
    };
    (@part $listed:ident) => {};
    (@published $name:ident $document:literal part) => { &[] };
    (@published $name:ident $document:literal $($reads:ident)?) => {
        &[$crate::document::PublishedSchema::of::<$name>($document)]
    };
}

/// Declares objects that others write, each by its members: name, sentence and shape, and `= required` if it must be there.
///
/// `open` objects may have other members than those that are named, `closed` ones may not. `NAME::NAMES` lists the names.
#[macro_export]
macro_rules! line {
    ($(
        $(#[doc = $title:literal])+
        $vis:vis $extent:ident $name:ident {
            $($(#[doc = $doc:literal])+ $member:ident: $type:ty $(= $required:ident)?,)*
        }
    )+) => {$(
        $(#[doc = $title])+
        #[derive(Debug, Clone, Copy)]
        $vis enum $name {}

        #[allow(dead_code, reason = "some readers have no list of names")]
        impl $name {
            /// Names of the members, in order.
            $vis const NAMES: &'static [&'static str] = &[$(stringify!($member)),*];
        }

        impl $crate::document::Shape for $name {
            fn schema() -> $crate::Value {
                let members = <$name as $crate::document::Members>::members();
                $crate::document::$extent($crate::document::object_schema(&members))
            }

            fn to_value(&self) -> $crate::Value {
                match *self {}
            }
        }

        impl $crate::document::Members for $name {
            fn title() -> String {
                $crate::document::sentence(&[$($title),+])
            }

            fn members() -> Vec<$crate::document::DocumentMember> {
                vec![$($crate::document::DocumentMember {
                    name: stringify!($member),
                    sentence: $crate::document::sentence(&[$($doc),+]),
                    is_required: !stringify!($($required)?).is_empty(),
                    schema: <$type as $crate::document::Shape>::schema(),
                }),*]
            }
        }
    )+};
}

/// Adds every member of an object.
#[doc(hidden)]
pub fn put_all(made: &mut Vec<(Arc<str>, Value)>, object: &impl Members) {
    let value = object.to_value();
    let members = value.as_object().into_iter().flat_map(Object::iter);
    // A document keeps its own name.
    let members = members.filter(|(name, _)| &***name != "schema");
    made.extend(members.map(|(name, value)| (name.clone(), value.clone())));
}

document! {
    /// Why an answer may not be about the whole record
    pub object Tampered(code: Code, message: &str) {
        /// The code of the fault, as `dendrer explain` takes it
        code: Code = code,
        /// The fault in one sentence
        message: &str = message,
    }
}

/// The members that say where an answer was read, and with which reserve. The printer of the answer adds them.
pub fn read_members() -> Vec<DocumentMember> {
    vec![
        head_member("read_from", "The store and the bundles that were read, as paths", <[String]>::schema()),
        head_member("caveat", "For a run of stage 0: what the answer does not claim", str::schema()),
        tampered_member(),
        unfinished_member(),
        incomplete_member(),
    ]
}

/// The member that any document may have, if a record was read that is not what was signed.
fn tampered_member() -> DocumentMember {
    head_member("tampered", "The fault of a record that is not what was signed", Tampered::schema())
}

/// The member that any document may have, if it is about a part of a source.
fn unfinished_member() -> DocumentMember {
    head_member(
        "unfinished",
        "Whether an import of a run that was read was stopped before its end",
        bool::schema(),
    )
}

/// The member that any document may have, if records of a run that was read are missing or may be.
fn incomplete_member() -> DocumentMember {
    let sentence =
        "The runs that were read of which records are or may be missing, each with the reason in words";
    head_member("incomplete", sentence, <[String]>::schema())
}

fn head_member(name: &'static str, sentence: &str, schema: Value) -> DocumentMember {
    DocumentMember { name, sentence: sentence.to_owned(), is_required: false, schema }
}

#[cfg(test)]
mod tests {
    use super::*;

    document! {
        /// A place
        object PlaceObject(tick: u64, note: Option<&'static str>) {
            /// The tick
            tick: u64 = tick,
            /// A note, left out if it is missing
            note?: &'static str = note,
        }

        /// A sample document.
        /// It has every form of a member.
        object SampleDocument: "sample" reads (run: &RunName, end: Option<u64>, word: Option<&'static str>) {
            let doubled = end.map(|tick| tick * 2);
            /// The run
            run: &RunName = run,
            /// Twice the last tick; null if it is missing
            end: Option<u64> = doubled,
            /// The outcome
            outcome: ["onset" | "never"] = if end.is_some() { "onset" } else { "never" },
            /// The side, if one was named
            side: ["after" | "before" | null] = word,
            /// The same word, left out if none was named
            word?: ["after" | "before"] = word,
            /// A member whose name is a word of the language
            type: Value = Value::from(true),
            /// The places
            places: Vec<PlaceObject> = vec![PlaceObject::of(1, None), PlaceObject::of(2, Some("x"))],
            ..PlaceObject = PlaceObject::of(7, None),
            /// The rows
            items: stream PlaceObject,
        }
    }

    #[test]
    fn schema_and_value_come_from_one_declaration() {
        let run: RunName = "r".parse().unwrap();
        let full = SampleDocument::of(&run, Some(4), Some("after")).to_value().to_string();
        let expected = concat!(
            r#"{"end":8,"outcome":"onset","places":[{"tick":1},{"note":"x","tick":2}],"run":"r","#,
            r#""schema":"dendrer.sample/1","side":"after","tick":7,"type":true,"word":"after"}"#
        );
        assert_eq!(full, expected);
        let empty = SampleDocument::of(&run, None, None).to_value();
        assert_eq!((empty.get("side"), empty.get("word")), (Some(&Value::Null), None));

        let schema = SampleDocument::published();
        assert_eq!(
            schema.get("title"),
            Some(&Value::from("A sample document. It has every form of a member"))
        );
        let required = r#"["schema","run","end","outcome","side","type","places","tick","items"]"#;
        assert_eq!(schema.get("required").unwrap().to_string(), required);
        let of = |name: &str| schema.get("properties").unwrap().get(name).unwrap().to_string();
        let end = r#"{"description":"Twice the last tick; null if it is missing","minimum":0,"type":["integer","null"]}"#;
        assert_eq!(of("end"), end);
        let side = r#"{"description":"The side, if one was named","enum":["after","before",null]}"#;
        assert_eq!(of("side"), side);
        assert_eq!(of("schema"), r#"{"enum":["dendrer.sample/1"]}"#);
        assert!(
            of("caveat").contains("stage 0")
                && of("items").starts_with(r#"{"anyOf":[{"description":"The rows","items""#)
        );
        let names: Vec<&str> = PlaceObject::members().iter().map(|member| member.name).collect();
        assert_eq!(names, ["tick", "note"]);
        assert_eq!(Fraction::schema().to_string(), r#"{"maximum":1,"minimum":0,"type":"number"}"#);
    }
}
