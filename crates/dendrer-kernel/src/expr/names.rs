//! Names before any scope is asked: words that cannot be names, parts of CEL that are left out, and suggestions for a
//! misspelt name.

use dendrer_object::text::distance;

/// Words that CEL keeps for itself; after a dot they are names like any other.
pub(super) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

/// Words of the grammar, which are no names even after a dot.
pub(super) const KEYWORDS: [&str; 4] = ["false", "in", "null", "true"];

/// Words the language adds to CEL; after a dot they are names.
pub(super) const OPERATOR_WORDS: [&str; 3] = ["and", "not", "or"];

const MACROS: [&str; 2] = ["optFlatMap", "optMap"];

const FUNCTIONS: [&str; 45] = [
    "bytes",
    "charAt",
    "cidr",
    "containsCIDR",
    "containsIP",
    "dyn",
    "family",
    "format",
    "hasValue",
    "indexOf",
    "ip",
    "isCIDR",
    "isCanonical",
    "isGlobalUnicast",
    "isIP",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isUnspecified",
    "join",
    "lastIndexOf",
    "lowerAscii",
    "masked",
    "or",
    "orValue",
    "prefixLength",
    "quote",
    "replace",
    "reverse",
    "split",
    "substring",
    "trim",
    "type",
    "uint",
    "unwrapOpt",
    "upperAscii",
    "value",
    "first",
    "last",
    "flatten",
    "sortBy",
    "encode",
    "decode",
    "of",
    "none",
];

const LIBRARIES: [&str; 10] =
    ["base64", "bind", "block", "cel", "google", "math", "net", "optional", "proto", "strings"];

const TYPES: [&str; 11] =
    ["bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "type", "uint"];

/// Returns the meaning in CEL of a function that the language leaves out.
pub(super) fn unsupported_call(name: &str) -> Option<String> {
    if MACROS.contains(&name) {
        return Some(format!("the macro `{name}`"));
    }
    FUNCTIONS.contains(&name).then(|| format!("the function `{name}`"))
}

/// Returns the meaning in CEL of a bare name that the language leaves out.
pub(super) fn unsupported_name(name: &str) -> Option<String> {
    if LIBRARIES.contains(&name) {
        return Some(format!("the library `{name}`"));
    }
    TYPES.contains(&name).then(|| format!("`{name}` as the name of a type"))
}

/// Tells whether a name can stand after a dot without quotes.
pub(super) fn is_selector(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|c| c == b'_' || c.is_ascii_alphabetic())
        && bytes.all(|c| c == b'_' || c.is_ascii_alphanumeric())
        && !KEYWORDS.contains(&name)
}

/// Tells whether a name can stand for a value: a root, a constant, a variable.
pub(super) fn is_name(name: &str) -> bool {
    is_selector(name) && !RESERVED.contains(&name) && !OPERATOR_WORDS.contains(&name)
}

/// Returns the candidate nearest to a name, if one is near enough to be meant.
pub(super) fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // One slip in a short name, two in a longer one. A name of thousands of characters is no slip.
    let allowed = match name.chars().count() {
        0..=1 => 0,
        2..=5 => 1,
        6..=64 => 2,
        _ => return None,
    };
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= 256)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_slips() {
        for (a, b, expected) in [
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("state", "stat", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn only_near_names_are_offered() {
        assert_eq!(nearest("stat", ["source", "state"]), Some("state"));
        assert_eq!(nearest("risk_scoer", ["risk_score", "risk"]), Some("risk_score"));
        assert_eq!(nearest("x", ["y"]), None);
        assert_eq!(nearest("total", ["limit"]), None);
    }
}
