//! How much a caller may ask: requests by token, failed tokens by address, requests and streams at once.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use stationmaster_core::db;
use stationmaster_core::id::TokenId;
use stationmaster_core::task::{Next, Pass};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::{Kind, Problem};
use crate::config::Http;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// How often those who have not been seen for a while are forgotten.
const SWEEP: Duration = Duration::from_mins(1);

type Keyed<K, M = governor::middleware::NoOpMiddleware> =
    RateLimiter<K, DefaultKeyedStateStore<K>, DefaultClock, M>;

/// How much a caller may ask.
#[derive(Clone)]
pub(super) struct Limits {
    tokens: Arc<Keyed<TokenId, StateInformationMiddleware>>,
    failures: Arc<Keyed<IpAddr>>,
    streams: Arc<Semaphore>,
    in_flight: Arc<Semaphore>,
}

/// Forgets, now and then, who has not been seen for a while.
pub(super) struct Sweep(pub(super) Limits);

impl Pass for Sweep {
    fn name(&self) -> &'static str {
        "limits"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        self.0.tokens.retain_recent();
        self.0.failures.retain_recent();
        Ok(Next::After(SWEEP))
    }
}

/// What is left of a token's allowance.
pub(super) struct Allowance {
    limit: u32,
    remaining: u32,
    reset: u64,
}

impl Allowance {
    /// Tells the caller.
    pub(super) fn tell(&self, headers: &mut HeaderMap) {
        headers.insert(LIMIT, self.limit.into());
        headers.insert(REMAINING, self.remaining.into());
        headers.insert(RESET, self.reset.into());
    }
}

impl Limits {
    pub(super) fn new(settings: &Http) -> Self {
        let per_second = NonZeroU32::new(settings.rate_limit).unwrap_or(NonZeroU32::MIN);
        let per_minute = NonZeroU32::new(settings.auth_failures).unwrap_or(NonZeroU32::MIN);
        let tokens = RateLimiter::keyed(Quota::per_second(per_second)).with_middleware();
        Self {
            tokens: Arc::new(tokens),
            failures: Arc::new(RateLimiter::keyed(Quota::per_minute(per_minute))),
            streams: Arc::new(Semaphore::new(settings.max_streams)),
            in_flight: Arc::new(Semaphore::new(settings.max_in_flight)),
        }
    }

    /// Takes one request from the token's allowance.
    pub(super) fn admit(&self, token: TokenId) -> Result<Allowance, Box<Response>> {
        match self.tokens.check_key(&token) {
            Ok(state) => {
                let limit = state.quota().burst_size().get();
                let remaining = state.remaining_burst_capacity();
                Ok(Allowance {
                    limit,
                    remaining,
                    reset: u64::from(remaining == 0),
                })
            }
            Err(until) => {
                let wait = until.wait_time_from(DefaultClock::default().now());
                let limit = until.quota().burst_size().get();
                let seconds = seconds(wait);
                let words = format!("this token may make {limit} requests a second");
                let problem = Problem::new(Kind::RateLimited, words).retry_after(seconds);
                let mut response = problem.into_response();
                let allowance = Allowance {
                    limit,
                    remaining: 0,
                    reset: seconds,
                };
                allowance.tell(response.headers_mut());
                Err(Box::new(response))
            }
        }
    }

    /// A token from this address opened no door: the refusal, or another one when that happens too often. A token that
    /// opens the door is never held back for its neighbours' mistakes.
    pub(super) fn failed(&self, peer: Option<IpAddr>, refusal: Problem) -> Problem {
        match peer.map(|peer| self.failures.check_key(&peer)) {
            None | Some(Ok(())) => refusal,
            Some(Err(until)) => {
                let wait = until.wait_time_from(DefaultClock::default().now());
                let words = "too many tokens from this address opened no door";
                Problem::new(Kind::RateLimited, words).retry_after(seconds(wait))
            }
        }
    }

    /// A place for a stream, until it is dropped.
    pub(super) fn stream(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let full = |_| Problem::new(Kind::Overloaded, "too many streams are open").retry_after(5);
        Arc::clone(&self.streams).try_acquire_owned().map_err(full)
    }

    /// A place for a request, until it is dropped.
    pub(super) fn request(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let full = |_| Problem::new(Kind::Overloaded, "too many requests are under way").retry_after(1);
        Arc::clone(&self.in_flight).try_acquire_owned().map_err(full)
    }
}

/// Whole seconds, at least one.
fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0).max(u64::from(wait.is_zero()))
}
