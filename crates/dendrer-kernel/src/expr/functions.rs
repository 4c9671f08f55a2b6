//! The functions of the language: how each is written, what it takes and what it gives.
//!
//! Never evaluates; [`super::library`] does.
//!
//! Rule: a function is total. For any arguments it gives a value or is uncertain with the path of the argument that it
//! could not take, and its price is fixed by the content of its arguments alone.

use super::check::Type;
use super::time::Part;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    Double,
    Int,
    String,
    Bool,
    Div,
    StartsWith,
    EndsWith,
    Contains,
    Matches,
    ParseJson,
    Canon,
    Words,
    Lower,
    StripPrefix,
    Distinct,
    Intersects,
    Sum,
    Min,
    Max,
    Abs,
    Round,
    Merge,
    Pick,
    Without,
    Keys,
    Values,
    Indices,
    Slice,
    Sort,
    Range,
    Timestamp,
    Duration,
    /// A member of a timestamp or a duration.
    Part(Part),
}

/// How a function is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `f(x)`
    Global,
    /// `x.f()`
    Method,
    /// Either.
    Both,
}

/// The static knowledge of a function, without its arguments.
struct Signature {
    name: &'static str,
    style: Style,
    /// How many arguments there are, the receiver of a method included.
    least: usize,
    most: usize,
    /// How a call looks.
    form: &'static str,
    /// The types of each argument; the last entry is for all that follow, and an empty one allows any type.
    takes: &'static [&'static [Type]],
    /// The type of the result if the arguments say no more.
    gives: Type,
}

const TEXT: &[Type] = &[Type::String];
const LIST: &[Type] = &[Type::List];
const MAP: &[Type] = &[Type::Map];
const NUMBER: &[Type] = &[Type::Int, Type::Double, Type::Number];
const WHOLE: &[Type] = &[Type::Int, Type::Number];
const ANYTHING: &[Type] = &[];
const TIMESTAMP: &[Type] = &[Type::Timestamp];
const TIME: &[Type] = &[Type::Timestamp, Type::Duration];

const fn global(
    name: &'static str,
    counts: (usize, usize),
    form: &'static str,
    takes: &'static [&'static [Type]],
    gives: Type,
) -> Signature {
    Signature { name, style: Style::Global, least: counts.0, most: counts.1, form, takes, gives }
}

const fn method(name: &'static str, form: &'static str) -> Signature {
    Signature { name, style: Style::Method, least: 2, most: 2, form, takes: &[TEXT], gives: Type::Bool }
}

const fn part(name: &'static str, form: &'static str, takes: &'static [&'static [Type]]) -> Signature {
    Signature { name, style: Style::Method, least: 1, most: 2, form, takes, gives: Type::Int }
}

/// More arguments than a text can hold.
const MANY: usize = usize::MAX;

impl Function {
    pub(super) const ALL: [Function; 43] = [
        Function::Size,
        Function::Double,
        Function::Int,
        Function::String,
        Function::Bool,
        Function::Div,
        Function::StartsWith,
        Function::EndsWith,
        Function::Contains,
        Function::Matches,
        Function::ParseJson,
        Function::Canon,
        Function::Words,
        Function::Lower,
        Function::StripPrefix,
        Function::Distinct,
        Function::Intersects,
        Function::Sum,
        Function::Min,
        Function::Max,
        Function::Abs,
        Function::Round,
        Function::Merge,
        Function::Pick,
        Function::Without,
        Function::Keys,
        Function::Values,
        Function::Indices,
        Function::Slice,
        Function::Sort,
        Function::Range,
        Function::Timestamp,
        Function::Duration,
        Function::Part(Part::FullYear),
        Function::Part(Part::Month),
        Function::Part(Part::Date),
        Function::Part(Part::DayOfMonth),
        Function::Part(Part::DayOfWeek),
        Function::Part(Part::DayOfYear),
        Function::Part(Part::Hours),
        Function::Part(Part::Minutes),
        Function::Part(Part::Seconds),
        Function::Part(Part::Milliseconds),
    ];

    const fn signature(self) -> Signature {
        const CONVERTIBLE: &[Type] = &[Type::Int, Type::Double, Type::Number, Type::String];
        const COUNTED: &[Type] = &[Type::Int, Type::Double, Type::Number, Type::String, Type::Timestamp];
        const SHOWN: &[Type] = &[
            Type::Int,
            Type::Double,
            Type::Number,
            Type::String,
            Type::Bool,
            Type::Timestamp,
            Type::Duration,
        ];
        const POINT: &[Type] = &[Type::String, Type::Int, Type::Number, Type::Timestamp];
        const LENGTH: &[Type] = &[Type::String, Type::Duration];
        const SIZED: &[Type] = &[Type::String, Type::List, Type::Map];
        match self {
            Function::Size => {
                Signature { style: Style::Both, ..global("size", (1, 1), "size(a)", &[SIZED], Type::Int) }
            }
            Function::Double => global("double", (1, 1), "double(a)", &[CONVERTIBLE], Type::Double),
            Function::Int => global("int", (1, 1), "int(a)", &[COUNTED], Type::Int),
            Function::String => global("string", (1, 1), "string(a)", &[SHOWN], Type::String),
            Function::Bool => global("bool", (1, 1), "bool(a)", &[&[Type::String, Type::Bool]], Type::Bool),
            Function::Div => global("div", (2, 2), "div(a, b)", &[WHOLE], Type::Number),
            Function::StartsWith => method("startsWith", "a.startsWith(b)"),
            Function::EndsWith => method("endsWith", "a.endsWith(b)"),
            Function::Contains => method("contains", "a.contains(b)"),
            Function::Matches => {
                Signature { style: Style::Both, ..method("matches", "a.matches(\"pattern\")") }
            }
            Function::ParseJson => global("parse_json", (1, 1), "parse_json(text)", &[TEXT], Type::Any),
            Function::Canon => global("canon", (1, 1), "canon(a)", &[ANYTHING], Type::String),
            Function::Words => global("words", (1, 1), "words(text)", &[TEXT], Type::List),
            Function::Lower => global("lower", (1, 1), "lower(text)", &[TEXT], Type::String),
            Function::StripPrefix => {
                global("strip_prefix", (2, 2), "strip_prefix(text, prefix)", &[TEXT], Type::String)
            }
            Function::Distinct => global("distinct", (1, 1), "distinct(list)", &[LIST], Type::List),
            Function::Intersects => global("intersects", (2, 2), "intersects(a, b)", &[LIST], Type::Bool),
            Function::Sum => global("sum", (1, 1), "sum(list)", &[LIST], Type::Number),
            // One argument is a list; the check tells the two forms apart.
            Function::Min => global("min", (1, MANY), "min(list) or min(a, b)", &[ANYTHING], Type::Any),
            Function::Max => global("max", (1, MANY), "max(list) or max(a, b)", &[ANYTHING], Type::Any),
            Function::Abs => global("abs", (1, 1), "abs(a)", &[NUMBER], Type::Number),
            Function::Round => global("round", (1, 2), "round(a, decimals)", &[NUMBER, WHOLE], Type::Number),
            Function::Merge => global("merge", (2, MANY), "merge(a, b)", &[MAP], Type::Map),
            Function::Pick => global("pick", (2, 2), "pick(map, [\"name\"])", &[MAP, LIST], Type::Map),
            Function::Without => {
                global("without", (2, 2), "without(map, [\"name\"])", &[MAP, LIST], Type::Map)
            }
            Function::Keys => global("keys", (1, 1), "keys(map)", &[MAP], Type::List),
            Function::Values => global("values", (1, 1), "values(map)", &[MAP], Type::List),
            Function::Indices => global("indices", (1, 1), "indices(list)", &[LIST], Type::List),
            Function::Slice => {
                const PARTS: &[Type] = &[Type::String, Type::List];
                global("slice", (2, 3), "slice(a, from, to)", &[PARTS, WHOLE], Type::Any)
            }
            Function::Sort => global("sort", (1, 1), "sort(list)", &[LIST], Type::List),
            Function::Range => global("range", (1, 2), "range(n) or range(from, to)", &[WHOLE], Type::List),
            Function::Timestamp => global("timestamp", (1, 1), "timestamp(text)", &[POINT], Type::Timestamp),
            Function::Duration => global("duration", (1, 1), "duration(text)", &[LENGTH], Type::Duration),
            Function::Part(of) => {
                const OF_POINT: &[&[Type]] = &[TIMESTAMP, TEXT];
                const OF_ANY: &[&[Type]] = &[TIME, TEXT];
                match of {
                    Part::FullYear => part("getFullYear", "a.getFullYear()", OF_POINT),
                    Part::Month => part("getMonth", "a.getMonth()", OF_POINT),
                    Part::Date => part("getDate", "a.getDate()", OF_POINT),
                    Part::DayOfMonth => part("getDayOfMonth", "a.getDayOfMonth()", OF_POINT),
                    Part::DayOfWeek => part("getDayOfWeek", "a.getDayOfWeek()", OF_POINT),
                    Part::DayOfYear => part("getDayOfYear", "a.getDayOfYear()", OF_POINT),
                    Part::Hours => part("getHours", "a.getHours()", OF_ANY),
                    Part::Minutes => part("getMinutes", "a.getMinutes()", OF_ANY),
                    Part::Seconds => part("getSeconds", "a.getSeconds()", OF_ANY),
                    Part::Milliseconds => part("getMilliseconds", "a.getMilliseconds()", OF_POINT),
                }
            }
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.signature().name
    }

    /// Returns how a call looks.
    pub(super) fn form(self) -> &'static str {
        self.signature().form
    }

    /// Tells whether so many arguments are right, the receiver of a method included.
    pub(super) fn takes_count(self, count: usize) -> bool {
        let signature = self.signature();
        (signature.least..=signature.most).contains(&count)
    }

    /// Returns the types allowed for the argument at `index`; empty for any type.
    pub(super) fn takes(self, index: usize) -> &'static [Type] {
        let takes = self.signature().takes;
        takes[index.min(takes.len() - 1)]
    }

    /// Returns the type of the result if the arguments say no more.
    pub(super) fn gives(self) -> Type {
        self.signature().gives
    }

    /// Tells whether it makes a string, a list or a map.
    pub(super) fn makes(self) -> bool {
        let gives = self.gives();
        matches!(gives, Type::String | Type::List | Type::Map)
            || matches!(self, Function::ParseJson | Function::Slice)
    }

    /// Tells whether it is written `f(x)`.
    pub(super) fn is_global(self) -> bool {
        self.signature().style != Style::Method
    }

    /// Tells whether it is written `x.f()`.
    pub(super) fn is_method(self) -> bool {
        self.signature().style != Style::Global
    }

    /// Tells whether its one form is `x.f()`.
    pub(super) fn prints_as_method(self) -> bool {
        !self.is_global() || self == Function::Matches
    }
}

/// A comprehension: what is done with every member of a list or a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Macro {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    TransformList,
    TransformMap,
    TransformMapEntry,
}

impl Macro {
    const ALL: [Macro; 8] = [
        Macro::All,
        Macro::Exists,
        Macro::ExistsOne,
        Macro::Map,
        Macro::Filter,
        Macro::TransformList,
        Macro::TransformMap,
        Macro::TransformMapEntry,
    ];

    /// Finds a macro by name. `exists_one` and `existsOne` are one macro with one or two variables.
    pub(super) fn named(name: &str) -> Option<Macro> {
        match name {
            "existsOne" => Some(Macro::ExistsOne),
            _ => Macro::ALL.into_iter().find(|found| found.name(1) == name),
        }
    }

    /// Walks all names, for hints.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        Macro::ALL.into_iter().map(|found| found.name(1))
    }

    /// Returns the name with so many variables.
    pub(super) fn name(self, variables: usize) -> &'static str {
        match self {
            Macro::All => "all",
            Macro::Exists => "exists",
            Macro::ExistsOne if variables == 2 => "existsOne",
            Macro::ExistsOne => "exists_one",
            Macro::Map => "map",
            Macro::Filter => "filter",
            Macro::TransformList => "transformList",
            Macro::TransformMap => "transformMap",
            Macro::TransformMapEntry => "transformMapEntry",
        }
    }

    /// Returns how a call looks.
    pub(super) fn form(self) -> &'static str {
        match self {
            Macro::All => "a.all(x, condition)",
            Macro::Exists => "a.exists(x, condition)",
            Macro::ExistsOne => "a.exists_one(x, condition)",
            Macro::Map => "a.map(x, value)",
            Macro::Filter => "a.filter(x, condition)",
            Macro::TransformList => "a.transformList(k, v, value)",
            Macro::TransformMap => "a.transformMap(k, v, value)",
            Macro::TransformMapEntry => "a.transformMapEntry(k, v, {key: value})",
        }
    }

    /// Tells whether it always binds two variables.
    pub(super) fn is_transform(self) -> bool {
        matches!(self, Macro::TransformList | Macro::TransformMap | Macro::TransformMapEntry)
    }

    /// Tells whether what it evaluates for a member is a condition, and it gives true or false.
    pub(super) fn is_test(self) -> bool {
        matches!(self, Macro::All | Macro::Exists | Macro::ExistsOne)
    }

    /// Tells whether a condition may stand before what it evaluates for a member.
    pub(super) fn takes_filter(self) -> bool {
        self == Macro::Map || self.is_transform()
    }
}
