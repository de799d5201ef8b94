//! What keeps runs from going on, as the engine said a moment ago: however many look at the same full workspaces, the engine is
//! asked once in a while.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::engine::{Contact, Obstacle};
use crate::id::ExecutionId;

/// How long somebody who looks at an execution waits for what the engine knows of it.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an answer holds.
const HOLDS: Duration = Duration::from_secs(2);
/// Answers that are kept at most.
const KEPT: usize = 256;

/// See the module.
#[derive(Default)]
pub(crate) struct Obstacles {
    answers: Mutex<HashMap<ExecutionId, (Instant, Option<Obstacle>)>>,
}

impl Obstacles {
    /// What keeps a run from going on, when the engine knows and says so soon.
    pub(crate) async fn of(&self, execution: ExecutionId, contact: &Contact) -> Option<Obstacle> {
        if let Some((at, answer)) = self.answers.lock().get(&execution)
            && at.elapsed() < HOLDS
        {
            return answer.clone();
        }
        if !contact.breaker.is_closed() {
            return None;
        }
        let asked = tokio::time::timeout(PATIENCE, contact.engine.obstacle(execution)).await;
        let answer = asked.ok()?.ok()?;
        let mut answers = self.answers.lock();
        if answers.len() >= KEPT {
            answers.retain(|_, (at, _)| at.elapsed() < HOLDS);
        }
        if answers.len() < KEPT {
            answers.insert(execution, (Instant::now(), answer.clone()));
        }
        answer
    }
}
