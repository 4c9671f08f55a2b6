//! The server on loopback that a program asks in place of an API: passes all on as it comes, and keeps a copy.
//!
//! Rule: a copy costs the program nothing. Copies that wait to be recorded are bounded in bytes; beyond that bodies are left out
//! of copies, and nothing waits.

use std::collections::VecDeque;
use std::future::Future as _;
use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dendrer_object::Digest;
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::bases::Base;
use crate::exact::ServedAnswer;
use crate::exchange::{AnsweredCall, AskedCall, CallNumber, CopiedBody, Ended, FAILED, Headers};
use crate::forker::{ForkedCalls, Forker, LiveCall, Route as Routed};
use crate::frame::now;
use crate::mcp::McpCopy;
use crate::player::{PlayedCalls, Player};
use crate::route::Route;
use crate::signals::HeldSignals;
use crate::sse;

/// How many bytes of one body are copied.
const BODY_MAX: usize = 64 << 20;

/// How many bytes of copies may wait to be recorded.
const WAITING_MAX: u64 = 512 << 20;

/// How long connections may go on once the program has ended.
const LAST: Duration = Duration::from_secs(1);

/// Headers of one connection, which are made anew for the next one (RFC 9110 7.6.1).
const HOP: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Headers of one connection that have no name in the library.
const HOP_OTHERS: [&str; 2] = ["keep-alive", "proxy-connection"];

/// A copy of something that passed.
#[derive(Debug)]
pub enum PassedCopy {
    /// A request, once all of its body has passed.
    Asked(AskedCall),
    /// The status of a failed call came: the program may ask again before the answer has ended.
    Failing(CallNumber),
    /// An answer, once it has ended. It comes after its request.
    Answered(AnsweredCall),
    /// The end of an answer is held back until all that came before is durable. It is let go by an answer, or if this is dropped.
    Due(oneshot::Sender<()>),
    /// Something that passed between a client and a server of MCP.
    Mcp(McpCopy),
}

impl PassedCopy {
    fn size(&self) -> u64 {
        match self {
            PassedCopy::Asked(asked) => size(&asked.body),
            PassedCopy::Answered(answered) => size(&answered.body),
            PassedCopy::Failing(_) | PassedCopy::Due(_) => 0,
            PassedCopy::Mcp(copy) => copy.size(),
        }
    }
}

/// How many bytes count for a piece, next to its own: pieces of one byte each must not be many times as large as their body.
const PIECE: u64 = 64;

/// How much a copy of a body counts.
fn size(body: &CopiedBody) -> u64 {
    body.bytes.len() as u64 + body.pieces.len() as u64 * PIECE
}

/// A server that runs until it is dropped or ended.
pub struct Proxy {
    address: SocketAddr,
    runtime: Runtime,
    shared: Arc<Shared>,
    sender: Sender<PassedCopy>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Copies in the order in which they are to be recorded.
#[derive(Debug)]
pub struct Copies {
    receiver: Receiver<PassedCopy>,
    counts: Arc<Counts>,
}

impl Iterator for Copies {
    type Item = PassedCopy;

    fn next(&mut self) -> Option<PassedCopy> {
        let seen = self.receiver.recv().ok()?;
        self.counts.waiting.fetch_sub(seen.size(), Ordering::Relaxed);
        Some(seen)
    }
}

/// A way by which others add copies. Copies end when it is dropped.
#[derive(Debug, Clone)]
pub struct Tap {
    counts: Arc<Counts>,
    sender: Sender<PassedCopy>,
}

impl Tap {
    /// The number of a new call.
    pub(crate) fn next_call(&self) -> CallNumber {
        self.counts.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a connection without the token.
    pub(crate) fn refuse(&self) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether so many bytes more may wait to be recorded; they are counted then.
    pub(crate) fn may_wait(&self, more: usize) -> bool {
        let size = more as u64;
        let may = self.counts.waiting.load(Ordering::Relaxed) + size <= WAITING_MAX;
        self.counts.waiting.fetch_add(if may { size } else { 0 }, Ordering::Relaxed);
        may
    }

    /// Adds a copy. Its bytes were counted.
    pub(crate) fn send(&self, copy: McpCopy) {
        // Ignored: nothing is recorded any more.
        let _ = self.sender.send(PassedCopy::Mcp(copy));
    }
}

#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU64,
    refused: AtomicU64,
    waiting: AtomicU64,
}

type Asks = Client<HttpsConnector<Route>, Either<Full<Bytes>, Tee>>;

struct Shared {
    bases: Vec<Base>,
    service: Service,
    counts: Arc<Counts>,
}

/// When the program gets the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerEnd {
    /// As it comes.
    Passes,
    /// Once the answer is durable.
    WaitsForRecord,
}

/// The service that answers requests.
enum Service {
    /// The APIs.
    Pass(Asks, AnswerEnd),
    /// The record of a run.
    Play(Mutex<Player>),
    /// The record of a run up to a tick, and then the APIs.
    Fork(Box<Asks>, Mutex<Forker>),
}

impl Proxy {
    /// Begins to serve on a free port of loopback.
    ///
    /// # Errors
    ///
    /// The port cannot be opened, or no thread can be started.
    pub fn start(bases: Vec<Base>) -> io::Result<(Proxy, Copies)> {
        Proxy::serving(bases, 0, || Service::Pass(client(), AnswerEnd::Passes))
    }

    /// As [`Proxy::start`]; the program gets the end of an answer once it is durable.
    ///
    /// # Errors
    ///
    /// As [`Proxy::start`].
    pub fn start_synced(bases: Vec<Base>) -> io::Result<(Proxy, Copies)> {
        Proxy::serving(bases, 0, || Service::Pass(client(), AnswerEnd::WaitsForRecord))
    }

    /// As [`Proxy::start`], with the record of a run in place of the APIs. Nothing is copied.
    ///
    /// # Errors
    ///
    /// As [`Proxy::start`].
    pub fn play(bases: Vec<Base>, player: Player) -> io::Result<Proxy> {
        Ok(Proxy::serving(bases, 0, || Service::Play(Mutex::new(player)))?.0)
    }

    /// Listens at a free port of loopback, and answers as a fork does. Only calls after its tick are copied.
    ///
    /// # Errors
    ///
    /// As [`Proxy::start`].
    pub fn fork(bases: Vec<Base>, forker: Forker) -> io::Result<(Proxy, Copies)> {
        let first = forker.first();
        Proxy::serving(bases, first, || Service::Fork(Box::new(client()), Mutex::new(forker)))
    }

    /// The first call has the number after `first`.
    fn serving(
        bases: Vec<Base>,
        first: CallNumber,
        service: impl FnOnce() -> Service,
    ) -> io::Result<(Proxy, Copies)> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("dendrer-capture")
            .enable_io()
            .enable_time()
            .build()?;
        let (sender, receiver) = channel();
        let counts = Arc::new(Counts { calls: AtomicU64::new(first), ..Counts::default() });
        let _inside = runtime.enter();
        let shared = Arc::new(Shared { bases, service: service(), counts: Arc::clone(&counts) });
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        runtime.spawn(accept(listener, Arc::clone(&shared), sender.clone()));
        drop(_inside);
        Ok((Proxy { address, runtime, shared, sender }, Copies { receiver, counts }))
    }

    /// The address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The bases that it serves.
    pub fn bases(&self) -> &[Base] {
        &self.shared.bases
    }

    /// A way to the same copies and counts.
    pub fn tap(&self) -> Tap {
        Tap { counts: Arc::clone(&self.shared.counts), sender: self.sender.clone() }
    }

    /// Takes over the signals that end a program: they are for the program that is recorded.
    ///
    /// # Errors
    ///
    /// The system does not let a signal be taken over.
    pub fn hold_signals(&self) -> io::Result<HeldSignals> {
        let _inside = self.runtime.enter();
        HeldSignals::new()
    }

    /// Hands signals on to a process, those that came meanwhile as well.
    pub fn forward(&self, signals: HeldSignals, process: u32) {
        signals.forward(&self.runtime, process, io::stdin().is_terminal());
    }

    /// Ends it, and returns the counts of the player.
    pub fn end_play(self) -> PlayedCalls {
        let shared = Arc::clone(&self.shared);
        self.end();
        match &shared.service {
            Service::Play(player) => player.lock().unwrap_or_else(PoisonError::into_inner).end(),
            Service::Pass(..) | Service::Fork(..) => PlayedCalls::default(),
        }
    }

    /// The counts of a fork, so far.
    pub fn forked(&self) -> ForkedCalls {
        match &self.shared.service {
            Service::Fork(_, forker) => forker.lock().unwrap_or_else(PoisonError::into_inner).end(),
            Service::Pass(..) | Service::Play(_) => ForkedCalls::default(),
        }
    }

    /// Ends it: answers that are still under way are cut off. Returns how many requests had no token.
    pub fn end(self) -> u64 {
        self.runtime.shutdown_timeout(LAST);
        self.shared.counts.refused.load(Ordering::Relaxed)
    }
}

fn client() -> Asks {
    let builder = HttpsConnectorBuilder::new();
    // The list of Mozilla is taken if the system has no list of authorities.
    let builder = match builder.with_native_roots() {
        Ok(builder) => builder,
        Err(_) => HttpsConnectorBuilder::new().with_webpki_roots(),
    };
    let connector = builder.https_or_http().enable_http1().wrap_connector(Route::from_env());
    Client::builder(TokioExecutor::new()).http1_preserve_header_case(true).build(connector)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, sender: Sender<PassedCopy>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, Arc::clone(&shared), sender.clone()));
            }
            // Too many open files, most often: others end meanwhile.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, sender: Sender<PassedCopy>) {
    // Ignored: a connection that ends early has ended for the program, too.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(request, Arc::clone(&shared), sender.clone()));
    let server = hyper::server::conn::http1::Builder::new()
        .preserve_header_case(true)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    let _ = server.await;
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Answers a request. An error closes the connection, as that of the API was closed.
async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    sender: Sender<PassedCopy>,
) -> Result<Response<OutBody>, BoxError> {
    let found = found(&shared.bases, request.uri().path_and_query().map_or("/", |path| path.as_str()));
    let Some((base, path, to)) = found else {
        shared.counts.refused.fetch_add(1, Ordering::Relaxed);
        let mut response = Response::new(OutBody::of(Vec::new()));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    };
    let call = shared.counts.calls.fetch_add(1, Ordering::Relaxed) + 1;
    let encoding = request.headers().get(header::CONTENT_ENCODING);
    let encoding = encoding.and_then(|name| name.to_str().ok()).map(str::to_owned);
    let (method, body) = (request.method().to_string(), CopiedBody::default());
    let asked = AskedCall { call, base, method, path, encoding, body, changed: Vec::new(), is_given: false };
    match &shared.service {
        Service::Pass(client, end) => pass(client, request, asked, to, (&shared.counts, sender, *end)).await,
        Service::Play(player) => play(player, request, asked).await,
        Service::Fork(client, forker) => {
            fork(client, forker, request, asked, to, (&shared.counts, sender)).await
        }
    }
}

/// Answers a request from the record.
async fn play(
    player: &Mutex<Player>,
    request: Request<Incoming>,
    asked: AskedCall,
) -> Result<Response<OutBody>, BoxError> {
    let bytes = Limited::new(request.into_body(), BODY_MAX).collect().await?.to_bytes().to_vec();
    let asked = AskedCall { body: CopiedBody { bytes, ..CopiedBody::default() }, ..asked };
    serve_again(player.lock().unwrap_or_else(PoisonError::into_inner).serve(&asked))
}

/// An answer from the record to the program.
fn serve_again(served: ServedAnswer) -> Result<Response<OutBody>, BoxError> {
    let status = served.status.ok_or("the connection was closed when this was recorded")?;
    let mut response = Response::builder().status(status);
    for (name, value) in &served.headers {
        response = response.header(name, value);
    }
    let is_cut = served.ended != Ended::Whole;
    let pieces = served.pieces.into_iter().map(Bytes::from).collect();
    Ok(response.body(OutBody::Served(ServedBody { pieces, is_cut, is_sent: false }))?)
}

/// Answers a request of a fork.
async fn fork(
    client: &Asks,
    forker: &Mutex<Forker>,
    request: Request<Incoming>,
    mut asked: AskedCall,
    to: hyper::Uri,
    (counts, sender): (&Arc<Counts>, Sender<PassedCopy>),
) -> Result<Response<OutBody>, BoxError> {
    let (mut head, body) = request.into_parts();
    let mut bytes = Limited::new(body, BODY_MAX).collect().await?.to_bytes();
    asked.body = CopiedBody { bytes: bytes.to_vec(), ..CopiedBody::default() };
    let route = forker.lock().unwrap_or_else(PoisonError::into_inner).route(&asked);
    let (call, mut copy) = (asked.call, Copy { counts: Arc::clone(counts), body: CopiedBody::default() });
    match route {
        Routed::Served(served) => serve_again(served),
        Routed::Given(served) | Routed::Refused(served) => {
            copy.add(&bytes);
            let is_given = served.status.is_some_and(|status| status < FAILED);
            asked = AskedCall { body: copy.body, is_given, ..asked };
            let mut copy = Copy { counts: Arc::clone(counts), body: CopiedBody::default() };
            served.pieces.iter().for_each(|piece| copy.add(piece));
            let answered = AnsweredCall { body: copy.body, ..served.as_answered(call) };
            // Ignored: nothing is recorded any more.
            let _ = sender.send(PassedCopy::Asked(asked));
            let _ = sender.send(PassedCopy::Answered(answered));
            serve_again(served)
        }
        Routed::Live(LiveCall { agent, changed }) => {
            if let Some(changed) = changed {
                // The body that is sent on is plain, and of another length.
                head.headers.remove(header::CONTENT_ENCODING);
                head.headers.remove(header::CONTENT_LENGTH);
                (bytes, asked.encoding, asked.changed) = (changed.bytes.into(), None, changed.calls);
            }
            asked.body = CopiedBody::default();
            copy.add(&bytes);
            let asking = Arc::new(Mutex::new(Some(Asking { asked, copy, sender: sender.clone() })));
            end_request(&asking);
            let answering = Answering::begin(call, asking, counts, sender);
            let response = relay(client, head, Either::Left(Full::new(bytes)), to, answering).await?;
            if response.status().as_u16() < FAILED {
                forker.lock().unwrap_or_else(PoisonError::into_inner).passed(&agent);
            }
            Ok(response)
        }
    }
}

/// Passes a request on, and its answer back.
async fn pass(
    client: &Asks,
    request: Request<Incoming>,
    asked: AskedCall,
    to: hyper::Uri,
    (counts, sender, end): (&Arc<Counts>, Sender<PassedCopy>, AnswerEnd),
) -> Result<Response<OutBody>, BoxError> {
    let call = asked.call;
    let copy = Copy { counts: Arc::clone(counts), body: CopiedBody::default() };
    let asking = Asking { asked, copy, sender: sender.clone() };
    let asking = Arc::new(Mutex::new(Some(asking)));
    let (head, body) = request.into_parts();
    let body = Tee { body, part: Part::Request(Arc::clone(&asking)), is_done: false, held: None };
    // A request is copied whole before it is asked whether the API is there.
    let body = match body.size_hint().exact() {
        Some(size) if size <= BODY_MAX as u64 => Either::Left(Full::new(body.collect().await?.to_bytes())),
        _ => Either::Right(body),
    };
    let answering = Answering { end, ..Answering::begin(call, asking, counts, sender) };
    relay(client, head, body, to, answering).await
}

/// Lets a program that follows a redirect of an API ask the server again: an address without a host is below the token.
fn stay(headers: &mut HeaderMap, given: &str) {
    let Some(to) = headers.get(header::LOCATION).and_then(|to| to.to_str().ok()) else { return };
    if to.starts_with('/') && !to.starts_with("//") {
        if let Ok(to) = format!("{given}{to}").parse() {
            headers.insert(header::LOCATION, to);
        }
    }
}

/// Asks the API, and passes its answer back.
async fn relay(
    client: &Asks,
    mut head: hyper::http::request::Parts,
    body: Either<Full<Bytes>, Tee>,
    to: hyper::Uri,
    answering: Answering,
) -> Result<Response<OutBody>, BoxError> {
    // The token, in front of a path of the API.
    let given = head.uri.path().split('/').nth(1).map(|token| format!("/{token}")).unwrap_or_default();
    head.uri = to;
    hop(&mut head.headers);
    head.headers.remove(header::HOST);
    // The program may close the connection while the API is asked.
    let mut unanswered = Unanswered(Some(answering));
    let response = client.request(Request::from_parts(head, body)).await;
    let Some(answering) = unanswered.0.take() else { return Err("the call has ended".into()) };
    match response {
        Ok(response) => {
            let (mut head, body) = response.into_parts();
            let headers = head
                .headers
                .iter()
                .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
            let seen = Some((head.status.as_u16(), headers.collect::<Headers>()));
            if head.status.as_u16() >= FAILED {
                end_request(&answering.asking);
                // Ignored: nothing is recorded any more.
                let _ = answering.sender.send(PassedCopy::Failing(answering.answered.call));
            }
            let answering =
                Answering { answered: AnsweredCall { head: seen, ..answering.answered }, ..answering };
            hop(&mut head.headers);
            stay(&mut head.headers, &given);
            let body =
                Tee { body, part: Part::Answer(Some(Box::new(answering))), is_done: false, held: None };
            Ok(Response::from_parts(head, OutBody::Passing(body)))
        }
        Err(error) => {
            // Ignored: there is no answer whose end could wait.
            let _ = answering.end(Ended::Upstream);
            Err(error.into())
        }
    }
}

/// The variable of a base, the path after its token, and its address at the API.
fn found(bases: &[Base], path: &str) -> Option<(String, String, hyper::Uri)> {
    let (token, _) = path.strip_prefix('/')?.split_once(['/', '?']).unwrap_or((path.strip_prefix('/')?, ""));
    // Digests are compared: their time does not depend on a token.
    let given = Digest::of(token.as_bytes());
    let base = bases.iter().find(|base| Digest::of(base.token.as_bytes()) == given)?;
    let rest = &path[1 + token.len()..];
    Some((base.variable.clone(), rest.to_owned(), base.at(rest)?))
}

/// Removes the headers of one connection.
fn hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP) {
        headers.remove(name);
    }
    for name in HOP_OTHERS {
        headers.remove(name);
    }
}

/// The copy of a body that passes.
struct Copy {
    counts: Arc<Counts>,
    body: CopiedBody,
}

impl Copy {
    fn add(&mut self, bytes: &[u8]) {
        let more = bytes.len() as u64 + PIECE;
        let is_full = self.body.left_out > 0
            || self.body.bytes.len() + bytes.len() > BODY_MAX
            || self.body.pieces.len() as u64 * PIECE > BODY_MAX as u64
            || self.counts.waiting.load(Ordering::Relaxed) + more > WAITING_MAX;
        if is_full {
            self.body.left_out += bytes.len() as u64;
            return;
        }
        self.counts.waiting.fetch_add(more, Ordering::Relaxed);
        self.body.bytes.extend_from_slice(bytes);
        self.body.pieces.push(bytes.len() as u32);
    }
}

/// A request that is passing.
struct Asking {
    asked: AskedCall,
    copy: Copy,
    sender: Sender<PassedCopy>,
}

/// A request that has passed leaves nothing.
type Passing = Arc<Mutex<Option<Asking>>>;

/// Sends the copy of a request, unless it was sent.
fn end_request(asking: &Passing) {
    let taken = asking.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Asking { asked, copy, sender }) = taken {
        // Ignored: nothing is recorded any more.
        let _ = sender.send(PassedCopy::Asked(AskedCall { body: copy.body, ..asked }));
    }
}

/// An answer that is passing.
struct Answering {
    asking: Passing,
    answered: AnsweredCall,
    copy: Copy,
    sender: Sender<PassedCopy>,
    end: AnswerEnd,
}

impl Answering {
    fn begin(
        call: CallNumber,
        asking: Passing,
        counts: &Arc<Counts>,
        sender: Sender<PassedCopy>,
    ) -> Answering {
        let copy = Copy { counts: Arc::clone(counts), body: CopiedBody::default() };
        let body = CopiedBody::default();
        let answered = AnsweredCall { call, at: 0, head: None, body, ended: Ended::Upstream };
        Answering { asking, answered, copy, sender, end: AnswerEnd::Passes }
    }

    /// Sends the copy of an answer. Returns what the end of the answer waits for.
    fn end(self, ended: Ended) -> Option<oneshot::Receiver<()>> {
        end_request(&self.asking);
        let answered = AnsweredCall { at: now(), body: self.copy.body, ended, ..self.answered };
        // Ignored: nothing is recorded any more.
        let _ = self.sender.send(PassedCopy::Answered(answered));
        (self.end == AnswerEnd::WaitsForRecord).then(|| {
            let (due, waits) = oneshot::channel();
            // Ignored: nothing is recorded any more, and the end is let go.
            let _ = self.sender.send(PassedCopy::Due(due));
            waits
        })
    }
}

/// A call whose answer has not begun. It ends with the connection to the program.
struct Unanswered(Option<Answering>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        // Ignored: an answer that is dropped has no reader.
        let _ = self.0.take().map(|answering| answering.end(Ended::Program));
    }
}

/// The owner of a body.
enum Part {
    Request(Passing),
    Answer(Option<Box<Answering>>),
}

/// A body that is copied as it passes.
struct Tee {
    body: Incoming,
    part: Part,
    is_done: bool,
    /// The last part of an answer, which waits for the record.
    held: Option<HeldEnd>,
}

/// The last part of an answer; nothing, if it ends without one.
struct HeldEnd {
    last: Option<Result<Frame<Bytes>, hyper::Error>>,
    waits: oneshot::Receiver<()>,
}

impl Tee {
    fn copy(&mut self, bytes: &[u8]) {
        match &mut self.part {
            Part::Request(asking) => {
                let mut asking = asking.lock().unwrap_or_else(PoisonError::into_inner);
                asking.as_mut().into_iter().for_each(|asking| asking.copy.add(bytes));
            }
            Part::Answer(answering) => {
                answering.as_mut().into_iter().for_each(|answering| answering.copy.add(bytes));
            }
        }
    }

    /// Whether a stream has come to its last event. Programs ask again then, and do not wait for the end of the body.
    fn is_last_event(&self) -> bool {
        let Part::Answer(Some(answering)) = &self.part else { return false };
        let is_stream = answering
            .answered
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        let is_plain = answering.answered.header("content-encoding").is_none();
        is_stream && is_plain && sse::is_last(&answering.copy.body.bytes)
    }

    /// Sends the copy. Returns what the end waits for.
    fn end(&mut self, ended: Ended) -> Option<oneshot::Receiver<()>> {
        if std::mem::replace(&mut self.is_done, true) {
            return None;
        }
        match &mut self.part {
            Part::Request(asking) => {
                end_request(asking);
                None
            }
            Part::Answer(answering) => answering.take()?.end(ended),
        }
    }
}

impl Body for Tee {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if self.held.is_none() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            let waits = match &frame {
                Some(Ok(frame)) => {
                    frame.data_ref().into_iter().for_each(|bytes| self.copy(bytes));
                    match self.body.is_end_stream() || self.is_last_event() {
                        true => self.end(Ended::Whole),
                        false => None,
                    }
                }
                Some(Err(_)) => self.end(Ended::Upstream),
                None => self.end(Ended::Whole),
            };
            let Some(waits) = waits else { return Poll::Ready(frame) };
            self.held = Some(HeldEnd { last: frame, waits });
        }
        let Some(held) = &mut self.held else { return Poll::Ready(None) };
        // Ignored: nothing is recorded any more, so there is nothing to wait for.
        let _ = ready!(Pin::new(&mut held.waits).poll(cx));
        Poll::Ready(self.held.take().and_then(|held| held.last))
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        // A body that is known to be empty is never asked for.
        let ended = if self.body.is_end_stream() { Ended::Whole } else { Ended::Program };
        // Ignored: a body that is dropped has no reader who waits for its end.
        let _ = self.end(ended);
    }
}

/// The body of an answer to the program.
enum OutBody {
    Passing(Tee),
    Served(ServedBody),
}

/// Pieces that are served as they were cut.
struct ServedBody {
    pieces: VecDeque<Bytes>,
    /// Whether the connection was closed after them.
    is_cut: bool,
    is_sent: bool,
}

impl OutBody {
    fn of(pieces: Vec<Bytes>) -> OutBody {
        OutBody::Served(ServedBody { pieces: pieces.into(), is_cut: false, is_sent: false })
    }
}

impl Body for OutBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            OutBody::Passing(tee) => Pin::new(tee).poll_frame(cx).map_err(Into::into),
            OutBody::Served(body) => Poll::Ready(match body.pieces.pop_front() {
                Some(piece) => Some(Ok(Frame::data(piece))),
                // The pieces before are sent first.
                None if body.is_cut && !std::mem::replace(&mut body.is_sent, true) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                None if body.is_cut => Some(Err("the connection was closed when this was recorded".into())),
                None => None,
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            OutBody::Passing(tee) => tee.is_end_stream(),
            OutBody::Served(body) => body.pieces.is_empty() && !body.is_cut,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            OutBody::Passing(tee) => tee.size_hint(),
            OutBody::Served(body) if body.is_cut => SizeHint::default(),
            OutBody::Served(body) => {
                SizeHint::with_exact(body.pieces.iter().map(|piece| piece.len() as u64).sum())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_byte_are_bounded_as_well() {
        let counts = Arc::new(Counts::default());
        let mut copy = Copy { counts: Arc::clone(&counts), body: CopiedBody::default() };
        for _ in 0..2 << 20 {
            copy.add(b"x");
        }
        assert!(copy.body.pieces.len() as u64 * PIECE <= BODY_MAX as u64 + PIECE);
        assert_eq!(copy.body.bytes.len() as u64 + copy.body.left_out, 2 << 20);
        assert_eq!(
            counts.waiting.load(Ordering::Relaxed),
            size(&copy.body),
            "what waits is what a copy counts"
        );
        copy.body.left_out = 0;
        counts.waiting.store(WAITING_MAX - PIECE, Ordering::Relaxed);
        copy.body.pieces.clear();
        copy.add(b"y");
        assert_eq!(copy.body.left_out, 1, "other copies wait already");
    }
}
