//! Names that say that the value beside them is a secret: `password`, `API_KEY`, `clientSecret`, and not `max_tokens`, `monkey`,
//! `primary_key` or `password_policy`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// How much a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// The value is a secret if it looks like one: `token`, `auth`.
    Weak,
    /// The value is a secret, whatever it looks like: `password`.
    Strong,
}

/// Words that are enough by themselves.
const STRONG: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "passcode",
    "passwort",
    "kennwort",
    "contrasena",
    "senha",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "apikey",
    "privatekey",
    "secretkey",
    "accesskey",
    "accesstoken",
    "authtoken",
    "clientsecret",
    "refreshtoken",
    "pgpassword",
    "mysqlpassword",
    "userpass",
    "userpassword",
    "mnemonic",
    "otp",
    "totp",
];

/// Words that say so of a value that looks like a secret.
const WEAK: &[&str] = &[
    "token",
    "auth",
    "authorization",
    "bearer",
    "pass",
    "pin",
    "cookie",
    "jwt",
    "sas",
    "signature",
    "salt",
    "nonce",
    "cred",
    "creds",
    "sig",
    "pat",
    "dsn",
];

/// Words before `key` with which it is a secret.
const KEYS: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "encryption",
    "signing",
    "master",
    "auth",
    "service",
    "account",
    "storage",
    "shared",
    "license",
    "ssh",
    "deploy",
    "webhook",
    "hmac",
    "client",
    "app",
    "admin",
    "consumer",
    "root",
    "jwt",
    "rsa",
    "ecdsa",
    "aes",
    "session",
    "subscription",
    "functions",
    "function",
    "host",
    "sas",
    "integration",
    "ingest",
    "write",
    "server",
    "live",
    "prod",
    "production",
    "rest",
    "routing",
    "maps",
    "stripe",
    "openai",
    "anthropic",
    "azure",
    "aws",
    "gcp",
    "google",
    "datadog",
    "dd",
    "sendgrid",
    "mailgun",
    "twilio",
    "github",
    "gitlab",
    "heroku",
    "algolia",
    "mapbox",
    "sentry",
    "licence",
    "cookie",
    "django",
    "flask",
    "rails",
    "application",
    "recovery",
    "unlock",
    "decryption",
    "data",
];

/// Words before `tokens` with which they are secrets and no count.
const TOKENS: &[&str] =
    &["access", "refresh", "auth", "api", "bearer", "session", "id", "oauth", "secret", "device", "push"];

/// Words at the end with which a name is about a secret and does not have one.
const ABOUT: &[&str] = &[
    "id",
    "ids",
    "name",
    "names",
    "count",
    "counts",
    "type",
    "types",
    "length",
    "len",
    "limit",
    "limits",
    "max",
    "min",
    "used",
    "usage",
    "total",
    "budget",
    "url",
    "uri",
    "urls",
    "endpoint",
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "dir",
    "hint",
    "policy",
    "policies",
    "field",
    "fields",
    "label",
    "prompt",
    "expires",
    "expiry",
    "expiration",
    "ttl",
    "at",
    "version",
    "algorithm",
    "alg",
    "format",
    "provider",
    "required",
    "enabled",
    "disabled",
    "valid",
    "index",
    "size",
    "ring",
    "board",
    "strength",
    "rotation",
    "age",
    "duration",
    "timeout",
    "error",
    "errors",
    "message",
    "reset",
    "in",
    "left",
    "remaining",
    "per",
    "cost",
    "price",
    "rate",
    "manager",
    "service",
    "store",
    "storage",
    "engine",
    "backend",
    "class",
    "kind",
    "status",
    "state",
    "scope",
    "scopes",
    "mode",
    "method",
    "methods",
    "header",
    "ref",
    "reference",
    "arn",
    "vault",
    "source",
    "env",
    "var",
    "key_name",
    "validator",
    "changed",
    "updated",
    "created",
    "date",
    "time",
    "page",
    "input",
    "form",
    "protected",
    "exists",
    "set",
    "present",
    "found",
    "missing",
    "attempts",
    "retries",
    "tokens_used",
    "placeholder",
    "detector",
    "scanner",
    "scanning",
    "detection",
    "redacted",
    "level",
    "words",
    "plan",
    "mapping",
    "map",
    "list",
    "check",
    "checks",
    "test",
    "tests",
];

/// Words at the front with which a name asks about a secret or counts.
const ASKS: &[&str] = &[
    "is",
    "has",
    "use",
    "uses",
    "num",
    "number",
    "max",
    "min",
    "no",
    "show",
    "reset",
    "forgot",
    "forget",
    "change",
    "update",
    "require",
    "requires",
    "required",
    "total",
    "count",
    "input",
    "output",
    "prompt",
    "completion",
    "cached",
    "reasoning",
    "remaining",
    "used",
    "estimated",
    "avg",
    "average",
    "public",
    "primary",
    "foreign",
    "sort",
    "partition",
    "cache",
    "idempotency",
    "object",
    "s3",
    "dict",
    "group",
    "row",
    "map",
    "lookup",
    "composite",
    "unique",
    "index",
    "next",
    "previous",
    "page",
    "continuation",
    "pagination",
    "sync",
    "eos",
    "bos",
    "pad",
    "unk",
    "stop",
    "special",
    "csrf",
    "enable",
    "disable",
    "with",
    "without",
    "needs",
    "can",
    "should",
    "new_line",
    "missing",
    "invalid",
    "expired",
];

/// Splits a name into words: at `_`, `-`, `.`, blanks and changes of case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let chars: Vec<char> = name.chars().collect();
    for (at, &c) in chars.iter().enumerate() {
        if !c.is_alphanumeric() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            continue;
        }
        let before = at.checked_sub(1).map(|before| chars[before]);
        let is_hump = c.is_uppercase()
            && (before.is_some_and(char::is_lowercase)
                || (before.is_some_and(char::is_uppercase)
                    && chars.get(at + 1).is_some_and(|next| next.is_lowercase())));
        if is_hump && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        word.extend(c.to_lowercase());
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The words one of which each name has that says of its value that it is secret. Most names have none, and are not split.
static SAYING: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .ascii_case_insensitive(true)
        .build(STRONG.iter().chain(WEAK).chain(JOINED).chain(&["key", "token"]))
        .expect("some short texts")
});

/// Ends of one word that was written together, like `dbpassword` or `authtoken`.
const JOINED: &[&str] = &["password", "passwd", "secret", "apikey", "passphrase"];

/// Whether the value beside a name is a secret.
pub(super) fn strength(name: &str) -> Option<Strength> {
    if name.len() > 100 || (name.is_ascii() && !SAYING.is_match(name)) {
        return None;
    }
    strength_of(&words(name))
}

fn strength_of(words: &[String]) -> Option<Strength> {
    let words: Vec<&str> =
        words.iter().map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit())).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let (first, last) = (*words.first()?, *words.last()?);
    // Of a secret's own kinds, these have `id` in their name and are secrets all the same.
    if words == ["secret", "id"] {
        return Some(Strength::Weak);
    }
    // A trial token of a page is public, and OAuth is a protocol.
    if words.contains(&"trial") || words == ["o", "auth"] {
        return None;
    }
    if ABOUT.contains(&last) || (ASKS.contains(&first) && words.len() > 1) {
        return None;
    }
    if words.iter().any(|word| STRONG.contains(word)) {
        // `secret` alone names many a thing; the secret of something is one.
        return Some(Strength::Strong);
    }
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| words[before]);
        let is_key = matches!(*word, "key" | "keys") && before.is_some_and(|before| KEYS.contains(&before));
        if is_key {
            return Some(Strength::Strong);
        }
        let are_tokens = *word == "tokens" && before.is_some_and(|before| TOKENS.contains(&before));
        if are_tokens {
            return Some(Strength::Weak);
        }
        if *word == "token" && before.is_some_and(|before| TOKENS.contains(&before) || before == "bot") {
            return Some(Strength::Strong);
        }
    }
    let weak = words.iter().any(|word| WEAK.contains(word));
    let joined = words.len() == 1 && JOINED.iter().any(|end| last.ends_with(end));
    match (joined, weak) {
        (true, _) => Some(Strength::Strong),
        (_, true) => Some(Strength::Weak),
        _ => None,
    }
}

/// Whether the value of a variable of the environment is a secret, by its name.
pub fn is_secret_name(name: &str) -> bool {
    strength(name).is_some()
}

/// Words by which a name that may say so is found in a text, in lower case.
pub(super) const HINTS: &[&str] = &[
    "passw",
    "passwd",
    "pwd",
    "passphrase",
    "passcode",
    "kennwort",
    "senha",
    "contrasena",
    "secret",
    "credential",
    "apikey",
    "api_key",
    "api-key",
    "api key",
    "key",
    "token",
    "auth",
    "bearer",
    "pass",
    "pin",
    "cookie",
    "jwt",
    "sas",
    "signature",
    "sig",
    "salt",
    "cred",
    "session",
    "mnemonic",
    "otp",
    "pat",
    "dsn",
];

/// Words that stand for a value: types, states, parts of a sentence.
const PLACEHOLDERS: &[&str] = &[
    "",
    "null",
    "none",
    "nil",
    "true",
    "false",
    "undefined",
    "string",
    "str",
    "text",
    "int",
    "integer",
    "number",
    "bool",
    "boolean",
    "bytes",
    "optional",
    "required",
    "any",
    "object",
    "array",
    "password",
    "secret",
    "token",
    "key",
    "hidden",
    "masked",
    "redacted",
    "removed",
    "omitted",
    "example",
    "changeme",
    "change_me",
    "todo",
    "tbd",
    "n/a",
    "na",
    "unset",
    "empty",
    "default",
    "unknown",
    "missing",
    "yes",
    "no",
    "on",
    "off",
    "ok",
    "basic",
    "bearer",
    "digest",
    "see",
    "invalid",
    "valid",
    "expired",
    "incorrect",
    "wrong",
    "not",
    "is",
    "was",
    "the",
    "a",
    "an",
    "your",
    "from",
    "env",
    "environment",
    "vault",
    "keychain",
    "stdin",
    "prompt",
    "and",
    "or",
    "for",
    "with",
    "to",
    "in",
    "of",
    "self",
    "this",
    "value",
    "varchar",
    "char",
    "uuid",
    "float",
    "dict",
    "list",
    "function",
    "return",
    "new",
    "set",
    "get",
    "must",
    "should",
    "cannot",
    "can",
    "will",
    "has",
    "have",
    "been",
    "are",
    "provided",
    "configured",
    "found",
    "request",
    "response",
    "header",
    "headers",
    "error",
    "rotation",
    "rotated",
    "expires",
    "type",
    "manager",
];

/// Beginnings of a reference to the place that has the value.
const REFERENCES: &[&str] = &[
    "env.",
    "process.env",
    "os.environ",
    "os.getenv",
    "getenv",
    "std::env",
    "secrets.",
    "var.",
    "config.",
    "settings.",
    "self.",
    "this.",
    "args.",
    "options.",
    "params.",
    "request.",
    "req.",
    "ctx.",
    "vault:",
    "ref:",
    "arn:",
    "!ref",
    "file:",
    "http://",
    "https://",
];

/// Parts of a value that was made up for an example.
const EXAMPLES: &[&str] = &[
    "example",
    "changeme",
    "change-me",
    "change_me",
    "placeholder",
    "your-",
    "your_",
    "yourpassword",
    "my-secret-here",
    "redacted",
    "dummy",
    "sample",
    "insert",
    "replace",
];

/// Whether a value is written for a secret: an example, a variable, a type.
pub(super) fn is_placeholder(value: &str) -> bool {
    let trimmed = value.trim_matches(|c: char| matches!(c, '"' | '\'' | '`' | ' '));
    let lower = trimmed.to_ascii_lowercase();
    PLACEHOLDERS.contains(&&*lower)
        || is_variable(trimmed)
        || is_template(trimmed)
        || is_call(trimmed)
        || REFERENCES.iter().any(|start| lower.starts_with(start))
        || EXAMPLES.iter().any(|part| lower.contains(part))
        || is_name_of_secret(&lower)
        || lower.bytes().collect::<BTreeSet<u8>>().len() <= 2
}

/// Whether a value is a variable of a shell: `$TOKEN`, `$(token)`.
fn is_variable(value: &str) -> bool {
    value.strip_prefix('$').is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '{' | '(' | '_'))
            && rest.bytes().all(|c| {
                c.is_ascii_alphanumeric()
                    || matches!(c, b'_' | b'{' | b'}' | b'(' | b')' | b'.' | b'-' | b':')
            })
    })
}

/// Whether a value is a place in a template: `%TOKEN%`, `<token>`, `{token}`, `${token}`.
fn is_template(value: &str) -> bool {
    (value.len() > 1 && value.starts_with('%') && value.ends_with('%'))
        || (value.starts_with('<') && value.ends_with('>'))
        || value.starts_with(['{', '['])
        || value.contains("${")
        || value.contains("{{")
}

/// Whether a value is a call of a function: `token()`.
fn is_call(value: &str) -> bool {
    value.contains('(') && value.ends_with(')')
}

/// Whether a value is words that name a secret: `new_password`, `your-token-here`.
fn is_name_of_secret(lower: &str) -> bool {
    let parts: Vec<&str> = lower.split(['_', '-']).collect();
    let is_secret =
        |part: &&str| matches!(*part, "password" | "secret" | "token" | "key" | "passwd" | "credential");
    parts.len() > 1
        && parts.iter().all(|part| part.bytes().all(|c| c.is_ascii_lowercase()))
        && parts.iter().any(is_secret)
}

/// Whether a value looks like a secret by itself: long enough, and chosen by no person, or of letters, digits and signs.
pub(super) fn looks_secret(value: &str) -> bool {
    let bytes = value.as_bytes();
    if bytes.len() < 8 || value.contains(char::is_whitespace) {
        return false;
    }
    let digits = bytes.iter().filter(|c| c.is_ascii_digit()).count();
    let letters = bytes.iter().filter(|c| c.is_ascii_alphabetic()).count();
    let uppers = bytes.iter().filter(|c| c.is_ascii_uppercase()).count();
    let signs = bytes.len() - digits - letters;
    let is_path = value.starts_with(['/', '.', '~']) || value.contains("://");
    let is_word = digits == 0 && (uppers <= 1 || uppers == letters);
    !is_path
        && letters > 0
        && (is_mixed(value) || (!is_word && (digits > 0 || signs > 0 || bytes.len() >= 16)))
}

/// Whether letters and digits of a value change so often that no person wrote it as a word: `aku2R74fQYC4kv` and not `getAuthToken2`.
pub(super) fn is_mixed(value: &str) -> bool {
    let class = |c: u8| match c {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    let changes = value.as_bytes().windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    value.len() >= 8 && changes >= 3 && changes * 3 >= value.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_secrets_are_told_from_names_about_them() {
        for name in [
            "password",
            "DB_PASSWORD",
            "db.password",
            "clientSecret",
            "client_secret",
            "API_KEY",
            "apiKey",
            "x-api-key",
            "OPENAI_API_KEY",
            "access_token",
            "refreshToken",
            "aws_secret_access_key",
            "PGPASSWORD",
            "private-key",
            "Authorization",
            "auth_token",
            "token",
            "smtp_pass",
            "GITHUB_TOKEN",
            "signing_key",
            "dbpassword",
            "api_tokens",
            "secret",
        ] {
            assert!(strength(name).is_some(), "{name}");
        }
        for name in [
            "tokens_used",
            "max_tokens",
            "monkey",
            "keyboard",
            "primary_key",
            "public_key",
            "key",
            "keys",
            "token_count",
            "input_tokens",
            "password_policy",
            "password_length",
            "secret_name",
            "access_key_id",
            "token_type",
            "author",
            "authority",
            "passenger",
            "compass",
            "session_count",
            "keyword",
            "turkey",
            "tokenizer",
            "next_token",
            "completion_tokens",
            "cache_key",
            "is_secret",
            "api_key_id",
            "hockey",
            "passes",
            "bypass",
            "desktop",
            "pinned",
            "total_tokens",
            "password_reset_url",
        ] {
            assert_eq!(strength(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_that_is_not_split_says_nothing(
            parts in proptest::collection::vec((0..400usize, 0..4usize, 0..6usize), 1..4))
        {
            let lists: Vec<&str> =
                [STRONG, WEAK, JOINED, KEYS, TOKENS, ABOUT, ASKS].concat().into_iter().chain(["key", "keys", "token", "tokens", "bot", "of", "x7"]).collect();
            let mut name = String::new();
            for (word, case, between) in parts {
                let word = lists[word % lists.len()];
                let word = match case {
                    0 => word.to_ascii_uppercase(),
                    1 => word[..1].to_ascii_uppercase() + &word[1..],
                    2 => format!("{word}2"),
                    _ => word.to_owned(),
                };
                name += &word;
                name += ["_", "-", ".", " ", "", ""][between];
            }
            prop_assert_eq!(strength(&name), strength_of(&words(&name)));
        }
    }
}
