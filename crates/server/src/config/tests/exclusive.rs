//! The exclusive mode: its defaults, its file, and what is said about settings that cost more than one may think.

use super::*;

fn shipped() -> Loaded {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/exclusive.toml");
    let flags = Flags {
        config: Some(path.into()),
        ..Flags::default()
    };
    right(load_from(&flags, std::iter::empty()))
}

#[test]
fn the_shipped_file_is_the_source_design_and_so_is_the_switch_alone() {
    let file = shipped().config.executions().unwrap();
    let switch = right(from_set(&["executions.exclusive=true"]));
    assert_eq!(
        format!("{file:?}"),
        format!("{:?}", switch.config.executions().unwrap())
    );

    let exclusive = file.exclusive.unwrap();
    let (turn, recovery) = (exclusive.turn, exclusive.recovery);
    let seconds = Duration::from_secs;
    assert_eq!((turn.at_most(), turn.at_least()), (seconds(240), seconds(10)));
    assert_eq!(
        (recovery.at_most(), recovery.at_least()),
        (seconds(120), seconds(30))
    );
    assert_eq!((file.poll_interval, file.batch_size), (seconds(5), 10));
    assert_eq!(
        (exclusive.recovery_interval, exclusive.stale_after),
        (seconds(60), seconds(300))
    );
    assert_eq!(exclusive.table, LockTable::default());
}

#[test]
fn defaults_of_the_mode_are_shown_and_give_way_to_what_is_said() {
    let loaded = right(from_set(&["executions.exclusive=true"]));
    assert_eq!(
        value(&loaded, "executions.batch_size").value.as_deref(),
        Some("10")
    );
    assert_eq!(value(&loaded, "executions.batch_size").origin, Origin::Default);
    let loaded = right(from_set(&[
        "executions.exclusive=true",
        "executions.batch_size=3",
    ]));
    assert_eq!(loaded.config.executions.batch_size, 3);
    let parallel = right(from_set(&[]));
    assert_eq!(parallel.config.executions.batch_size, 1000);
    assert!(parallel.config.executions().unwrap().exclusive.is_none());
}

#[test]
fn a_lock_held_for_longer_than_a_poll_is_warned_about_with_its_cost() {
    let warnings = shipped().config.warnings();
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    for words in [
        "exclusive_at_least (10s)",
        "poll_interval (5s)",
        "1 of 2 polls are idle",
        "at most 10 items start every 10s",
    ] {
        assert!(warning.contains(words), "{words}: {warning}");
    }
    let thrice = from_set(&[
        "executions.exclusive=true",
        "executions.exclusive_at_least=11s",
        "executions.exclusive_recovery_interval=20s",
    ]);
    let warnings = thrice.ok().unwrap().config.warnings();
    assert!(warnings[0].contains("2 of 3 polls are idle"), "{warnings:?}");
    assert!(warnings[1].contains("1 of 2 recoveries are idle"), "{warnings:?}");

    for quiet in [
        &["executions.exclusive=true", "executions.exclusive_at_least=5s"][..],
        &["executions.exclusive=true", "executions.enabled=false"],
        &[],
    ] {
        assert_eq!(right(from_set(quiet)).config.warnings(), [""; 0], "{quiet:?}");
    }
}

#[test]
fn terms_that_cannot_be_kept_are_refused() {
    for (pairs, setting) in [
        (&["executions.exclusive_at_least=5m"][..], "exclusive_at_least"),
        (&["executions.exclusive_at_most=9s"], "exclusive_at_most"),
        (
            &[
                "executions.exclusive_at_most=1us",
                "executions.exclusive_at_least=1us",
            ],
            "exclusive_at_most",
        ),
        (
            &["executions.exclusive_recovery_at_least=3m"],
            "exclusive_recovery_at_least",
        ),
        (
            &["executions.exclusive=true", "executions.batch_size=12"],
            "batch_size",
        ),
        (
            &["executions.exclusive=true", "executions.claim_lease=104s"],
            "claim_lease",
        ),
        (
            &["executions.exclusive=true", "executions.claim_lease=14s"],
            "claim_lease",
        ),
    ] {
        let wrong = complaint(from_set(pairs));
        assert!(wrong.setting.contains(setting), "{wrong}");
    }
    assert!(from_set(&["executions.exclusive=true", "executions.claim_lease=105s"]).is_ok());
}

#[test]
fn the_lock_table_is_a_name_or_refused() {
    let loaded = right(from_set(&["locks.table=Jobs.\"Locks\""]));
    assert_eq!(loaded.config.locks.table.to_string(), "jobs.\"Locks\"");
    for wrong in ["", "a; drop table b", "a.b.c", "\"a"] {
        let complaint = complaint(from_set(&[&format!("locks.table={wrong}")]));
        assert_eq!(complaint.setting, "locks.table");
        assert!(complaint.remedy.contains("the name of a table"), "{complaint}");
    }
}

/// A command under a lock finds its token in the environment, and may call us again.
#[test]
fn the_variables_of_a_command_under_a_lock_are_no_settings() {
    let environment = [
        ("STATIONMASTER_LOCK_TOKEN", "7"),
        ("STATIONMASTER_LOCK_NAME", "nightly"),
    ];
    assert!(load_with(None, &environment, Flags::default()).is_ok());
    let setting = [("STATIONMASTER_LOCKS__TABLE", "jobs.locks")];
    let loaded = right(load_with(None, &setting, Flags::default()));
    assert_eq!(loaded.config.locks.table.to_string(), "jobs.locks");
}
