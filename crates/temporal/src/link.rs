//! The one connection to Temporal, made when it is first needed and made again when it is found dead.
//!
//! The library's own `connect` fails at once while the server is away. So nobody connects at start: each call asks
//! for the connection, all that ask at the same time share one try, and when the try fails each of them hears why.
//! A connection that broke under a call or let it expire is dropped, because a peer that vanished without a word
//! would otherwise be noticed only by the keep-alive, most of a minute later. A status that the server sent has no
//! source; one that the connection made up has.
//!
//! A connection that has ended carries nothing more, and is not made again behind our back (see `transport`): what was to be sent on it
//! goes out on the next one, which is asked first who is there.
//!
//! Invariant: [`CallError::NotConnected`] means that the request was never handed to a connection.

use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use stationmaster_core::engine::Identity;
use stationmaster_core::tls;
use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::{Request, Response, Status};
use tokio::time::{Instant, timeout, timeout_at};

use crate::bond::{Bond, Place};
use crate::config::{ConfigError, TemporalConfig};
use crate::transport::{ConnectError, Connection, has_ended};

/// Why a call has no answer to give.
#[derive(Debug)]
pub(crate) enum CallError {
    /// There was no connection to send it on.
    NotConnected(String),
    /// It may have been sent; no answer came in time.
    Expired,
    /// The server answered with an error, or the connection failed; a status of the latter kind has a source.
    Answered(Box<Status>),
}

impl CallError {
    /// Had the connection ended before anything was sent on it?
    fn was_not_sent(&self) -> bool {
        matches!(self, Self::Answered(status) if has_ended(status))
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotConnected(reason) => write!(f, "no connection to Temporal: {reason}"),
            Self::Expired => f.write_str("Temporal did not answer in time"),
            Self::Answered(status) if status.source().is_some() => {
                if let Some(words) = tls::explain(status.as_ref(), &tls::TEMPORAL) {
                    return f.write_str(&words);
                }
                let mut text = status.message().to_owned();
                append_sources(&mut text, status.source());
                write!(f, "the connection to Temporal failed: {text}")
            }
            Self::Answered(status) => {
                write!(f, "Temporal answered {:?}: {}", status.code(), status.message())
            }
        }
    }
}

/// The result of one try to connect, for everybody who waits for it.
type Attempt = Shared<BoxFuture<'static, Result<Connection, Arc<str>>>>;

#[derive(Clone)]
struct Numbered {
    number: u64,
    attempt: Attempt,
}

/// A call of the service, such as `WorkflowService::describe_namespace`: sends a request and answers with the response.
pub(crate) trait Rpc<Q, A>:
    for<'s> Fn(&'s mut (dyn WorkflowService + 'static), Request<Q>) -> BoxFuture<'s, Answer<A>>
{
}

impl<Q, A, F> Rpc<Q, A> for F where
    F: for<'s> Fn(&'s mut (dyn WorkflowService + 'static), Request<Q>) -> BoxFuture<'s, Answer<A>>
{
}

type Answer<A> = Result<Response<A>, Status>;

pub(crate) struct Link {
    config: TemporalConfig,
    current: Mutex<Option<Numbered>>,
    attempts: AtomicU64,
    place: Place,
    bond: Bond,
}

impl Link {
    pub(crate) fn new(config: &TemporalConfig, place: Place) -> Result<Self, ConfigError> {
        config.connection_options()?;
        Ok(Self {
            config: config.clone(),
            place,
            bond: Bond::free(),
            current: Mutex::new(None),
            attempts: AtomicU64::new(0),
        })
    }

    /// Sends one request, once, and waits for its answer until `ends_at`.
    pub(crate) async fn call<Q: Clone, A>(
        &self,
        ends_at: Instant,
        message: Q,
        rpc: impl Rpc<Q, A>,
    ) -> Result<A, CallError> {
        match self.call_once(ends_at, message.clone(), &rpc).await {
            Err(error) if error.was_not_sent() => self.call_once(ends_at, message, &rpc).await,
            answer => answer,
        }
    }

    async fn call_once<Q, A>(
        &self,
        ends_at: Instant,
        message: Q,
        rpc: &impl Rpc<Q, A>,
    ) -> Result<A, CallError> {
        self.bond.allows().map_err(CallError::NotConnected)?;
        let (number, connection) = self.connected(ends_at).await?;
        let proven = self.bond.prove(number, &connection, &self.place, ends_at).await;
        if let Err(reason) = proven {
            // Whatever is wrong with this connection, the next one may be better.
            self.drop_attempt(number);
            return Err(CallError::NotConnected(reason));
        }
        tracing::trace!(request = std::any::type_name::<Q>(), "Asks Temporal");
        let mut request = Request::new(message);
        request.set_timeout(ends_at.saturating_duration_since(Instant::now()));
        // There is no layer of retries below this: a request goes out once or not at all.
        let mut service = connection.service();
        let Ok(answer) = timeout_at(ends_at, rpc(&mut service, request)).await else {
            self.drop_attempt(number);
            return Err(CallError::Expired);
        };
        match answer {
            Ok(response) => Ok(response.into_inner()),
            Err(status) => {
                if status.source().is_some() {
                    self.drop_attempt(number);
                }
                Err(CallError::Answered(Box::new(status)))
            }
        }
    }

    async fn connected(&self, ends_at: Instant) -> Result<(u64, Connection), CallError> {
        match timeout_at(ends_at, self.connection()).await {
            Ok(connected) => connected.map_err(|reason| CallError::NotConnected(reason.to_string())),
            Err(_) => Err(CallError::NotConnected("connecting took too long".to_owned())),
        }
    }

    /// From now on nothing is sent but to this Temporal; `None`: nothing at all.
    pub(crate) fn bind_to(&self, identity: Option<&Identity>) {
        self.bond.bind_to(identity);
    }

    /// Who is there, whatever the link is bound to.
    pub(crate) async fn identity(&self, ends_at: Instant) -> Result<Identity, CallError> {
        match self.identity_once(ends_at).await {
            Err(error) if error.was_not_sent() => self.identity_once(ends_at).await,
            answer => answer,
        }
    }

    async fn identity_once(&self, ends_at: Instant) -> Result<Identity, CallError> {
        let (number, connection) = self.connected(ends_at).await?;
        let Ok(answer) = timeout_at(ends_at, self.place.identity(&connection)).await else {
            self.drop_attempt(number);
            return Err(CallError::Expired);
        };
        answer.map_err(|status| {
            if status.source().is_some() {
                self.drop_attempt(number);
            }
            CallError::Answered(Box::new(status))
        })
    }

    /// Was what was just heard said by the Temporal that the link is bound to?
    pub(crate) async fn prove_again(&self, ends_at: Instant) -> Result<(), CallError> {
        self.bond.forget_proof().await;
        let (number, connection) = self.connected(ends_at).await?;
        let proven = self.bond.prove(number, &connection, &self.place, ends_at).await;
        proven.map_err(CallError::NotConnected)
    }

    /// The current connection, or the outcome of the try that is under way, or of a new one.
    async fn connection(&self) -> Result<(u64, Connection), Arc<str>> {
        let Numbered { number, attempt } = self.current.lock().get_or_insert_with(|| self.attempt()).clone();
        match attempt.await {
            Ok(connection) => Ok((number, connection)),
            Err(reason) => {
                self.drop_attempt(number);
                Err(reason)
            }
        }
    }

    /// Begins a try. It runs as a task of its own, so that it ends whether or not those who asked still wait.
    fn attempt(&self) -> Numbered {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        // What the settings name, such as certificates, is read for each try.
        let (options, limit) = (self.config.connection_options(), self.config.rpc_timeout);
        let encrypted = self.config.is_encrypted();
        let task = tokio::spawn(async move {
            let options = options.map_err(|error| Arc::from(error.to_string()))?;
            match timeout(limit, Connection::open(&options)).await {
                Ok(Ok(connection)) => Ok(connection),
                Ok(Err(error)) => Err(Arc::from(reason(&error, encrypted))),
                Err(_) => Err(Arc::from(format!("no answer within {limit:?}"))),
            }
        });
        let attempt = task.map(|joined| joined.unwrap_or_else(|error| Err(Arc::from(error.to_string()))));
        Numbered {
            number,
            attempt: attempt.boxed().shared(),
        }
    }

    /// Forgets a failed or dead connection, unless somebody has replaced it already.
    fn drop_attempt(&self, number: u64) {
        self.current.lock().take_if(|current| current.number == number);
    }
}

/// What stands between us and a connection, in one line, without the debug forms that the library prints.
fn reason(error: &ConnectError, encrypted: bool) -> String {
    if let Some(words) = tls::explain(error, &tls::TEMPORAL) {
        return words;
    }
    match error {
        ConnectError::Greeting(status) => {
            let mut text = format!("{:?}: {}", status.code(), status.message());
            append_sources(&mut text, status.source());
            if encrypted && status.source().is_some() {
                // Who is refused for its certificate has finished its own part of the handshake by then, and often sees no more than
                // the end of the connection.
                let _ = write!(
                    text,
                    "; it broke right after the handshake, perhaps because {} does not take our certificate: {}",
                    tls::TEMPORAL.name,
                    tls::TEMPORAL.own
                );
            }
            text
        }
        ConnectError::Transport(error) => {
            let mut text = error.to_string();
            append_sources(&mut text, error.source());
            text
        }
    }
}

fn append_sources(text: &mut String, source: Option<&(dyn Error + 'static)>) {
    for error in chain(source) {
        let part = error.to_string();
        if !text.contains(&part) {
            let _ = write!(text, ": {part}");
        }
    }
}

/// An error and what caused it, down to the root.
pub(crate) fn chain<'a>(
    first: Option<&'a (dyn Error + 'static)>,
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(first, |&error| error.source())
}
