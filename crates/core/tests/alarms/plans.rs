//! The hot statements read the heads of their indexes and nothing else, beside very many alarms and very many retries.

use sqlx::AssertSqlSafe;

use crate::bed::Bed;

const MANY: i32 = 20_000;

async fn stored(bed: &Bed) {
    bed.testbed
        .run(&format!(
            "insert into stationmaster_internal.alarm_definitions (workspace_id, kind, fire_at)
             select '{}', 'once', now() + interval '1 day' + n * interval '1 second' from generate_series(1, {MANY}) n;
             insert into stationmaster_internal.occurrences_open (alarm_id, scheduled_for, due_at, ready_at)
             select id, now(), now(), now() + interval '1 day' from stationmaster_internal.alarm_definitions;
             analyze stationmaster_internal.alarm_standings; analyze stationmaster_internal.alarm_definitions; analyze stationmaster_internal.occurrences_open",
            bed.workspace
        ))
        .await;
}

/// The plan, and the buffers that it touched.
async fn explain(bed: &Bed, statement: &str, values: &[&str]) -> String {
    let mut text = statement.to_owned();
    for (place, value) in values.iter().enumerate().rev() {
        text = text.replace(&format!("${}", place + 1), value);
    }
    let query = format!("explain (analyze, buffers, costs off, timing off, summary off) {text}");
    let lines: Vec<String> = sqlx::query_scalar(AssertSqlSafe(query))
        .fetch_all(bed.testbed.pool())
        .await
        .unwrap();
    lines.join("\n")
}

#[tokio::test]
async fn a_look_and_a_claim_read_the_heads_of_their_indexes() {
    let bed = Bed::new().await;
    stored(&bed).await;
    let look = explain(
        &bed,
        include_str!("../../sql/alarms/look.sql"),
        &["'-infinity'", "'-infinity'"],
    )
    .await;
    assert!(
        look.contains("alarm_standings_due") && look.contains("occurrences_open_ready"),
        "{look}"
    );
    assert!(
        !look.contains("Seq Scan on alarm_standings") && !look.contains("Seq Scan on occurrences"),
        "{look}"
    );
    let due = explain(
        &bed,
        include_str!("../../sql/alarms/lock_due.sql"),
        &["'-infinity'", "100"],
    )
    .await;
    assert!(
        due.contains("alarm_standings_due") && !due.contains("Seq Scan on alarm"),
        "{due}"
    );
    let nobody = "'00000000-0000-0000-0000-000000000000'";
    let mut values = vec!["'{}'"; 12];
    values.extend([nobody, "120", "'-infinity'", "100", "'{}'"]);
    let claim = explain(&bed, include_str!("../../sql/alarms/claim.sql"), &values).await;
    assert!(claim.contains("occurrences_open_ready"), "{claim}");
    assert!(
        !claim.contains("Seq Scan on occurrences") && !claim.contains("Seq Scan on alarm"),
        "{claim}"
    );
    let settle = include_str!("../../sql/alarms/settle.sql");
    let one = format!("array['{}']::uuid[]", bed.testbed.workspace(1).await);
    let values = [
        one.as_str(),
        "array[now()]",
        "'{1}'",
        "'{fired}'",
        "'{0}'",
        "'{x}'",
        "'{200}'",
        "'{x}'",
        "'{accepted}'",
        "'{f}'",
    ];
    let settle = explain(&bed, settle, &values).await;
    assert!(
        !settle.contains("Seq Scan on occurrences_open") && !settle.contains("Seq Scan on alarm"),
        "{settle}"
    );
}

/// Of what is asked for there is nothing, which tempts the planner to look for it among everything.
#[tokio::test]
async fn a_page_of_a_list_is_read_from_its_candidates_however_many_alarms_there_are() {
    let bed = Bed::new().await;
    stored(&bed).await;
    bed.testbed
        .run(
            "insert into stationmaster_internal.occurrences_finished (alarm_id, scheduled_for, origin, status, due_at)
             select (select id from stationmaster_internal.alarm_definitions order by id limit 1), now() - n * interval '1 second',
                    'schedule', 'fired', now()
             from generate_series(1, 20000) n;
             analyze stationmaster_internal.occurrences_finished",
        )
        .await;
    // Everything there is belongs to another one, and the planner knows of no other.
    let workspace = format!("array['{}']::uuid[]", bed.testbed.workspace(1).await);
    let greatest = "'ffffffff-ffff-ffff-ffff-ffffffffffff'";
    let candidates = include_str!("../../sql/alarms/candidates.sql");
    for (values, index) in [
        (["null", "null", greatest, "50"], "alarm_definitions_pkey"),
        (
            [&workspace, "null", greatest, "50"],
            "alarm_definitions_by_workspace",
        ),
        (["null", "'failed'", greatest, "50"], "alarm_standings_stopped"),
    ] {
        let plan = explain(&bed, candidates, &values).await;
        assert!(
            plan.contains(index) && !plan.contains("Seq Scan on alarm"),
            "{plan}"
        );
    }
    let newest = "(select array_agg(id) from (select id from stationmaster_internal.alarm_definitions order by id desc limit 500) newest)";
    let rows = include_str!("../../sql/alarms/get.sql");
    let plan = explain(&bed, rows, &[newest, "'fired'", "null", "null", "null", "50"]).await;
    assert!(!plan.contains("Seq Scan on alarm_"), "{plan}");
    let alarm = "(select id from stationmaster_internal.alarm_definitions order by id limit 1)";
    let latest = "(select array_agg(scheduled_for) from \
                  (select scheduled_for from stationmaster_internal.occurrences_finished order by scheduled_for desc limit 500) latest)";
    let rows = include_str!("../../sql/alarms/occurrences.sql");
    let plan = explain(&bed, rows, &[alarm, "'failed'", latest, "50"]).await;
    assert!(
        plan.contains("occurrences_finished_pkey on occurrences_finished f"),
        "{plan}"
    );
}
