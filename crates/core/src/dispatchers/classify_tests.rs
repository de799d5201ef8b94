//! Every situation that the supervisor can meet, and what it makes of it.

use uuid::Uuid;

use super::*;

const STALE: Duration = Duration::from_secs(20);

fn server(number: u128) -> ServerId {
    ServerId(Uuid::from_u128(number))
}

/// A dispatcher at epoch 5; nobody has owned it for so many seconds, or somebody does.
fn row(vacant_for: Option<u64>) -> Row {
    Row {
        id: DispatcherId::of("shop", "default"),
        project: "shop".to_owned(),
        task_queue: "default".to_owned(),
        owner: Some(server(1)),
        epoch: Epoch(5),
        owned: vacant_for.is_none(),
        vacant_for: Duration::from_secs(vacant_for.unwrap_or_default()),
        runs_outlive: true,
        resting: false,
    }
}

fn run(epoch: Option<i64>) -> OpenRun {
    OpenRun {
        workflow_id: "dispatcher-shop-default".to_owned(),
        run_id: format!("run-{epoch:?}"),
        epoch: epoch.map(Epoch),
        server_id: Some(server(1)),
        started_at: None,
    }
}

fn beat(epoch: i64, age: u64) -> Heartbeat {
    Heartbeat {
        dispatcher_id: DispatcherId::of("shop", "default"),
        project: "shop".to_owned(),
        task_queue: "default".to_owned(),
        server_id: server(1),
        epoch: Epoch(epoch),
        age: Duration::from_secs(age),
    }
}

fn survey(row: Row, runs: &[OpenRun], heartbeats: &[Heartbeat]) -> Survey {
    Survey {
        rows: vec![row],
        heartbeats: Some(heartbeats.to_vec()),
        unread: Vec::new(),
        runs: Some(runs.to_vec()),
    }
}

fn judged(survey: &Survey) -> (Vec<Class>, Vec<Act>) {
    let findings = classify(survey, STALE, Legacy::Leave);
    (
        findings.iter().map(|finding| finding.class).collect(),
        findings.into_iter().filter_map(|finding| finding.act).collect(),
    )
}

fn remove(epoch: i64) -> Act {
    Act::RemoveHeartbeat {
        epoch: Epoch(epoch),
        server_id: server(1),
    }
}

#[test]
fn an_owned_dispatcher_with_its_run_and_a_fresh_heartbeat_is_healthy() {
    let seen = survey(row(None), &[run(Some(5))], &[beat(5, 3)]);
    assert_eq!(judged(&seen), (vec![Class::Healthy], vec![]));
}

#[test]
fn a_lease_that_holds_protects_whatever_the_heartbeats_say() {
    let old = survey(row(None), &[run(Some(5))], &[beat(5, 3_600)]);
    assert_eq!(
        judged(&old),
        (vec![Class::Silent], vec![]),
        "the owner cannot write heartbeats"
    );
    let flushed = survey(row(None), &[run(Some(5))], &[]);
    assert_eq!(
        judged(&flushed),
        (vec![Class::Silent], vec![]),
        "the store was flushed"
    );
    let away = Survey {
        heartbeats: None,
        ..survey(row(None), &[run(Some(5))], &[])
    };
    assert_eq!(judged(&away), (vec![Class::Silent], vec![]), "the store is away");
}

#[test]
fn a_vacancy_that_is_short_is_left_to_the_standby() {
    let seen = survey(row(Some(5)), &[run(Some(5))], &[beat(5, 15)]);
    assert_eq!(judged(&seen), (vec![Class::Vacant], vec![]));
}

#[test]
fn what_a_dead_owner_left_is_ended_before_its_heartbeat_is_removed_and_the_row_comes_last() {
    let run = run(Some(5));
    let seen = survey(row(Some(60)), std::slice::from_ref(&run), &[beat(5, 60)]);
    assert_eq!(judged(&seen).1, [terminate(&run), remove(5), Act::Release]);
}

#[test]
fn the_run_of_an_older_epoch_is_an_orphan_and_that_of_the_owner_is_not() {
    let (old, new) = (run(Some(4)), run(Some(5)));
    let seen = survey(row(None), &[new, old.clone()], &[beat(5, 1)]);
    assert_eq!(
        judged(&seen),
        (vec![Class::Healthy, Class::Orphan], vec![terminate(&old)])
    );
}

#[test]
fn a_heartbeat_of_an_older_epoch_is_removed_only_once_it_is_old() {
    let fresh = survey(row(None), &[run(Some(5))], &[beat(4, 5)]);
    assert_eq!(judged(&fresh).1, []);
    let old = survey(row(None), &[run(Some(5))], &[beat(4, 25)]);
    assert_eq!(judged(&old).1, [remove(4)]);
}

#[test]
fn without_word_from_the_engine_no_heartbeat_is_removed_and_no_row_released() {
    let seen = Survey {
        runs: None,
        ..survey(row(Some(60)), &[], &[beat(5, 60)])
    };
    assert_eq!(judged(&seen).1, []);
    let embedded = Row {
        runs_outlive: false,
        ..row(Some(60))
    };
    let embedded = Survey {
        runs: None,
        ..survey(embedded, &[], &[beat(5, 60)])
    };
    assert_eq!(
        judged(&embedded).1,
        [remove(5), Act::Release],
        "runs that end with their server need no word"
    );
}

#[test]
fn without_word_from_the_heartbeats_orphans_are_still_ended_and_no_row_is_released() {
    let old = run(Some(4));
    let seen = Survey {
        heartbeats: None,
        ..survey(row(Some(60)), std::slice::from_ref(&old), &[])
    };
    assert_eq!(judged(&seen).1, [terminate(&old)]);
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let ahead = survey(row(None), &[run(Some(6))], &[beat(5, 1)]);
    assert_eq!(judged(&ahead), (vec![Class::Healthy, Class::Foreign], vec![]));
    let silent = survey(row(Some(60)), &[run(None)], &[]);
    assert_eq!(
        judged(&silent).1,
        [Act::Release],
        "a run without an epoch is nobody's to end"
    );
    let stranger = OpenRun {
        workflow_id: "dispatcher-crm-default".to_owned(),
        ..run(Some(1))
    };
    let seen = survey(row(None), &[stranger], &[beat(5, 1)]);
    assert_eq!(judged(&seen), (vec![Class::Healthy, Class::Foreign], vec![]));
}

#[test]
fn what_an_older_deployment_left_is_shown_and_goes_only_when_told() {
    let legacy = OpenRun {
        workflow_id: "dispatcher-shop-default-2abC9dEf01".to_owned(),
        ..run(None)
    };
    let other = OpenRun {
        workflow_id: "dispatcher-shop-orders-2abC9dEf01".to_owned(),
        ..run(None)
    };
    let seen = survey(row(None), &[legacy.clone(), other], &[beat(5, 1)]);
    assert_eq!(
        judged(&seen),
        (vec![Class::Healthy, Class::Legacy, Class::Foreign], vec![])
    );
    let told = classify(&seen, STALE, Legacy::Remove);
    let acts: Vec<Act> = told.into_iter().filter_map(|finding| finding.act).collect();
    assert_eq!(
        acts,
        [terminate(&legacy)],
        "only of the exact project and task queue"
    );
}

#[test]
fn a_heartbeat_of_an_older_deployment_goes_only_when_told_and_after_its_run() {
    let unread = |id: &str| Unread {
        dispatcher_id: DispatcherId(id.to_owned()),
        text: "{}".to_owned(),
    };
    let run = OpenRun {
        workflow_id: "dispatcher-shop-default-2abC9dEf01".to_owned(),
        ..run(None)
    };
    let seen = Survey {
        unread: vec![
            unread("dispatcher-shop-default-2abC9dEf01"),
            unread("dispatcher-crm-default-2abC9dEf01"),
            unread("something-else"),
        ],
        ..survey(row(None), std::slice::from_ref(&run), &[beat(5, 1)])
    };
    let (classes, acts) = judged(&seen);
    assert_eq!(classes, [Class::Healthy, Class::Legacy, Class::Legacy]);
    assert_eq!(acts, []);
    let acts = |seen: &Survey| -> Vec<Act> {
        let findings = classify(seen, STALE, Legacy::Remove);
        findings.into_iter().filter_map(|finding| finding.act).collect()
    };
    let remove = Act::RemoveLegacyHeartbeat {
        text: "{}".to_owned(),
    };
    assert_eq!(acts(&seen), [terminate(&run), remove], "the run first");
    let blind = Survey { runs: None, ..seen };
    assert_eq!(acts(&blind), [], "its run may be there still");
}

#[test]
fn many_dispatchers_and_many_strangers_are_judged_in_a_moment() {
    const MANY: u64 = 20_000;
    let id = |number: u64| DispatcherId::of("shop", &format!("queue{number}"));
    let rows = (0..MANY).map(|number| Row {
        id: id(number),
        task_queue: format!("queue{number}"),
        ..row(None)
    });
    let runs = (0..2 * MANY).map(|number| OpenRun {
        workflow_id: id(number).0,
        ..run(Some(5))
    });
    let heartbeats = (0..2 * MANY).map(|number| Heartbeat {
        dispatcher_id: id(number),
        ..beat(5, 1)
    });
    let survey = Survey {
        rows: rows.collect(),
        heartbeats: Some(heartbeats.collect()),
        unread: Vec::new(),
        runs: Some(runs.collect()),
    };
    let began = std::time::Instant::now();
    let (classes, acts) = judged(&survey);
    let took = began.elapsed();
    let count = |class| classes.iter().filter(|found| **found == class).count() as u64;
    assert_eq!((count(Class::Healthy), count(Class::Foreign)), (MANY, 2 * MANY));
    assert_eq!(acts, []);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn what_is_left_of_a_dispatcher_that_rests_goes_and_the_rest_is_no_fault() {
    let resting = Row {
        owner: None,
        resting: true,
        ..row(Some(60))
    };
    let (classes, acts) = judged(&survey(resting.clone(), &[], &[]));
    assert_eq!((classes, acts), (vec![Class::Vacant], vec![]));
    let (_, acts) = judged(&survey(resting, &[run(Some(5))], &[beat(5, 60)]));
    assert_eq!(acts.len(), 2, "its run and its heartbeat: {acts:?}");
}
