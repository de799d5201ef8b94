//! The second wall: row-level security, with the API's own checks out of the way.

use sqlx::PgConnection;
use stationmaster_core::catalogue::{self, WorkspaceChange};
use stationmaster_core::db::Database;
use stationmaster_core::executions::{browse, bulk, enqueue, inspect, operate};
use stationmaster_core::id::{DefinitionId, ItemId, WorkspaceId};
use stationmaster_core::session::{Scope, Wall};
use stationmaster_core::{audit, events};
use uuid::Uuid;

use crate::scene::{Scene, Tenant};
use crate::support::{ENDLESS, SHORT, TestDatabase};

/// Two tenants with something in every table, and the database as the token of the first would see it.
struct Walled {
    database: TestDatabase,
    core: Database,
    own: Tenant,
    foreign: Tenant,
}

impl Walled {
    async fn new() -> Self {
        let database = TestDatabase::new().await;
        let core = Database::new(&database.url, 4).unwrap();
        assert_eq!(core.raise_wall().await.unwrap(), Wall::Stands);
        let mut tenants = Vec::new();
        for _ in 0..2 {
            let (workspace, workflow) = database.workflow(1, ENDLESS).await;
            database.enqueue((workspace, workflow), 3).await;
            tenants.push(Tenant { workspace, workflow });
        }
        Self {
            database,
            core,
            own: tenants[0],
            foreign: tenants[1],
        }
    }

    fn scoped(&self) -> Database {
        self.core
            .on_behalf("a test", Scope::Only(vec![WorkspaceId(self.own.workspace)]))
    }

    async fn an_item_of(&self, tenant: Tenant) -> ItemId {
        let query =
            "select id from stationmaster_internal.queue_items where workspace_id = $1 order by id limit 1";
        let id = sqlx::query_scalar(query)
            .bind(tenant.workspace)
            .fetch_one(&self.database.pool)
            .await
            .unwrap();
        ItemId(id)
    }
}

/// The relations of our schema with a workspace in them: tables, and views over them.
async fn relations(connection: &mut PgConnection) -> Vec<(String, bool)> {
    let query = "select c.relnamespace::regnamespace || '.' || c.relname, c.relkind = 'v' from pg_class c
                 join pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id' and not a.attisdropped
                 where c.relnamespace in ('stationmaster'::regnamespace, 'stationmaster_internal'::regnamespace)
                   and c.relkind in ('r', 'p', 'v') order by 1";
    sqlx::query_as(query).fetch_all(connection).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_relation_with_a_workspace_is_behind_the_wall() {
    let walled = Walled::new().await;
    events::number(&walled.core).await.unwrap();
    let mut connection = walled.database.pool.acquire().await.unwrap();
    let unprotected = "select c.relname::text from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id' and not a.attisdropped
        where c.relnamespace in ('stationmaster'::regnamespace, 'stationmaster_internal'::regnamespace)
          and ((c.relkind in ('r', 'p') and not (c.relrowsecurity and exists (select from pg_policy p where p.polrelid = c.oid)))
               or (c.relkind = 'v' and not coalesce(c.reloptions @> '{security_invoker=true}', false)
                   -- It asks for its caller's scope itself, which the rest of this test shows.
                   and c.relname <> 'event_feed'))";
    let found: Vec<String> = sqlx::query_scalar(unprotected)
        .fetch_all(&mut *connection)
        .await
        .unwrap();
    assert_eq!(found, [] as [String; 0], "not behind the wall");
    let relations = relations(&mut connection).await;
    assert!(relations.len() >= 12, "{relations:?}");
    for (name, _) in relations {
        let mut transaction = walled.database.pool.begin().await.unwrap();
        let act = "select set_config('role', 'stationmaster_api', true), set_config('stationmaster.workspaces', $1, true)";
        sqlx::query(act)
            .bind(walled.own.workspace.to_string())
            .execute(&mut *transaction)
            .await
            .unwrap();
        let query = format!("select count(*) from {name} where workspace_id <> $1 or workspace_id is null");
        let seen = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(query)).bind(walled.own.workspace);
        match seen.fetch_one(&mut *transaction).await {
            Ok(count) => assert_eq!(count, 0, "{name} shows rows of others"),
            Err(error) => assert!(error.to_string().contains("permission denied"), "{name}: {error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_scope_nothing_is_seen_and_tokens_are_never() {
    let walled = Walled::new().await;
    let mut transaction = walled.database.pool.begin().await.unwrap();
    sqlx::query("set local role stationmaster_api")
        .execute(&mut *transaction)
        .await
        .unwrap();
    for table in [
        "stationmaster.workspaces",
        "stationmaster.workflow_definitions",
        "stationmaster_internal.queue_items",
        "stationmaster.workflow_execution_queue",
        "stationmaster.workflow_definition_versions",
    ] {
        let query = format!("select count(*) from {table}");
        let seen: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .fetch_one(&mut *transaction)
            .await
            .unwrap();
        assert_eq!(seen, 0, "{table}");
    }
    for table in [
        "tokens",
        "views",
        "api_answers",
        "wake_keys",
        "event_inbox_id_seq",
    ] {
        let mut savepoint = sqlx::Connection::begin(&mut *transaction).await.unwrap();
        let query = format!("select * from stationmaster_internal.{table}");
        let refused = sqlx::query(sqlx::AssertSqlSafe(query))
            .fetch_all(&mut *savepoint)
            .await
            .unwrap_err();
        assert!(
            refused.to_string().contains("permission denied"),
            "{table}: {refused}"
        );
        savepoint.rollback().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_on_behalf_of_one_tenant_find_nothing_of_another() {
    let walled = Walled::new().await;
    let (scoped, foreign) = (walled.scoped(), walled.foreign);
    let item = walled.an_item_of(foreign).await;
    assert!(inspect::item(&scoped, item).await.unwrap().is_none());
    assert!(inspect::waiting(&scoped, item).await.unwrap().is_none());
    assert!(inspect::history(&scoped, item).await.unwrap().is_empty());
    assert!(
        inspect::item(&scoped, walled.an_item_of(walled.own).await)
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        catalogue::workspace(&scoped, WorkspaceId(foreign.workspace))
            .await
            .is_err()
    );
    assert!(
        catalogue::definition(&scoped, DefinitionId(foreign.workflow))
            .await
            .is_err()
    );
    assert!(
        catalogue::versions(&scoped, DefinitionId(foreign.workflow), None, 9)
            .await
            .unwrap()
            .is_empty()
    );
    let everything = browse::Filter {
        limit: 100,
        ..browse::Filter::default()
    };
    let items = browse::items(&scoped, &everything).await.unwrap().rows;
    assert_eq!(items.len(), 3);
    assert!(items.iter().all(|item| item.workspace_id == walled.own.workspace));
    assert_eq!(catalogue::workspaces(&scoped, None, 100).await.unwrap().len(), 1);
    let lines = audit::list(&scoped, &audit::AuditQuery::default(), None, None, 100)
        .await
        .unwrap()
        .rows;
    assert!(
        !lines.is_empty()
            && lines
                .iter()
                .all(|line| line.workspace_id == Some(walled.own.workspace))
    );
    events::number(&walled.core).await.unwrap();
    let heard = events::after(&scoped, None, 0, i64::MAX, 100).await.unwrap();
    assert!(
        !heard.is_empty()
            && heard
                .iter()
                .all(|event| event.workspace_id == Some(walled.own.workspace))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_on_behalf_of_one_tenant_change_nothing_of_another() {
    let walled = Walled::new().await;
    let (scoped, foreign) = (walled.scoped(), walled.foreign);
    let item = walled.an_item_of(foreign).await;
    let rows = "select string_agg(p::text, ' ' order by item_id) || (select string_agg(w::text, ' ') from stationmaster.workspaces w)
                from stationmaster_internal.queue_pending p";
    let before: String = sqlx::query_scalar(rows)
        .fetch_one(&walled.database.pool)
        .await
        .unwrap();
    assert!(matches!(
        operate::cancel(&scoped, item.0, None, "x").await,
        Err(operate::Error::NotFound(_))
    ));
    assert!(operate::set_priority(&scoped, item, 9, "x", None).await.is_err());
    assert!(operate::retry(&scoped, item, "x").await.is_err());
    assert!(
        catalogue::put_workspace(
            &scoped,
            WorkspaceId(foreign.workspace),
            WorkspaceChange::default(),
            None
        )
        .await
        .is_err()
    );
    assert!(
        catalogue::put_workspace(
            &scoped,
            WorkspaceId(Uuid::now_v7()),
            WorkspaceChange::default(),
            None
        )
        .await
        .is_err()
    );
    assert!(
        catalogue::delete_workspace(&scoped, WorkspaceId(foreign.workspace), None)
            .await
            .is_err()
    );
    assert!(
        catalogue::delete_definition(&scoped, DefinitionId(foreign.workflow), None)
            .await
            .is_err()
    );
    let request = enqueue::Enqueue::new(foreign.workspace, foreign.workflow);
    assert!(enqueue::enqueue(&scoped, request, "x").await.is_err());
    let crossed = enqueue::Enqueue::new(walled.own.workspace, foreign.workflow);
    assert!(enqueue::enqueue(&scoped, crossed, "x").await.is_err());
    let after: String = sqlx::query_scalar(rows)
        .fetch_one(&walled.database.pool)
        .await
        .unwrap();
    assert_eq!(after, before);
    // A bulk without a filter reaches no further than the wall.
    let done = bulk::cancel(&scoped, &bulk::BulkCancel::default(), "x")
        .await
        .unwrap();
    assert_eq!(done.items, 3);
    assert_eq!(
        walled
            .database
            .number("select count(*) from stationmaster_internal.queue_pending")
            .await,
        3
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_the_wall_everything_works_that_should() {
    let scene = Scene::new().await;
    assert!(
        !scene.server.log().contains("Row-level security does not stand"),
        "{}",
        scene.server.log()
    );
    let tenant = scene.tenant(2, SHORT).await;
    let token = scene
        .token(stationmaster_core::access::Role::Admin, Some(tenant.workspace))
        .await;
    let client = scene.client(&token);
    let request = stationmaster_client::wire::Enqueue::new(tenant.workspace, tenant.workflow);
    for _ in 0..5 {
        client.enqueue(&request).await.unwrap();
    }
    scene.database.until_count("COMPLETED", 5).await;
    client.pause_workspace(tenant.workspace).await.unwrap();
    let item = client.enqueue(&request).await.unwrap().id;
    client
        .cancel(item, &stationmaster_client::wire::Cancel::default())
        .await
        .unwrap();
    client.retry(item).await.unwrap();
    client.resume_workspace(tenant.workspace).await.unwrap();
    scene.database.until_count("COMPLETED", 6).await;
    client.delete_workflow(tenant.workflow).await.unwrap();
    client.delete_workspace(tenant.workspace).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_of_its_own_goes_by_its_grants_and_where_the_role_is_missing_it_is_said() {
    let walled = Walled::new().await;
    let account = format!("app_{}", Uuid::now_v7().simple());
    let make = format!(
        "create role {account} login password 'x'; grant usage on schema stationmaster, stationmaster_internal to {account};
         grant select, insert, update, delete on all tables in schema stationmaster, stationmaster_internal to {account};
         grant usage on all sequences in schema stationmaster, stationmaster_internal to {account}"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(make))
        .execute(&walled.database.pool)
        .await
        .unwrap();
    let mut url: url::Url = walled.database.url.parse().unwrap();
    url.set_username(&account).unwrap();
    url.set_password(Some("x")).unwrap();
    let theirs = Database::new(url.as_str(), 2).unwrap();
    let everything = browse::Filter {
        limit: 100,
        ..browse::Filter::default()
    };
    assert_eq!(
        browse::items(&theirs, &everything).await.unwrap().rows.len(),
        6,
        "no token, no wall"
    );
    let Wall::Missing(reason) = theirs.raise_wall().await.unwrap() else {
        panic!("an account that is no member of the role cannot act as it");
    };
    assert!(reason.contains("permission denied to set role"), "{reason}");
    theirs.pool().close().await;
    let drop = format!("drop owned by {account}; drop role {account}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(drop))
        .execute(&walled.database.pool)
        .await
        .unwrap();
}
