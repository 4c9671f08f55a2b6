//! Executors of the effects of a graph: a command, or a service by HTTP. Both are sent one JSON line and answer with JSON or text.
//!
//! Rule: an output is text as it was printed, unless it can only be meant as JSON; test `printed_numbers_stay_text`.

use std::io::{Read, Write as _};
use std::process::{Child, ChildStderr, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dendrer::change::graph::{Callers, EdgeEnd, EdgeFailure};
use dendrer::graph::eval::EdgeRequest;
use dendrer::kernel::pack::Tool;
use dendrer_object::{Code, Value, json, tag};
use dendrer_view::quote;

use super::shell::shell;
use crate::failure::{Failure, Result};
pub(crate) use ending::pass_on_signals;

/// A record holds the value twice: as the result, and in the state.
const ANSWER_SIZE_MAX: usize = json::DOCUMENT_SIZE_MAX / 4;

/// How long a service may take to accept a connection. How long it takes to answer is the tool's `timeout`.
const CONNECT_TIME: Duration = Duration::from_secs(30);

/// How much of stderr is kept while a command runs.
const STDERR_SIZE_MAX: usize = 64 << 10;

/// How long the end of stderr is waited for once a command has ended. A process that it left behind may keep it open.
const STDERR_TIME: Duration = Duration::from_millis(200);

/// How often it is looked whether a command with a timeout has ended that has closed its output.
const LOOK_TIME: Duration = Duration::from_millis(5);

mod ending;

type Answer<T> = std::result::Result<T, EdgeFailure>;

/// Answers an effect.
#[derive(Debug)]
pub(crate) struct Executor<'a> {
    kind: ExecutorKind<'a>,
    timeout: Option<Duration>,
    /// Whether the tool declares its output as JSON.
    is_json: bool,
}

#[derive(Debug)]
enum ExecutorKind<'a> {
    /// A command for the shell.
    Command(&'a str),
    /// A service.
    Service(&'a str, ureq::Agent),
    /// The process that calls the program as a library.
    Caller(&'a Callers),
}

impl<'a> Executor<'a> {
    /// A command for the shell, as its tool is declared.
    pub(crate) fn command(command: &'a str, tool: Option<&Tool>) -> Executor<'a> {
        Executor::of(ExecutorKind::Command(command), tool)
    }

    /// The process that calls the program as a library.
    pub(crate) fn caller(callers: &'a Callers, tool: Option<&Tool>) -> Executor<'a> {
        Executor::of(ExecutorKind::Caller(callers), tool)
    }

    /// A service at an address, as its tool is declared.
    pub(crate) fn service(url: &'a str, tool: Option<&Tool>) -> Result<Executor<'a>> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let what = format!("--http takes CALL=URL, and {url:?} does not begin with http:// or https://");
            return Err(Failure::new(Code::E0106, what));
        }
        // A redirect could send what is asked to another host.
        let agent = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIME))
            .timeout_global(timeout_of(tool))
            .max_redirects(0)
            .http_status_as_error(false)
            .build();
        Ok(Executor::of(ExecutorKind::Service(url, agent.into()), tool))
    }

    fn of(kind: ExecutorKind<'a>, tool: Option<&Tool>) -> Executor<'a> {
        Executor { kind, timeout: timeout_of(tool), is_json: tool.is_some_and(|tool| tool.is_json) }
    }

    /// Asks for the value of an edge.
    pub(crate) fn ask(&self, asked: &EdgeRequest) -> Answer<Value> {
        if ending::is_asked() {
            return Err(EdgeFailure::new(EdgeEnd::NoStart, "the program was asked to end"));
        }
        let line = format!("{}\n", quote::json(&asked.to_value()));
        match &self.kind {
            ExecutorKind::Command(command) => {
                value_of(of_command(command, line, self.timeout)?, self.is_json)
            }
            ExecutorKind::Caller(callers) => match (callers.answer)(asked, self.timeout)? {
                value if is_beside_json(&value) => Err(EdgeFailure::new(
                    EdgeEnd::Unread,
                    "the answer has NaN or Infinity, which are no JSON",
                )),
                value => Ok(value),
            },
            ExecutorKind::Service(url, agent) => {
                let (bytes, is_json) = of_service(agent, url, &line)?;
                value_of(bytes, self.is_json || is_json)
            }
        }
    }
}

fn timeout_of(tool: Option<&Tool>) -> Option<Duration> {
    tool?.timeout.map(Duration::from_millis)
}

/// An answer that came and cannot be read: the effect has happened.
fn unread(printed: &[u8], why: impl Into<String>) -> EdgeFailure {
    let printed = String::from_utf8_lossy(&printed[..printed.len().min(STDERR_SIZE_MAX)]);
    EdgeFailure { output: Some(printed.into_owned()), ..EdgeFailure::new(EdgeEnd::Unread, why) }
}

/// Reads an output: as JSON where it is declared so, or is no number and JSON as a whole; else as the text that was printed.
pub(crate) fn value_of(bytes: Vec<u8>, is_json: bool) -> Answer<Value> {
    match json::parse_door(&bytes) {
        Ok(value) if is_beside_json(&value) && !is_json => {}
        Ok(value) if is_beside_json(&value) => {
            return Err(unread(&bytes, "the answer is not JSON: it has NaN or Infinity"));
        }
        Ok(value) if is_json || !matches!(value, Value::Number(_)) => return Ok(value),
        Err(error) if is_json => return Err(unread(&bytes, format!("the answer is not JSON: {error}"))),
        _ => {}
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| unread(error.as_bytes(), "the answer is neither JSON nor UTF-8"))?;
    Ok(Value::from(text.strip_suffix('\n').unwrap_or(&text)))
}

/// Whether a value has a number that JSON does not have, as the door reads `NaN` and `Infinity`.
fn is_beside_json(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(is_beside_json),
        Value::Object(members) => {
            tag::as_float(value).is_some() || members.iter().any(|(_, value)| is_beside_json(value))
        }
        _ => false,
    }
}

fn too_large(bytes: &[u8]) -> EdgeFailure {
    let why = format!("the answer has more than {ANSWER_SIZE_MAX} bytes, and no more are recorded");
    unread(bytes, why)
}

/// The last that a command writes to stderr, which is shown as it comes.
struct Stderr {
    end: Arc<Mutex<Vec<u8>>>,
    closed: Receiver<()>,
}

impl Stderr {
    fn read(mut pipe: ChildStderr) -> std::io::Result<Stderr> {
        let end = Arc::new(Mutex::new(Vec::new()));
        let (kept, (close, closed)) = (Arc::clone(&end), channel());
        std::thread::Builder::new().spawn(move || {
            let mut chunk = [0; 8 << 10];
            while let Ok(size @ 1..) = pipe.read(&mut chunk) {
                // Ignored: there is no other place to report a closed stderr.
                let _ = std::io::stderr().write_all(&chunk[..size]);
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&chunk[..size]);
                let surplus = kept.len().saturating_sub(STDERR_SIZE_MAX);
                kept.drain(..surplus);
            }
            drop(close);
        })?;
        Ok(Stderr { end, closed })
    }

    /// Returns the end of what was written; `None` if nothing was.
    fn end(&self) -> Option<String> {
        // Ignored: what has come by then is what there is.
        let _ = self.closed.recv_timeout(STDERR_TIME);
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        (!end.is_empty()).then(|| String::from_utf8_lossy(&end).into_owned())
    }
}

/// A command on its way.
struct Running {
    child: Child,
    output: Receiver<std::io::Result<Vec<u8>>>,
    stderr: Stderr,
    deadline: Option<Instant>,
}

impl Running {
    fn begin(command: &str, line: String, timeout: Option<Duration>) -> std::io::Result<Running> {
        let mut shell = shell(command);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Its children are ended with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        let mut child = shell.spawn()?;
        ending::begun(child.id());
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let missing = || std::io::Error::other("a pipe of the command is missing");
        let (stdout, stderr) = (stdout.ok_or_else(missing)?, stderr.ok_or_else(missing)?);
        // Written by a thread of its own: the command may answer before it has read all.
        std::thread::Builder::new().spawn(move || {
            // Ignored: a command need not read what it is asked.
            let _ = stdin.map(|mut stdin| stdin.write_all(line.as_bytes()));
        })?;
        let (sender, output) = channel();
        std::thread::Builder::new().spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.take(ANSWER_SIZE_MAX as u64 + 1).read_to_end(&mut bytes);
            // Ignored: after the timeout, the output is not read.
            let _ = sender.send(read.map(|_| bytes));
        })?;
        Ok(Running { child, output, stderr: Stderr::read(stderr)?, deadline })
    }

    /// Waits for the end of output and command; `None` if the time is over.
    fn wait(&mut self) -> Option<std::io::Result<(Vec<u8>, ExitStatus)>> {
        let read = match self.deadline {
            None => self.output.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())),
        };
        let bytes = match read {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => return Some(Err(error)),
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => {
                return Some(Err(std::io::Error::other("its output is not read")));
            }
        };
        let Some(deadline) = self.deadline else {
            return Some(self.child.wait().map(|status| (bytes, status)));
        };
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(Ok((bytes, status))),
                Ok(None) if Instant::now() >= deadline => return None,
                Ok(None) => std::thread::sleep(LOOK_TIME),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Ends the command and what it has begun.
    fn kill(&mut self) {
        #[cfg(unix)]
        ending::kill(self.child.id(), rustix::process::Signal::KILL);
        // Ignored: it may have ended meanwhile.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn of_command(command: &str, line: String, timeout: Option<Duration>) -> Answer<Vec<u8>> {
    let mut running = Running::begin(command, line, timeout)
        .map_err(|error| EdgeFailure::new(EdgeEnd::NoStart, format!("the command cannot be run: {error}")))?;
    let ended = running.wait();
    ending::ended(running.child.id());
    if !matches!(ended, Some(Ok(_))) {
        running.kill();
    }
    let failure = match ended {
        Some(Ok((bytes, status))) if status.success() && bytes.len() <= ANSWER_SIZE_MAX => return Ok(bytes),
        Some(Ok((bytes, status))) => failure_of(&bytes, status),
        Some(Err(error)) => {
            EdgeFailure::new(EdgeEnd::Killed, format!("the answer of the command cannot be read: {error}"))
        }
        None => {
            let time = timeout.unwrap_or_default().as_millis();
            EdgeFailure::new(
                EdgeEnd::Timeout,
                format!("the command took longer than {time} ms, and was ended"),
            )
        }
    };
    Err(EdgeFailure { stderr: running.stderr.end(), ..failure })
}

/// The failure of a command that has ended. Shells report the signal that ended a command as an exit code above 128.
fn failure_of(bytes: &[u8], status: ExitStatus) -> EdgeFailure {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    let exit = status.code();
    let ended = match exit {
        Some(0..=128) => EdgeEnd::Answered,
        _ => EdgeEnd::Killed,
    };
    // Its output was closed at the limit, so its exit code means nothing.
    let failure = match bytes.len() > ANSWER_SIZE_MAX {
        true => too_large(bytes),
        false => EdgeFailure::new(ended, format!("the command failed: {status}")),
    };
    EdgeFailure { exit, signal, ..failure }
}

/// Asks a service. Returns its answer, and whether its content type is JSON.
fn of_service(agent: &ureq::Agent, url: &str, line: &str) -> Answer<(Vec<u8>, bool)> {
    let sent = agent.post(url).header("content-type", "application/json").send(line);
    let mut answer = sent.map_err(|error| cut(&error, format!("the service cannot be asked: {error}")))?;
    let status = answer.status().as_u16();
    let failed = format!("the service answered with status {status}");
    match status {
        200..=399 => {}
        // Words of a gateway, and not of the service.
        408 | 502 | 504 => return Err(EdgeFailure::new(EdgeEnd::Cut, failed)),
        _ => return Err(EdgeFailure::new(EdgeEnd::Answered, failed)),
    }
    let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = kind == "application/json" || kind.ends_with("+json");
    let mut bytes = Vec::new();
    let read = answer.body_mut().as_reader().take(ANSWER_SIZE_MAX as u64 + 1).read_to_end(&mut bytes);
    match read {
        _ if status >= 300 => Err(unread(&bytes, failed)),
        Ok(_) if bytes.len() <= ANSWER_SIZE_MAX => Ok((bytes, is_json)),
        Ok(_) => Err(too_large(&bytes)),
        Err(error) => {
            let error = ureq::Error::from(error);
            let cut = cut(&error, format!("the answer of the service cannot be read: {error}"));
            Err(EdgeFailure { output: unread(&bytes, "").output, ..cut })
        }
    }
}

/// The failure of a connection.
fn cut(error: &ureq::Error, why: String) -> EdgeFailure {
    use ureq::{Error, Timeout};
    let ended = match error {
        // Nothing was sent.
        Error::HostNotFound | Error::ConnectionFailed | Error::BadUri(_) => EdgeEnd::NoStart,
        Error::Timeout(Timeout::Resolve | Timeout::Connect) => EdgeEnd::NoStart,
        Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => EdgeEnd::NoStart,
        Error::Timeout(_) => EdgeEnd::Timeout,
        _ => EdgeEnd::Cut,
    };
    EdgeFailure::new(ended, why)
}
