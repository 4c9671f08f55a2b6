//! The server: connections, and which part answers a request.

use std::io;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use axum::{Router, routing};
use dendrer::lines::Authors;
use dendrer::problem::Problem;
use dendrer_object::Code;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use crate::answer::{EXIT, Refusal, guarded};
use crate::badge::Badges;
use crate::guard::Guard;
use crate::path::{Form, Target};
use crate::served::Served;
use crate::work::Work;
use crate::{events, page, reading, writing};

/// How long a client may take for the headers of a request.
const HEADERS: Duration = Duration::from_secs(10);
/// How long a shutdown waits for requests that have begun.
const LAST_REQUESTS: Duration = Duration::from_secs(30);
/// The largest body of a question, in bytes.
const BODY_MAX: usize = 1 << 20;

/// Rights of requests.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// Whether `POST` writes.
    pub is_writing: bool,
    /// Whether lines of `commit` may be by the user.
    pub as_user: bool,
    /// Whether lines of `commit` may be by the runtime.
    pub as_runtime: bool,
}

/// The answers about one store or one bundle.
#[derive(Debug, Clone)]
pub struct Server {
    served: Arc<Served>,
    work: Work,
    options: ServerOptions,
    badges: Badges,
    /// `None` for a request of the program itself, which has no connection.
    guard: Option<Guard>,
}

/// The body of a request that the program itself made, and its exit code.
#[derive(Debug)]
pub struct Got {
    /// The bytes of the body.
    pub body: Vec<u8>,
    /// The exit code of the command that asks the same.
    pub exit: u8,
}

impl Server {
    /// A server of a store or a bundle.
    pub fn new(served: Served, options: ServerOptions) -> Server {
        Server {
            served: Arc::new(served),
            work: Work::new(),
            options,
            badges: Badges::default(),
            guard: None,
        }
    }

    /// Answers `GET path` without a connection.
    ///
    /// # Errors
    ///
    /// An error if the text cannot be a path, or no thread can be begun.
    pub fn get(&self, path: &str) -> io::Result<Got> {
        let request = Request::get(path).body(Body::empty()).map_err(io::Error::other)?;
        runtime()?.block_on(async {
            let response = self.clone().answer(request).await;
            let exit =
                response.headers().get(EXIT).and_then(|exit| exit.to_str().ok()?.parse().ok()).unwrap_or(0);
            let body = to_bytes(response.into_body(), usize::MAX).await.map_err(io::Error::other)?;
            Ok(Got { body: body.to_vec(), exit })
        })
    }

    /// Answers the connections of a listener until `stop` is ready, then finishes what has begun.
    ///
    /// # Errors
    ///
    /// An error if the listener fails, or no thread can be begun.
    pub fn run(self, listener: StdListener, guard: Guard, stop: impl Future<Output = ()>) -> io::Result<()> {
        let server = Server { guard: Some(guard), ..self };
        listener.set_nonblocking(true)?;
        runtime()?.block_on(async {
            let listener = TcpListener::from_std(listener)?;
            let router = Router::new().fallback(routing::any(answer)).with_state(server);
            let graceful = GracefulShutdown::new();
            tokio::pin!(stop);
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = &mut stop => break,
                };
                let Ok((stream, _)) = accepted else {
                    // Too many open files: the next connection may find one.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let service = TowerToHyperService::new(
                    router.clone().map_request(|request: hyper::Request<_>| request.map(Body::new)),
                );
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEADERS)
                    .serve_connection(TokioIo::new(stream), service);
                let connection = graceful.watch(connection);
                // A connection that fails is the client's; the others go on.
                tokio::spawn(async move { drop(connection.await) });
            }
            drop(listener);
            let _ = tokio::time::timeout(LAST_REQUESTS, graceful.shutdown()).await;
            Ok(())
        })
    }

    async fn answer(self, request: Request) -> Response {
        guarded(self.route(request).await.unwrap_or_else(Response::from))
    }

    async fn route(self, request: Request) -> Result<Response, Refusal> {
        let (parts, body) = request.into_parts();
        let is_reading = parts.method == Method::GET || parts.method == Method::HEAD;
        let address = parts.uri.path_and_query().map_or("/", |address| address.as_str());
        let mut target = Target::read(parts.uri.path(), parts.uri.query())?;
        if let Some(guard) = &self.guard {
            let token = if is_reading { target.take("token") } else { None };
            let is_page = is_reading && target.form == Form::Page;
            match (guard.check(&parts), token) {
                (Ok(()), None) => {}
                (found, Some(token)) if is_page && may_open(&found) => {
                    return Ok(opened(guard, &token, address));
                }
                (Err(refusal), _) if refusal.status == StatusCode::UNAUTHORIZED && is_page => {
                    let is_again = target.take(page::AGAIN).is_some();
                    return Ok(page::without_token(address, is_again));
                }
                (Err(refusal), _) => return Err(refusal),
                (Ok(()), Some(_)) => {
                    return Err(
                        Problem::new(Code::E0106, "the token of a program is in its Authorization").into()
                    );
                }
            }
        }
        match parts.method {
            _ if is_reading => self.read(target, parts.uri.path(), &parts.headers).await,
            Method::POST => self.post(target, &parts.headers, body).await,
            _ => Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "only GET and POST are answered")),
        }
    }

    async fn read(self, mut target: Target, path: &str, headers: &HeaderMap) -> Result<Response, Refusal> {
        let segments: Vec<&str> = target.segments.iter().map(String::as_str).collect();
        match (target.form, &segments[..]) {
            (Form::Page, ["events"]) => return Ok(events::runs(self.served)),
            (Form::Page, ["run", run, "events"]) => {
                let run = (*run).to_owned();
                let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
                let after = target.take("after").and_then(|after| after.parse().ok());
                return events::transitions(self.served, run, last.or(after).unwrap_or(0)).await;
            }
            (Form::Page, ["run", _, "t", _, "value"]) => {}
            (Form::Page, _) => return Ok(page::file(path).unwrap_or_else(page::index)),
            (Form::Json, ["run", run, "badge"]) => {
                only_path(&target)?;
                // A request of the program itself ends with the program, and a verification that is under way too.
                let waits = self.guard.is_none();
                return self.badges.read(&self.served, &self.work, run, waits).await;
            }
            _ => {
                if let Some(file) = page::file(path) {
                    return Ok(file);
                }
            }
        }
        reading::get(&self.served, &self.work, target, headers).await
    }

    async fn post(self, target: Target, headers: &HeaderMap, body: Body) -> Result<Response, Refusal> {
        if headers.contains_key(header::CONTENT_ENCODING) {
            return Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "a body is sent as it is, not compressed",
            ));
        }
        let segments: Vec<&str> = target.segments.iter().map(String::as_str).collect();
        match segments[..] {
            ["ask", name] => {
                only_path(&target)?;
                let body = whole(body).await?;
                reading::post(&self.served, &self.work, name, body, headers).await
            }
            ["run", run, "commit"] => {
                self.may_write()?;
                let authors = self.authors(&target)?;
                writing::commit(&self.served, run, authors, body).await
            }
            ["run", run, "fork"] => {
                only_path(&target)?;
                self.change("fork", Some(run), body).await
            }
            [name @ ("label" | "note")] => {
                only_path(&target)?;
                self.change(name, None, body).await
            }
            _ => Err(Refusal::new(
                StatusCode::NOT_FOUND,
                "nothing is posted here; /openapi.json lists the routes",
            )),
        }
    }

    /// Asks a question that writes.
    async fn change(&self, name: &str, run: Option<&str>, body: Body) -> Result<Response, Refusal> {
        self.may_write()?;
        let body: Bytes = whole(body).await?;
        let (served, name, run) = (Arc::clone(&self.served), name.to_owned(), run.map(str::to_owned));
        self.work.run(move |_| writing::change(&served, &name, run.as_deref(), &body)).await
    }

    fn may_write(&self) -> Result<(), Refusal> {
        match &self.guard {
            Some(guard) => guard.check_write(),
            None => Err(Refusal::new(StatusCode::FORBIDDEN, "nothing is written without a connection")),
        }
    }

    /// Returns who writes the lines of a commit.
    fn authors(&self, target: &Target) -> Result<Authors, Refusal> {
        let [(name, value)] = &target.query[..] else {
            return match target.query.is_empty() {
                true => Ok(Authors::Pipe),
                false => Err(Problem::new(Code::E0106, "the query of a commit is as=AUTHOR").into()),
            };
        };
        match (&**name, &**value) {
            ("as", "agent") => Ok(Authors::Agent),
            ("as", "user") if self.options.as_user => Ok(Authors::User),
            ("as", "runtime") if self.options.as_runtime => Ok(Authors::Runtime),
            ("as", "user" | "runtime") => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "the server was started without --allow-as for this author",
            )),
            _ => {
                Err(Problem::new(Code::E0106, "the query of a commit is as=agent, as=user or as=runtime")
                    .into())
            }
        }
    }
}

async fn answer(State(server): State<Server>, request: Request) -> Response {
    server.answer(request).await
}

/// Refuses a query where none is read.
fn only_path(target: &Target) -> Result<(), Problem> {
    match target.query.first() {
        None => Ok(()),
        Some((name, _)) => Err(Problem::new(Code::E0106, format!("\"{name}\" is no word of this query"))),
    }
}

/// Whether a request whose check ended so may bring the token in its address.
fn may_open(found: &Result<(), Refusal>) -> bool {
    found.as_ref().err().is_none_or(|refusal| refusal.status == StatusCode::UNAUTHORIZED)
}

/// Sets the cookie for a token that is right, and leads to the address without it. A redirect after a navigation from
/// elsewhere would not carry a Strict cookie.
fn opened(guard: &Guard, token: &str, address: &str) -> Response {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let kept: Vec<&str> =
        query.split('&').filter(|pair| !pair.starts_with("token=") && !pair.is_empty()).collect();
    let clean = if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) };
    if !guard.is_token(token) {
        return page::without_token(&clean, true);
    }
    let mut response = page::goes_to(&clean);
    if let Ok(cookie) = HeaderValue::from_str(&guard.set_cookie()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Reads a body that is a document.
async fn whole(body: Body) -> Result<Bytes, Refusal> {
    let read = to_bytes(body, BODY_MAX).await;
    read.map_err(|_| Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "the body has more than 1 MiB"))
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Is ready when the program is asked to end: by Ctrl-C, or by a signal that ends it.
pub async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut ended) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = ended.recv() => {}
            }
            return;
        }
    }
    // Ignored: without signals the program is ended by the system.
    let _ = tokio::signal::ctrl_c().await;
}

/// Calls `begin` once the first of some signals is caught instead of ending the program, and returns it as soon as one is there.
///
/// # Errors
///
/// An error if signals cannot be caught; the program is then ended by them, as before.
#[cfg(unix)]
pub fn ending_signal(numbers: &[i32], begin: impl FnOnce()) -> io::Result<i32> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let caught = numbers.iter().map(|number| Ok((*number, signal(SignalKind::from_raw(*number))?)));
        let mut caught = caught.collect::<io::Result<Vec<_>>>()?;
        begin();
        Ok(std::future::poll_fn(|context| {
            let came = caught
                .iter_mut()
                .find_map(|(number, signal)| signal.poll_recv(context).is_ready().then_some(*number));
            came.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        })
        .await)
    })
}
