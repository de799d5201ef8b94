//! Learning which runs have closed, again and again.
//!
//! The store lags behind the runs and keeps no order of closing, so a sweep begins a little before the newest close
//! that was seen: far before it in a *full* sweep, now and then, and just before it in the *glances* between, which
//! are cheap. The mark that the caller keeps trails by the longer distance. What is listed twice is reported twice,
//! because whoever was told may have failed to write it down; only its history is not read again.
//!
//! Invariants: the mark never moves back, and never past a close that was listed and not reported. A caller that
//! comes with another mark than the last one gets a full sweep from there.

use std::collections::HashMap;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use stationmaster_core::engine::{Close, CloseStatus, RunState};
use stationmaster_core::id::ExecutionId;
use tokio::time::Instant;

use crate::close::{self, Ending};
use crate::engine::{PARALLEL_CALLS, TemporalEngine};
use crate::link::CallError;
use crate::visibility::ClosedRun;

/// How far the mark trails the newest close. The store was measured to lag by a quarter of a second in a burst.
const OVERLAP: SignedDuration = SignedDuration::from_secs(3);
/// A stretch that a sweep takes of a long time must be longer than the overlap, or the mark would stand still.
const SHORTEST_STRETCH: SignedDuration = SignedDuration::from_secs(6);
/// How far a glance looks back.
const GLANCE: SignedDuration = SignedDuration::from_millis(500);
/// How often a full sweep comes. Shorter than the overlap, so that each close is listed by a full sweep.
const FULL_EVERY: Duration = Duration::from_secs(2);
/// When nothing new was read for this long, the mark passes what was reported, so that rest is restful.
const QUIET_AFTER: Duration = Duration::from_secs(10);
/// One sweep reads about this many histories, or this many bytes of results, and leaves the rest to the next.
const READ_LIMIT: usize = 1_000;
const BYTE_LIMIT: usize = 32 * 1024 * 1024;
const CHUNK: usize = 128;

/// What the sweeps so far have left behind.
#[derive(Default)]
pub(crate) struct Sweeps(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    last: Option<Last>,
    /// When an end was last read.
    news_at: Option<Instant>,
    /// The ends that may be listed again.
    ends: HashMap<(ExecutionId, String), (Timestamp, Ending)>,
}

struct Last {
    /// What the caller was told to come back with.
    mark: Timestamp,
    /// Everything listed up to here was reported.
    reached: Timestamp,
    full_at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    Full,
    Glance,
}

/// Where a sweep begins, and how far the ones before it have come.
#[derive(Debug, PartialEq, Eq)]
struct Beginning {
    depth: Depth,
    from: Timestamp,
    reached: Timestamp,
}

impl Sweeps {
    fn begin(&self, since: Timestamp, now: Instant) -> Beginning {
        match &self.0.lock().last {
            Some(last) if last.mark == since && now.duration_since(last.full_at) < FULL_EVERY => Beginning {
                depth: Depth::Glance,
                from: trailing(last.reached, GLANCE).max(since),
                reached: last.reached,
            },
            _ => Beginning {
                depth: Depth::Full,
                from: since,
                reached: since,
            },
        }
    }

    /// The mark after a sweep that came as far as `reached`.
    fn finish(&self, depth: Depth, since: Timestamp, reached: Timestamp, now: Instant) -> Timestamp {
        let mut memory = self.0.lock();
        if depth == Depth::Full {
            let quiet = memory
                .news_at
                .is_some_and(|at| now.duration_since(at) >= QUIET_AFTER);
            let mark = if quiet && reached > since {
                just_after(reached)
            } else {
                trailing(reached, OVERLAP).max(since)
            };
            memory.ends.retain(|_, (closed_at, _)| *closed_at >= mark);
            memory.last = Some(Last {
                mark,
                reached,
                full_at: now,
            });
            return mark;
        }
        if let Some(last) = &mut memory.last {
            last.reached = reached;
        }
        since
    }

    fn known_end(&self, run: &ClosedRun) -> Option<Ending> {
        let memory = self.0.lock();
        memory
            .ends
            .get(&(run.execution_id, run.run_id.clone()))
            .map(|(_, ending)| ending.clone())
    }

    fn remember(&self, run: &ClosedRun, ending: Ending, now: Instant) {
        let mut memory = self.0.lock();
        memory.news_at = Some(now);
        memory
            .ends
            .insert((run.execution_id, run.run_id.clone()), (run.closed_at, ending));
    }
}

impl TemporalEngine {
    /// The runs that closed since `since`, oldest first, and the mark for the next sweep.
    pub(crate) async fn sweep(&self, since: Timestamp) -> Result<(Vec<Close>, Timestamp), CallError> {
        let Beginning {
            depth,
            from,
            mut reached,
        } = self.sweeps.begin(since, Instant::now());
        let (mut runs, until) = self.list_closed(from, SHORTEST_STRETCH).await?;
        runs.sort_by_key(|run| run.closed_at);
        let (mut closes, mut histories, mut bytes) = (Vec::new(), 0, 0);
        let mut chunks = runs.chunks(CHUNK);
        while histories < READ_LIMIT
            && bytes < BYTE_LIMIT
            && let Some(chunk) = chunks.next()
        {
            let ends: Vec<_> = chunk.iter().map(|run| self.end(run)).collect();
            let ends: Vec<_> = stream::iter(ends).buffered(PARALLEL_CALLS).try_collect().await?;
            for (was_read, ending) in ends {
                let Ending::Closed(close) = ending else { continue };
                if was_read {
                    histories += 1;
                    bytes += size(&close);
                }
                closes.push(close);
            }
            reached = chunk.last().map_or(reached, |newest| newest.closed_at);
        }
        if chunks.len() == 0 {
            reached = until.unwrap_or(reached);
        }
        Ok((closes, self.sweeps.finish(depth, since, reached, Instant::now())))
    }

    /// What a listed run's close means for its execution, and whether that had to be read.
    async fn end(&self, run: &ClosedRun) -> Result<(bool, Ending), CallError> {
        if let Some(known) = self.sweeps.known_end(run) {
            return Ok((false, known));
        }
        let is_ours = run.is_marked || self.is_run_ours(run.execution_id, &run.run_id).await?;
        let ending = if is_ours {
            self.ending_of(run).await?
        } else {
            Ending::GoesOn
        };
        self.sweeps.remember(run, ending.clone(), Instant::now());
        Ok((true, ending))
    }

    async fn ending_of(&self, run: &ClosedRun) -> Result<Ending, CallError> {
        if run.status == CloseStatus::Terminated {
            return self.end_of_terminated(run).await;
        }
        let ends_at = self.rpc_ends_at();
        let ending = self
            .end_of(run.execution_id, &run.run_id, run.status, ends_at)
            .await?;
        Ok(ending.of_run(&run.run_id, Some(run.closed_at)))
    }

    /// Resetting an execution terminates its run and begins another one under the same id, and the terminated run
    /// does not tell. So the newest run is asked.
    async fn end_of_terminated(&self, run: &ClosedRun) -> Result<Ending, CallError> {
        Ok(
            match self.run_state(run.execution_id, self.rpc_ends_at()).await? {
                RunState::Running { .. } => Ending::GoesOn,
                RunState::Closed(close) => Ending::Closed(close),
                RunState::NotFound => {
                    let ending = close::without_history(run.execution_id, run.status, "it is no longer kept");
                    ending.of_run(&run.run_id, Some(run.closed_at))
                }
            },
        )
    }
}

fn trailing(time: Timestamp, distance: SignedDuration) -> Timestamp {
    time.saturating_sub(distance).unwrap_or(time)
}

/// The next instant that the store can tell apart.
fn just_after(time: Timestamp) -> Timestamp {
    time.saturating_add(SignedDuration::from_micros(1))
        .unwrap_or(time)
}

fn size(close: &Close) -> usize {
    [&close.output, &close.error]
        .into_iter()
        .flatten()
        .map(|json| json.get().len())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn full(from: Timestamp) -> Beginning {
        Beginning {
            depth: Depth::Full,
            from,
            reached: from,
        }
    }

    #[test]
    fn the_mark_trails_the_newest_close_and_never_moves_back() {
        let (sweeps, now) = (Sweeps::default(), Instant::now());
        assert_eq!(sweeps.finish(Depth::Full, at(100), at(110), now), at(107));
        assert_eq!(sweeps.finish(Depth::Full, at(107), at(109), now), at(107));
        assert_eq!(sweeps.finish(Depth::Full, at(107), at(107), now), at(107));
    }

    #[test]
    fn between_full_sweeps_a_glance_begins_just_before_the_newest_close_and_leaves_the_mark() {
        let (sweeps, now) = (Sweeps::default(), Instant::now());
        assert_eq!(sweeps.begin(at(100), now), full(at(100)));
        let mark = sweeps.finish(Depth::Full, at(100), at(110), now);
        let glance = sweeps.begin(mark, now);
        assert_eq!(glance.depth, Depth::Glance);
        assert_eq!((glance.from, glance.reached), (at(110) - GLANCE, at(110)));
        assert_eq!(sweeps.finish(glance.depth, mark, at(112), now), mark);
        assert_eq!(sweeps.begin(mark, now).from, at(112) - GLANCE);
        assert_eq!(sweeps.begin(mark, now + FULL_EVERY), full(mark));
    }

    #[test]
    fn a_caller_with_another_mark_gets_a_full_sweep_from_there() {
        let (sweeps, now) = (Sweeps::default(), Instant::now());
        sweeps.finish(Depth::Full, at(100), at(110), now);
        assert_eq!(sweeps.begin(at(100), now), full(at(100)));
    }

    fn run(closed_at: Timestamp) -> ClosedRun {
        let execution_id = ExecutionId::new();
        ClosedRun {
            execution_id,
            run_id: "run".to_owned(),
            status: CloseStatus::Completed,
            closed_at,
            is_marked: true,
        }
    }

    #[test]
    fn ends_older_than_the_mark_are_forgotten() {
        let (sweeps, now) = (Sweeps::default(), Instant::now());
        let (old, new) = (run(at(106)), run(at(107)));
        sweeps.remember(&old, Ending::GoesOn, now);
        sweeps.remember(&new, Ending::GoesOn, now);
        sweeps.finish(Depth::Full, at(100), at(110), now);
        assert!(sweeps.known_end(&old).is_none());
        assert!(sweeps.known_end(&new).is_some());
    }

    #[test]
    fn the_mark_passes_the_newest_close_once_nothing_new_has_come_for_a_while() {
        let (sweeps, now) = (Sweeps::default(), Instant::now());
        sweeps.remember(&run(at(110)), Ending::GoesOn, now);
        let mark = sweeps.finish(Depth::Full, at(100), at(110), now);
        let quiet = now + QUIET_AFTER;
        let passed = sweeps.finish(Depth::Full, mark, at(110), quiet);
        assert!(passed > at(110) && passed < at(111), "{passed}");
        assert_eq!(sweeps.finish(Depth::Full, passed, passed, quiet), passed);
    }
}
