//! The promises, each held against what was asked for and what was seen. Every check names what it found, with its evidence.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use uuid::Uuid;

use crate::ledger::Series;
use crate::receiver::Call;
use crate::watch::Seen;
use crate::world::{Engine, Kind, World};

/// A claim may carry the time of a transaction that stood still with its server; no server stands still for longer.
const STOOD_STILL: i64 = 15_000;
/// Around the moments at which a series begins, is paused and ends.
const MARGIN: i64 = 2_500;
/// After the end of an execution, by the database's clock.
const AFTERWARDS: i64 = 1_000;

/// A promise that was broken.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) promise: &'static str,
    pub(crate) what: String,
}

struct Court<'a> {
    world: &'a World,
    seen: &'a Seen,
    found: Vec<Violation>,
}

/// All of them.
pub(crate) async fn all(world: &World, seen: &Seen, left: Option<String>) -> Vec<Violation> {
    let mut court = Court {
        world,
        seen,
        found: Vec::new(),
    };
    if let Some(left) = left {
        court.find(
            "everything comes to an end",
            format!("left when patience ended: {left}"),
        );
    }
    let wrong = world.ledger.open().wrong.clone();
    for what in wrong {
        court.find("servers do what they are asked", what);
    }
    for what in &seen.contradictions {
        court.find("what has ended stays as it ended", what.clone());
    }
    court.limits();
    court.items();
    court.executions();
    court.signals();
    court.series();
    court.once();
    court.locks();
    match world.engine {
        Engine::Embedded => court.calls(),
        Engine::Temporal => court.runs().await,
    }
    court.found
}

impl Court<'_> {
    fn find(&mut self, promise: &'static str, what: String) {
        self.found.push(Violation { promise, what });
    }

    /// Where a limit was lowered, what was claimed before may still run: then the limit that counts is that of the newest claim.
    fn limits(&mut self) {
        for (at, slots) in &self.seen.over {
            let room = self.world.number_of(slots.workspace_id);
            let fixed = self.world.fixed().any(|(number, _)| Some(number) == room);
            let allowed = if fixed {
                slots.most
            } else {
                let since = slots.newest.unwrap_or(*at) - STOOD_STILL;
                self.highest(slots.workspace_id, since, *at)
            };
            if slots.active > i64::from(allowed) {
                let what = format!(
                    "{} executions at once in room {room:?} at {at}, and its limit is {allowed}; the newest was claimed at {:?}",
                    slots.active, slots.newest
                );
                self.find("limits hold at every instant", what);
            }
        }
    }

    /// The highest limit of a workspace that was in force at some time between these, or was being set.
    fn highest(&self, workspace: Uuid, since: i64, until: i64) -> i32 {
        let seen = self.seen.limits.get(&workspace).cloned().unwrap_or_default();
        let before = seen.iter().rfind(|(at, _)| *at <= since).map(|(_, limit)| *limit);
        let during = seen
            .iter()
            .filter(|(at, _)| (since..=until).contains(at))
            .map(|(_, limit)| *limit);
        let books = self.world.ledger.open();
        let asked = self
            .world
            .number_of(workspace)
            .and_then(|room| books.limits.get(&room).cloned())
            .unwrap_or_default();
        let asked = asked
            .iter()
            .filter(|(at, _)| (since..=until).contains(at))
            .map(|(_, limit)| *limit);
        before
            .into_iter()
            .chain(during)
            .chain(asked)
            .max()
            .unwrap_or(i32::MAX)
    }

    /// Everything acknowledged is there once, and has ended; what was rolled back never was.
    fn items(&mut self) {
        let ended: HashSet<Uuid> = self
            .seen
            .executions
            .values()
            .filter(|execution| execution.ended.is_some())
            .map(|execution| execution.item)
            .collect();
        let items = self.world.ledger.open().items.clone();
        for (number, asked) in items {
            let stood = self.seen.numbers.get(&number).cloned().unwrap_or_default();
            if asked.unwanted && !stood.is_empty() {
                self.find(
                    "what was rolled back never was",
                    format!("number {number} became {stood:?}"),
                );
            }
            if stood.len() > 1 {
                let what = format!("number {number}, asked for once {}, became {stood:?}", asked.way);
                self.find("one request, one item", what);
            }
            let Some(item) = asked.item else {
                continue;
            };
            if !stood.contains(&item) {
                let what = format!(
                    "item {item}, number {number}, acknowledged {}, was never seen; seen was {stood:?}",
                    asked.way
                );
                self.find("nothing acknowledged is lost", what);
                continue;
            }
            let status = self.seen.items.get(&item).map_or("", String::as_str);
            if !ended.contains(&item) && !matches!(status, "FAILED" | "CANCELLED") {
                let what = format!("item {item}, number {number}, was last seen as {status} and has no end");
                self.find("nothing acknowledged is lost", what);
            }
        }
    }

    /// An item is run once, and once more for each time that somebody put it back. Nothing ends badly but what is meant to.
    fn executions(&mut self) {
        let mut of_item: HashMap<Uuid, BTreeSet<Uuid>> = HashMap::new();
        for (id, execution) in &self.seen.executions {
            of_item.entry(execution.item).or_default().insert(*id);
        }
        let (retried, cancelled) = {
            let books = self.world.ledger.open();
            (books.retried.clone(), books.cancelled.clone())
        };
        for (item, executions) in of_item {
            let allowed = 1 + retried.get(&item).copied().unwrap_or_default();
            if executions.len() > allowed {
                let what = format!("item {item} has {executions:?}, and {allowed} were asked for");
                self.find("nothing runs twice", what);
            }
        }
        let kinds = self.kinds();
        for (id, execution) in &self.seen.executions {
            let Some(ended) = &execution.ended else {
                continue;
            };
            let fails = self.world.engine == Engine::Embedded
                && kinds
                    .get(&execution.item)
                    .is_some_and(|kind| *kind == Kind::Fails);
            let expected = match ended.status.as_str() {
                "CANCELLED" => cancelled.contains(&execution.item),
                "FAILED" => fails,
                "COMPLETED" => !fails,
                _ => false,
            };
            if !expected {
                let what = format!(
                    "execution {id} of item {} ended as {}",
                    execution.item, ended.status
                );
                self.find("everything ends as it should", what);
            }
        }
    }

    fn kinds(&self) -> HashMap<Uuid, Kind> {
        let books = self.world.ledger.open();
        let mut kinds = HashMap::new();
        for (number, items) in &self.seen.numbers {
            let kind = books.items.get(number).map_or(Kind::Calls, |asked| asked.kind);
            kinds.extend(items.iter().map(|item| (*item, kind)));
        }
        kinds
    }

    /// Each signal has one fate, and one item.
    fn signals(&mut self) {
        let sent = self.world.ledger.open().signals.clone();
        for (id, signal) in sent {
            let fate = self.seen.signals.get(&id).cloned();
            let items = self.seen.numbers.get(&signal.number).cloned().unwrap_or_default();
            let right = match &fate {
                None => !signal.acknowledged,
                Some((status, item)) => match status.as_str() {
                    "ROUTED" => signal.known && item.is_some_and(|item| items == BTreeSet::from([item])),
                    _ => !signal.known && items.is_empty(),
                },
            };
            if !right {
                let what = format!("{id} ({signal:?}) met {fate:?}, and its items are {items:?}");
                self.find("every signal has one fate", what);
            }
            let ended = |item: &Uuid| {
                let mut executions = self.seen.executions.values();
                self.seen
                    .items
                    .get(item)
                    .is_some_and(|status| status == "CANCELLED")
                    || executions.any(|execution| execution.item == *item && execution.ended.is_some())
            };
            if let Some(item) = items.iter().find(|item| !ended(item)) {
                let what = format!("item {item} of {id} has no end");
                self.find("nothing acknowledged is lost", what);
            }
        }
    }

    /// Every instant of every series is on record; what fired was accepted by the target, and what did not has its reason.
    fn series(&mut self) {
        let accepted = self.accepted();
        let all = self.world.ledger.open().series.clone();
        for series in all {
            let instants = instants(&series);
            for at in instants {
                let record = self.seen.occurrences.get(&(series.id, at));
                let in_a_range = || {
                    self.seen
                        .ranges
                        .iter()
                        .any(|(alarm, from, until)| *alarm == series.id && (*from..*until).contains(&at))
                };
                let wrong = match record {
                    None if in_a_range() => None,
                    None => Some("is not on record".to_owned()),
                    Some(record) => match (record.status.as_str(), &record.reason) {
                        ("fired", _) if accepted.contains_key(&(series.id, at)) => None,
                        ("fired", _) => Some("is recorded as fired, and nobody was woken".to_owned()),
                        ("skipped" | "coalesced", Some(_)) => None,
                        other => Some(format!("is recorded as {other:?}")),
                    },
                };
                if let Some(wrong) = wrong {
                    let what = format!(
                        "the instant {at} of alarm {} (every {} ms) {wrong}",
                        series.id, series.every
                    );
                    self.find("every instant is accounted for", what);
                }
            }
        }
    }

    /// When each occurrence was accepted, by its id.
    fn accepted(&self) -> BTreeMap<(Uuid, i64), Vec<i64>> {
        let mut accepted: BTreeMap<(Uuid, i64), Vec<i64>> = BTreeMap::new();
        for wake in self.world.receiver.wakes() {
            let named = wake.id.split_once(':').and_then(|(alarm, at)| {
                let at: jiff::Timestamp = at.parse().ok()?;
                Some((alarm.parse().ok()?, at.as_millisecond()))
            });
            if let Some(named) = named {
                accepted.entry(named).or_default().push(wake.at);
            }
        }
        accepted
    }

    /// An alarm for once has fired, unless somebody cancelled it, and for one instant only.
    fn once(&mut self) {
        let accepted = self.accepted();
        let all = self.world.ledger.open().once.clone();
        for (id, cancelled) in all {
            let instants = accepted.range((id, i64::MIN)..=(id, i64::MAX)).count();
            let recorded: Vec<_> = self
                .seen
                .occurrences
                .iter()
                .filter(|((alarm, _), _)| *alarm == id)
                .map(|(_, occurrence)| &occurrence.status)
                .collect();
            let fired = instants == 1 && recorded.iter().all(|status| *status == "fired" || cancelled);
            if !(fired || cancelled && instants <= 1) {
                let what = format!(
                    "alarm {id} woke its target for {instants} instants, and is recorded as {recorded:?}"
                );
                self.find("every instant is accounted for", what);
            }
        }
    }

    /// No two have a lock at once, and tokens rise.
    fn locks(&mut self) {
        let mut holdings = self.world.ledger.open().holdings.clone();
        holdings.sort_by(|a, b| (&a.name, a.token).cmp(&(&b.name, b.token)));
        for pair in holdings.windows(2) {
            let [before, after] = pair else {
                continue;
            };
            if before.name != after.name {
                continue;
            }
            if before.token == after.token {
                self.find(
                    "tokens rise",
                    format!("given out twice: {before:?} and {after:?}"),
                );
            }
            if after.from < before.asked {
                self.find("tokens rise", format!("{after:?} was there before {before:?}"));
            }
            if after.from < before.until && before.from < after.until {
                self.find("a lock has one holder", format!("{before:?} and {after:?}"));
            }
        }
    }

    /// What the nodes called: in order, one after the other, never after the end, and never more at once than the limit.
    fn calls(&mut self) {
        let calls = self.world.receiver.calls();
        let mut of_execution: HashMap<Uuid, Vec<&Call>> = HashMap::new();
        for call in &calls {
            of_execution.entry(call.execution).or_default().push(call);
        }
        let kinds = self.kinds();
        let resumed = self.world.ledger.open().resumed.clone();
        // Between its last look at the clock and its call a server may be stopped, and sends what it had begun to send
        // when it goes on. That is one call at most of one stop; more are none that had begun.
        let mut late: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        let after_a_stop = |call: &Call| {
            resumed
                .iter()
                .copied()
                .find(|at| (*at..at + 1_000).contains(&call.from))
        };
        let mut wrong = Vec::new();
        for (id, calls) in &of_execution {
            let mut accuse = |call: &Call, what: String| match after_a_stop(call) {
                Some(resumed) => late.entry(resumed).or_default().push(what),
                None => wrong.push(what),
            };
            for (number, call) in calls.iter().enumerate() {
                for earlier in &calls[..number] {
                    if earlier.until.is_some_and(|until| until > call.from) {
                        accuse(call, format!("execution {id}: {call:?} began during {earlier:?}"));
                    }
                    if earlier.node > call.node {
                        accuse(call, format!("execution {id}: {call:?} came after {earlier:?}"));
                    }
                }
                let ended = self.seen.executions.get(id).and_then(|seen| seen.ended.as_ref());
                if ended.is_some_and(|ended| call.from > ended.at + AFTERWARDS) {
                    accuse(
                        call,
                        format!("execution {id}: {call:?} came after its end, {ended:?}"),
                    );
                }
            }
        }
        for (resumed, calls) in late {
            if calls.len() > 1 {
                wrong.push(format!("after the stop that ended at {resumed}: {calls:?}"));
            }
        }
        for (id, execution) in &self.seen.executions {
            let completed = execution
                .ended
                .as_ref()
                .is_some_and(|ended| matches!(ended.status.as_str(), "COMPLETED" | "FAILED"));
            let Some(kind) = kinds.get(&execution.item).filter(|_| completed) else {
                continue;
            };
            for node in kind.nodes() {
                let calls = of_execution.get(id).map_or(&[][..], Vec::as_slice);
                if !calls
                    .iter()
                    .any(|call| call.node == *node && call.until.is_some())
                {
                    wrong.push(format!(
                        "execution {id} has ended, and its node {node} was never done: {calls:?}"
                    ));
                }
            }
        }
        for what in wrong {
            self.find("nothing runs twice", what);
        }
        let spans = calls
            .iter()
            .filter_map(|call| Some((call.room, call.from, call.until?)));
        self.overlaps(&spans.collect::<Vec<_>>());
    }

    /// Never more of a room at once than its limit, where that is fixed.
    fn overlaps(&mut self, spans: &[(usize, i64, i64)]) {
        let rooms: Vec<(usize, i32)> = self
            .world
            .fixed()
            .map(|(number, room)| (number, room.limit))
            .collect();
        for (room, limit) in rooms {
            // Whoever ends in a millisecond makes room for whoever begins in it.
            let mut moves: Vec<(i64, i32)> = spans
                .iter()
                .filter(|(of, _, _)| *of == room)
                .flat_map(|(_, from, until)| [(*from, 1), (*until, -1)])
                .collect();
            moves.sort_unstable();
            let mut at_once = 0;
            let mut most = (0, 0);
            for (at, change) in moves {
                at_once += change;
                most = most.max((at_once, at));
            }
            if most.0 > limit {
                let what = format!(
                    "{} at once in room {room} at {}, and its limit is {limit}",
                    most.0, most.1
                );
                self.find("limits hold at every instant", what);
            }
        }
    }

    /// Temporal's own list: one run of each execution, none without one, none left open, never more at once than the limit.
    async fn runs(&mut self) {
        let Some((temporal, _)) = &self.world.temporal else {
            return;
        };
        let runs = temporal.runs().await;
        let mut count: HashMap<Uuid, usize> = HashMap::new();
        let mut spans = Vec::new();
        for run in runs {
            let id = run
                .execution
                .as_ref()
                .map_or("", |execution| &execution.workflow_id);
            let Some(id) = id
                .strip_prefix("execution-")
                .and_then(|id| id.parse::<Uuid>().ok())
            else {
                continue;
            };
            *count.entry(id).or_default() += 1;
            if run.status() == WorkflowExecutionStatus::Running {
                self.find(
                    "everything comes to an end",
                    format!("the run of execution {id} is open"),
                );
            }
            let room = self.seen.executions.get(&id).map(|execution| execution.workspace);
            let room = room.and_then(|workspace| self.world.number_of(workspace));
            if let (Some(room), Some(from), Some(until)) = (room, run.start_time, run.close_time) {
                let milliseconds = |seconds: i64, nanos: i32| seconds * 1_000 + i64::from(nanos) / 1_000_000;
                let from = milliseconds(from.seconds, from.nanos);
                spans.push((room, from, milliseconds(until.seconds, until.nanos)));
            }
        }
        for (id, runs) in &count {
            if *runs > 1 {
                self.find(
                    "nothing runs twice",
                    format!("execution {id} has {runs} runs on Temporal"),
                );
            }
        }
        for (id, execution) in &self.seen.executions {
            let completed = execution
                .ended
                .as_ref()
                .is_some_and(|ended| ended.status == "COMPLETED");
            if completed && !count.contains_key(id) {
                self.find(
                    "nothing acknowledged is lost",
                    format!("execution {id} has ended without a run"),
                );
            }
        }
        self.overlaps(&spans);
    }
}

/// The instants that a series must account for.
fn instants(series: &Series) -> Vec<i64> {
    let first = series.from + MARGIN;
    let first = first + (series.every - first.rem_euclid(series.every)) % series.every;
    let end = series.until.unwrap_or(first) - MARGIN;
    let paused = |at: i64| {
        series
            .pauses
            .iter()
            .any(|(from, until)| (from - MARGIN..until.saturating_add(MARGIN)).contains(&at))
    };
    let step = usize::try_from(series.every).unwrap_or(1_000);
    (first..end).step_by(step).filter(|at| !paused(*at)).collect()
}

#[test]
fn a_series_must_account_for_what_lies_between_its_ends_and_in_no_pause() {
    let series = Series {
        id: Uuid::nil(),
        every: 2_000,
        from: 1_000,
        pauses: vec![(11_000, 13_000)],
        until: Some(25_000),
    };
    assert_eq!(
        instants(&series),
        [4_000, 6_000, 8_000, 16_000, 18_000, 20_000, 22_000]
    );
}
