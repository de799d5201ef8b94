//! What a dispatcher's run remembers: its servers, what was announced to it, what it has done. Pure and deterministic: on Temporal
//! it is replayed from history, and carried over when the run continues as new.
//!
//! Eviction is a small machine: a server that is silent at one check is a suspect, at the second in a row it is evicted, a batch
//! at a time; one word from it in between, and it starts afresh. The owner is never evicted by its own run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Tenure;
use crate::id::ServerId;

/// Checks in a row at which a server must be silent.
const LOOKS: u32 = 2;

/// A server that stands by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, sqlx::FromRow)]
#[serde(rename_all = "camelCase")]
pub struct Registration {
    /// Which server.
    pub server_id: ServerId,
    /// The task queue that it polls.
    pub task_queue: String,
}

/// News for a run: there is something in the inbox. The signals themselves stay there, so that nothing is lost with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Announcement {
    /// How many wait, counted up to 1,000.
    pub signals: u64,
    /// The position of the newest of them.
    pub newest: i64,
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    servers: BTreeMap<ServerId, String>,
    suspects: BTreeMap<ServerId, u32>,
    buffered: u64,
    routed: u64,
    dead: u64,
    evicted: u64,
    checks: u64,
    continued: u32,
}

impl State {
    /// A run that has just begun: whatever waits in the inbox was never announced to it, so it looks.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            buffered: 1,
            ..Self::default()
        }
    }

    /// A server stands by from now on.
    pub fn register(&mut self, registration: Registration) {
        self.suspects.remove(&registration.server_id);
        self.servers
            .insert(registration.server_id, registration.task_queue);
    }

    /// A server left in good order.
    pub fn leave(&mut self, server: ServerId) {
        self.servers.remove(&server);
        self.suspects.remove(&server);
    }

    /// There is something in the inbox.
    pub fn announce(&mut self, news: Announcement) {
        self.buffered = self.buffered.saturating_add(news.signals.max(1));
    }

    /// Is there something to route?
    #[must_use]
    pub fn wants_to_route(&self) -> bool {
        self.buffered > 0
    }

    /// A look into the inbox begins; what is announced while it lasts calls for another.
    pub fn begin_to_route(&mut self) {
        self.buffered = 0;
    }

    /// A look into the inbox is over; `more` says that it was not emptied.
    pub fn has_routed(&mut self, routed: u64, dead: u64, more: bool) {
        self.routed += routed;
        self.dead += dead;
        if more {
            self.buffered = self.buffered.max(1);
        }
    }

    /// A self-check saw these servers registered and these silent. Answers whom to evict now, at most `batch` of them.
    pub fn check(
        &mut self,
        owner: ServerId,
        registered: Vec<Registration>,
        silent: &[ServerId],
        batch: usize,
    ) -> Vec<ServerId> {
        self.checks += 1;
        self.servers = registered
            .into_iter()
            .map(|one| (one.server_id, one.task_queue))
            .collect();
        self.suspects.retain(|server, _| silent.contains(server));
        for server in silent.iter().filter(|server| **server != owner) {
            if self.servers.contains_key(server) {
                *self.suspects.entry(*server).or_default() += 1;
            }
        }
        let due = self.suspects.iter().filter(|(_, looks)| **looks >= LOOKS);
        due.map(|(server, _)| *server).take(batch).collect()
    }

    /// These were evicted.
    pub fn evict(&mut self, servers: &[ServerId]) {
        for server in servers {
            self.leave(*server);
            self.evicted += 1;
        }
    }

    /// The state with which a run continues as new.
    #[must_use]
    pub fn continued(mut self) -> Self {
        self.continued += 1;
        self
    }

    /// What the run tells of itself.
    #[must_use]
    pub fn status(&self, tenure: &Tenure) -> Status {
        Status {
            tenure: tenure.clone(),
            servers: self
                .servers
                .iter()
                .map(|(server_id, task_queue)| Registration {
                    server_id: *server_id,
                    task_queue: task_queue.clone(),
                })
                .collect(),
            buffered: self.buffered,
            routed: self.routed,
            dead: self.dead,
            evicted: self.evicted,
            checks: self.checks,
            continued: self.continued,
        }
    }
}

/// The answer to a status query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Whose run it is.
    #[serde(flatten)]
    pub tenure: Tenure,
    /// The servers that stand by, the owner among them.
    pub servers: Vec<Registration>,
    /// Announced and not yet looked at.
    pub buffered: u64,
    /// Signals that became queue items under this epoch.
    pub routed: u64,
    /// Signals that were put aside under this epoch.
    pub dead: u64,
    /// Servers that were evicted under this epoch.
    pub evicted: u64,
    /// Self-checks so far.
    pub checks: u64,
    /// How often the run has continued as new.
    pub continued: u32,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::id::{DispatcherId, Epoch};

    fn server(number: u128) -> ServerId {
        ServerId(Uuid::from_u128(number))
    }

    fn registered(numbers: impl IntoIterator<Item = u128>) -> Vec<Registration> {
        let one = |number| Registration {
            server_id: server(number),
            task_queue: format!("queue-{number}"),
        };
        numbers.into_iter().map(one).collect()
    }

    fn tenure() -> Tenure {
        Tenure {
            dispatcher_id: DispatcherId::of("shop", "default"),
            project: "shop".to_owned(),
            task_queue: "default".to_owned(),
            owner: server(1),
            epoch: Epoch(3),
        }
    }

    #[test]
    fn a_silent_server_is_evicted_at_the_second_check_in_a_row() {
        let mut state = State::begin();
        let everybody = || registered([1, 2, 3]);
        assert_eq!(state.check(server(1), everybody(), &[server(2)], 10), []);
        assert_eq!(state.check(server(1), everybody(), &[server(2)], 10), [server(2)]);
        state.evict(&[server(2)]);
        assert_eq!(state.status(&tenure()).servers, registered([1, 3]));
        assert_eq!(state.status(&tenure()).evicted, 1);
    }

    #[test]
    fn a_server_that_is_heard_of_again_starts_afresh() {
        let mut state = State::begin();
        let everybody = || registered([1, 2]);
        state.check(server(1), everybody(), &[server(2)], 10);
        assert_eq!(state.check(server(1), everybody(), &[], 10), []);
        assert_eq!(state.check(server(1), everybody(), &[server(2)], 10), []);
        let [again] = registered([2]).try_into().unwrap();
        state.register(again);
        assert_eq!(
            state.check(server(1), everybody(), &[server(2)], 10),
            [],
            "it has just registered again"
        );
    }

    #[test]
    fn the_owner_is_never_evicted_by_its_own_run() {
        let mut state = State::begin();
        for _ in 0..5 {
            assert_eq!(state.check(server(1), registered([1]), &[server(1)], 10), []);
        }
    }

    #[test]
    fn evictions_come_in_batches_and_none_is_forgotten() {
        let mut state = State::begin();
        let mut left: Vec<u128> = (2..=12).collect();
        let mut rounds = Vec::new();
        while !left.is_empty() {
            let silent: Vec<ServerId> = left.iter().map(|number| server(*number)).collect();
            let evicted = state.check(
                server(1),
                registered([1].into_iter().chain(left.iter().copied())),
                &silent,
                5,
            );
            state.evict(&evicted);
            left.retain(|number| !evicted.contains(&server(*number)));
            rounds.push(evicted.len());
        }
        assert_eq!(rounds, [0, 5, 5, 1]);
    }

    #[test]
    fn what_is_announced_while_routing_calls_for_another_look() {
        let mut state = State::begin();
        assert!(
            state.wants_to_route(),
            "whatever waits was never announced to a new run"
        );
        state.begin_to_route();
        state.announce(Announcement {
            signals: 2,
            newest: 7,
        });
        state.has_routed(5, 1, false);
        assert!(state.wants_to_route());
        state.begin_to_route();
        state.has_routed(2, 0, true);
        assert!(state.wants_to_route(), "the inbox was not emptied");
        let status = state.status(&tenure());
        assert_eq!((status.routed, status.dead), (7, 1));
    }

    #[test]
    fn a_state_that_is_carried_over_is_the_same_but_for_the_count() {
        let mut state = State::begin();
        state.check(server(1), registered([1, 2]), &[server(2)], 10);
        state.announce(Announcement {
            signals: 4,
            newest: 9,
        });
        let text = serde_json::to_string(&state.clone().continued()).unwrap();
        let carried: State = serde_json::from_str(&text).unwrap();
        assert_eq!(
            carried,
            State {
                continued: 1,
                ..state.clone()
            }
        );
        let mut carried = carried;
        assert_eq!(
            carried.check(server(1), registered([1, 2]), &[server(2)], 10),
            [server(2)],
            "the first look is remembered"
        );
    }
}
