//! Names in SQL: how what is written becomes one, who has it, and what is meant by it.

use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use stationmaster_core::names;
use uuid::Uuid;

use crate::common::{NOOP, Testbed};

/// What people may type, and what they may not.
const ALPHABET: &[&str] = &[
    "a", "Z", "q", "7", "0", "-", "--", "_", " ", "\t", ".", "/", "é", "Ä", "ß", "K", "İ", "日本", "🚂",
    "\\", "'", "%",
];

#[tokio::test]
async fn what_is_given_is_folded_the_same_in_rust_and_in_sql() {
    let bed = Testbed::new().await;
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut given: Vec<String> = [
        "shop",
        " My  Shop! ",
        "...",
        "",
        "-_-",
        "a_b--c",
        "ORDERS 2026/03",
    ]
    .map(str::to_owned)
    .to_vec();
    given.push(Uuid::now_v7().to_string());
    given.push("x".repeat(200));
    given.push(format!("{}/y", "x".repeat(62)));
    for _ in 0..2_000 {
        let length = random.random_range(0..90);
        given.push(
            (0..length)
                .filter_map(|_| ALPHABET.choose(&mut random).copied())
                .collect(),
        );
    }
    let query = "select stationmaster.slug(given) from unnest($1::text[]) with ordinality as g (given, place) order by place";
    let folded: Vec<String> = sqlx::query_scalar(query)
        .bind(&given)
        .fetch_all(bed.pool())
        .await
        .unwrap();
    assert_eq!(folded.len(), given.len());
    let is_slug = |name: &str| {
        let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        name.len() <= 63
            && name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.bytes().all(fits)
    };
    for (given, folded) in given.iter().zip(&folded) {
        assert_eq!(&names::fold(given), folded, "{given:?}");
        assert!(
            folded.is_empty() || is_slug(folded),
            "{given:?} became {folded:?}"
        );
        assert_eq!(&names::fold(folded), folded, "a name is itself");
        // What one takes as a name, the other does too.
        let kept: Result<String, _> = sqlx::query_scalar("select stationmaster_internal.given_name($1)")
            .bind(given)
            .fetch_one(bed.pool())
            .await;
        assert_eq!(kept.ok(), names::name(given).ok(), "{given:?}");
    }
}

async fn make(bed: &Testbed, name: Option<&str>) -> Result<(Uuid, String), sqlx::Error> {
    sqlx::query_as("insert into stationmaster.workspaces (name) values ($1) returning id, name")
        .bind(name)
        .fetch_one(bed.pool())
        .await
}

fn refusal(error: sqlx::Error) -> (String, String) {
    let error = error.into_database_error().expect("the database refused");
    (
        error.code().unwrap_or_default().into_owned(),
        error.message().to_owned(),
    )
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused_and_says_by_whom() {
    let bed = Testbed::new().await;
    let (first, name) = make(&bed, Some("My Shop")).await.unwrap();
    assert_eq!(name, "my-shop", "the answer shows what is kept");
    let (code, words) = refusal(make(&bed, Some("my shop!")).await.unwrap_err());
    assert_eq!(code, "23505");
    assert!(
        words.contains("my-shop") && words.contains(&first.to_string()),
        "{words}"
    );

    let (second, _) = make(&bed, Some("store")).await.unwrap();
    let rename =
        sqlx::query("update stationmaster.workspaces set name = 'MY-SHOP' where id = $1").bind(second);
    let (code, words) = refusal(rename.execute(bed.pool()).await.unwrap_err());
    assert_eq!(code, "23505");
    assert!(words.contains(&first.to_string()), "{words}");

    // A workflow's name is its own within its workspace only.
    let workflow = |workspace: Uuid| {
        sqlx::query(
            "insert into stationmaster.workflow_definitions (workspace_id, name) values ($1, 'Import')",
        )
        .bind(workspace)
        .execute(bed.pool())
    };
    workflow(first).await.unwrap();
    workflow(second).await.unwrap();
    assert_eq!(refusal(workflow(first).await.unwrap_err()).0, "23505");
}

#[tokio::test]
async fn two_that_write_the_same_name_at_once_do_not_both_have_it() {
    let bed = Testbed::new().await;
    let (mut one, mut other) = (bed.connection().await, bed.connection().await);
    let insert = "insert into stationmaster.workspaces (name) values ('shop')";
    sqlx::raw_sql("begin").execute(&mut one).await.unwrap();
    sqlx::query(insert).execute(&mut one).await.unwrap();
    // The other does not see the first, and waits for it.
    let second = tokio::spawn(async move { sqlx::query(insert).execute(&mut other).await });
    let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into stationmaster.workspaces%'";
    crate::common::eventually("the second waits", async || bed.number(waits).await > 0).await;
    sqlx::raw_sql("commit").execute(&mut one).await.unwrap();
    assert_eq!(refusal(second.await.unwrap().unwrap_err()).0, "23505");
    assert_eq!(
        bed.number("select count(*) from stationmaster.workspaces").await,
        1
    );
}

#[tokio::test]
async fn what_is_written_without_a_name_gets_one_from_its_id() {
    let bed = Testbed::new().await;
    let (id, name) = make(&bed, None).await.unwrap();
    assert_eq!(name, format!("workspace-{}", &id.to_string()[24..]));
    let workflow: (Uuid, String) = sqlx::query_as(
        "insert into stationmaster.workflow_definitions (workspace_id) values ($1) returning id, name",
    )
    .bind(id)
    .fetch_one(bed.pool())
    .await
    .unwrap();
    assert_eq!(workflow.1, format!("workflow-{}", &workflow.0.to_string()[24..]));
}

#[tokio::test]
async fn nothing_and_ids_are_refused_as_names_with_words() {
    let bed = Testbed::new().await;
    for (given, words) in [
        ("", "no letter"),
        (" ... ", "no letter"),
        ("01890A5D-AC96-774B-BCCE-B302099A8057", "looks like an id"),
        ("{01890a5d-ac96-774b-bcce-b302099a8057}", "looks like an id"),
    ] {
        let (code, told) = refusal(make(&bed, Some(given)).await.unwrap_err());
        assert_eq!(code, "23514", "{given:?}");
        assert!(told.contains(words), "{given:?}: {told}");
    }
}

#[tokio::test]
async fn work_is_enqueued_by_names_in_sql() {
    let bed = Testbed::new().await;
    let (workspace, workflow) = bed.tenant(1, NOOP).await;
    bed.run(&format!(
        "update stationmaster.workspaces set name = 'shop' where id = '{workspace}'"
    ))
    .await;
    bed.run(&format!(
        "update stationmaster.workflow_definitions set name = 'import' where id = '{workflow}'"
    ))
    .await;
    let enqueue = |workspace: String, workflow: String| {
        sqlx::query_scalar::<_, Uuid>(
            "select stationmaster.enqueue($1, $2, '{\"n\": 1}', idempotency_key => 'k')",
        )
        .bind(workspace)
        .bind(workflow)
        .fetch_one(bed.pool())
    };
    let first = enqueue("shop".into(), "import".into()).await.unwrap();
    let folded = enqueue(" Shop".into(), "Import".into()).await.unwrap();
    let by_id = enqueue(workspace.to_string(), workflow.to_string())
        .await
        .unwrap();
    assert_eq!((folded, by_id), (first, first), "the same key, the same item");

    for (workspace, workflow, words) in [
        ("shpo", "import", "there is no workspace called \"shpo\""),
        (
            "shop",
            "export",
            "workspace \"shop\" has no workflow called \"export\"",
        ),
    ] {
        let (code, told) = refusal(enqueue(workspace.into(), workflow.into()).await.unwrap_err());
        assert_eq!((code.as_str(), told.as_str()), ("23503", words));
    }
}

#[tokio::test]
async fn two_servers_of_one_name_are_told_apart_and_histories_know_them_when_they_are_gone() {
    let bed = Testbed::new().await;
    let tenant = bed.tenant(2, NOOP).await;
    let (one, other) = (
        bed.server(crate::common::brisk()).await,
        bed.server(crate::common::brisk()).await,
    );
    let query = "select name from stationmaster_internal.servers order by name";
    let called: Vec<String> = sqlx::query_scalar(query).fetch_all(bed.pool()).await.unwrap();
    assert_eq!(called.len(), 2);
    assert_eq!(called[1], format!("{}-2", called[0]));
    let item = bed.enqueue(tenant).await;
    bed.reaches(item, "COMPLETED").await;
    one.stop().await;
    other.stop().await;
    assert_eq!(bed.count("servers").await, 0, "they are gone");
    let steps = stationmaster_core::executions::inspect::history(&bed.database, item)
        .await
        .unwrap();
    let claimed = steps
        .iter()
        .find(|step| step.event == "claimed")
        .expect("it was claimed");
    assert!(
        claimed.server.as_ref().is_some_and(|name| called.contains(name)),
        "{claimed:?}"
    );
}

#[tokio::test]
async fn alarms_are_set_and_cancelled_by_names_in_sql() {
    let bed = Testbed::new().await;
    let (shop, _) = make(&bed, Some("shop")).await.unwrap();
    let set = "select stationmaster.set_alarm('Shop', cron_expr => '30 2 * * *', name => 'Nightly Import')";
    let alarm: Uuid = sqlx::query_scalar(set).fetch_one(bed.pool()).await.unwrap();
    let seen: (Uuid, String, String) =
        sqlx::query_as("select workspace_id, name, workspace from stationmaster.alarms where id = $1")
            .bind(alarm)
            .fetch_one(bed.pool())
            .await
            .unwrap();
    assert_eq!(seen, (shop, "nightly-import".to_owned(), "shop".to_owned()));
    let again = sqlx::query_scalar::<_, Uuid>(set).fetch_one(bed.pool()).await;
    let (code, words) = refusal(again.unwrap_err());
    assert_eq!(code, "23505");
    assert!(
        words.contains("nightly-import") && words.contains(&alarm.to_string()),
        "{words}"
    );
    // By id as before, also written as a text.
    for by_id in [
        format!("select stationmaster.set_alarm('{shop}'::uuid, delay => '1 hour')"),
        format!("select stationmaster.set_alarm('{shop}', delay => '1 hour')"),
        format!("select stationmaster.set_alarm(workspace_id => '{shop}', delay => '1 hour')"),
    ] {
        bed.run(&by_id).await;
    }
    let cancel = "select stationmaster.cancel_alarm('shop', 'nightly-import')";
    let status: String = sqlx::query_scalar(cancel).fetch_one(bed.pool()).await.unwrap();
    assert_eq!(status, "cancelled");
    // One that has ended gives its name up to the next.
    let next: Uuid = sqlx::query_scalar(set).fetch_one(bed.pool()).await.unwrap();
    assert_ne!(next, alarm);
}
