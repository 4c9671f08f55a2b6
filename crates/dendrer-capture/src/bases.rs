//! The addresses of APIs that a program reads from its environment, and those that it gets in their place.

use std::net::SocketAddr;

use dendrer::Trace;
use dendrer_object::{Value, digest};
use hyper::Uri;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};

/// Variables that libraries of models read, with the address that holds without them.
pub const KNOWN: [(&str, &str); 3] = [
    ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    ("GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"),
];

/// Variables with the addresses that are not asked through a proxy.
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// An API whose address a program reads from a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The variable.
    pub variable: String,
    /// The address of the API.
    pub upstream: Uri,
    /// Text that only the program knows: 64 hexadecimal digits.
    pub(crate) token: String,
}

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// The text is no address of HTTP.
    #[error("{variable} is no http or https address: {url:?}")]
    NoAddress {
        /// The variable.
        variable: String,
        /// Its value.
        url: String,
    },
    /// The text of `--base` names no variable.
    #[error("--base takes VARIABLE=URL, not {0:?}")]
    NoVariable(String),
    /// No random bytes came from the system.
    #[error("the system gave no random bytes")]
    NoChance,
}

impl Base {
    /// Makes a base of a variable and an address. The random bytes of its token come from the system.
    ///
    /// # Errors
    ///
    /// [`BaseError::NoAddress`] and [`BaseError::NoChance`].
    pub fn new(variable: &str, url: &str) -> Result<Base, BaseError> {
        let bad = || BaseError::NoAddress { variable: variable.to_owned(), url: url.to_owned() };
        let upstream: Uri = url.trim().parse().map_err(|_| bad())?;
        let is_http = matches!(upstream.scheme_str(), Some("http" | "https"));
        let is_whole = |all: &Authority| !all.host().is_empty() && !all.as_str().ends_with(':');
        if !is_http || !upstream.authority().is_some_and(is_whole) || upstream.query().is_some() {
            return Err(bad());
        }
        let mut token = [0; 32];
        let random = ring::rand::SystemRandom::new();
        ring::rand::SecureRandom::fill(&random, &mut token).map_err(|_| BaseError::NoChance)?;
        Ok(Base { variable: variable.to_owned(), upstream, token: digest::hex(&token) })
    }

    /// Makes a base of `VARIABLE=URL`.
    ///
    /// # Errors
    ///
    /// As [`Base::new`], and [`BaseError::NoVariable`].
    pub fn parse(text: &str) -> Result<Base, BaseError> {
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
        };
        match text.split_once('=') {
            Some((variable, url)) if is_name(variable) => Base::new(variable, url),
            _ => Err(BaseError::NoVariable(text.to_owned())),
        }
    }

    /// The address that the program gets in place of the API's.
    pub fn given(&self, server: SocketAddr) -> String {
        let authority = self.upstream.authority().map_or("", |all| all.as_str());
        // Libraries send a user and a password of an address as a header.
        let user = authority.rsplit_once('@').map_or(String::new(), |(user, _)| format!("{user}@"));
        format!("http://{user}{server}/{}{}", self.token, self.upstream.path().trim_end_matches('/'))
    }

    /// It as a run remembers it: the variable, and the address without a user's name or password.
    pub(crate) fn to_value(&self) -> Value {
        let authority = self.upstream.authority().map_or("", |all| all.as_str());
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let scheme = self.upstream.scheme_str().unwrap_or("http");
        let url = format!("{scheme}://{host}{}", self.upstream.path().trim_end_matches('/'));
        Value::record([("url", Value::from(url)), ("variable", Value::from(self.variable.as_str()))])
    }

    /// The bases that a run was recorded with.
    ///
    /// # Errors
    ///
    /// As [`Base::new`].
    pub fn of_run(trace: &Trace) -> Result<Vec<Base>, BaseError> {
        let bases =
            trace.start().body().value("/meta").and_then(|meta| meta.get("capture")?.get("bases").cloned());
        let bases = bases.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        let text = |base: &Value, name: &str| base.get(name).and_then(Value::as_str).map(str::to_owned);
        let pairs = bases.iter().filter_map(|base| Some((text(base, "variable")?, text(base, "url")?)));
        pairs.map(|(variable, url)| Base::new(&variable, &url)).collect()
    }

    /// The bases of a run whose program is continued: an address in the environment holds before that of the record.
    ///
    /// # Errors
    ///
    /// As [`Base::new`].
    pub fn of_fork(trace: &Trace, variable: impl Fn(&str) -> Option<String>) -> Result<Vec<Base>, BaseError> {
        let now = |base: Base| match variable(&base.variable).filter(|url| !url.trim().is_empty()) {
            Some(url) => Base::new(&base.variable, &url),
            None => Ok(base),
        };
        Base::of_run(trace)?.into_iter().map(now).collect()
    }

    /// The address at the API of a path that the program asked for.
    pub(crate) fn at(&self, path: &str) -> Option<Uri> {
        let path: PathAndQuery = if path.is_empty() { "/" } else { path }.parse().ok()?;
        let scheme: Scheme = self.upstream.scheme()?.clone();
        let authority: Authority = self.upstream.authority()?.clone();
        Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build().ok()
    }
}

/// The bases of a program: those that were named, and of the known ones those that were not. `variable` reads the environment.
///
/// # Errors
///
/// As [`Base::new`], for an address of the environment.
pub fn all(named: Vec<Base>, variable: impl Fn(&str) -> Option<String>) -> Result<Vec<Base>, BaseError> {
    let mut bases = named;
    for (name, url) in KNOWN {
        if bases.iter().all(|base| base.variable != name) {
            let set = variable(name).filter(|url| !url.trim().is_empty());
            bases.push(Base::new(name, set.as_deref().unwrap_or(url))?);
        }
    }
    Ok(bases)
}

/// The variables that a program gets: a base each, and no proxy between it and the server.
pub fn variables(
    bases: &[Base],
    server: SocketAddr,
    variable: impl Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let own = bases.iter().map(|base| (base.variable.clone(), base.given(server)));
    let direct = NO_PROXY.iter().map(|name| {
        let before = variable(name).filter(|list| !list.is_empty());
        let host = server.ip().to_string();
        // A star alone is for all addresses; in a list it is for none in some libraries.
        let before = before.map(|list| if list.trim() == "*" { list } else { format!("{list},{host}") });
        ((*name).to_owned(), before.unwrap_or(host))
    });
    own.chain(direct).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_of_http_with_a_host() {
        for url in
            ["", "api.openai.com", "ftp://x", "http://", "http://127.0.0.1:/v1", "http://x/?key=1", "//x"]
        {
            assert!(Base::new("A", url).is_err(), "{url}");
        }
        for text in ["", "http://x", "=http://x", "1A=http://x", "A B=http://x"] {
            assert!(Base::parse(text).is_err(), "{text}");
        }
        let base = Base::parse("A_B=https://me:secret@x:8443/v1/").unwrap();
        let server = "127.0.0.1:99".parse().unwrap();
        assert_eq!(base.given(server), format!("http://me:secret@127.0.0.1:99/{}/v1", base.token));
        assert_eq!(base.to_value().to_string(), r#"{"url":"https://x:8443/v1","variable":"A_B"}"#);
    }

    #[test]
    fn variables_that_are_set_name_the_api() {
        let variable = |name: &str| match name {
            "OPENAI_BASE_URL" => Some("http://local/v2".to_owned()),
            "ANTHROPIC_BASE_URL" => Some(" ".to_owned()),
            "NO_PROXY" => Some("example.org".to_owned()),
            _ => None,
        };
        let named = Base::new("GOOGLE_GEMINI_BASE_URL", "http://named").unwrap();
        let all = all(vec![named], variable).unwrap();
        let found: Vec<String> = all.iter().map(|base| base.upstream.to_string()).collect();
        assert_eq!(found, ["http://named/", "http://local/v2", "https://api.anthropic.com/"]);
        let given = variables(&all, "127.0.0.1:99".parse().unwrap(), variable);
        assert!(given.contains(&("NO_PROXY".to_owned(), "example.org,127.0.0.1".to_owned())));
        assert!(given.contains(&("no_proxy".to_owned(), "127.0.0.1".to_owned())));
    }
}
