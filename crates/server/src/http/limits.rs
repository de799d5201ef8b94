//! How much a caller may ask: requests by token, failed tokens by address; requests, lists and streams at once, each tenant a share of them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::Next as Inner;
use axum::response::{IntoResponse, Response};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use stationmaster_core::db;
use stationmaster_core::id::TokenId;
use stationmaster_core::session::Scope;
use stationmaster_core::task::{Next, Pass};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::State;
use super::caller::Caller;
use super::guard::{Place, to_its_end};
use super::places::{Places, Taken, Turn, Turns, tenant};
use super::problem::{Kind, Problem};
use crate::config::Http;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// How often those who have not been seen for a while are forgotten.
const SWEEP: Duration = Duration::from_mins(1);

/// Of the connections that requests have, one in so many may be busy with lists.
const LISTS: u32 = 8;
/// A list that took long is rested from, while others wait, for as long as it took and no longer than this: so lists take at most
/// half of the time of their connections, and the work finds the database free.
const REST: Duration = Duration::from_secs(1);
/// Those who wait for their turn to read a list; more are refused.
const LINE: usize = 64;

type Keyed<K, M = governor::middleware::NoOpMiddleware> =
    RateLimiter<K, DefaultKeyedStateStore<K>, DefaultClock, M>;

/// How much a caller may ask.
#[derive(Clone)]
pub(super) struct Limits {
    tokens: Arc<Keyed<TokenId, StateInformationMiddleware>>,
    failures: Arc<Keyed<IpAddr>>,
    /// Addresses that have spent their failures, and when they may try again.
    held_back: Arc<Mutex<HashMap<IpAddr, Instant>>>,
    lists: Turns,
    line: Places,
    streams: Places,
    in_flight: Arc<Semaphore>,
    /// The same places, once it is known whose request it is.
    shares: Places,
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
        self.0.lists.sweep();
        self.0.held_back().retain(|_, until| *until > Instant::now());
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
            held_back: Arc::default(),
            lists: Turns::new((settings.database_pool / LISTS).max(1) as usize),
            line: Places::new(LINE),
            streams: Places::new(settings.max_streams),
            in_flight: Arc::new(Semaphore::new(settings.max_in_flight)),
            shares: Places::new(settings.max_in_flight),
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

    /// May a token that is not known be looked up for this address? Not after too many that opened no door, so that a flood of
    /// them does not reach the database. A token that has opened the door before is not held back for its neighbours' mistakes.
    pub(super) fn may_try(&self, peer: Option<IpAddr>) -> Result<(), Problem> {
        let Some(until) = peer.and_then(|peer| self.held_back().get(&place_of(peer)).copied()) else {
            return Ok(());
        };
        match until.checked_duration_since(Instant::now()) {
            None => Ok(()),
            Some(wait) => Err(too_many_failures(wait)),
        }
    }

    /// What came from this address is no token at all: the refusal, or another one when that happens too often. It cost the
    /// database nothing, so nobody else is held back for it.
    pub(super) fn failed(&self, peer: Option<IpAddr>, refusal: Problem) -> Problem {
        self.spent(peer).map_or(refusal, too_many_failures)
    }

    /// A token from this address was looked up, and opened no door: the same, and the next ones have to wait.
    pub(super) fn failed_after_a_look(&self, peer: Option<IpAddr>, refusal: Problem) -> Problem {
        let (Some(peer), Some(wait)) = (peer, self.spent(peer)) else {
            return refusal;
        };
        self.held_back().insert(place_of(peer), Instant::now() + wait);
        too_many_failures(wait)
    }

    /// Takes one failure from the address's allowance; when there is none left, how long until there is.
    fn spent(&self, peer: Option<IpAddr>) -> Option<Duration> {
        let until = self.failures.check_key(&place_of(peer?)).err()?;
        Some(until.wait_time_from(DefaultClock::default().now()))
    }

    fn held_back(&self) -> std::sync::MutexGuard<'_, HashMap<IpAddr, Instant>> {
        self.held_back.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn to read a list, until it is dropped; waited for, unless too many wait already.
    async fn list(&self, scope: &Scope) -> Result<(Taken, Turn), Problem> {
        let full = || Problem::new(Kind::Overloaded, "too many lists are asked for at once").retry_after(1);
        let tenant = tenant(scope);
        let place = self.line.take(tenant).ok_or_else(full)?;
        let turn = self.lists.take(tenant).await;
        Ok((place, turn.ok_or_else(full)?))
    }

    /// A place for a stream, until it is dropped.
    pub(super) fn stream(&self, scope: &Scope) -> Result<Taken, Problem> {
        let full = || Problem::new(Kind::Overloaded, "too many streams are open").retry_after(5);
        self.streams.take(tenant(scope)).ok_or_else(full)
    }

    /// A tenant's share of the places for requests, until it is dropped.
    pub(super) fn share(&self, scope: &Scope) -> Result<Option<Taken>, Problem> {
        let Some(tenant) = tenant(scope) else {
            return Ok(None);
        };
        let words = "too many requests of this workspace are under way";
        let full = || Problem::new(Kind::Overloaded, words).retry_after(1);
        self.shares.take(Some(tenant)).map(Some).ok_or_else(full)
    }

    /// A place for a request, until it is dropped.
    pub(super) fn request(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let full = |_| Problem::new(Kind::Overloaded, "too many requests are under way").retry_after(1);
        Arc::clone(&self.in_flight).try_acquire_owned().map_err(full)
    }
}

/// Carries a request out in its turn among those that may read much.
pub(super) async fn in_turn(
    Extension(state): Extension<State>,
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Inner,
) -> Response {
    let (place, turn) = match state.limits.list(&caller.scope).await {
        Ok(turn) => turn,
        Err(problem) => return problem.into_response(),
    };
    // Whoever hangs up leaves the database busy with what it asked for, so the turn is over when that is.
    let held = request.extensions().get::<Place>().cloned();
    let work = async move {
        let began = Instant::now();
        let response = next.run(request).await;
        drop(place);
        let others_wait = state.limits.line.free() < LINE;
        if others_wait {
            let rest = began.elapsed().min(REST);
            tokio::spawn(async move {
                tokio::time::sleep(rest).await;
                drop(turn);
            });
        }
        response
    };
    to_its_end(held, work).await
}

fn too_many_failures(wait: Duration) -> Problem {
    let words = "too many tokens from this address opened no door";
    Problem::new(Kind::RateLimited, words).retry_after(seconds(wait))
}

/// What failures are counted by: an address, or of IPv6 the network that one subscriber has.
fn place_of(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// Whole seconds, at least one.
fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0).max(u64::from(wait.is_zero()))
}
