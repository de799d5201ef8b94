//! Wakes: the HTTP POST that delivers an occurrence, signed by Standard Webhooks. One of the places that reach outside.
//!
//! Knows URLs, signatures, addresses and answers; must know neither the database nor what an alarm is. Whatever happens is a
//! value: a wake is answered, or it is not. A target that is not trusted by name must have a public address: `guard`
//! says which are, the client's resolver asks it at every connection, and literal addresses are looked at before every
//! request. `targets` keeps one slow or dead target from holding up the others.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use url::{Host, Url};

pub mod answer;
pub mod guard;
mod resolver;
pub mod signature;
pub mod targets;

use answer::retry_after;
use guard::{Forbidden, Guard};
use resolver::GuardedResolver;
use signature::Secret;

use crate::observe::trace;
use crate::tls;

/// So much of an answer is kept.
pub const ANSWER_KEPT: usize = 4 * 1024;
/// So much more is read, for the connection to be used again.
const ANSWER_READ: usize = 64 * 1024;
/// The head of the answer decides; its body is not waited for longer than this.
const BODY_PATIENCE: Duration = Duration::from_secs(2);
/// A connection that nobody used for longer may have been closed by the other side.
const IDLE: Duration = Duration::from_secs(20);

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What is sent.
pub struct Wake<'a> {
    /// Where to.
    pub url: &'a Url,
    /// Who named this URL.
    pub named_by: NamedBy,
    /// The same in every try.
    pub id: &'a str,
    /// JSON.
    pub body: Vec<u8>,
    /// Newest first; none: it is not signed.
    pub secrets: &'a [Secret],
    /// W3C trace context.
    pub traceparent: Option<&'a str>,
}

/// Who named a wake's URL, and with that whether the guard has a say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// The operator, by the setting of the router: it may be anywhere, and this very URL is meant.
    Operator,
    /// Whoever set the alarm: it may be on the allow list, or must have a public address.
    Tenant,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The target answered.
    Answered {
        /// The HTTP status.
        status: u16,
        /// The beginning of the body.
        body: String,
        /// What the target asked for.
        retry_after: Option<Duration>,
    },
    /// No answer: no connection, no name, no time.
    Unreachable {
        /// What happened.
        message: String,
    },
    /// It was not sent: the target is not one that may be called.
    Forbidden {
        /// Why.
        message: String,
    },
}

/// Sends wakes.
#[derive(Debug, Clone)]
pub struct Client {
    guard: Arc<Guard>,
    /// For the router, and for targets that are trusted by name.
    trusted: reqwest::Client,
    /// For all others: its resolver refuses addresses that are not public.
    guarded: reqwest::Client,
}

impl Client {
    /// A client that keeps at most `idle` unused connections to each target.
    pub fn new(guard: Guard, idle: usize) -> Result<Self, reqwest::Error> {
        // Another part of the program may have chosen the same provider before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let guard = Arc::new(guard);
        let builder = || {
            reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                // A proxy of the environment would look up names in our stead.
                .no_proxy()
                .pool_idle_timeout(IDLE)
                .pool_max_idle_per_host(idle)
                .tcp_nodelay(true)
                .user_agent(concat!("stationmaster/", env!("CARGO_PKG_VERSION")))
        };
        Ok(Self {
            trusted: tls::client(builder)?,
            guarded: tls::client(|| builder().dns_resolver(GuardedResolver(Arc::clone(&guard))))?,
            guard,
        })
    }

    /// Sends one wake and waits for the answer, no longer than `deadline`.
    #[tracing::instrument(name = "wake:post", level = "debug", skip_all, fields(id = wake.id))]
    pub async fn send(&self, wake: &Wake<'_>, deadline: Duration) -> Outcome {
        let client = match self.client_for(wake.url, wake.named_by) {
            Ok(client) => client,
            Err(forbidden) => {
                return Outcome::Forbidden {
                    message: forbidden.to_string(),
                };
            }
        };
        let until = tokio::time::Instant::now() + deadline;
        let headers = headers(wake);
        let request = || {
            client
                .post(wake.url.clone())
                .headers(headers.clone())
                .body(wake.body.clone())
                .send()
        };
        let answer = tokio::time::timeout_at(until, async {
            match request().await {
                // The other side closed a connection that it had kept open; a new one tells whether it is there.
                Err(error) if !error.is_connect() && !error.is_timeout() => request().await,
                other => other,
            }
        })
        .await;
        match answer {
            Err(_) => Outcome::Unreachable {
                message: format!("no answer within {} s", deadline.as_secs_f64()),
            },
            Ok(Err(error)) => failure(&error),
            Ok(Ok(answer)) => read(answer, until).await,
        }
    }

    /// Literal addresses never reach the resolver, so they are looked at here.
    pub(crate) fn client_for(&self, url: &Url, named_by: NamedBy) -> Result<&reqwest::Client, Forbidden> {
        if named_by == NamedBy::Operator || self.guard.trusts(url) {
            return Ok(&self.trusted);
        }
        match url.host() {
            Some(Host::Ipv4(address)) => self.guard.check(address.into())?,
            Some(Host::Ipv6(address)) => self.guard.check(address.into())?,
            Some(Host::Domain(_)) => {}
            None => return Err(Forbidden::without_host()),
        }
        Ok(&self.guarded)
    }
}

fn headers(wake: &Wake<'_>) -> HeaderMap {
    let timestamp = jiff::Timestamp::now().as_second();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut put = |name: HeaderName, text: &str| {
        // What does not fit into a header (a control character in a trace context) is left out.
        if let Ok(value) = HeaderValue::from_str(text) {
            headers.insert(name, value);
        }
    };
    put(WEBHOOK_ID, wake.id);
    put(WEBHOOK_TIMESTAMP, &timestamp.to_string());
    if !wake.secrets.is_empty() {
        put(
            WEBHOOK_SIGNATURE,
            &signature::sign(wake.secrets, wake.id, timestamp, &wake.body),
        );
    }
    // Whoever asked has a trace that goes on at the target; otherwise ours does, if it is sent anywhere.
    if let Some(traceparent) = wake.traceparent {
        put(TRACEPARENT, traceparent);
    } else if let Some(own) = trace::own() {
        put(TRACEPARENT, &own);
    }
    headers
}

fn failure(error: &reqwest::Error) -> Outcome {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(forbidden) = error.downcast_ref::<Forbidden>() {
            return Outcome::Forbidden {
                message: forbidden.to_string(),
            };
        }
        cause = error.source();
    }
    // The URL may hold what is nobody's business; the causes say enough.
    let message = causes(error);
    Outcome::Unreachable { message }
}

/// Why there was no answer, without what every such error begins with.
pub(crate) fn causes(error: &reqwest::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), crate::task::chain)
}

async fn read(mut answer: reqwest::Response, until: tokio::time::Instant) -> Outcome {
    let status = answer.status().as_u16();
    let retry_after = answer
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| retry_after(text, jiff::Timestamp::now()));
    let mut kept = Vec::new();
    let patience = until.min(tokio::time::Instant::now() + BODY_PATIENCE);
    let rest = async {
        let mut seen = 0;
        while let Ok(Some(chunk)) = answer.chunk().await {
            let room = ANSWER_KEPT - kept.len();
            kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
            seen += chunk.len();
            if seen > ANSWER_READ {
                break;
            }
        }
    };
    // The head has said what we need to know, whether or not the body comes.
    let _ = tokio::time::timeout_at(patience, rest).await;
    Outcome::Answered {
        status,
        body: text(&kept),
        retry_after,
    }
}

/// Text that PostgreSQL can keep, cut at a character.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace('\0', "");
    let mut end = text.len().min(ANSWER_KEPT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
