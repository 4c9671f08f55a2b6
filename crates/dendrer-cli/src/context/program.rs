//! Runs a program that the user gave with its terminal, files and signals as they are.

use std::io;
use std::process::{Command, ExitStatus, Stdio};

use dendrer::redact::Redactor;
use dendrer_capture::VolatilePlace;
use dendrer_capture::player::ProgramDivergence;
use dendrer_capture::tape::TapeError;
use dendrer_object::{Code, Value};
use dendrer_view::replay::ProgramDeparture;

use crate::failure::{Failure, Result};

/// A program and its arguments, as a command.
pub(crate) fn command(words: &[String]) -> Command {
    let mut command = Command::new(words.first().map_or("", String::as_str));
    command.args(words.iter().skip(1));
    command
}

/// The end of a program, or the reason why it did not start.
pub(crate) enum Started {
    Ended(io::Result<ExitStatus>),
    Not(io::Error),
}

/// Runs a program until it ends. `begun` gets its process.
pub(crate) fn run(mut command: Command, begun: impl FnOnce(u32)) -> Started {
    match command.spawn() {
        Ok(mut child) => {
            begun(child.id());
            Started::Ended(child.wait())
        }
        Err(error) => Started::Not(error),
    }
}

/// Runs a command in the place of this process, so that a signal to this process is one to the command. Returns if it cannot.
#[cfg(unix)]
pub(crate) fn instead(mut command: Command) -> Started {
    Started::Not(std::os::unix::process::CommandExt::exec(&mut command))
}

/// Runs a command.
#[cfg(not(unix))]
pub(crate) fn instead(command: Command) -> Started {
    run(command, |_| {})
}

/// The exit code of a program as a shell gives it.
pub(crate) struct Exit {
    /// Its code; 128 and the signal, 127 if it was not found, 126 if it cannot be executed.
    pub(crate) code: u8,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// The reason why it did not start.
    pub(crate) why: Option<io::Error>,
}

impl Started {
    pub(crate) fn exit(self) -> Exit {
        let (code, signal, why) = match self {
            Started::Ended(Ok(status)) => match (status.code(), signal(status)) {
                (Some(code), _) => (code as u8, None, None),
                (None, signal) => (128_u8.wrapping_add(signal.unwrap_or(0) as u8), signal, None),
            },
            Started::Not(error) if error.kind() == io::ErrorKind::NotFound => (127, None, Some(error)),
            Started::Ended(Err(error)) | Started::Not(error) => (126, None, Some(error)),
        };
        Exit { code, signal, why }
    }
}

/// The signal that ended a program.
#[cfg(unix)]
pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

/// The signal that ended a program.
#[cfg(not(unix))]
pub(crate) fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// Reads the volatile places of a flag.
pub(crate) fn volatile(texts: &[String]) -> Result<Vec<VolatilePlace>> {
    let read = |text: &String| VolatilePlace::parse(text);
    let places: std::result::Result<Vec<VolatilePlace>, _> = texts.iter().map(read).collect();
    places.map_err(|error| Failure::new(Code::E0106, error.to_string()).note("the program was not started"))
}

/// Standard error, for what a program writes to standard output.
#[cfg(unix)]
pub(crate) fn stderr() -> Stdio {
    use std::os::fd::AsFd as _;
    let own = io::stderr().as_fd().try_clone_to_owned();
    own.map_or_else(|_| Stdio::null(), Stdio::from)
}

/// Standard error, for what a program writes to standard output.
#[cfg(not(unix))]
pub(crate) fn stderr() -> Stdio {
    Stdio::null()
}

/// Set for a program of ours that runs in a network of its own.
const INSIDE: &str = "DENDRER_IN_NAMESPACE";

/// The network of this process.
pub(crate) enum Network {
    /// It has its own.
    Own,
    /// It is to be run again by this command, which gives it its own.
    Behind(Command),
    /// It has that of the machine, for this reason.
    Shared(String),
}

/// Finds out whether this process has a network of its own, or can get one (`unshare` of util-linux, `ip` of iproute2).
pub(crate) fn network() -> Network {
    if std::env::var_os(INSIDE).is_some() {
        return Network::Own;
    }
    if !cfg!(target_os = "linux") {
        return Network::Shared("this system has no network namespaces".to_owned());
    }
    let ways: [&[&str]; 2] = [&["--net"], &["--net", "--map-root-user"]];
    let up = ["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"];
    let works = |way: &&[&str]| {
        let mut probe = Command::new("unshare");
        probe.args(*way).arg("--").args(up).arg("true");
        let quiet = probe.stdin(Stdio::null()).stdout(Stdio::null());
        quiet.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let (Some(way), Ok(this)) = (ways.into_iter().find(works), this()) else {
        return Network::Shared(
            "unshare or ip is not there, or this user may not make a namespace".to_owned(),
        );
    };
    let mut command = Command::new("unshare");
    let own = std::env::args_os().skip(this.len());
    command.args(way).arg("--").args(up).args(this).args(own).env(INSIDE, "1");
    Network::Behind(command)
}

/// The words that run this program again, before its arguments.
pub(crate) fn this() -> io::Result<Vec<String>> {
    let program = std::env::current_exe()?.to_string_lossy().into_owned();
    let args: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_python = program.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
    // The Python of an environment is a link: what it leads to does not know the packages of the environment.
    let program = args.first().filter(|_| is_python).cloned().unwrap_or(program);
    // The module of Python is run by `python -m dendrer`, or by a script.
    let script = match args.get(1).map(String::as_str) {
        _ if !is_python => 1,
        Some("-m") => 3,
        _ => 2,
    };
    Ok([program].into_iter().chain(args.into_iter().take(script).skip(1)).collect())
}

/// The failure of a recording.
pub(crate) fn of_tape(error: TapeError) -> Failure {
    match error {
        TapeError::Record(error) => error.into(),
        TapeError::Message(error) => Failure::new(error.code(), error.to_string()),
    }
}

/// A place at which the program departs, without the secrets in its values.
pub(crate) fn departure(found: ProgramDivergence, redactor: &Redactor) -> ProgramDeparture {
    let clean = |value: Option<Value>| value.map(|value| redactor.value(&value).0);
    ProgramDeparture {
        call: found.call,
        api: found.api,
        agent: found.agent,
        kind: found.kind.as_str(),
        path: found.path,
        expected: clean(found.expected),
        got: clean(found.got),
    }
}
