//! `dendrer serve`: the answers over HTTP, and the page that shows them.

use std::io::{IsTerminal as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::{Args, ValueHint};
use dendrer::trust::Trust;
use dendrer_object::Code;
use dendrer_server::{Guard, Served, Server, ServerOptions, Token};
use dendrer_view::serve::ServeAnswer;

use crate::context::{self, keys};
use crate::failure::{Failure, Result};
use crate::global::{AuthorChoice, Global};
use crate::out::Out;

/// The port if none is given.
const PORT: u16 = 7171;
/// How many ports above it are tried.
const PORTS: u16 = 100;
/// The least number of characters of a token in a file.
const TOKEN_MIN: usize = 32;

/// `serve`
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// A bundle to serve, instead of the store
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Listen here. Without it: 127.0.0.1, port 7171 or the next free one
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) addr: Option<SocketAddr>,
    /// A file with the token: 32 characters or more, which no other user may read
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
    /// Another name, with its port, under which the server is reached
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// Let requests commit, fork, label and note
    #[arg(long)]
    pub(crate) allow_write: bool,
    /// Let lines of commit be by these authors as well
    #[arg(long, value_enum, value_delimiter = ',', value_name = "AUTHOR", requires = "allow_write")]
    pub(crate) allow_as: Vec<AuthorChoice>,
    /// Open no browser
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Print what this path answers, and listen nowhere
    #[arg(long, value_name = "PATH")]
    pub(crate) get: Option<String>,
}

pub(crate) fn run(global: &Global, args: &Serve, out: &mut Out) -> Result {
    let trust: Arc<dyn Trust> = keys::trust(global);
    let place = args.file.clone().map_or_else(|| context::find(global), Ok)?;
    context::server::refuse(Path::new(&place))?;
    let served = Served::open(&place, trust)?;
    let has = |author| args.allow_as.contains(&author);
    let options = ServerOptions {
        is_writing: args.allow_write,
        as_user: has(AuthorChoice::User),
        as_runtime: has(AuthorChoice::Runtime),
    };
    let server = Server::new(served, options);
    if let Some(path) = &args.get {
        let got = server.get(path).map_err(|error| {
            Failure::new(Code::E0106, format!("{path} is no path of a request"))
                .at("cause", error.to_string())
        })?;
        out.bytes(&got.body)?;
        return Ok(got.exit);
    }
    let listener = listen(args)?;
    let address = listener.local_addr().map_err(|error| no_address(args, &error))?;
    let token = token(args, address.ip(), out)?;
    // No browser reaches the address of every interface.
    let reached = match address.ip().is_unspecified() {
        true => SocketAddr::from(([127, 0, 0, 1], address.port())),
        false => address,
    };
    let url = format!("http://{reached}/?token={}", token.text());
    let answer = ServeAnswer { url: url.clone(), write: args.allow_write };
    out.answer(&answer)?;
    out.flush()?;
    // Kept until the server ends: the browser may read it late.
    let _page = if args.no_open { None } else { open_browser(&url) };
    let guard = Guard::new(token, address, &args.allow_host, args.allow_write);
    let ended = server.run(listener, guard, dendrer_server::interrupted());
    ended.map_err(|error| {
        Failure::new(Code::E0801, "the server cannot go on").at("cause", error.to_string())
    })?;
    Ok(0)
}

/// Takes the address that is given, or the first free port.
fn listen(args: &Serve) -> Result<TcpListener> {
    if let Some(address) = args.addr {
        return TcpListener::bind(address).map_err(|error| no_address(args, &error));
    }
    let mut ports = PORT..PORT + PORTS;
    loop {
        let Some(port) = ports.next() else {
            return TcpListener::bind(("127.0.0.1", 0)).map_err(|error| no_address(args, &error));
        };
        match TcpListener::bind(("127.0.0.1", port)) {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
            bound => return bound.map_err(|error| no_address(args, &error)),
        }
    }
}

fn no_address(args: &Serve, error: &std::io::Error) -> Failure {
    let address = args.addr.map_or_else(|| format!("127.0.0.1:{PORT}"), |address| address.to_string());
    Failure::new(Code::E0801, format!("the address {address} cannot be listened on"))
        .at("cause", error.to_string())
}

/// Makes a token, or reads the one that is given. Beyond this machine a token of a file is needed.
fn token(args: &Serve, ip: IpAddr, out: &mut Out) -> Result<Token> {
    let Some(path) = &args.token_file else {
        if !ip.is_loopback() {
            let what = format!("{ip} is reached from other machines: --token-file FILE is needed there");
            return Err(Failure::new(Code::E0106, what)
                .note("the file has 32 characters or more, and no other user reads it"));
        }
        return Token::random().map_err(|error| {
            Failure::new(Code::E0801, "no token can be made").at("cause", error.to_string())
        });
    };
    let token = read_token(path)?;
    if !ip.is_loopback() {
        out.say(format!("warning: {ip} is reached from other machines, and nothing is encrypted: use a tunnel or a proxy with TLS, and name it with --allow-host NAME:PORT"));
    }
    Ok(Token::of(token))
}

fn read_token(path: &Path) -> Result<String> {
    let fault = |what: &str| Failure::new(Code::E0106, what).at("file", path.display().to_string());
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(Code::E0108, "the token cannot be read")
            .at("file", path.display().to_string())
            .at("cause", error.to_string())
    })?;
    let token = text.trim();
    if token.chars().count() < TOKEN_MIN || !token.chars().all(|c| c.is_ascii_graphic()) {
        return Err(fault("a token has 32 characters or more, of letters, digits and signs"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path).map(|metadata| metadata.permissions().mode()).unwrap_or(0);
        if mode & 0o077 != 0 {
            return Err(fault("other users may read the file of the token: chmod 600"));
        }
    }
    Ok(token.to_owned())
}

/// Opens a browser on a file that leads to the address: the token is in no list of arguments. Returns the file.
fn open_browser(url: &str) -> Option<tempfile::NamedTempFile> {
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !has_screen || !std::io::stdout().is_terminal() {
        return None;
    }
    // The file is made with rights for its owner alone.
    let mut file = tempfile::Builder::new().prefix("dendrer-").suffix(".html").tempfile().ok()?;
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={url}\"><title>dendrer</title>"
    );
    file.write_all(page.as_bytes()).ok()?;
    file.flush().ok()?;
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = Command::new(program)
        .arg(file.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    // Without a browser the address is on stdout.
    started.ok().map(|_| file)
}
