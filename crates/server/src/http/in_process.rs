//! The API without a listener: a client in the same process, whose requests go straight to the router, made by a caller that it
//! brings along. Nobody is asked for a token, and nobody's requests are counted.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::http::{header, request};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use stationmaster_client::{BoxError, Client, ClientBuilder, Result as ClientResult, Retries};
use stationmaster_core::db::Database;
use stationmaster_core::dispatchers::supervisor::Office;
use stationmaster_core::executions::gather::Gather;
use stationmaster_core::locks::Locks;
use stationmaster_core::observe::Metrics;
use stationmaster_core::task::spawn;
use stationmaster_core::wake::guard::{Allowed, Guard};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::caller::{Access, Caller, Peer};
use super::feed::Feed;
use super::limits::Limits;
use super::problem::Detail;
use super::work::Work;
use super::{State, guarded};
use crate::config::Config;
use crate::wiring;

/// Whoever asks waits for what was asked for, and may go away at any time.
const PATIENCE: Duration = Duration::from_hours(1);

/// A client for this database, which serves nobody else: no server need run. Everything is done under the actor's name, as the
/// role of the database's own connections.
pub(crate) fn alone(
    builder: ClientBuilder,
    actor: &str,
    database: &Database,
    config: &Arc<Config>,
) -> Result<Client> {
    let office = {
        let (config, database) = (Arc::clone(config), database.clone());
        move || -> BoxFuture<'static, Result<Office>> {
            let (config, database) = (Arc::clone(&config), database.clone());
            async move { wiring::office(&config, database).await }.boxed()
        }
    };
    let caller = Caller::on_the_database(actor);
    // What is changed is written down under this name, whoever writes it.
    let database = database.on_behalf(actor, caller.scope.clone());
    let metrics = Arc::new(Metrics::new());
    let mut settings = config.http.clone();
    // What protects a server from its callers is in the way of an operator.
    settings.body_limit = usize::MAX;
    settings.request_timeout = PATIENCE;
    settings.require_if_match = false;
    let state = State {
        limits: Limits::new(&settings),
        settings: Arc::new(settings),
        locks: Locks::new(database.clone(), config.locks.table.clone(), Arc::clone(&metrics)),
        database,
        work: Work::Elsewhere(Arc::new(office)),
        metrics,
        access: Access::default(),
        feed: Feed::new(),
        targets: Arc::new(anywhere()),
        gather: Gather::default(),
        config: Arc::clone(config),
        examining: Arc::default(),
        detail: Detail::Told,
        stop: CancellationToken::new(),
    };
    let (feed, stop) = (&state.feed, &state.stop);
    spawn(
        &TaskTracker::new(),
        stop,
        feed.bell(),
        feed.pump(state.database.clone()),
    );
    client(builder, guarded(state, |api| api), caller)
}

/// A client for whoever made this request, under the token that is given and from the same place: what it is told and may do is what it
/// would be told over the network. Nothing is tried again, as somebody waits who can do that too.
pub(super) fn for_whoever(
    router: &Router,
    request: &request::Parts,
    token: Option<&str>,
) -> ClientResult<Client> {
    let mut builder = Client::builder().retries(Retries::none());
    if let Some(token) = token {
        builder = builder.token(token);
    }
    let peer = request.extensions.get::<Peer>().copied();
    let names = [
        header::HOST,
        header::ORIGIN,
        header::HeaderName::from_static("x-request-id"),
    ];
    let told: Vec<_> = names
        .into_iter()
        .filter_map(|name| Some((name.clone(), request.headers.get(name)?.clone())))
        .collect();
    let router = router.clone();
    builder.in_process(move |request| {
        let (router, mut request) = (router.clone(), request.map(Body::from));
        request.headers_mut().extend(told.clone());
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        async move {
            let Ok(response) = router.oneshot(request).await;
            response.map(|body| body.into_data_stream().map_err(BoxError::from).boxed())
        }
    })
}

/// A client whose requests this router answers, all of them made by this caller.
fn client(builder: ClientBuilder, router: Router, caller: Caller) -> Result<Client> {
    Ok(builder.in_process(move |request| {
        let (router, mut request) = (router.clone(), request.map(Body::from));
        request.extensions_mut().insert(caller.clone());
        async move {
            let Ok(response) = router.oneshot(request).await;
            response.map(|body| body.into_data_stream().map_err(BoxError::from).boxed())
        }
    })?)
}

/// Where wakes may go is for the servers that send them to say, by settings that need not be ours.
fn anywhere() -> Guard {
    let network = |address| Allowed::Network { address, prefix: 0 };
    let (four, six) = (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
    Guard::new(vec![network(four.into()), network(six.into())])
}
