//! The way to an API: as the program itself would reach it, through the proxies of its environment.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Connects to APIs.
#[derive(Clone)]
pub(crate) struct Route {
    direct: HttpConnector,
    proxies: Arc<Matcher>,
}

impl Route {
    /// A route by the proxies that the environment names (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`).
    pub(crate) fn from_env() -> Route {
        let mut direct = HttpConnector::new();
        direct.enforce_http(false);
        direct.set_nodelay(true);
        Route { direct, proxies: Arc::new(Matcher::from_env()) }
    }
}

impl Service<Uri> for Route {
    type Response = Way;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Way, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (mut direct, proxies) = (self.direct.clone(), Arc::clone(&self.proxies));
        Box::pin(async move {
            let Some(proxy) = proxies.intercept(&to) else {
                return Ok(Way { stream: direct.call(to).await?, is_proxy: false });
            };
            if to.scheme_str() != Some("https") {
                return Ok(Way { stream: direct.call(proxy.uri().clone()).await?, is_proxy: true });
            }
            let tunnel = Tunnel::new(proxy.uri().clone(), direct);
            let mut tunnel = match proxy.basic_auth() {
                Some(auth) => tunnel.with_auth(auth.clone()),
                None => tunnel,
            };
            Ok(Way { stream: tunnel.call(to).await?, is_proxy: false })
        })
    }
}

/// A connection to an API, or to a proxy that asks it.
pub(crate) struct Way {
    stream: TokioIo<TcpStream>,
    is_proxy: bool,
}

impl Connection for Way {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_proxy)
    }
}

impl Read for Way {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Write for Way {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
