//! kill -9 of the server that carries out an operation: another one goes on where it was, and what was done is counted.

use stationmaster_client::Client;
use stationmaster_client::wire::{BulkCancel, OperationKind, OperationStatus};
use stationmaster_core::access::{self, NewToken, Role};
use stationmaster_core::db::Database;
use uuid::Uuid;

use crate::support::{ENDLESS, Launch, TestDatabase, eventually};

/// More than a page, so that something is done when the way is barred.
const ITEMS: i32 = 6_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_whose_server_is_killed_is_gone_on_with_by_another_and_counted_whole() {
    let database = TestDatabase::new().await;
    let workflow = database.workflow(0, ENDLESS).await;
    let untouched = database.workflow(0, ENDLESS).await;
    database.enqueue(workflow, ITEMS).await;
    database.enqueue(untouched, 3).await;
    let launch = |name: &str| Launch::on(&database).with("SERVER_NAME", name);
    let mut first = launch("first").start_ready().await;

    let core = Database::new(&database.url, 1).unwrap();
    let token = NewToken {
        name: "operator".to_owned(),
        role: Role::Operator,
        workspaces: Some(vec![workflow.0]),
        expires_at: None,
    };
    let (_, secret) = access::create(&core, &token, "a test").await.unwrap();
    let client = |address: &str| {
        let builder = Client::builder().token(secret.expose());
        builder.build(&format!("http://{address}")).unwrap()
    };

    // Two thirds of the way there is an item that somebody holds: the call that meets it waits, and what it did before is not written down.
    let lock = database
        .lock(
            "select from stationmaster_internal.queue_pending
             where item_id = (select item_id from stationmaster_internal.queue_pending order by item_id offset 4500 limit 1) for update",
        )
        .await;
    let everything = BulkCancel::<Uuid> {
        all: true,
        ..BulkCancel::default()
    };
    let begun = client(&first.address().unwrap())
        .begin(OperationKind::CancelQueue, &everything, None)
        .await
        .unwrap();
    assert_eq!((begun.total, begun.done), (ITEMS.into(), 0));
    let cancelled = "select count(*) from stationmaster.workflow_execution_queue where status = 'CANCELLED'";
    eventually("half of it is done", async || {
        database.number(cancelled).await >= 4_000
    })
    .await;
    first.kill();
    lock.rollback().await.unwrap();
    let left = database.number(cancelled).await;
    assert!(left < ITEMS.into(), "it was killed in the middle: {left}");

    let second = launch("second").start_ready().await;
    let client = client(&second.address().unwrap());
    let id = begun.id.to_string();
    eventually("the other one has finished it", async || {
        client.operation(&id).await.unwrap().status.has_ended()
    })
    .await;
    let over = client.operation(&id).await.unwrap();
    assert_eq!(over.status, OperationStatus::Completed, "{over:?}");
    assert_eq!(over.server.as_deref(), Some("second"));
    assert_eq!(
        (over.done, over.unchanged),
        (ITEMS.into(), Some(0)),
        "what the first one did counts"
    );
    assert_eq!(
        database.number(cancelled).await,
        i64::from(ITEMS),
        "no wider, and all of it"
    );
    let twice = "select count(*) from (select item_id from stationmaster_internal.executions_finished group by item_id having count(*) > 1) x";
    assert_eq!(database.number(twice).await, 0, "nothing was ended twice");
}
