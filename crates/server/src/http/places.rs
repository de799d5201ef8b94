//! Places that tenants share: whoever has many tokens has no more of them than whoever has one.
//!
//! A tenant is the first of the workspaces that a token is for, so that tokens for parts of the same workspaces are not many tenants.
//! Tokens that are for all workspaces belong to those who run the servers, and are not held back.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stationmaster_core::id::WorkspaceId;
use stationmaster_core::session::Scope;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Whose share something comes from; `None`: nobody's.
pub(super) fn tenant(scope: &Scope) -> Option<WorkspaceId> {
    scope.limited()?.iter().min().copied()
}

/// How many each tenant has.
type Shares<K> = Arc<Mutex<HashMap<K, usize>>>;

/// So many places, of which no tenant takes the last: one that has as many as are free gets no more. Alone it has half of them, beside
/// another a third, and there is one left for whoever comes next.
#[derive(Clone)]
pub(super) struct Places<K: Eq + Hash = WorkspaceId> {
    free: Arc<Semaphore>,
    taken: Shares<K>,
}

/// A place, until it is dropped.
pub(super) struct Taken<K: Eq + Hash = WorkspaceId> {
    _place: OwnedSemaphorePermit,
    share: Option<(K, Shares<K>)>,
}

impl<K: Eq + Hash + Copy> Places<K> {
    pub(super) fn new(count: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(count)),
            taken: Arc::default(),
        }
    }

    /// A place, if there is one for this tenant.
    pub(super) fn take(&self, tenant: Option<K>) -> Option<Taken<K>> {
        let mut taken = lock(&self.taken);
        if let Some(tenant) = tenant {
            let own = taken.get(&tenant).copied().unwrap_or_default();
            if own >= self.free.available_permits() {
                return None;
            }
        }
        let place = Arc::clone(&self.free).try_acquire_owned().ok()?;
        let share = tenant.map(|tenant| {
            *taken.entry(tenant).or_default() += 1;
            (tenant, Arc::clone(&self.taken))
        });
        Some(Taken { _place: place, share })
    }

    pub(super) fn free(&self) -> usize {
        self.free.available_permits()
    }
}

impl<K: Eq + Hash> Drop for Taken<K> {
    fn drop(&mut self) {
        let Some((tenant, taken)) = &self.share else {
            return;
        };
        let mut taken = lock(taken);
        if let Some(own) = taken.get_mut(tenant) {
            *own -= 1;
            if *own == 0 {
                taken.remove(tenant);
            }
        }
    }
}

/// Turns that go round: of each tenant only as many wait for one as there are, and its others wait behind these. So whoever asks once
/// waits for one list of each of the others, however many they ask for.
#[derive(Clone)]
pub(super) struct Turns {
    count: usize,
    all: Arc<Semaphore>,
    of_tenants: Arc<Mutex<HashMap<WorkspaceId, Arc<Semaphore>>>>,
}

/// A turn, until it is dropped.
pub(super) struct Turn {
    _own: Option<OwnedSemaphorePermit>,
    _turn: OwnedSemaphorePermit,
}

impl Turns {
    pub(super) fn new(count: usize) -> Self {
        Self {
            count,
            all: Arc::new(Semaphore::new(count)),
            of_tenants: Arc::default(),
        }
    }

    /// Waits for a turn. None are refused: nobody closes what they wait for.
    pub(super) async fn take(&self, tenant: Option<WorkspaceId>) -> Option<Turn> {
        let own = match tenant {
            Some(tenant) => {
                let line = Arc::clone(
                    lock(&self.of_tenants)
                        .entry(tenant)
                        .or_insert_with(|| Arc::new(Semaphore::new(self.count))),
                );
                Some(line.acquire_owned().await.ok()?)
            }
            None => None,
        };
        let turn = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Turn {
            _own: own,
            _turn: turn,
        })
    }

    /// Forgets tenants of whom nobody has a turn or waits for one.
    pub(super) fn sweep(&self) {
        lock(&self.of_tenants).retain(|_, line| Arc::strong_count(line) > 1);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tenant_takes_the_last_place_and_a_place_comes_back_when_it_is_dropped() {
        let places: Places<&str> = Places::new(8);
        let mut held = Vec::new();
        let mut take = |tenant| match places.take(tenant) {
            Some(place) => {
                held.push(place);
                true
            }
            None => false,
        };
        let count = |tenant, take: &mut dyn FnMut(Option<&'static str>) -> bool| {
            (0..8).take_while(|_| take(Some(tenant))).count()
        };
        assert_eq!(count("greedy", &mut take), 4);
        assert_eq!(count("second", &mut take), 2);
        assert_eq!(count("third", &mut take), 1);
        assert_eq!(places.free(), 1);
        assert!(take(None), "whoever runs the servers is not held back");
        assert!(!take(None) && !take(Some("fourth")), "there is none left");
        held.clear();
        assert_eq!(places.free(), 8);
        assert!(lock(&places.taken).is_empty());
        assert!(places.take(Some("greedy")).is_some());
    }

    #[tokio::test]
    async fn whoever_asks_once_waits_for_one_turn_of_another_however_many_that_one_wants() {
        let turns = Turns::new(1);
        let (greedy, modest) = (WorkspaceId::new(), WorkspaceId::new());
        let first = turns.take(Some(greedy)).await.unwrap();
        let order: Arc<Mutex<Vec<WorkspaceId>>> = Arc::default();
        let mut waiting = tokio::task::JoinSet::new();
        for tenant in [greedy, greedy, greedy, modest] {
            let (turns, order) = (turns.clone(), Arc::clone(&order));
            waiting.spawn(async move {
                let _turn = turns.take(Some(tenant)).await.unwrap();
                lock(&order).push(tenant);
            });
            // On one thread everybody comes as far as the line, in this order.
            tokio::task::yield_now().await;
        }
        drop(first);
        waiting.join_all().await;
        let order = lock(&order).clone();
        assert!(order[..2].contains(&modest), "{order:?}");
        turns.sweep();
        assert!(lock(&turns.of_tenants).is_empty());
    }

    #[test]
    fn tokens_for_parts_of_the_same_workspaces_are_one_tenant() {
        let mut ids = [WorkspaceId::new(), WorkspaceId::new()];
        ids.sort();
        let [first, second] = ids;
        for workspaces in [vec![first], vec![second, first], vec![first, second]] {
            assert_eq!(tenant(&Scope::Only(workspaces)), Some(first));
        }
        assert_eq!(tenant(&Scope::All), None);
    }
}
