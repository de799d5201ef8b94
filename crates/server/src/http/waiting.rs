//! The doors of a server that is on its way: it waits for its database, or brings the tables up to date, which may take long. It lives, and is
//! not ready; whoever asks for more is told so, and nobody ends it for not answering.

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::IntoResponse as _;
use axum::routing::get;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::ServiceExt as _;
use uuid::Uuid;

use super::listener::HEAD;
use super::problem::{Detail, Kind, Problem, render};

/// As many at once; more of them wait.
const AT_ONCE: usize = 64;

/// Answers until it is dropped, and what is under way with it. Not where the doors have TLS: what would read the certificate is not there yet.
pub(crate) async fn answer(listener: &TcpListener, has_tls: bool) {
    if has_tls {
        return std::future::pending().await;
    }
    let not_ready = || async {
        let words = "this server is on its way: it waits for its database, or brings the tables up to date";
        let refusal = Problem::new(Kind::NotReady, words).into_response();
        render(refusal, &Uuid::now_v7().to_string(), Detail::Kept)
    };
    let router = Router::new()
        .route("/livez", get(|| async { "alive\n" }))
        .fallback(not_ready);
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= AT_ONCE {
            connections.join_next().await;
        }
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(HEAD / 10).await;
            continue;
        };
        let router = router.clone();
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            router.clone().oneshot(request.map(Body::new))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        connections.spawn(async move { drop(tokio::time::timeout(HEAD, connection).await) });
    }
}
