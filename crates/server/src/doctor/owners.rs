//! Who owns the dispatchers, and under which epoch.

use jiff::{SignedDuration, Timestamp};
use stationmaster_client::wire::{Dispatcher, DispatcherQuery, DispatcherState};
use stationmaster_client::{Client, Result};

use super::{Finding, ok, problem, warning};

const ID: &str = "dispatchers.owners";
/// Dispatchers that are looked at.
const MOST: u32 = 500;
/// Dispatchers that are named.
const NAMED: usize = 5;
/// A standby takes over within seconds.
const TAKEN_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// Heartbeats are old after `stale`; without it they are not looked at.
pub(super) async fn look(client: &Client, stale: Option<SignedDuration>) -> Result<Vec<Finding>> {
    let query = DispatcherQuery {
        limit: Some(MOST),
        ..DispatcherQuery::default()
    };
    let dispatchers = client.dispatchers(&query).await?.items;
    let now = Timestamp::now();
    let mut findings = vec![judge(&dispatchers, now)];
    findings.extend(stale.and_then(|stale| silent(&dispatchers, stale, now)));
    Ok(findings)
}

fn judge(dispatchers: &[Dispatcher], now: Timestamp) -> Finding {
    let forsaken: Vec<&Dispatcher> = dispatchers
        .iter()
        .filter(|one| one.state == DispatcherState::Vacant)
        .filter(|one| {
            one.oldest_waiting_at
                .is_some_and(|since| now.duration_since(since) > TAKEN_WITHIN)
        })
        .collect();
    if !forsaken.is_empty() {
        let seen = format!("nobody owns {}, and signals wait there", names(&forsaken));
        let advice = "Start a server, or look why none takes it: dispatchers.enabled, dispatchers.projects, and the engine";
        return problem(ID, seen, advice);
    }
    if dispatchers.is_empty() {
        return ok(ID, "there are no dispatchers yet");
    }
    ok(ID, names(&dispatchers.iter().collect::<Vec<_>>()))
}

/// Owners whose lease holds and whose heartbeat does not come.
fn silent(dispatchers: &[Dispatcher], stale: SignedDuration, now: Timestamp) -> Option<Finding> {
    let silent: Vec<&Dispatcher> = dispatchers
        .iter()
        .filter(|one| one.state == DispatcherState::Owned)
        .filter(|one| {
            let since = one.heartbeat_at.or(one.taken_at);
            since.is_some_and(|since| now.duration_since(since) > stale)
        })
        .collect();
    if silent.is_empty() {
        return None;
    }
    let seen = format!("the heartbeats of {} are old", names(&silent));
    let advice =
        "The leases hold, so nothing is taken from anybody; the log of the owner tells why it does not beat";
    Some(warning("dispatchers.heartbeats", seen, advice))
}

fn names(dispatchers: &[&Dispatcher]) -> String {
    let name = |one: &&Dispatcher| {
        let owner = match (one.state, &one.owner_name, one.owner) {
            (DispatcherState::Vacant, _, _) => "by nobody".to_owned(),
            (DispatcherState::Resting, _, _) => "at rest".to_owned(),
            (DispatcherState::Owned, Some(name), _) => format!("by {name}"),
            (DispatcherState::Owned, None, id) => format!("by {}", id.unwrap_or_default()),
        };
        format!("{} {owner} (epoch {})", one.id, one.epoch)
    };
    let mut names: Vec<String> = dispatchers.iter().take(NAMED).map(name).collect();
    if dispatchers.len() > NAMED {
        names.push(format!("and {} more", dispatchers.len() - NAMED));
    }
    names.join("; ")
}

#[cfg(test)]
mod tests {
    use stationmaster_client::wire::Severity;

    use super::*;

    fn dispatcher(state: DispatcherState, waits_for: Option<i64>, beat_ago: i64) -> Dispatcher {
        let ago = |seconds| Timestamp::now() - SignedDuration::from_secs(seconds);
        Dispatcher {
            id: "dispatcher-shop-default".to_owned(),
            project: "shop".to_owned(),
            task_queue: "default".to_owned(),
            state,
            owner: None,
            owner_name: Some("a".to_owned()),
            epoch: 4,
            lease_until: None,
            engine: None,
            run_id: None,
            taken_at: Some(ago(1000)),
            run_started_at: None,
            heartbeat_at: Some(ago(beat_ago)),
            waiting: i64::from(waits_for.is_some()),
            oldest_waiting_at: waits_for.map(ago),
            removal_requested_at: None,
            servers: Vec::new(),
        }
    }

    #[test]
    fn an_owner_is_told_with_its_epoch_and_a_forsaken_dispatcher_is_a_problem() {
        use DispatcherState::{Owned, Vacant};
        let now = Timestamp::now();
        let judged = |one| judge(&[one], now);
        let owned = judged(dispatcher(Owned, Some(600), 1));
        assert_eq!(owned.severity, Severity::Ok, "{owned:?}");
        assert_eq!(owned.seen, "dispatcher-shop-default by a (epoch 4)");
        assert_eq!(judged(dispatcher(Vacant, None, 1)).severity, Severity::Ok);
        assert_eq!(judged(dispatcher(Vacant, Some(5), 1)).severity, Severity::Ok);
        let forsaken = judged(dispatcher(Vacant, Some(600), 1));
        assert_eq!(forsaken.severity, Severity::Problem, "{forsaken:?}");
        let many: Vec<Dispatcher> = (0..7).map(|_| dispatcher(Owned, None, 1)).collect();
        assert!(judge(&many, now).seen.ends_with("; and 2 more"));
    }

    #[test]
    fn an_owner_that_does_not_beat_is_told() {
        let stale = SignedDuration::from_secs(20);
        let told = |beat_ago| {
            silent(
                &[dispatcher(DispatcherState::Owned, None, beat_ago)],
                stale,
                Timestamp::now(),
            )
        };
        assert!(told(5).is_none());
        assert_eq!(told(60).unwrap().severity, Severity::Warning);
    }
}
