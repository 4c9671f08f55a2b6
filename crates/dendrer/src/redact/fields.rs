//! Objects in which one member names the field and another has its value: `{"name": "DB_PASSWORD", "value": "..."}`,
//! `{"element": "Password field", "text": "..."}`, a manifest of Kubernetes, a step of a gate.
//!
//! Used for values of JSON and for JSON in a text alike, so both take the same.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::names::{self, Strength};
use super::rules::Rules;

/// Members whose text names a value in the same object.
const NAMES: &[&str] = &[
    "name",
    "key",
    "header",
    "variable",
    "var",
    "env",
    "envvar",
    "param",
    "parameter",
    "parametername",
    "option",
    "setting",
    "property",
    "flag",
    "credential",
    "attribute",
    "k",
    "secretname",
    "fieldname",
    "variablename",
    "headername",
];

/// Members whose text describes the field of a form.
const FIELDS: &[&str] = &[
    "field",
    "element",
    "selector",
    "label",
    "placeholder",
    "locator",
    "arialabel",
    "accessiblename",
    "id",
    "title",
    "xpath",
    "css",
    "target",
    "prompt",
    "question",
    "for",
    "autocomplete",
    "testid",
    "resourceid",
    "contentdescription",
    "description",
];

/// Members that have the value.
const VALUES: &[&str] = &[
    "value",
    "val",
    "text",
    "secretvalue",
    "newvalue",
    "oldvalue",
    "stringvalue",
    "defaultvalue",
    "currentvalue",
    "input",
    "keys",
    "answer",
    "typed",
    "v",
    "plaintext",
    "fieldvalue",
    "inputvalue",
    "valuestring",
    "content",
    "data",
    "secret",
    "chars",
    "string",
];

/// A member's name in small letters without signs.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether a member has the value that its neighbour names.
pub(super) fn is_value(name: &str) -> bool {
    name.len() <= 14 && VALUES.contains(&&*plain(name))
}

/// Whether a member names a value in the same object.
pub(super) fn is_name(name: &str) -> bool {
    name.len() <= 20 && {
        let plain = plain(name);
        plain == "keyname" || NAMES.contains(&&*plain) || FIELDS.contains(&&*plain) || plain == "type"
    }
}

/// The strength of the value in an object with these texts, given as name and text.
pub(super) fn strength<'m>(
    members: impl Iterator<Item = (&'m str, &'m str)>,
    rules: &Rules,
) -> Option<Strength> {
    let mut found = None;
    let (mut is_session, mut is_cookie) = (false, false);
    for (name, text) in members {
        if name.len() > 20 || text.is_empty() || text.len() > 200 {
            continue;
        }
        let plain = plain(name);
        let one = match &*plain {
            // `{"type": "password", "value": ...}`, as inputs of a page are listed.
            "type" => text.eq_ignore_ascii_case("password").then_some(Strength::Password),
            "credential" => Some(rules.strength(text).unwrap_or(Strength::Strong).max(Strength::Strong)),
            // The key of a storage account: `{"keyName": "key1", "value": ...}`.
            "keyname" => Some(Strength::Strong),
            name if NAMES.contains(&name) => {
                rules.strength(text).filter(|_| !text.contains(' ') || text.len() < 40)
            }
            name if FIELDS.contains(&name) => of_field(text, rules),
            _ => None,
        };
        is_session |= plain == "name" && is_session_name(text);
        is_cookie |= matches!(&*plain, "path" | "domain" | "samesite" | "httponly");
        found = found.max(one);
    }
    // A cookie in an archive of HTTP: `{"name": "session", "value": ..., "path": "/"}`.
    found.max((is_session && is_cookie).then_some(Strength::Strong))
}

/// Whether the name of a cookie is that of a session.
pub(super) fn is_session_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ["sess", "sid", "auth", "token", "jwt", "login", "remember"].iter().any(|part| lower.contains(part))
}

/// Whether a text is a name alone.
pub(super) fn is_plain_name(text: &str) -> bool {
    text.len() <= 60 && text.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.'))
}

/// Words of a form and of selectors, which say nothing of the field's value.
const OF_FORM: &str = "field input box textbox text edit form your the enter type current new confirm repeat again old for id css xpath \
    data testid test name label placeholder get by role aria div login log in signin sign user account with please provide a an of \
    locator page span value to autocomplete qa cy el wrapper container main root body ng model formcontrolname first last nth \
    secure securetextfield android widget edittext required webarea here old retype verify";

/// Words of the parts of a page around such a field.
const NOT_OF_FIELD: &str = "forgot forgotten reset show hide toggle policy strength hint link button submit error message rules \
    requirements change help tooltip checkbox remember save icon heading title confirmation manager generator visibility";

static IS_OF_FORM: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| OF_FORM.split_whitespace().collect());
static IS_NOT_OF_FIELD: LazyLock<BTreeSet<&'static str>> =
    LazyLock::new(|| NOT_OF_FIELD.split_whitespace().collect());

/// The strength of the value of a field by its label or selector: `Password field`, `input[name=password]`.
pub(super) fn of_field(text: &str, rules: &Rules) -> Option<Strength> {
    if text.len() > 120 {
        return None;
    }
    if let Some(strength) = rules.own_strength(text) {
        return Some(strength);
    }
    let words = names::words(text);
    if words.len() > 16 || words.iter().any(|word| IS_NOT_OF_FIELD.contains(&**word)) {
        return None;
    }
    let rest: Vec<String> = words.into_iter().filter(|word| !IS_OF_FORM.contains(&**word)).collect();
    names::strength(&rest.join(" ")).filter(|strength| *strength > Strength::Weak || rest.len() == 1)
}

/// Whether an object is a Secret of Kubernetes, by its member `kind`.
pub(super) fn is_manifest(name: &str, text: &str) -> bool {
    name == "kind" && text == "Secret"
}

/// Whether an object is a key as RFC 7517 writes it, by its member `kty`.
pub(super) fn is_web_key(name: &str) -> bool {
    name == "kty"
}

/// Whether this member of such a key is private (RFC 7518 6).
pub(super) fn is_private_part(name: &str) -> bool {
    matches!(name, "d" | "p" | "q" | "dp" | "dq" | "qi" | "k")
}

/// Whether the values of an object of this name are secrets where they are drawn by chance.
pub(super) fn holds_secrets(name: &str) -> bool {
    matches!(
        &*plain(name),
        "secrets" | "passwords" | "tokens" | "credentials" | "apikeys" | "password" | "creds" | "authtokens"
    )
}

/// Whether an object of this name has a password for each of its names.
pub(super) fn is_by_owner(name: &str) -> bool {
    matches!(&*plain(name), "passwords" | "userpasswords" | "passcodes" | "passphrases")
}

/// Whether an object is a step that asks for a credential, by its member `action`.
pub(super) fn is_gate(name: &str, text: &str) -> bool {
    (name == "action" || name == "action_type") && text == "gate"
}

/// Whether every value of this member of a Secret is one.
pub(super) fn is_data(name: &str) -> bool {
    name == "data" || name == "stringData"
}

/// Whether this member of a gate's step has what was asked and answered.
pub(super) fn is_exchange(name: &str) -> bool {
    name == "input" || name == "output"
}

/// Whether a text in a gate's step may stay: the name of a credential, a state, a word.
pub(super) fn is_name_in_gate(text: &str) -> bool {
    let is_upper = text.bytes().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_');
    let is_word =
        text.bytes().all(|c| c.is_ascii_alphabetic() || matches!(c, b' ' | b'-' | b'_' | b':' | b'.'));
    (is_upper && text.contains('_')) || (is_word && text.len() <= 40)
}
