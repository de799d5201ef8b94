//! One slow or dead target delays only itself: a limit of wakes under way for each target, and a breaker of its own.
//!
//! A quick target is waited for: its turn comes in a moment. Whoever would wait for longer is told when to come back, and
//! comes back as a claim given back, so that nothing stays here with a lease in its hands; the times are spread by the
//! pace at which the target answers. A breaker opens after a row of tries without any answer; then one probe at a time
//! goes out, and the first answer closes it.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rand::RngExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;

use crate::retry::Backoff;

/// Tries in a row without an answer that open a breaker.
const FAILURES_TO_OPEN: u32 = 5;
/// How long a breaker stays open before the next probe.
const COOLING: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(30),
};
/// Whose turn comes within this time waits for it.
const PATIENCE: Duration = Duration::from_millis(250);
/// Nobody is told to come back sooner, or later, than this.
const SOONEST: Duration = Duration::from_millis(20);
const LATEST: Duration = Duration::from_secs(10);
/// A breaker that nobody has asked about for so long holds nobody back any more: what was aimed at its target was given up or aimed elsewhere.
const FORSAKEN: Duration = Duration::from_hours(1);
/// Targets remembered; those with nothing to remember go first.
const REMEMBERED: usize = 10_000;

/// The router's name. No target is called so: those have a scheme in front.
const ROUTER: &str = "router";

/// Who receives a wake: what limits are counted by, and what a secret belongs to. The router is one by itself, so that nobody who
/// aims an alarm at its host gets its signature, its turns or its breaker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recipient(String);

impl Recipient {
    /// The router, for wakes that name no target.
    #[must_use]
    pub fn router() -> Self {
        Self(ROUTER.to_owned())
    }

    /// A target: scheme, host and port of its URL.
    #[must_use]
    pub fn target(url: &Url) -> Self {
        Self(url.origin().ascii_serialization())
    }

    /// As tables and logs name it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Recipient {
    type Err = String;

    /// `router`, or the URL of a target.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == ROUTER {
            return Ok(Self::router());
        }
        let url: Url = text
            .parse()
            .map_err(|error| format!("neither the word router nor a URL: {error}"))?;
        match url.scheme() {
            "http" | "https" => Ok(Self::target(&url)),
            _ => Err("it does not begin with http: or https:".to_owned()),
        }
    }
}

#[derive(Debug)]
struct State {
    room: Arc<Semaphore>,
    waiting: u32,
    failures: u32,
    open_until: Option<Instant>,
    /// When the breaker opened; it may have been probed since.
    opened_at: Option<Instant>,
    probing: bool,
    /// How long a wake takes, on average.
    pace: Duration,
    /// When the last of those who were sent away was told to come back.
    last_turn: Instant,
}

impl State {
    fn new(limit: usize) -> Self {
        Self {
            room: Arc::new(Semaphore::new(limit)),
            waiting: 0,
            failures: 0,
            open_until: None,
            opened_at: None,
            probing: false,
            pace: Duration::from_millis(50),
            last_turn: Instant::now(),
        }
    }

    /// Is its breaker open, and does somebody still ask for it?
    fn holds_back(&self, now: Instant) -> bool {
        let asked_for = |until: Instant| now.saturating_duration_since(until) < FORSAKEN;
        self.open_until.is_some_and(asked_for)
    }

    fn is_idle(&self, limit: usize) -> bool {
        self.room.available_permits() == limit && self.waiting == 0 && self.failures == 0
    }

    /// The time between two turns.
    fn step(&self, limit: usize) -> Duration {
        self.pace / u32::try_from(limit).unwrap_or(u32::MAX).max(1)
    }

    /// Sends somebody away, until after those who were sent away before.
    fn later(&mut self, limit: usize, now: Instant) -> Duration {
        let turn = (self.last_turn.max(now) + self.step(limit)).min(now + LATEST);
        self.last_turn = turn;
        (turn - now).max(SOONEST)
    }
}

/// May a wake go out?
pub enum Admission {
    /// Now.
    Go(Pass),
    /// Later: the target has as many under way as it may have.
    Full {
        /// When to come back.
        wait: Duration,
    },
    /// Later: the target does not answer.
    Open {
        /// When to come back.
        wait: Duration,
    },
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Targets {
    limit: usize,
    states: Arc<Mutex<HashMap<String, State>>>,
}

/// The right to have one wake under way.
pub struct Pass {
    targets: Targets,
    target: String,
    since: Instant,
    probe: bool,
    answered: Option<bool>,
    room: Option<OwnedSemaphorePermit>,
}

/// What an end changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// The target's breaker opened just now.
    Opened,
    /// It closed just now.
    Closed,
}

/// What the first look at a target says.
enum Look {
    Decided(Admission),
    /// Its turn comes soon.
    Wait(Arc<Semaphore>),
}

impl Targets {
    /// At most `limit` wakes under way at each target.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            states: Arc::default(),
        }
    }

    /// Asks for the right to send to a target; waits a moment for it when that is enough.
    pub async fn admit(&self, target: &str) -> Admission {
        let room = match self.look(target) {
            Look::Decided(admission) => return admission,
            Look::Wait(room) => room,
        };
        let turn = tokio::time::timeout(PATIENCE * 2, room.acquire_owned()).await;
        let mut states = self.states.lock();
        let state = states
            .entry(target.to_owned())
            .or_insert_with(|| State::new(self.limit));
        state.waiting = state.waiting.saturating_sub(1);
        match turn {
            // The breaker may have opened meanwhile.
            Ok(Ok(room)) if state.open_until.is_none() => Admission::Go(self.pass(target, room, false)),
            Ok(Ok(_)) => Admission::Open {
                wait: spread(COOLING.base),
            },
            Ok(Err(_)) | Err(_) => Admission::Full {
                wait: state.later(self.limit, Instant::now()),
            },
        }
    }

    fn look(&self, target: &str) -> Look {
        let mut states = self.states.lock();
        if states.len() >= REMEMBERED && !states.contains_key(target) {
            states.retain(|_, state| !state.is_idle(self.limit));
        }
        let now = Instant::now();
        let state = states
            .entry(target.to_owned())
            .or_insert_with(|| State::new(self.limit));
        if let Some(until) = state.open_until {
            let left = until.saturating_duration_since(now);
            if !left.is_zero() || state.probing {
                let wait = spread(left.max(COOLING.base));
                return Look::Decided(Admission::Open { wait });
            }
        }
        if let Ok(room) = Arc::clone(&state.room).try_acquire_owned() {
            state.probing = state.open_until.is_some();
            return Look::Decided(Admission::Go(self.pass(target, room, state.probing)));
        }
        if state.step(self.limit) * (state.waiting + 1) > PATIENCE {
            let wait = state.later(self.limit, now);
            return Look::Decided(Admission::Full { wait });
        }
        state.waiting += 1;
        Look::Wait(Arc::clone(&state.room))
    }

    fn pass(&self, target: &str, room: OwnedSemaphorePermit, probe: bool) -> Pass {
        Pass {
            targets: self.clone(),
            target: target.to_owned(),
            since: Instant::now(),
            probe,
            answered: None,
            room: Some(room),
        }
    }

    /// Targets whose breaker is open, and for which somebody still asks.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open_at(Instant::now())
    }

    fn open_at(&self, now: Instant) -> usize {
        let states = self.states.lock();
        states.values().filter(|state| state.holds_back(now)).count()
    }

    /// Those targets, and for how long each has not answered, the longest first.
    #[must_use]
    pub fn silent(&self, most: usize) -> Vec<(String, Duration)> {
        let now = Instant::now();
        let states = self.states.lock();
        let open = states.iter().filter(|(_, state)| state.holds_back(now));
        let since = |state: &State| now.saturating_duration_since(state.opened_at.unwrap_or(now));
        let mut silent: Vec<_> = open
            .map(|(target, state)| (target.clone(), since(state)))
            .collect();
        silent.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        silent.truncate(most);
        silent
    }
}

/// A little later, so that those who wait together do not come together.
fn spread(wait: Duration) -> Duration {
    wait.mul_f64(rand::rng().random_range(1.0..=1.2))
}

impl Pass {
    /// The wake is over: was there an answer, whatever it said?
    #[must_use]
    pub fn over(mut self, answered: bool) -> Change {
        self.answered = Some(answered);
        self.end()
    }

    fn end(&mut self) -> Change {
        if self.room.take().is_none() {
            return Change::None;
        }
        let mut states = self.targets.states.lock();
        let Some(state) = states.get_mut(&self.target) else {
            return Change::None;
        };
        if self.probe {
            state.probing = false;
        }
        match self.answered {
            Some(true) => {
                state.pace = (state.pace * 4 + self.since.elapsed()) / 5;
                state.failures = 0;
                state.opened_at = None;
                if state.open_until.take().is_some() {
                    return Change::Closed;
                }
            }
            Some(false) => {
                state.failures = state.failures.saturating_add(1);
                if state.failures >= FAILURES_TO_OPEN {
                    let was_open = state.open_until.is_some();
                    state.opened_at.get_or_insert_with(Instant::now);
                    // Those that were under way together say the same thing; only a probe makes it last longer.
                    if !was_open || self.probe {
                        let cooling = COOLING.step(state.failures - FAILURES_TO_OPEN + 1);
                        state.open_until = Some(Instant::now() + cooling);
                    }
                    return if was_open { Change::None } else { Change::Opened };
                }
            }
            // Nobody knows: it was dropped on its way.
            None => {}
        }
        Change::None
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn go(targets: &Targets, target: &str) -> Pass {
        match targets.admit(target).await {
            Admission::Go(pass) => pass,
            Admission::Full { .. } => panic!("{target} is full"),
            Admission::Open { .. } => panic!("{target} is open"),
        }
    }

    /// A target that takes its time.
    fn slow(targets: &Targets, target: &str) {
        targets.states.lock().get_mut(target).unwrap().pace = Duration::from_secs(10);
    }

    #[tokio::test]
    async fn a_slow_target_has_no_more_under_way_than_its_limit_and_the_others_go_on() {
        let targets = Targets::new(2);
        let (one, _two) = (go(&targets, "a").await, go(&targets, "a").await);
        slow(&targets, "a");
        assert!(matches!(targets.admit("a").await, Admission::Full { .. }));
        let _other = go(&targets, "b").await;
        assert_eq!(one.over(true), Change::None);
        let _three = go(&targets, "a").await;
    }

    #[tokio::test]
    async fn a_quick_target_is_waited_for() {
        let targets = Targets::new(1);
        let first = go(&targets, "a").await;
        let (next, _) = tokio::join!(go(&targets, "a"), async {
            tokio::task::yield_now().await;
            first.over(true)
        });
        drop(next);
        assert_eq!(targets.states.lock()["a"].waiting, 0);
    }

    #[tokio::test]
    async fn those_who_are_sent_away_are_told_to_come_back_one_after_the_other_and_soon() {
        let targets = Targets::new(1);
        let _under_way = go(&targets, "a").await;
        slow(&targets, "a");
        let mut waits = Vec::new();
        for _ in 0..500 {
            match targets.admit("a").await {
                Admission::Full { wait } => waits.push(wait),
                _ => panic!("it is full"),
            }
        }
        assert!(waits.iter().all(|wait| (SOONEST..=LATEST).contains(wait)));
        slow(&targets, "a");
        targets.states.lock().get_mut("a").unwrap().pace = Duration::from_secs(1);
        targets.states.lock().get_mut("a").unwrap().last_turn = Instant::now();
        let Admission::Full { wait: first } = targets.admit("a").await else {
            panic!("it is full");
        };
        let Admission::Full { wait: second } = targets.admit("a").await else {
            panic!("it is full");
        };
        assert!(second > first, "{first:?} {second:?}");
    }

    #[tokio::test]
    async fn a_row_of_silence_opens_the_breaker_and_one_answer_to_a_probe_closes_it() {
        let targets = Targets::new(9);
        for _ in 1..FAILURES_TO_OPEN {
            assert_eq!(go(&targets, "a").await.over(false), Change::None);
        }
        assert_eq!(go(&targets, "a").await.over(false), Change::Opened);
        assert!(matches!(targets.admit("a").await, Admission::Open { .. }));
        assert_eq!(targets.open(), 1);
        let silent: Vec<String> = targets.silent(9).into_iter().map(|(target, _)| target).collect();
        assert_eq!(silent, ["a"]);
        let forsaken = Instant::now() + FORSAKEN + COOLING.cap;
        assert_eq!(targets.open_at(forsaken), 0, "nobody asks for it any more");
        // The cooling time is over.
        targets.states.lock().get_mut("a").unwrap().open_until = Some(Instant::now());
        let probe = go(&targets, "a").await;
        assert!(
            matches!(targets.admit("a").await, Admission::Open { .. }),
            "one probe at a time"
        );
        assert_eq!(probe.over(true), Change::Closed);
        let _again = go(&targets, "a").await;
        assert_eq!(targets.open(), 0);
        assert!(targets.silent(9).is_empty());
    }

    #[tokio::test]
    async fn an_answer_between_failures_keeps_the_breaker_closed() {
        let targets = Targets::new(9);
        for _ in 0..20 {
            for _ in 1..FAILURES_TO_OPEN {
                assert_eq!(go(&targets, "a").await.over(false), Change::None);
            }
            assert_eq!(go(&targets, "a").await.over(true), Change::None);
        }
        assert_eq!(targets.open(), 0);
    }

    #[tokio::test]
    async fn a_wake_that_is_dropped_gives_its_place_back() {
        let targets = Targets::new(1);
        drop(go(&targets, "a").await);
        let _next = go(&targets, "a").await;
    }

    #[test]
    fn a_target_is_its_scheme_host_and_port() {
        let named = |text: &str| text.parse::<Recipient>().unwrap();
        assert_eq!(named("https://A.example/x?y").as_str(), "https://a.example");
        assert_eq!(named("http://a.example:8080/").as_str(), "http://a.example:8080");
    }

    #[test]
    fn no_target_is_taken_for_the_router() {
        let named = |text: &str| text.parse::<Recipient>();
        assert_eq!(named("router"), Ok(Recipient::router()));
        assert_ne!(named("http://router"), Ok(Recipient::router()));
        for text in ["", "Router", "ftp://router", "hooks.example"] {
            assert!(named(text).is_err(), "{text}");
        }
    }
}
