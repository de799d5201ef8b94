//! Connections: accepted up to a number, with TLS or without, each with bounds on its headers and its patience; when there is no
//! room, whoever has been idle the longest goes. An orderly end lets answers under way be read. What TLS shows is `certificate`'s.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::caller::Peer;
use super::guests::{Guest, Guests, Impatient};
use super::wording::Worded;

/// How long the head of a request may take to arrive, and a handshake.
pub(super) const HEAD: Duration = Duration::from_secs(10);
/// All headers of a request together.
const HEAD_BYTES: usize = 64 * 1024;
/// Headers of a request.
const HEADERS: usize = 64;
/// How long an end waits for answers that are being read.
const DRAIN: Duration = Duration::from_secs(2);
/// How soon it is looked again for somebody to make room, when all are served.
const NO_ROOM: Duration = Duration::from_millis(50);

/// Serves connections until `stop`, then lets those under way end.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    most: usize,
    stop: CancellationToken,
) {
    let graceful = GracefulShutdown::new();
    let (places, guests) = (Arc::new(Semaphore::new(most)), Guests::default());
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = room(&places, &guests, most) => place,
        };
        let Some(place) = place else { break };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                let connection = Connection {
                    router: router.clone(),
                    peer: Peer(address.ip().to_canonical()),
                    watcher: graceful.watcher(),
                    guest: Arc::new(guests.enter()),
                    _place: place,
                };
                let tls = tls.clone();
                tokio::spawn(async move {
                    let out = connection.guest.out.clone();
                    tokio::select! {
                        () = connection.begin(stream, tls) => {}
                        () = out.cancelled() => tracing::debug!("A connection made room for another"),
                    }
                });
            }
            Err(error) => {
                // Out of descriptors, or the peer has gone already: the next one may do better.
                tracing::debug!(%error, "A connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        tracing::debug!("Some connections were cut");
    }
}

/// Room for one more. Some go at once, so that in a rush nobody who comes waits for the end of each of those before.
async fn room(places: &Arc<Semaphore>, guests: &Guests, most: usize) -> Option<OwnedSemaphorePermit> {
    loop {
        if let Ok(place) = Arc::clone(places).try_acquire_owned() {
            return Some(place);
        }
        guests.make_room((most / 16).max(1));
        let place = tokio::time::timeout(NO_ROOM, Arc::clone(places).acquire_owned());
        if let Ok(place) = place.await {
            return place.ok();
        }
    }
}

struct Connection {
    router: Router,
    peer: Peer,
    watcher: hyper_util::server::graceful::Watcher,
    guest: Arc<Guest>,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    async fn begin(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        // Answers are small and awaited.
        let _ = stream.set_nodelay(true);
        match tls {
            None => self.run(stream).await,
            Some(tls) => match tokio::time::timeout(HEAD, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.run(stream).await,
                Ok(Err(error)) => tracing::debug!(%error, "A TLS handshake failed"),
                Err(_) => tracing::debug!("A TLS handshake took too long"),
            },
        }
    }

    async fn run(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let (router, peer, guest) = (self.router, self.peer, self.guest);
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            let (router, guest) = (router.clone(), Arc::clone(&guest));
            async move {
                guest.is_busy(true);
                let answer = router.oneshot(request).await;
                guest.is_busy(answer.as_ref().is_ok_and(is_stream));
                answer
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(HEAD_BYTES)
            .max_headers(HEADERS)
            .serve_connection(TokioIo::new(Worded::new(Impatient::new(stream))), service);
        if let Err(error) = self.watcher.watch(connection).await {
            tracing::debug!(%error, "A connection ended early");
        }
    }
}

/// Does the answer go on for as long as somebody listens?
fn is_stream(answer: &Response) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
