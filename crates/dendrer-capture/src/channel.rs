//! The side of the recorder: shims bring what passes between clients and servers of MCP.
//!
//! Rule: nothing is taken from a connection without the token of this recording.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufReader, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dendrer_object::{Digest, Value, json};

use crate::frame::{FRAME_MAX, Frame, McpEnd, McpSide, SENT_MAX};
use crate::mcp::{Lines, McpCopied, McpCopy, McpLine};
use crate::mcp_player::McpPlayer;
use crate::player::PlayedCalls;
use crate::proxy::Tap;
use crate::shim_dir::{self, Purpose, RECORD, ShimDir};

/// How many bytes of one line are kept.
const LINE_MAX: usize = 64 << 20;

/// How many shims may be connected at once.
const SHIMS_MAX: usize = 256;

/// How long a shim may take for its first frame.
const HELLO: Duration = Duration::from_secs(2);

/// How long shims may go on once the program has ended.
const LAST: Duration = Duration::from_secs(1);

/// The place where shims connect, until it is ended.
#[derive(Debug)]
pub struct Channel {
    dir: ShimDir,
    shared: Arc<Shared>,
    listener: UnixListener,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    token: Digest,
    service: Service,
    has_ended: AtomicBool,
    servers: AtomicU64,
    shims: Mutex<Vec<Shim>>,
}

/// A shim that is connected.
#[derive(Debug)]
struct Shim {
    stream: UnixStream,
    thread: JoinHandle<()>,
    /// The number of the newest question that it answered.
    synced: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Service {
    Record(Tap),
    Play(Mutex<McpPlayer>),
}

/// The first frame of a shim.
struct Hello {
    command: Vec<String>,
    name: Option<String>,
    id: String,
    inside: Vec<String>,
}

/// Whether a name can be that of a shim.
pub fn is_shim_name(name: &str) -> bool {
    shim_dir::is_name(name)
}

impl Channel {
    /// Takes copies from shims, with a shim for each name. `program` are the words that run dendrer.
    ///
    /// # Errors
    ///
    /// The directory or its socket cannot be made.
    pub fn record(names: &[String], program: &[String], tap: Tap) -> io::Result<Channel> {
        Channel::open(names, program, Service::Record(tap))
    }

    /// Answers clients from a record.
    ///
    /// # Errors
    ///
    /// As [`Channel::record`].
    pub fn play(names: &[String], program: &[String], player: McpPlayer) -> io::Result<Channel> {
        Channel::open(names, program, Service::Play(Mutex::new(player)))
    }

    fn open(names: &[String], program: &[String], service: Service) -> io::Result<Channel> {
        let purpose = match &service {
            Service::Record(_) => Purpose::Record,
            Service::Play(_) => Purpose::Play,
        };
        let dir = ShimDir::make(names, program, purpose)?;
        let listener = UnixListener::bind(dir.socket())?;
        let shared = Arc::new(Shared {
            token: Digest::of(dir.token.as_bytes()),
            service,
            has_ended: AtomicBool::new(false),
            servers: AtomicU64::new(0),
            shims: Mutex::default(),
        });
        let accepting = {
            let (shared, listener) = (Arc::clone(&shared), listener.try_clone()?);
            thread::Builder::new().name("dendrer-mcp".to_owned()).spawn(move || accept(&listener, &shared))?
        };
        Ok(Channel { dir, shared, listener, accepting })
    }

    /// The directory of the shims.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The variables that a program gets: the directory, and `PATH` with it in front.
    pub fn variables(&self, path: Option<OsString>) -> Vec<(String, OsString)> {
        let path =
            path.filter(|path| !path.is_empty()).unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let mut in_front = self.dir.path().as_os_str().to_owned();
        in_front.push(":");
        in_front.push(path);
        vec![(RECORD.to_owned(), self.dir.path().as_os_str().to_owned()), ("PATH".to_owned(), in_front)]
    }

    /// Asks shims for all that they copied so far, and sends [`McpCopied::Synced`] after it. The answer is false if there was no shim.
    pub fn syncer(&self) -> Box<dyn Fn(u64) -> bool + Send> {
        // A weak reference: copies end when the channel has ended.
        let shared = Arc::downgrade(&self.shared);
        Box::new(move |number| shared.upgrade().is_none_or(|shared| sync(&shared, number)))
    }

    /// Ends it, once shims that have ended are read. Returns the counts of a player.
    pub fn end(self) -> PlayedCalls {
        let Channel { dir, shared, listener, accepting } = self;
        shared.has_ended.store(true, Ordering::SeqCst);
        // Ignored, here and below: what fails has ended already.
        let _ = listener.set_nonblocking(true);
        let _ = UnixStream::connect(dir.socket());
        let _ = accepting.join();
        // They stay in the list until they have ended: the tape may still ask for all that they copied.
        let shims = || shared.shims.lock().unwrap_or_else(PoisonError::into_inner);
        let last = Instant::now() + LAST;
        while Instant::now() < last && shims().iter().any(|shim| !shim.thread.is_finished()) {
            thread::sleep(Duration::from_millis(5));
        }
        let shims = std::mem::take(&mut *shims());
        for shim in shims {
            let _ = shim.stream.shutdown(Shutdown::Both);
            let _ = shim.thread.join();
        }
        match &shared.service {
            Service::Play(player) => player.lock().unwrap_or_else(PoisonError::into_inner).end(),
            Service::Record(_) => PlayedCalls::default(),
        }
    }
}

fn sync(shared: &Arc<Shared>, number: u64) -> bool {
    let Service::Record(tap) = &shared.service else { return false };
    // Copies of a shim that has ended may still wait for the tape.
    if shared.servers.load(Ordering::SeqCst) == 0 {
        return false;
    }
    let (shared, tap) = (Arc::clone(shared), tap.clone());
    let asking = thread::Builder::new().name("dendrer-sync".to_owned()).spawn(move || {
        let mut frame = Vec::new();
        // Ignored: bytes are always written to a vector; a shim that ended has sent all.
        let _ = Frame::Sync(number).write(&mut frame);
        let shims = || shared.shims.lock().unwrap_or_else(PoisonError::into_inner);
        for shim in shims().iter() {
            let _ = (&shim.stream).write_all(&frame);
        }
        let is_open = |shim: &Shim| !shim.thread.is_finished() && shim.synced.load(Ordering::SeqCst) < number;
        let last = Instant::now() + LAST;
        while Instant::now() < last && shims().iter().any(is_open) {
            thread::sleep(Duration::from_millis(1));
        }
        tap.send(McpCopy { server: 0, what: McpCopied::Synced(number) });
    });
    asking.is_ok()
}

/// Accepts shims one after the other, so that one that was started by another one comes after it.
fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
    let mut known = BTreeSet::new();
    loop {
        match listener.accept() {
            Ok((stream, _)) => greet(stream, shared, &mut known),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) if shared.has_ended.load(Ordering::SeqCst) => return,
            // Too many open files, most often: others end meanwhile.
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Reads the first frame of a connection, and gives it a thread if it is that of a shim of this recording.
fn greet(stream: UnixStream, shared: &Arc<Shared>, known: &mut BTreeSet<String>) {
    let mut shims = shared.shims.lock().unwrap_or_else(PoisonError::into_inner);
    shims.retain(|shim| !shim.thread.is_finished());
    if shims.len() >= SHIMS_MAX || stream.set_nonblocking(false).is_err() {
        return;
    }
    let hello = stream.set_read_timeout(Some(HELLO)).ok().and_then(|()| hello(&stream, shared));
    let Some(hello) = hello else {
        if let (Service::Record(tap), false) = (&shared.service, shared.has_ended.load(Ordering::SeqCst)) {
            tap.refuse();
        }
        return;
    };
    // A server that a server starts is a part of it.
    if hello.inside.iter().any(|id| known.contains(id)) {
        return;
    }
    known.insert(hello.id.clone());
    if stream.set_read_timeout(None).is_err() {
        return;
    }
    let (own, synced) = (Arc::clone(shared), Arc::new(AtomicU64::new(0)));
    let answered = Arc::clone(&synced);
    let server = shared.servers.fetch_add(1, Ordering::SeqCst) + 1;
    let Ok(copy) = stream.try_clone() else { return };
    let started = thread::Builder::new().name("dendrer-shim".to_owned()).spawn(move || match &own.service {
        Service::Record(tap) => {
            // Ignored: without it, a shim that reads nothing holds up those that begin, and no program.
            let _ = stream.set_write_timeout(Some(LAST));
            record(stream, hello, (server, &answered), tap);
        }
        Service::Play(player) => {
            // Ignored: a shim that ends early has ended for its client, too.
            let _ = play(stream, &hello, player);
        }
    });
    if let Ok(thread) = started {
        shims.push(Shim { stream: copy, thread, synced });
    }
}

fn hello(mut stream: &UnixStream, shared: &Shared) -> Option<Hello> {
    let Frame::Hello(bytes) = Frame::read(&mut stream).ok()?? else { return None };
    let words = json::parse_door(&bytes).ok()?;
    let text = |name: &str| words.get(name).and_then(Value::as_str).map(str::to_owned);
    let list = |name: &str| -> Option<Vec<String>> {
        words.get(name)?.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
    };
    // Digests are compared: their time does not depend on a token.
    if Digest::of(text("token")?.as_bytes()) != shared.token {
        return None;
    }
    Some(Hello { command: list("command")?, name: text("name"), id: text("id")?, inside: list("inside")? })
}

/// Sends on what a shim brings, line by line.
fn record(stream: UnixStream, hello: Hello, (server, synced): (u64, &AtomicU64), tap: &Tap) {
    let send = |what| tap.send(McpCopy { server, what });
    send(McpCopied::Begun { name: hello.name, command: hello.command });
    let mut from = BufReader::with_capacity(FRAME_MAX, stream);
    let mut lines = [Lines::default(), Lines::default()];
    let at = |side: McpSide| usize::from(side == McpSide::Server);
    let line = |side, time, bytes, left_out| {
        let line = McpLine::new(side, bytes, left_out, &mut || tap.next_call());
        McpCopied::Line(McpLine { at: time, ..line })
    };
    let mut end = None;
    loop {
        match Frame::read(&mut from) {
            Ok(Some(Frame::Sent(side, at_time, bytes))) => {
                let may_keep =
                    &mut |lines: &Lines, more: usize| lines.kept() + more <= LINE_MAX && tap.may_wait(more);
                lines[at(side)].take(&bytes, may_keep, &mut |bytes, left_out| {
                    send(line(side, at_time, bytes, left_out))
                });
            }
            Ok(Some(Frame::LeftOut(side, count))) => lines[at(side)].leave_out(count),
            Ok(Some(Frame::Ended(ended))) => end = Some(ended),
            Ok(Some(Frame::Synced(number))) => synced.store(number, Ordering::SeqCst),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => break,
        }
    }
    for side in [McpSide::Client, McpSide::Server] {
        if let Some((bytes, left_out)) = lines[at(side)].rest() {
            let mut rest = McpLine::new(side, bytes, left_out, &mut || tap.next_call());
            // The end of the other side cuts a line off; one that is whole lacks its end alone.
            if left_out == 0 && rest.said.is_err() {
                rest.said = Err("line_cut");
            }
            send(McpCopied::Line(rest));
        }
    }
    send(McpCopied::Ended(end));
}

/// Answers a client from the record.
fn play(stream: UnixStream, hello: &Hello, player: &Mutex<McpPlayer>) -> io::Result<()> {
    let player = || player.lock().unwrap_or_else(PoisonError::into_inner);
    let mut to = stream.try_clone()?;
    let mut from = BufReader::with_capacity(FRAME_MAX, stream);
    let mut client = player().begin(&hello.command, hello.name.as_deref());
    if client.is_known() { Frame::Known } else { Frame::Unknown }.write(&mut to)?;
    let mut lines = Lines::default();
    while let Some(frame) = Frame::read(&mut from)? {
        let bytes = match frame {
            Frame::Sent(McpSide::Client, _, bytes) => bytes,
            Frame::ClientEnd => return Frame::Ended(player().client_end(&client)).write(&mut to),
            _ => continue,
        };
        let mut served: Vec<(Vec<u8>, Option<McpEnd>)> = Vec::new();
        let may_keep = &mut |lines: &Lines, more: usize| lines.kept() + more <= LINE_MAX;
        lines.take(&bytes, may_keep, &mut |line, left_out| {
            served.push(player().answer(&mut client, &line, left_out))
        });
        for (bytes, end) in served {
            for part in bytes.chunks(SENT_MAX) {
                Frame::Sent(McpSide::Server, 0, part.to_vec()).write(&mut to)?;
            }
            if let Some(end) = end {
                return Frame::Ended(end).write(&mut to);
            }
        }
    }
    Ok(())
}
