//! What answers an effect of a graph: a command, or a service by HTTP. Both are sent one JSON line and answer with JSON or text.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use dendrer::graph::eval::EdgeRequest;
use dendrer_object::{Code, Value, json};
use dendrer_view::quote;

use super::shell::shell;
use crate::failure::{Failure, Result};

/// A record holds the value twice: as the result, and in the state.
const ANSWER_SIZE_MAX: usize = json::DOCUMENT_SIZE_MAX / 4;

/// How long a service may take to accept a connection. How long it takes to answer is its own affair, as that of a command is.
const CONNECT_TIME: Duration = Duration::from_secs(30);

/// Answers an effect.
#[derive(Debug)]
pub(crate) enum Executor<'a> {
    /// A command for the shell.
    Command(&'a str),
    /// A service.
    Service(&'a str, ureq::Agent),
}

impl<'a> Executor<'a> {
    /// A service at an address.
    pub(crate) fn service(url: &'a str) -> Result<Executor<'a>> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let what = format!("--http takes CALL=URL, and {url:?} does not begin with http:// or https://");
            return Err(Failure::new(Code::E0106, what));
        }
        // A redirect could send what is asked to another host.
        let agent = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIME))
            .max_redirects(0)
            .http_status_as_error(false)
            .build();
        Ok(Executor::Service(url, agent.into()))
    }

    /// Asks for the value of an edge. The error is a sentence.
    pub(crate) fn ask(&self, asked: &EdgeRequest) -> std::result::Result<Value, String> {
        let line = format!("{}\n", quote::json(&asked.to_value()));
        let bytes = match self {
            Executor::Command(command) => of_command(command, &line)?,
            Executor::Service(url, agent) => of_service(agent, url, &line)?,
        };
        if bytes.len() > ANSWER_SIZE_MAX {
            let size = bytes.len();
            return Err(format!("the answer has {size} bytes, and at most {ANSWER_SIZE_MAX} are recorded"));
        }
        match json::parse_door(&bytes) {
            Ok(value) => Ok(value),
            Err(_) => {
                let text = String::from_utf8(bytes)
                    .map_err(|_| "the answer is neither JSON nor UTF-8".to_owned())?;
                Ok(Value::from(text.strip_suffix('\n').unwrap_or(&text)))
            }
        }
    }
}

fn of_command(command: &str, line: &str) -> std::result::Result<Vec<u8>, String> {
    let mut child = shell(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the command cannot be run: {error}"))?;
    let stdin = child.stdin.take();
    // Written by a thread of its own: the command may answer before it has read all.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // Ignored: a command need not read what it is asked.
            let _ = stdin.map(|mut stdin| stdin.write_all(line.as_bytes()));
        });
        child.wait_with_output()
    });
    let output = output.map_err(|error| format!("the answer of the command cannot be read: {error}"))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!("the command failed: {}", output.status)),
    }
}

fn of_service(agent: &ureq::Agent, url: &str, line: &str) -> std::result::Result<Vec<u8>, String> {
    let sent = agent.post(url).header("content-type", "application/json").send(line);
    let mut answer = sent.map_err(|error| format!("the service cannot be asked: {error}"))?;
    let status = answer.status();
    if !status.is_success() {
        return Err(format!("the service answered with status {}", status.as_u16()));
    }
    let read = answer.body_mut().with_config().limit(ANSWER_SIZE_MAX as u64 + 1).read_to_vec();
    read.map_err(|error| format!("the answer of the service cannot be read: {error}"))
}
