//! The side of a client: `mcp-shim` runs a server of MCP, passes all on as it comes, and copies it to the recorder.
//!
//! Rule: neither side waits for the recorder. Bytes that the recorder does not take in time are left out of the copy.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dendrer_object::{Value, digest, json};

use crate::frame::{Frame, McpEnd, McpSide, SENT_MAX, now};
use crate::mcp::is_json_rpc;
use crate::shim_dir::{self, FoundRecorder, Purpose, RECORD};
use crate::signals::HeldSignals;

/// How many bytes are read at once.
const PIECE: usize = 64 << 10;

/// How many bytes may wait for the recorder.
const WAITING_MAX: u64 = 64 << 20;

/// The longest first line that is looked at.
const FIRST_MAX: usize = 64 << 20;

/// How long the copy may take once the server has ended.
const LAST: Duration = Duration::from_millis(500);

/// How long a command that is on no record may wait for its first line in a replay, until it is taken for another program.
const FIRST: Duration = Duration::from_secs(5);

/// The variable with the shims that a process is a child of.
const INSIDE: &str = "DENDRER_SHIMS";

/// A command that a shim runs.
#[derive(Debug)]
pub struct Shim {
    /// The name of the server.
    pub name: Option<String>,
    /// The command.
    pub command: Vec<String>,
}

/// The end of a command that a shim ran.
#[derive(Debug)]
pub enum ShimEnd {
    /// It ended with this exit code.
    Exit(u8),
    /// This signal ended it.
    Signal(i32),
    /// It did not start; the exit code is that of a shell.
    Not(io::Error, u8),
}

impl Shim {
    /// Runs the command, and returns when it has ended. `say` takes the one line with the reason why nothing is recorded.
    pub fn run(&self, say: &mut dyn FnMut(&str)) -> ShimEnd {
        let found = recorder();
        if io::stdin().is_terminal() {
            return match self.command() {
                Ok(mut command) => of_start(command.exec()),
                Err(error) => of_start(error),
            };
        }
        match found {
            Ok(found) if found.purpose == Purpose::Play => self.play(found, say),
            Ok(found) => self.pass(Some(found), say),
            Err(why) => {
                say(&why);
                self.pass(None, say)
            }
        }
    }

    /// The command, found in `PATH` without the shims.
    fn command(&self) -> io::Result<Command> {
        let word = self.command.first().map_or("", String::as_str);
        let mut command = Command::new(resolve(word, std::env::var_os("PATH").as_deref())?);
        command.arg0(word).args(self.command.iter().skip(1));
        Ok(command)
    }

    /// Runs the command, and copies what passes to the recorder.
    fn pass(&self, found: Option<FoundRecorder>, say: &mut dyn FnMut(&str)) -> ShimEnd {
        self.with_input(found, Box::new(io::stdin()), say)
    }

    fn with_input(
        &self,
        found: Option<FoundRecorder>,
        input: Box<dyn Read + Send>,
        say: &mut dyn FnMut(&str),
    ) -> ShimEnd {
        let (id, inside) = ids();
        let started = self.command().and_then(|mut command| {
            command.env(INSIDE, inside.iter().chain([&id]).cloned().collect::<Vec<_>>().join(":"));
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            start(command)
        });
        let (mut child, runtime) = match started {
            Ok(started) => started,
            Err(error) => return of_start(error),
        };
        let (sender, receiver) = channel();
        let copies = Arc::new(Copies::new(sender, found.is_some()));
        let sending = found.map(|found| {
            let hello = self.hello(&found, &id, &inside);
            let copies = Arc::clone(&copies);
            thread::spawn(move || send(&found, hello, receiver, &copies))
        });
        let up = child.stdin.take().zip(Some(Arc::clone(&copies)));
        thread::spawn(move || {
            up.map(|(to, copies)| pump(input, to, McpSide::Client, &copies, &Progress::default()))
        });
        let progress = Arc::new(Progress::default());
        let down = child.stdout.take().map(|from| {
            let (copies, progress) = (Arc::clone(&copies), Arc::clone(&progress));
            thread::spawn(move || pump(from, io::stdout(), McpSide::Server, &copies, &progress))
        });
        let ended = child.wait();
        if let Some(down) = down {
            progress.wait(&down);
        }
        if let (Some(sending), Ok(status)) = (sending, &ended) {
            copies.end(Frame::Ended(end_of(*status)));
            let why = finish(sending);
            if let Some(why) = why {
                say(&why);
            }
        }
        drop(runtime);
        match ended {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => ShimEnd::Exit(code as u8),
                (None, signal) => ShimEnd::Signal(signal.unwrap_or_default()),
            },
            Err(error) => ShimEnd::Not(error, 126),
        }
    }

    fn hello(&self, found: &FoundRecorder, id: &str, inside: &[String]) -> Frame {
        let list = |words: &[String]| Value::array(words.iter().map(|word| Value::from(word.as_str())));
        let mut words = vec![
            ("command", list(&self.command)),
            ("id", Value::from(id)),
            ("inside", list(inside)),
            ("token", Value::from(found.token.as_str())),
        ];
        words.extend(self.name.as_deref().map(|name| ("name", Value::from(name))));
        Frame::Hello(json::to_vec(&Value::record(words)))
    }

    /// Answers the client from the record, and starts nothing of it.
    fn play(&self, found: FoundRecorder, say: &mut dyn FnMut(&str)) -> ShimEnd {
        let (id, inside) = ids();
        let greeted = UnixStream::connect(&found.socket).and_then(|mut stream| {
            self.hello(&found, &id, &inside).write(&mut stream)?;
            let is_known = match Frame::read(&mut stream)? {
                Some(Frame::Known) => true,
                Some(Frame::Unknown) => false,
                _ => return Err(io::ErrorKind::InvalidData.into()),
            };
            Ok((stream, is_known))
        });
        let (stream, is_known) = match greeted {
            Ok(greeted) => greeted,
            // Nothing is started: it would act again.
            Err(error) => return ShimEnd::Not(error, 126),
        };
        let (sender, receiver) = sync_channel(4);
        thread::spawn(move || {
            let mut piece = vec![0; PIECE];
            while let Ok(count @ 1..) = io::stdin().read(&mut piece) {
                if sender.send(piece[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut input = Pieces { receiver, first: VecDeque::new() };
        if !is_known && !input.begins_with_json_rpc() {
            return self.with_input(None, Box::new(input), say);
        }
        match serve(stream, input) {
            Ok(McpEnd { signal: Some(signal), .. }) => ShimEnd::Signal(i32::from(signal)),
            Ok(end) => ShimEnd::Exit(end.exit.unwrap_or_default()),
            Err(error) => ShimEnd::Not(error, 1),
        }
    }
}

impl ShimEnd {
    /// Ends this process as the command ended. Returns the exit code that is left to end with.
    pub fn end(&self) -> u8 {
        match self {
            ShimEnd::Exit(code) | ShimEnd::Not(_, code) => *code,
            ShimEnd::Signal(signal) => {
                // A program that is started anew has no handlers of signals, so the signal ends it.
                let line = "ulimit -c 0; kill -s \"$1\" \"$$\"";
                let _ = Command::new("/bin/sh").args(["-c", line, "sh", &signal.to_string()]).exec();
                128_u8.wrapping_add(*signal as u8)
            }
        }
    }
}

fn of_start(error: io::Error) -> ShimEnd {
    let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    ShimEnd::Not(error, code)
}

fn end_of(status: ExitStatus) -> McpEnd {
    McpEnd {
        exit: status.code().map(|code| code as u8),
        signal: status.signal().and_then(|signal| u8::try_from(signal).ok()),
    }
}

/// Finds the recorder: by its variable, else by the first entry of `PATH` that is of a recording: programs and version managers put
/// their own in front of it. The error is a line with the reason.
fn recorder() -> Result<FoundRecorder, String> {
    let named = std::env::var_os(RECORD).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path).find(|dir| shim_dir::looks_like_one(dir));
    let mut why = "no recorder".to_owned();
    for dir in named.into_iter().chain(first) {
        match shim_dir::find(&dir) {
            Ok(found) => return Ok(found),
            Err(reason) => why = format!("no recorder in {}: {reason}", dir.display()),
        }
    }
    Err(format!("{why}; all is passed on, and nothing is recorded"))
}

/// The id of this shim, and those that this process is a child of.
fn ids() -> (String, Vec<String>) {
    let inside = std::env::var(INSIDE).unwrap_or_default();
    let mut bytes = [0; 8];
    let random = ring::rand::SystemRandom::new();
    if ring::rand::SecureRandom::fill(&random, &mut bytes).is_err() {
        bytes = u64::from(std::process::id()).to_be_bytes();
    }
    (digest::hex(&bytes), inside.split(':').filter(|id| !id.is_empty()).map(str::to_owned).collect())
}

/// Finds a command: a name in `PATH`, where no shim is taken, else the path itself.
fn resolve(word: &str, path: Option<&std::ffi::OsStr>) -> io::Result<PathBuf> {
    let name = match Path::new(word) {
        given if word.contains('/') && !shim_dir::is_shim(given) => return Ok(given.to_owned()),
        given => given.file_name().map(OsString::from).unwrap_or_default(),
    };
    let mut why = io::Error::from(io::ErrorKind::NotFound);
    for dir in path.iter().flat_map(std::env::split_paths) {
        let dir = if dir.as_os_str().is_empty() { PathBuf::from(".") } else { dir };
        let found = dir.join(&name);
        if name.is_empty() || !found.is_file() || shim_dir::is_shim(&found) {
            continue;
        }
        match rustix::fs::access(&found, rustix::fs::Access::EXEC_OK) {
            Ok(()) => return Ok(found),
            Err(error) => why = error.into(),
        }
    }
    Err(why)
}

/// Starts a command that gets the signals which are sent to this process.
fn start(mut command: Command) -> io::Result<(Child, tokio::runtime::Runtime)> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_io().enable_time().build()?;
    let signals = {
        let _inside = runtime.enter();
        HeldSignals::new()?
    };
    let child = command.spawn()?;
    // A terminal sends its own to all processes in front of it.
    let of_terminal = io::stderr().is_terminal() || io::stdout().is_terminal();
    signals.forward(&runtime, child.id(), of_terminal);
    Ok((child, runtime))
}

/// Copies on their way to the recorder.
#[derive(Debug)]
struct Copies {
    state: Mutex<CopyState>,
    /// Bytes that wait.
    waiting: AtomicU64,
    /// Whether nothing is copied any more.
    is_off: AtomicBool,
}

#[derive(Debug)]
struct CopyState {
    sender: Option<Sender<Message>>,
    /// The first line of the client, until it is whole.
    first: Option<Vec<u8>>,
    /// Bytes that were left out, of the client and of the server.
    left_out: [u64; 2],
}

enum Message {
    Frame(Frame),
    /// The first line of the client came, and is JSON-RPC.
    IsMcp,
}

impl Copies {
    fn new(sender: Sender<Message>, is_on: bool) -> Copies {
        let state = CopyState { sender: Some(sender), first: Some(Vec::new()), left_out: [0; 2] };
        Copies { state: Mutex::new(state), waiting: AtomicU64::new(0), is_off: AtomicBool::new(!is_on) }
    }

    /// Copies a piece. It is called before the piece is passed on, so that an answer comes after what it answers.
    fn add(&self, side: McpSide, piece: &[u8]) {
        if self.is_off.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if side == McpSide::Client && !self.look(&mut state, piece) {
            return;
        }
        let (size, at) = (piece.len() as u64, usize::from(side == McpSide::Server));
        if self.waiting.load(Ordering::Relaxed) + size > WAITING_MAX {
            state.left_out[at] += size;
            return;
        }
        let left_out = std::mem::take(&mut state.left_out[at]);
        self.waiting.fetch_add(size, Ordering::Relaxed);
        let Some(sender) = &state.sender else { return };
        let left_out = (left_out > 0).then_some(Frame::LeftOut(side, left_out));
        for frame in left_out.into_iter().chain([Frame::Sent(side, now(), piece.to_vec())]) {
            // Ignored: the recorder has ended.
            let _ = sender.send(Message::Frame(frame));
        }
    }

    /// Looks at the first line of the client. Returns whether copies are kept.
    fn look(&self, state: &mut CopyState, piece: &[u8]) -> bool {
        let Some(first) = &mut state.first else { return true };
        let end = piece.iter().position(|byte| *byte == b'\n');
        first.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
        // Empty lines in front are no first line.
        if first.trim_ascii().is_empty() && end.is_some() {
            first.clear();
            let rest = &piece[end.map_or(0, |end| end + 1)..];
            return rest.is_empty() || self.look(state, rest);
        }
        if end.is_none() && first.len() <= FIRST_MAX {
            return true;
        }
        let is_mcp = end.is_some() && is_json_rpc(first);
        state.first = None;
        if is_mcp {
            state.sender.as_ref().map(|sender| sender.send(Message::IsMcp));
        } else {
            self.is_off.store(true, Ordering::Relaxed);
            state.sender = None;
        }
        is_mcp
    }

    /// Answers the questions of the recorder, each after all that was copied before it came.
    fn answer(&self, mut questions: UnixStream) {
        while let Ok(Some(frame)) = Frame::read(&mut questions) {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let (Frame::Sync(number), Some(sender)) = (frame, &state.sender) {
                // Ignored: the copy has ended.
                let _ = sender.send(Message::Frame(Frame::Synced(number)));
            }
        }
    }

    /// Sends the last frame.
    fn end(&self, last: Frame) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let sides = [McpSide::Client, McpSide::Server];
        let left_out = sides.into_iter().zip(state.left_out).filter(|(_, count)| *count > 0);
        let left_out: Vec<Frame> = left_out.map(|(side, count)| Frame::LeftOut(side, count)).collect();
        if let Some(sender) = state.sender.take() {
            for frame in left_out.into_iter().chain([last]) {
                let _ = sender.send(Message::Frame(frame));
            }
        }
    }
}

/// Sends copies to the recorder, from the moment at which it is known that this is MCP. Returns why it does not.
fn send(
    found: &FoundRecorder,
    hello: Frame,
    receiver: Receiver<Message>,
    copies: &Arc<Copies>,
) -> Option<String> {
    let off = |error: io::Error| {
        copies.is_off.store(true, Ordering::Relaxed);
        Some(format!("no recorder in {}: {error}; all is passed on", found.socket.display()))
    };
    let mut early = VecDeque::new();
    loop {
        match receiver.recv() {
            Ok(Message::Frame(frame)) => early.push_back(frame),
            Ok(Message::IsMcp) => break,
            Err(_) => return None,
        }
    }
    let mut stream = match UnixStream::connect(&found.socket) {
        Ok(stream) => stream,
        Err(error) => return off(error),
    };
    if let Ok(questions) = stream.try_clone() {
        let copies = Arc::clone(copies);
        thread::spawn(move || copies.answer(questions));
    }
    let mut frames =
        [hello].into_iter().chain(early).chain(receiver.iter().filter_map(|message| match message {
            Message::Frame(frame) => Some(frame),
            Message::IsMcp => None,
        }));
    let failed = frames.find_map(|frame| {
        let size = if let Frame::Sent(_, _, bytes) = &frame { bytes.len() as u64 } else { 0 };
        let written = frame.write(&mut stream);
        copies.waiting.fetch_sub(size, Ordering::Relaxed);
        written.err()
    });
    failed.and_then(off)
}

/// Waits a little for the copy to be sent.
fn finish(sending: JoinHandle<Option<String>>) -> Option<String> {
    let last = Instant::now() + LAST;
    while !sending.is_finished() {
        if Instant::now() > last {
            return Some(
                "the recorder does not take all in time; the end of the copy is left out".to_owned(),
            );
        }
        thread::sleep(Duration::from_millis(1));
    }
    sending.join().ok().flatten()
}

/// Passes all of one side on.
fn pump(mut from: impl Read, mut to: impl Write, side: McpSide, copies: &Copies, progress: &Progress) {
    let mut piece = vec![0; PIECE];
    loop {
        let count = match from.read(&mut piece) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        progress.writing.store(true, Ordering::SeqCst);
        copies.add(side, &piece[..count]);
        if to.write_all(&piece[..count]).and_then(|()| to.flush()).is_err() {
            return;
        }
        progress.pieces.fetch_add(1, Ordering::SeqCst);
        progress.writing.store(false, Ordering::SeqCst);
    }
}

/// How far a side is.
#[derive(Debug, Default)]
struct Progress {
    pieces: AtomicU64,
    writing: AtomicBool,
}

impl Progress {
    /// Waits until all that a server sent before it ended has been passed on. A process that it left may keep its output open.
    fn wait(&self, pump: &JoinHandle<()>) {
        let mut seen = (self.pieces.load(Ordering::SeqCst), Instant::now());
        while !pump.is_finished() {
            let now = self.pieces.load(Ordering::SeqCst);
            if now != seen.0 || self.writing.load(Ordering::SeqCst) {
                seen = (now, Instant::now());
            } else if seen.1.elapsed() > LAST {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The input of a client, piece by piece.
struct Pieces {
    receiver: Receiver<Vec<u8>>,
    first: VecDeque<u8>,
}

impl Pieces {
    /// Whether the first line is JSON-RPC. A command without a line is taken for another program.
    fn begins_with_json_rpc(&mut self) -> bool {
        let last = Instant::now() + FIRST;
        let mut first: Vec<u8> = Vec::new();
        let is = loop {
            let line = first.trim_ascii_start();
            if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
                break is_json_rpc(&line[..end]);
            }
            if first.len() > FIRST_MAX {
                break false;
            }
            match self.receiver.recv_timeout(last.saturating_duration_since(Instant::now())) {
                Ok(piece) => first.extend(piece),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break false,
            }
        };
        self.first = first.into();
        is
    }
}

impl Read for Pieces {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.first.is_empty() {
            match self.receiver.recv() {
                Ok(piece) => self.first = piece.into(),
                Err(_) => return Ok(0),
            }
        }
        self.first.read(to)
    }
}

/// Passes the requests of a client to the recorder, and its answers back.
fn serve(stream: UnixStream, mut input: Pieces) -> io::Result<McpEnd> {
    let mut to = stream.try_clone()?;
    thread::spawn(move || -> io::Result<()> {
        let mut piece = vec![0; PIECE.min(SENT_MAX)];
        loop {
            match input.read(&mut piece)? {
                0 => return Frame::ClientEnd.write(&mut to),
                count => Frame::Sent(McpSide::Client, 0, piece[..count].to_vec()).write(&mut to)?,
            }
        }
    });
    let mut from = io::BufReader::new(stream);
    let mut out = io::stdout();
    while let Some(frame) = Frame::read(&mut from)? {
        match frame {
            Frame::Sent(McpSide::Server, _, bytes) => {
                out.write_all(&bytes)?;
                out.flush()?;
            }
            Frame::Ended(end) => return Ok(end),
            _ => {}
        }
    }
    Err(io::Error::other("the replay has ended"))
}
