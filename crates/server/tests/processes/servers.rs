//! Servers as people see and move them: drained from afar, and on record after they have left.

use serde_json::Value;

use crate::support::{ENDLESS, Launch, SHORT, TestDatabase, command, eventually};

fn named(database: &TestDatabase, name: &str) -> Value {
    command(database, &["servers", "show", name])
}

/// Executions in the hands of each, by the names of servers.
async fn held(database: &TestDatabase) -> Vec<(String, i64)> {
    let query = "select n.name, count(*) from stationmaster_internal.executions_active a
                 join stationmaster_internal.server_names n on n.id = a.holder group by n.name order by n.name";
    sqlx::query_as(query).fetch_all(&database.pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_drained_from_afar_takes_nothing_until_it_is_resumed_and_leaves_when_told_to() {
    let database = TestDatabase::new().await;
    let launch = Launch::on(&database);
    let mut one = launch.clone().with("SERVER_NAME", "one").start_ready().await;
    let running = database.workflow(2, ENDLESS).await;
    database.enqueue(running, 2).await;
    database.until_count("RUNNING", 2).await;
    let signal = "select stationmaster.send_signal(project => 'shop', name => 'go')";
    sqlx::query(signal).execute(&database.pool).await.unwrap();
    let owner = async || {
        let query = "select n.name from stationmaster.dispatchers d join stationmaster_internal.server_names n on n.id = d.owner
                     where d.lease_until > now() and d.handed_over_at is null";
        let owner: Option<String> = sqlx::query_scalar(query)
            .fetch_optional(&database.pool)
            .await
            .unwrap();
        owner
    };
    eventually("it owns the dispatcher", async || {
        owner().await.as_deref() == Some("one")
    })
    .await;

    let wished = command(&database, &["servers", "drain", "one"]);
    assert_eq!(
        (&wished["draining"], &wished["in_hand"]),
        (&true.into(), &2.into()),
        "{wished}"
    );
    eventually("it says that it takes no work", async || {
        named(&database, "one")["claiming"] == false
    })
    .await;
    let _two = launch.clone().with("SERVER_NAME", "two").start_ready().await;
    eventually("the other has the dispatcher", async || {
        owner().await.as_deref() == Some("two")
    })
    .await;
    let duties = "select count(*) from stationmaster_internal.duties d join stationmaster_internal.server_names n on n.id = d.holder
                  where n.name = 'one' and d.lease_until > now()";
    assert_eq!(database.number(duties).await, 0, "it gave its duties up");
    let more = database.workflow(4, SHORT).await;
    database.enqueue(more, 40).await;
    database.until_count("COMPLETED", 40).await;
    let by_one = "select count(*) from stationmaster_internal.executions_finished f
                  join stationmaster_internal.server_names n on n.id = f.holder where n.name = 'one'";
    assert_eq!(database.number(by_one).await, 0, "it took nothing more");
    assert_eq!(
        held(&database).await,
        [("one".to_owned(), 2)],
        "what it has in hand goes on"
    );
    one.assert_alive();

    let resumed = command(&database, &["servers", "resume", "one"]);
    assert_eq!(resumed["draining"], false, "{resumed}");
    eventually("it takes work", async || {
        named(&database, "one")["claiming"] == true
    })
    .await;
    eventually("some of it is its own", async || {
        database.enqueue(more, 20).await;
        database.number(by_one).await > 0
    })
    .await;

    command(&database, &["servers", "drain", "one", "--exit"]);
    let (status, _) = one.ended().await;
    assert_eq!(status.code(), Some(0), "{}", one.log());
    let left = named(&database, "one");
    assert_eq!(
        (&left["ended"], &left["alive"]),
        (&"drained".into(), &false.into()),
        "{left}"
    );
    eventually("the other goes on with what ran", async || {
        held(&database).await.contains(&("two".to_owned(), 2))
    })
    .await;
    let there = command(&database, &["servers", "list"]);
    assert_eq!(there.as_array().unwrap().len(), 1, "{there}");
    let all = command(&database, &["servers", "list", "--all"]);
    assert_eq!(all.as_array().unwrap().len(), 2, "{all}");
    let audit = command(&database, &["audit", "list"]);
    let actions: Vec<&str> = audit
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|line| {
            line["action"]
                .as_str()
                .filter(|action| action.starts_with("server."))
        })
        .collect();
    assert_eq!(
        actions,
        ["server.drain", "server.resume", "server.drain"],
        "newest first"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_killed_is_on_record_with_what_was_recovered_and_by_whom() {
    let database = TestDatabase::new().await;
    let launch = Launch::on(&database);
    let mut one = launch.clone().with("SERVER_NAME", "one").start_ready().await;
    let running = database.workflow(3, ENDLESS).await;
    database.enqueue(running, 3).await;
    database.until_count("RUNNING", 3).await;
    let two = launch.clone().with("SERVER_NAME", "two").start_ready().await;
    one.kill();
    eventually("it is known to be lost", async || {
        named(&database, "one")["ended"] == "lost"
    })
    .await;
    let lost = named(&database, "one");
    assert_eq!(
        (&lost["recovered"], &lost["recovered_by"]),
        (&3.into(), &"two".into()),
        "{lost}"
    );

    // A server that was stopped for longer than its lease goes on under another id.
    two.stop();
    let _three = launch.clone().with("SERVER_NAME", "three").start_ready().await;
    eventually("the third has the work", async || {
        held(&database).await == [("three".to_owned(), 3)]
    })
    .await;
    two.signal(nix::sys::signal::Signal::SIGCONT);
    eventually("both lives of the second are on record", async || {
        let all = command(&database, &["servers", "list", "--all"]);
        let lives = all
            .as_array()
            .unwrap()
            .iter()
            .filter(|server| server["name"] == "two");
        let ends: Vec<&Value> = lives.map(|server| &server["ended"]).collect();
        ends.len() == 2 && ends[0].is_null() && (ends[1] == "lost" || ends[1] == "replaced")
    })
    .await;
}
