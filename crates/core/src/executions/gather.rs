//! Gather: single requests that come at the same time are enqueued together, in one transaction.
//!
//! A commit costs more than anything else about an enqueue. A request that finds a free place goes at once and alone; while all
//! places are taken requests wait, and whoever gets the next place takes along all that wait for the same caller. So nobody waits
//! for company, and the more come the cheaper each is. A request that is refused is refused alone: what was refused together is
//! tried one by one.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use stationmaster_wire::{Enqueue, Enqueued};
use tokio::sync::{Semaphore, oneshot};

use super::enqueue::{Error, check, enqueue_all, input};
use crate::db::{self, Database};

/// Transactions at once.
const PLACES: usize = 4;
/// Requests that go together, and the bytes of their inputs.
const MOST: usize = 250;
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// See the module.
#[derive(Debug, Clone)]
pub struct Gather(Arc<Room>);

#[derive(Debug)]
struct Room {
    places: Arc<Semaphore>,
    /// By whom they are, and for what that caller may see.
    waiting: Mutex<HashMap<String, Vec<Waiting>>>,
}

#[derive(Debug)]
struct Waiting {
    request: Enqueue,
    tell: oneshot::Sender<Result<Enqueued, Error>>,
}

impl Default for Gather {
    fn default() -> Self {
        Self(Arc::new(Room {
            places: Arc::new(Semaphore::new(PLACES)),
            waiting: Mutex::default(),
        }))
    }
}

impl Gather {
    /// Enqueues one request, perhaps together with others of the same caller.
    pub async fn enqueue(&self, database: &Database, request: Enqueue, by: &str) -> Result<Enqueued, Error> {
        check(std::slice::from_ref(&request))?;
        let caller = format!("{by}\0{:?}", database.scope());
        let (tell, mut told) = oneshot::channel();
        let waiting = Waiting { request, tell };
        self.0.wait(&caller, waiting);
        let answer = tokio::select! {
            biased;
            answer = &mut told => answer,
            place = Arc::clone(&self.0.places).acquire_owned() => {
                let (room, database, by) = (Arc::clone(&self.0), database.clone(), by.to_owned());
                // Whoever asked for the first of them may hang up; the others are still there.
                tokio::spawn(async move {
                    room.carry_out(&database, &caller, &by).await;
                    drop(place);
                });
                told.await
            }
        };
        answer.unwrap_or_else(|_| Err(Error::Database(db::Error::Silent)))
    }
}

impl Room {
    fn wait(&self, caller: &str, one: Waiting) {
        let mut all = self.waiting.lock();
        all.entry(caller.to_owned()).or_default().push(one);
    }

    /// Those that go together, oldest first.
    fn take(&self, caller: &str) -> Vec<Waiting> {
        let mut all = self.waiting.lock();
        let Some(waiting) = all.get_mut(caller) else {
            return Vec::new();
        };
        // Whoever has hung up does not want it any more, and may have asked again.
        waiting.retain(|one| !one.tell.is_closed());
        let mut bytes = 0;
        let fits = |one: &&Waiting| {
            bytes += input(&one.request).len();
            bytes <= MOST_BYTES
        };
        let some = waiting.iter().take(MOST).take_while(fits).count().max(1);
        let taken: Vec<Waiting> = waiting.drain(..some.min(waiting.len())).collect();
        if waiting.is_empty() {
            all.remove(caller);
        }
        taken
    }

    async fn carry_out(&self, database: &Database, caller: &str, by: &str) {
        let (requests, tell): (Vec<_>, Vec<_>) = self
            .take(caller)
            .into_iter()
            .map(|one| (one.request, one.tell))
            .unzip();
        if requests.is_empty() {
            return;
        }
        match enqueue_all(database, &requests, by).await {
            Ok(answers) => {
                for (tell, answer) in tell.into_iter().zip(answers) {
                    let _ = tell.send(Ok(answer));
                }
            }
            // It may have been done: nobody tries it again but whoever asked.
            Err(Error::Database(error)) if error.is_away() || error.code().is_none() => {
                let error = Arc::new(error);
                for tell in tell {
                    let context = db::Error::Shared(Arc::clone(&error));
                    let _ = tell.send(Err(Error::Database(context)));
                }
            }
            Err(refusal) if requests.len() == 1 => {
                let _ = tell.into_iter().next().map(|tell| tell.send(Err(refusal)));
            }
            Err(_) => {
                for (request, tell) in requests.into_iter().zip(tell) {
                    let one = enqueue_all(database, std::slice::from_ref(&request), by).await;
                    let _ = tell.send(one.map(|mut answers| answers.remove(0)));
                }
            }
        }
    }
}
