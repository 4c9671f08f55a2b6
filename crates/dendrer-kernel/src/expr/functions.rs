//! The functions of the language: how each is written, what it takes and what it gives.
//!
//! Never evaluates; [`super::library`] does.
//!
//! Rule: a function is total. For any arguments it gives a value or is uncertain with the path of the argument that it
//! could not take, and its price is fixed by the content of its arguments alone.

use super::check::Type;
use super::time::Part;

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

const fn part(of: Part) -> Signature {
    let (form, takes): (_, &[&[Type]]) = match of {
        Part::FullYear => ("a.getFullYear()", &[TIMESTAMP, TEXT]),
        Part::Month => ("a.getMonth()", &[TIMESTAMP, TEXT]),
        Part::Date => ("a.getDate()", &[TIMESTAMP, TEXT]),
        Part::DayOfMonth => ("a.getDayOfMonth()", &[TIMESTAMP, TEXT]),
        Part::DayOfWeek => ("a.getDayOfWeek()", &[TIMESTAMP, TEXT]),
        Part::DayOfYear => ("a.getDayOfYear()", &[TIMESTAMP, TEXT]),
        Part::Hours => ("a.getHours()", &[TIME, TEXT]),
        Part::Minutes => ("a.getMinutes()", &[TIME, TEXT]),
        Part::Seconds => ("a.getSeconds()", &[TIME, TEXT]),
        Part::Milliseconds => ("a.getMilliseconds()", &[TIMESTAMP, TEXT]),
    };
    Signature { name: of.as_str(), style: Style::Method, least: 1, most: 2, form, takes, gives: Type::Int }
}

/// More arguments than a text can hold.
const MANY: usize = usize::MAX;

const CONVERTIBLE: &[Type] = &[Type::Int, Type::Double, Type::Number, Type::String];
const COUNTED: &[Type] = &[Type::Int, Type::Double, Type::Number, Type::String, Type::Timestamp];
const SHOWN: &[Type] =
    &[Type::Int, Type::Double, Type::Number, Type::String, Type::Bool, Type::Timestamp, Type::Duration];
const POINT: &[Type] = &[Type::String, Type::Int, Type::Number, Type::Timestamp];
const LENGTH: &[Type] = &[Type::String, Type::Duration];
const SIZED: &[Type] = &[Type::String, Type::List, Type::Map];

macro_rules! functions {
    ($($function:ident => $signature:expr,)*) => {
        /// A function of the language.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Function {
            $($function,)*
            /// A member of a timestamp or a duration.
            Part(Part),
        }

        impl Function {
            /// Walks all functions.
            pub(super) fn all() -> impl Iterator<Item = Function> {
                [$(Function::$function),*].into_iter().chain(Part::ALL.iter().copied().map(Function::Part))
            }

            const fn signature(self) -> Signature {
                match self {
                    $(Function::$function => $signature,)*
                    Function::Part(of) => part(of),
                }
            }
        }
    };
}

functions! {
    Size => Signature { style: Style::Both, ..global("size", (1, 1), "size(a)", &[SIZED], Type::Int) },
    Double => global("double", (1, 1), "double(a)", &[CONVERTIBLE], Type::Double),
    Int => global("int", (1, 1), "int(a)", &[COUNTED], Type::Int),
    String => global("string", (1, 1), "string(a)", &[SHOWN], Type::String),
    Bool => global("bool", (1, 1), "bool(a)", &[&[Type::String, Type::Bool]], Type::Bool),
    Div => global("div", (2, 2), "div(a, b)", &[WHOLE], Type::Number),
    StartsWith => method("startsWith", "a.startsWith(b)"),
    EndsWith => method("endsWith", "a.endsWith(b)"),
    Contains => method("contains", "a.contains(b)"),
    Matches => Signature { style: Style::Both, ..method("matches", "a.matches(\"pattern\")") },
    ParseJson => global("parse_json", (1, 1), "parse_json(text)", &[TEXT], Type::Any),
    Canon => global("canon", (1, 1), "canon(a)", &[ANYTHING], Type::String),
    Words => global("words", (1, 1), "words(text)", &[TEXT], Type::List),
    Lower => global("lower", (1, 1), "lower(text)", &[TEXT], Type::String),
    StripPrefix => global("strip_prefix", (2, 2), "strip_prefix(text, prefix)", &[TEXT], Type::String),
    Trim => global("trim", (1, 1), "trim(text)", &[TEXT], Type::String),
    Distinct => global("distinct", (1, 1), "distinct(list)", &[LIST], Type::List),
    Intersects => global("intersects", (2, 2), "intersects(a, b)", &[LIST], Type::Bool),
    Sum => global("sum", (1, 1), "sum(list)", &[LIST], Type::Number),
    // One argument is a list; the check tells the two forms apart.
    Min => global("min", (1, MANY), "min(list) or min(a, b)", &[ANYTHING], Type::Any),
    Max => global("max", (1, MANY), "max(list) or max(a, b)", &[ANYTHING], Type::Any),
    Abs => global("abs", (1, 1), "abs(a)", &[NUMBER], Type::Number),
    Round => global("round", (1, 2), "round(a, decimals)", &[NUMBER, WHOLE], Type::Number),
    Merge => global("merge", (2, MANY), "merge(a, b)", &[MAP], Type::Map),
    Pick => global("pick", (2, 2), "pick(map, [\"name\"])", &[MAP, LIST], Type::Map),
    Without => global("without", (2, 2), "without(map, [\"name\"])", &[MAP, LIST], Type::Map),
    Keys => global("keys", (1, 1), "keys(map)", &[MAP], Type::List),
    Values => global("values", (1, 1), "values(map)", &[MAP], Type::List),
    Indices => global("indices", (1, 1), "indices(list)", &[LIST], Type::List),
    Slice => {
        const PARTS: &[Type] = &[Type::String, Type::List];
        global("slice", (2, 3), "slice(a, from, to)", &[PARTS, WHOLE], Type::Any)
    },
    Sort => global("sort", (1, 1), "sort(list)", &[LIST], Type::List),
    Range => global("range", (1, 2), "range(n) or range(from, to)", &[WHOLE], Type::List),
    Timestamp => global("timestamp", (1, 1), "timestamp(text)", &[POINT], Type::Timestamp),
    Duration => global("duration", (1, 1), "duration(text)", &[LENGTH], Type::Duration),
}

impl Function {
    pub(super) fn name(self) -> &'static str {
        self.signature().name
    }

    /// Returns how a call looks.
    pub(super) fn form(self) -> &'static str {
        self.signature().form
    }

    /// Returns whether a definition of a pack may have its name: packs of records that are older than the function do.
    pub(super) fn gives_way(self) -> bool {
        self == Function::Trim
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

dendrer_object::words! {
    /// A comprehension, which does something with every member of a list or a map.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Macro {
        All = "all",
        Exists = "exists",
        ExistsOne = "exists_one",
        Map = "map",
        Filter = "filter",
        TransformList = "transformList",
        TransformMap = "transformMap",
        TransformMapEntry = "transformMapEntry",
    }
}

impl Macro {
    /// Finds a macro by name. `exists_one` and `existsOne` are one macro with one or two variables.
    pub(super) fn named(name: &str) -> Option<Macro> {
        if name == "existsOne" { Some(Macro::ExistsOne) } else { Macro::from_word(name) }
    }

    /// Returns the name with so many variables.
    pub(super) fn name(self, variables: usize) -> &'static str {
        if self == Macro::ExistsOne && variables == 2 { "existsOne" } else { self.as_str() }
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
