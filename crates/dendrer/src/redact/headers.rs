//! Values of headers: schemes such as `Bearer`, and the pairs of a cookie.

use super::judge;
use super::names::{self, Strength};
use super::part::has_marker;
use super::vendor::{SecretSpan, named_span};

/// Words before the value of an authorization.
const SCHEMES: &[&str] = &[
    "bearer",
    "basic",
    "token",
    "apikey",
    "api-key",
    "api_key",
    "digest",
    "ssws",
    "key",
    "negotiate",
    "ntlm",
    "bot",
    "jwt",
    "oauth",
    "aws",
    "hmac",
    "sharedkey",
    "sharedkeylite",
    "genie",
    "genieKey",
    "dpop",
    "mac",
    "private-token",
    "app",
    "splunk",
    "access_token",
    "kakaoak",
    "deepl-auth-key",
    "auth",
    "geniekey",
    "zoho-oauthtoken",
    "aws4-hmac-sha256",
    "xbl3.0",
    "stoken",
    "client-id",
];

/// How many bytes at the begin of a value are schemes and the blanks after them.
pub(super) fn scheme(value: &str) -> usize {
    let mut at = 0;
    for _ in 0..2 {
        let rest = &value[at..];
        let word = rest
            .bytes()
            .take(20)
            .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
            .count();
        let blanks = rest[word..].bytes().take_while(|c| *c == b' ').count();
        if word == 0 || blanks == 0 || !SCHEMES.iter().any(|one| one.eq_ignore_ascii_case(&rest[..word])) {
            break;
        }
        at += word + blanks;
    }
    at
}

/// Schemes whose credentials are pairs.
const PAIRED: [&str; 4] = ["digest", "oauth", "hawk", "signature"];

/// The pairs of such a credential that prove who asks (RFC 7616 3.4, RFC 5849 3.5.1).
const PROOFS: [&str; 6] = ["response", "oauth_signature", "oauth_token", "mac", "signature", "cnonce"];

/// Finds the proofs in credentials of pairs: `Digest username="x", response="..."`.
pub(super) fn proofs(text: &str, found: &mut Vec<SecretSpan>) {
    for at in memchr::memmem::find_iter(text.as_bytes(), b"uthorization") {
        let line = super::part::line_at(text, at);
        let rest = &text[at..line.end];
        let from = rest.find([':', '=', ' ']).map_or(rest.len(), |sign| sign + 1);
        let scheme = rest[from..].trim_start_matches([' ', '"', '\'', ':', '\\']);
        if !PAIRED.iter().any(|one| {
            scheme.get(..one.len()).is_some_and(|word| word.eq_ignore_ascii_case(one))
                && scheme[one.len()..].starts_with(' ')
        }) {
            continue;
        }
        for proof in PROOFS {
            for (begin, _) in rest.match_indices(proof) {
                let value = &rest[begin + proof.len()..];
                let is_name = rest[..begin].ends_with([' ', ',']);
                let Some(value) = value.strip_prefix("=\\\"").or_else(|| value.strip_prefix("=\"")) else {
                    continue;
                };
                let end = value.find(['"', '\\']).unwrap_or(value.len());
                let start = at + rest.len() - value.len();
                if is_name && end >= 8 {
                    found.push(super::vendor::named_span(start, start + end));
                }
            }
        }
    }
}

/// Names of a cookie's attributes and settings.
const ATTRIBUTES: &[&str] = &[
    "path",
    "domain",
    "expires",
    "max-age",
    "samesite",
    "priority",
    "version",
    "lang",
    "locale",
    "theme",
    "language",
    "currency",
    "country",
    "tz",
    "timezone",
    "consent",
    "_ga",
    "_gid",
    "_gat",
    "_fbp",
    "utm_source",
    "last_seen",
    "cookieconsent",
    "optanonconsent",
    "i18n",
];

/// Adds the values of the pairs of a cookie that begins here, up to the end of its line or quote.
pub(super) fn cookies(text: &str, from: usize, found: &mut Vec<SecretSpan>) {
    let limit = super::part::next_boundary(text, from + super::part::VALUE_MAX);
    let rest = &text[from..limit];
    let line = rest.find(['\n', '\r', '"', '\'']).unwrap_or(rest.len());
    let mut at = from;
    for pair in rest[..line].split(';').take(200) {
        let begin = at + pair.len() - pair.trim_start().len();
        at += pair.len() + 1;
        let Some((name, value)) = pair.trim().split_once('=') else { continue };
        let name = name.trim();
        if !name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.')) {
            continue;
        }
        if ATTRIBUTES.iter().any(|one| one.eq_ignore_ascii_case(name)) || name.contains(char::is_whitespace) {
            continue;
        }
        let value = value.split([' ', '\t', '\\', ',']).next().unwrap_or_default();
        let is_strong = names::strength(name).is_some_and(|strength| strength > Strength::Weak);
        let is_session = ["sess", "sid", "auth", "token", "jwt"]
            .iter()
            .any(|part| name.to_ascii_lowercase().contains(part));
        let is_secret = match is_strong || is_session {
            true => value.len() >= 6 && judge::is_after_scheme(value),
            false => value.len() >= 16 && judge::looks_secret(value) && !judge::is_placeholder(value),
        };
        if is_secret && !has_marker(value) {
            let start = begin + pair.trim().find('=').unwrap_or(0) + 1;
            let start = start + text[start..].len() - text[start..].trim_start_matches(' ').len();
            found.push(named_span(start, start + value.len()));
        }
    }
}
