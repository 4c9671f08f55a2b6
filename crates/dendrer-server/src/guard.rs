//! Who may ask: the token, and where a request comes from.
//!
//! Rule: a request without the token, from another page or under another name of the host is refused before anything is read;
//! test `no_request_without_the_token_is_answered`.

use std::net::SocketAddr;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use dendrer_object::digest::hex;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::answer::Refusal;

/// The number of random bytes of a token.
const TOKEN_SIZE: usize = 32;

/// The secret that a request proves to know.
#[derive(Clone)]
pub struct Token {
    text: String,
    key: hmac::Key,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Makes a token of 256 random bits.
    ///
    /// # Errors
    ///
    /// An error if the system has no random bytes.
    pub fn random() -> std::io::Result<Token> {
        let mut bytes = [0; TOKEN_SIZE];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| std::io::Error::other("the system has no random bytes"))?;
        Ok(Token::of(hex(&bytes)))
    }

    /// Takes a text as the token.
    pub fn of(text: String) -> Token {
        let key = hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes());
        Token { text, key }
    }

    /// The token as a text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a text is the token. The time does not depend on the part that agrees.
    pub(crate) fn is(&self, given: &str) -> bool {
        let expected = hmac::sign(&self.key, b"dendrer");
        let given = hmac::Key::new(hmac::HMAC_SHA256, given.as_bytes());
        hmac::verify(&given, b"dendrer", expected.as_ref()).is_ok()
    }
}

/// The checks of a request that has a connection.
#[derive(Debug, Clone)]
pub struct Guard {
    token: Token,
    port: u16,
    /// Names of this machine, with the port.
    local: Vec<String>,
    /// Other names under which the server is reached, with the port unless it is that of the scheme.
    hosts: Vec<String>,
    is_writing: bool,
}

impl Guard {
    /// A guard of a server at an address, which is reached by it, by the names of the local host and by `hosts`.
    pub fn new(token: Token, address: SocketAddr, hosts: &[String], is_writing: bool) -> Guard {
        let port = address.port();
        let local = ["127.0.0.1", "localhost", "[::1]"].iter().map(|name| format!("{name}:{port}"));
        let own = (!address.ip().is_unspecified()).then(|| address.to_string());
        let named = hosts.iter().map(|host| host.to_ascii_lowercase());
        // A browser leaves the port of its scheme out.
        let hosts = named.map(|host| match host.strip_suffix(":443").or_else(|| host.strip_suffix(":80")) {
            Some(name) => name.to_owned(),
            None => host,
        });
        Guard { token, port, local: local.chain(own).collect(), hosts: hosts.collect(), is_writing }
    }

    /// The name of the cookie: all ports of a host share their cookies.
    pub(crate) fn cookie(&self) -> String {
        format!("dendrer-{}", self.port)
    }

    /// Whether a text is the token.
    pub(crate) fn is_token(&self, text: &str) -> bool {
        self.token.is(text)
    }

    /// Returns the header that sets the cookie.
    pub(crate) fn set_cookie(&self) -> String {
        format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie(), self.token.text())
    }

    /// Refuses a request that comes from elsewhere, or writes where nothing is written.
    ///
    /// # Errors
    ///
    /// 403 names the header; 401 if the token is missing or another.
    pub(crate) fn check(&self, request: &Parts) -> Result<(), Refusal> {
        let is_post = request.method == Method::POST;
        let host = self.check_origin(request)?;
        let by_program = bearer(&request.headers).is_some_and(|given| self.token.is(given));
        if by_program {
            return Ok(());
        }
        let name = self.cookie();
        if !cookies(&request.headers).any(|(known, value)| known == name && self.token.is(value)) {
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, "the request has no token, or another one"));
        }
        let is_own_page = text(&request.headers, "origin").is_some_and(|origin| self.is_origin(origin, host))
            && text(&request.headers, "x-dendrer") == Some("1");
        if is_post && !is_own_page {
            return Err(forbidden("a POST by cookie has Origin and X-Dendrer: 1"));
        }
        Ok(())
    }

    /// Whether a host is a name of this server.
    fn is_host(&self, host: &str) -> bool {
        self.local.iter().any(|known| known.eq_ignore_ascii_case(host)) || self.is_named(host)
    }

    /// Whether a host is one of the names that were given.
    fn is_named(&self, host: &str) -> bool {
        let host = host.strip_suffix(":443").or_else(|| host.strip_suffix(":80")).unwrap_or(host);
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    /// Whether an origin is that of the host. A name that was given may have TLS in front.
    fn is_origin(&self, origin: &str, host: &str) -> bool {
        let secure = origin.strip_prefix("https://").filter(|_| self.is_named(host));
        origin.strip_prefix("http://").or(secure).is_some_and(|name| name.eq_ignore_ascii_case(host))
    }

    /// Refuses another host, origin or site, and returns the host.
    fn check_origin<'r>(&self, request: &'r Parts) -> Result<&'r str, Refusal> {
        let headers = &request.headers;
        let host = text(headers, "host").unwrap_or_default();
        let others =
            request.uri.authority().map(|authority| authority.as_str()).filter(|named| *named != host);
        if headers.get_all(header::HOST).iter().count() > 1 || others.is_some() {
            return Err(forbidden("the request names two hosts"));
        }
        if !self.is_host(host) {
            let mut refusal = forbidden("Host is not a name of this server");
            refusal.problem = refusal.problem.note("dendrer serve --allow-host NAME:PORT adds one");
            return Err(refusal);
        }
        if let Some(origin) = headers.get(header::ORIGIN)
            && !origin.to_str().is_ok_and(|origin| self.is_origin(origin, host))
        {
            return Err(forbidden("Origin is another one"));
        }
        let site = text(headers, "sec-fetch-site").unwrap_or("none");
        let opens_page = text(headers, "sec-fetch-mode") == Some("navigate")
            && text(headers, "sec-fetch-dest") == Some("document")
            && request.method == Method::GET;
        if matches!(site, "cross-site" | "same-site") && !opens_page {
            return Err(forbidden("Sec-Fetch-Site names another site"));
        }
        Ok(host)
    }

    /// Refuses a write where nothing is written.
    ///
    /// # Errors
    ///
    /// 403 with the flag that allows it.
    pub(crate) fn check_write(&self) -> Result<(), Refusal> {
        if self.is_writing {
            return Ok(());
        }
        Err(forbidden("the server reads; with --allow-write it writes as well"))
    }
}

fn forbidden(what: &str) -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, what)
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    text(headers, "authorization")?.strip_prefix("Bearer ")
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='))
}
