//! The address of a store on a server, and where its password comes from.
//!
//! Never keeps a password, and never prints one: an address with a password is refused before any part of it is shown.
//!
//! Rule: TLS with a checked certificate is the default for every host that is not this machine; test
//! `a_host_elsewhere_is_reached_by_tls_unless_the_address_says_otherwise`.

use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use dendrer_store::StoreError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The port of PostgreSQL.
const PORT: u16 = 5432;

/// The most letters of the name of a store: with its prefix it is the name of a schema, of which the server reads 63.
const NAME_MAX: usize = 48;

/// How a connection is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// No TLS: the default for a socket and for loopback.
    Disable,
    /// TLS, with a certificate for this host from a known authority: the default for every other host.
    VerifyFull,
}

impl TlsMode {
    /// Returns the value of `sslmode`.
    pub fn as_str(self) -> &'static str {
        match self {
            TlsMode::Disable => "disable",
            TlsMode::VerifyFull => "verify-full",
        }
    }
}

/// The place at which the server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerHost {
    /// A name or an IP address.
    Network(String),
    /// The directory of a socket.
    Socket(PathBuf),
}

/// The address of a store: `postgres://[USER@]HOST[:PORT]/DB/NAME[?sslmode=..&sslrootcert=..]`, or `?host=DIRECTORY` for a
/// socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// The role; `None` is `PGUSER`, or the user of the system.
    pub user: Option<String>,
    /// The host.
    pub host: ServerHost,
    /// The port.
    pub port: u16,
    /// The database.
    pub database: String,
    /// The name of the store: 1 to 48 of `a-z 0-9 _`.
    pub name: String,
    /// The protection that the address states; `None` is the default for the host.
    pub sslmode: Option<TlsMode>,
    /// A file with the authorities that may vouch for the server; `None` is `PGSSLROOTCERT`, or the list of the system.
    pub root_certificates: Option<PathBuf>,
}

fn refused(why: impl Into<String>) -> StoreError {
    StoreError::Address(why.into())
}

fn decoded(text: &str, what: &str) -> Result<String, StoreError> {
    let text = percent_decode_str(text).decode_utf8();
    let text = text.map_err(|_| refused(format!("{what} is not UTF-8")))?.into_owned();
    match text.contains('\0') {
        true => Err(refused(format!("{what} has a zero byte"))),
        false => Ok(text),
    }
}

impl FromStr for ServerAddress {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<ServerAddress, StoreError> {
        let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
        let rest = rest.ok_or_else(|| refused("it begins with postgres://"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) =
            rest.split_once('/').ok_or_else(|| refused("postgres://HOST/DB/NAME is needed"))?;
        let (user, host) = match authority.rsplit_once('@') {
            // A password is never repeated: errors are printed and kept.
            Some((user, _)) if user.contains(':') => return Err(has_password()),
            Some((user, host)) => (Some(decoded(user, "the user")?).filter(|user| !user.is_empty()), host),
            None => (None, authority),
        };
        let (database, name) =
            path.split_once('/').ok_or_else(|| refused("postgres://HOST/DB/NAME is needed"))?;
        let database = decoded(database, "the database")?;
        if database.is_empty() {
            return Err(refused("it names no database"));
        }
        let name = decoded(name, "the name")?;
        check_name(&name)?;
        let (host, port) = split_port(host)?;
        let host = decoded(host, "the host")?;
        let host = ServerHost::Network(host);
        let mut address =
            ServerAddress { user, host, port, database, name, sslmode: None, root_certificates: None };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            address.set(key, &decoded(value, "a parameter")?)?;
        }
        match &address.host {
            ServerHost::Network(host) if host.is_empty() => Err(refused("it names no host")),
            _ => Ok(address),
        }
    }
}

fn has_password() -> StoreError {
    refused(
        "it has a password: an address is printed and kept, so the password comes from PGPASSWORD or a file",
    )
}

fn check_name(name: &str) -> Result<(), StoreError> {
    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    if (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(());
    }
    Err(refused(format!("the name of a store is 1 to {NAME_MAX} of a-z, 0-9 and _, not {name:?}")))
}

fn split_port(host: &str) -> Result<(&str, u16), StoreError> {
    let (host, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or_else(|| refused("a [ without ]"))?;
            match after.strip_prefix(':') {
                None if !after.is_empty() => return Err(refused("a port follows `:`")),
                port => (host, port),
            }
        }
        None => host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
    };
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port > 0),
        None => Some(PORT),
    };
    Ok((host, port.ok_or_else(|| refused("the port is a number from 1 to 65535"))?))
}

impl ServerAddress {
    fn set(&mut self, key: &str, value: &str) -> Result<(), StoreError> {
        match (key, value) {
            ("password" | "passfile", _) => return Err(has_password()),
            ("sslmode", "disable") => self.sslmode = Some(TlsMode::Disable),
            ("sslmode", "verify-full") => self.sslmode = Some(TlsMode::VerifyFull),
            ("sslmode", _) => {
                let why = "sslmode is verify-full or disable: encryption without a checked certificate \
                           protects from nobody in between";
                return Err(refused(why));
            }
            ("sslrootcert", file) if !file.is_empty() => self.root_certificates = Some(file.into()),
            ("host", directory) if directory.starts_with('/') => {
                self.host = ServerHost::Socket(directory.into());
            }
            ("host", _) => return Err(refused("host is the directory of a socket, from / on")),
            ("sslrootcert", _) => return Err(refused("sslrootcert is a file")),
            (other, _) => {
                let other: String = other.chars().take(40).collect();
                return Err(refused(format!(
                    "there is no parameter {other:?}; there are sslmode, sslrootcert and host"
                )));
            }
        }
        Ok(())
    }

    /// Whether the server is on this machine.
    pub fn is_local(&self) -> bool {
        match &self.host {
            ServerHost::Socket(_) => true,
            ServerHost::Network(host) => {
                host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
            }
        }
    }

    /// Returns the protection of the connection.
    pub fn tls_mode(&self) -> TlsMode {
        let default = if self.is_local() { TlsMode::Disable } else { TlsMode::VerifyFull };
        self.sslmode.unwrap_or(default)
    }

    /// Returns the schema with the tables of the store.
    pub fn schema(&self) -> String {
        format!("dendrer_{}", self.name)
    }

    /// Looks for the password: `PGPASSWORD`, else the line for this address in `PGPASSFILE` or `~/.pgpass`. `get` reads the
    /// environment. A file that others may read is refused.
    pub fn password(
        &self,
        get: &dyn Fn(&str) -> Option<OsString>,
        user: &str,
    ) -> Result<Option<String>, StoreError> {
        if let Some(password) = get("PGPASSWORD").and_then(|password| password.into_string().ok()) {
            return Ok(Some(password));
        }
        let home = || get("HOME").map(|home| Path::new(&home).join(".pgpass"));
        let Some(path) = get("PGPASSFILE").map(PathBuf::from).or_else(home) else { return Ok(None) };
        let Ok(about) = std::fs::metadata(&path) else { return Ok(None) };
        if !about.is_file() || is_open_to_others(&about) {
            let path = path.display();
            let why = format!("{path} may be read by others: chmod 600 {path}");
            return Err(StoreError::Unreachable { server: self.to_string(), why });
        }
        let text = std::fs::read_to_string(&path).map_err(|source| StoreError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        Ok(self.password_in(&text, user))
    }

    /// Returns the password of the first line of a password file that fits.
    fn password_in(&self, text: &str, user: &str) -> Option<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(parts_of_line).find_map(|parts| {
            let [host, port, database, of, password] = <[String; 5]>::try_from(parts).ok()?;
            let fits = |pattern: &str, value: &str| pattern == "*" || pattern == value;
            let is_host = match &self.host {
                ServerHost::Network(name) => fits(&host, name),
                ServerHost::Socket(directory) => {
                    fits(&host, &directory.to_string_lossy()) || host == "localhost"
                }
            };
            let is_it = is_host
                && fits(&port, &self.port.to_string())
                && fits(&database, &self.database)
                && fits(&of, user);
            is_it.then_some(password)
        })
    }
}

/// Cuts a line at its first four colons; `\` keeps the letter after it as it is.
fn parts_of_line(line: &str) -> Vec<String> {
    let (mut parts, mut part, mut letters) = (Vec::new(), String::new(), line.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => part.extend(letters.next()),
            ':' if parts.len() < 4 => parts.push(std::mem::take(&mut part)),
            letter => part.push(letter),
        }
    }
    parts.push(part);
    parts
}

#[cfg(unix)]
fn is_open_to_others(about: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    about.mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &std::fs::Metadata) -> bool {
    false
}

/// All but the unreserved letters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn encoded(text: &str) -> impl fmt::Display {
    utf8_percent_encode(text, RESERVED)
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = &self.user {
            write!(f, "{}@", encoded(user))?;
        }
        match &self.host {
            ServerHost::Network(host) if host.contains(':') => write!(f, "[{host}]")?,
            ServerHost::Network(host) => f.write_str(host)?,
            ServerHost::Socket(_) => {}
        }
        if self.port != PORT {
            write!(f, ":{}", self.port)?;
        }
        write!(f, "/{}/{}", encoded(&self.database), self.name)?;
        let mut before = '?';
        let mut parameter = |f: &mut fmt::Formatter<'_>, key: &str, value: &str| {
            let written = write!(f, "{before}{key}={value}");
            before = '&';
            written
        };
        if let ServerHost::Socket(directory) = &self.host {
            let directory = directory.to_string_lossy();
            let parts: Vec<String> = directory.split('/').map(|part| encoded(part).to_string()).collect();
            parameter(f, "host", &parts.join("/"))?;
        }
        if let Some(mode) = self.sslmode {
            parameter(f, "sslmode", mode.as_str())?;
        }
        match &self.root_certificates {
            Some(file) => parameter(f, "sslrootcert", &encoded(&file.to_string_lossy()).to_string()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ServerAddress {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn an_address_is_read_and_written_alike() {
        for text in [
            "postgres://db.example/agents/shop",
            "postgres://ann@db.example:6432/agents/shop_2?sslmode=disable",
            "postgres://[::1]:6432/agents/shop",
            "postgres://a%40b@db.example/a%2Fb/shop?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem",
            "postgres:///agents/shop?host=/run/postgresql",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
        let long = "x".repeat(48);
        assert_eq!(parse(&format!("postgresql://h/d/{long}")).schema(), format!("dendrer_{long}"));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "mysql://h/d/n",
            "postgres://h",
            "postgres://h/d",
            "postgres:///d/n",
            "postgres://h//n",
            "postgres://h/d/",
            "postgres://h/d/N",
            "postgres://h/d/a-b",
            "postgres://h/d/a/b",
            "postgres://h:0/d/n",
            "postgres://h:x/d/n",
            "postgres://[::1/d/n",
            "postgres://[::1]x/d/n",
            "postgres://h/d/n?sslmode=require",
            "postgres://h/d/n?sslmode=prefer",
            "postgres://h/d/n?host=elsewhere",
            "postgres://h/d/n?options=-c",
            "postgres://h/d%00/n",
            &format!("postgres://h/d/{}", "x".repeat(49)),
        ] {
            let error = text.parse::<ServerAddress>().expect_err(text);
            assert_eq!(error.code(), "E0816", "{text}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_refused_and_not_repeated() {
        for text in [
            "postgres://ann:hunter2@h/d/n",
            "postgres://:hunter2@h/d/n",
            "postgres://ann:hunter2@x@h/d/n",
            "postgres://h/d/n?password=hunter2",
            "postgres://h/d/n?sslmode=disable&password=hunter2",
        ] {
            let error = text.parse::<ServerAddress>().expect_err(text);
            assert_eq!(error.code(), "E0816", "{text}");
            let shown = format!("{error} {error:?}");
            assert!(shown.contains("PGPASSWORD") && !shown.contains("hunter2"), "{shown}");
        }
    }

    #[test]
    fn a_host_elsewhere_is_reached_by_tls_unless_the_address_says_otherwise() {
        for (text, mode) in [
            ("postgres://db.example/d/n", TlsMode::VerifyFull),
            ("postgres://10.0.0.1/d/n", TlsMode::VerifyFull),
            ("postgres://localhost.example/d/n", TlsMode::VerifyFull),
            ("postgres://localhost/d/n", TlsMode::Disable),
            ("postgres://127.0.0.2/d/n", TlsMode::Disable),
            ("postgres://[::1]/d/n", TlsMode::Disable),
            ("postgres:///d/n?host=/run", TlsMode::Disable),
            ("postgres://db.example/d/n?sslmode=disable", TlsMode::Disable),
            ("postgres://localhost/d/n?sslmode=verify-full", TlsMode::VerifyFull),
        ] {
            assert_eq!(parse(text).tls_mode(), mode, "{text}");
        }
    }

    #[test]
    fn a_password_is_that_of_the_first_line_that_fits() {
        let address = parse("postgres://db.example/agents/shop");
        let text = "# db.example:5432:agents:ann:comment\n\
                    other:5432:agents:ann:wrong\n\
                    db.example:6000:*:ann:wrong\n\
                    db.example:*:agents:ann:a\\:b\\\\c:d\n\
                    *:*:*:*:last\n";
        assert_eq!(address.password_in(text, "ann").as_deref(), Some("a:b\\c:d"));
        assert_eq!(address.password_in(text, "bob").as_deref(), Some("last"));
        assert_eq!(address.password_in("too:few\n", "bob"), None);
        let socket = parse("postgres:///agents/shop?host=/run/pg");
        assert_eq!(socket.password_in("/run/pg:5432:*:*:s", "x").as_deref(), Some("s"));
        assert_eq!(socket.password_in("localhost:5432:*:*:s", "x").as_deref(), Some("s"));
    }

    #[cfg(unix)]
    #[test]
    fn a_password_file_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".pgpass");
        std::fs::write(&path, "*:*:*:*:secret\n").unwrap();
        let address = parse("postgres://db.example/agents/shop");
        let home = |key: &str| (key == "HOME").then(|| dir.path().as_os_str().to_owned());
        for (mode, expected) in [(0o600, Ok(Some("secret"))), (0o640, Err("E0819")), (0o604, Err("E0819"))] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let found = address.password(&home, "ann");
            match expected {
                Ok(password) => assert_eq!(found.unwrap().as_deref(), password),
                Err(code) => {
                    let error = found.expect_err("it is refused");
                    assert_eq!(error.code(), code);
                    assert!(!error.to_string().contains("secret"));
                }
            }
        }
        let both = |key: &str| match key {
            "PGPASSWORD" => Some("from the environment".into()),
            _ => home(key),
        };
        assert_eq!(address.password(&both, "ann").unwrap().as_deref(), Some("from the environment"));
        assert_eq!(address.password(&|_| None, "ann").unwrap(), None);
    }
}
