//! Names wherever an id is taken, and what is told of names that mean nothing, or several things.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use stationmaster_client::Error;
use stationmaster_client::wire::{Enqueue, NameQuery, Noun, QueueQuery, WorkflowChange, WorkspaceChange};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene, Tenant, answer, problem};
use crate::support::eventually;

/// Gives a tenant and his workflow names.
async fn name(scene: &Scene, tenant: Tenant, workspace: &str, workflow: &str) {
    let client = scene.admin().await;
    let change = WorkspaceChange {
        name: Some(workspace.to_owned()),
        ..WorkspaceChange::default()
    };
    client
        .put_workspace(tenant.workspace, &change, None)
        .await
        .unwrap();
    let change = WorkflowChange {
        name: Some(workflow.to_owned()),
        ..WorkflowChange::of(tenant.workspace)
    };
    client.put_workflow(tenant.workflow, &change, None).await.unwrap();
}

async fn put(scene: &Scene, token: &str, path: &str, body: Value) -> (StatusCode, Value) {
    answer(scene.ask(Method::PUT, path, Some(token)).json(&body)).await
}

async fn get(scene: &Scene, token: &str, path: &str) -> (StatusCode, Value) {
    answer(scene.ask(Method::GET, path, Some(token))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_put_by_its_name_is_made_once_and_changed_after() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Admin, None).await;
    let (status, made) = put(&scene, &token, "/v1/workspaces/My%20Shop", json!({"plan": "PRO"})).await;
    assert_eq!(
        (status, &made["name"]),
        (StatusCode::OK, &json!("my-shop")),
        "{made}"
    );
    let (_, again) = put(
        &scene,
        &token,
        "/v1/workspaces/my-shop",
        json!({"max_concurrent": 3}),
    )
    .await;
    assert_eq!(
        (&again["id"], &again["plan"], &again["limit"]),
        (&made["id"], &json!("PRO"), &json!(3))
    );
    let workflow = json!({"workspace": "my-shop"});
    let (status, first) = put(&scene, &token, "/v1/workflows/import", workflow.clone()).await;
    assert_eq!(status, StatusCode::OK, "{first}");
    assert_eq!(
        (&first["name"], &first["workspace"]),
        (&json!("import"), &json!("my-shop"))
    );
    let (_, second) = put(&scene, &token, "/v1/workflows/my-shop.import", workflow).await;
    assert_eq!(first["id"], second["id"]);

    // Somebody else makes it at the same moment: then it is changed.
    let mut other = scene.database.pool.begin().await.unwrap();
    let insert = "insert into stationmaster.workspaces (name) values ('rush') returning id";
    let id: Uuid = sqlx::query_scalar(insert).fetch_one(&mut *other).await.unwrap();
    let waits = "select count(*) from pg_stat_activity
                 where datname = current_database() and wait_event_type = 'Lock' and query like '%stationmaster.workspaces%'";
    let commits = async {
        eventually("the request waits for whoever has the name", async || {
            sqlx::query_scalar::<_, i64>(waits)
                .fetch_one(&scene.database.pool)
                .await
                .unwrap()
                > 0
        })
        .await;
        other.commit().await.unwrap();
    };
    let (made, ()) = tokio::join!(
        put(&scene, &token, "/v1/workspaces/rush", json!({"plan": "PRO"})),
        commits
    );
    assert_eq!(
        (made.0, &made.1["id"], &made.1["plan"]),
        (StatusCode::OK, &json!(id), &json!("PRO")),
        "{made:?}"
    );

    // A name that is taken, one that is none, and one that looks like an id.
    let (status, refused) = put(&scene, &token, "/v1/workspaces/rush", json!({"name": "My Shop"})).await;
    assert_eq!((status, problem(&refused)), (StatusCode::CONFLICT, "conflict"));
    let words = refused["detail"].as_str().unwrap();
    assert!(
        words.contains("my-shop") && words.contains(again["id"].as_str().unwrap()),
        "{words}"
    );
    for bad in ["...", "01890a5dac96774bbcceb302099a8057"] {
        let (status, refused) = put(&scene, &token, "/v1/workspaces/rush", json!({"name": bad})).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
        assert_eq!(refused["errors"][0]["field"], "/name", "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_taken_wherever_an_id_is_and_told_beside_it() {
    let scene = Scene::new().await;
    let tenant = scene.tenant(1, ENDLESS).await;
    name(&scene, tenant, "shop", "import").await;
    let client = scene.admin().await;
    let token = scene.token(Role::Admin, None).await;

    let item = client
        .enqueue(&Enqueue::named("shop", "import"))
        .await
        .unwrap()
        .id;
    let bulk = vec![
        Enqueue::named("shop", "import"),
        Enqueue::named("Shop", "shop.import"),
    ];
    assert_eq!(client.enqueue_all(bulk).await.unwrap().len(), 2);
    let query = QueueQuery {
        workspace_id: Some("shop".into()),
        workflow_definition_id: Some("import".into()),
        ..QueueQuery::default()
    };
    let items = client.queue(&query).await.unwrap().items;
    assert_eq!(items.len(), 3);
    let names = |one: &stationmaster_client::wire::QueueItem| (one.workspace.clone(), one.workflow.clone());
    let told = (Some("shop".to_owned()), Some("import".to_owned()));
    assert!(items.iter().all(|item| names(item) == told), "{items:?}");
    assert_eq!(names(&client.queue_item(item).await.unwrap().item), told);

    assert_eq!(client.workspace("shop").await.unwrap().id, tenant.workspace);
    assert_eq!(client.workflow("shop.import").await.unwrap().id, tenant.workflow);
    assert!(client.pause_workspace("shop").await.unwrap().paused);
    assert!(!client.resume_workspace("shop").await.unwrap().paused);
    assert!(client.pause_workflow("import").await.unwrap().paused);
    client.resume_workflow("import").await.unwrap();
    for path in [
        "/v1/queue?workspace=shop&workflow=import",
        "/v1/executions?workspace_id=shop&workflow_definition_id=shop.import",
        "/v1/alarms?workspace=shop",
        "/v1/triggers?workspace=shop",
        "/v1/workflows?workspace=shop",
        "/v1/audit?workspace=shop",
        "/v1/workflows/import/versions",
    ] {
        let (status, body) = get(&scene, &token, path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        let unknown = path.replace("shop", "shpo").replace("/import/", "/imprt/");
        let (status, body) = get(&scene, &token, &unknown).await;
        assert_eq!(
            (status, problem(&body)),
            (StatusCode::NOT_FOUND, "not-found"),
            "{unknown}"
        );
        let words = body["detail"].as_str().unwrap();
        assert!(words.contains("did you mean"), "{unknown}: {words}");
    }
    let trigger = json!({"workflow": "shop.import"});
    let (status, set) = put(&scene, &token, "/v1/triggers/orders/paid", trigger).await;
    assert_eq!(
        (status, &set["workflow"], &set["workspace"]),
        (StatusCode::OK, &json!("import"), &json!("shop"))
    );
    let alarm = json!({"workspace": "shop", "delay": 3600});
    let (status, set) = answer(scene.ask(Method::POST, "/v1/alarms", Some(&token)).json(&alarm)).await;
    assert_eq!(
        (status, &set["alarm"]["workspace"]),
        (StatusCode::CREATED, &json!("shop")),
        "{set}"
    );
    let cancel = json!({"workspace": "shop", "workflow": "import"});
    let (status, done) = answer(
        scene
            .ask(Method::POST, "/v1/queue/cancel", Some(&token))
            .json(&cancel),
    )
    .await;
    assert_eq!((status, &done["items"]), (StatusCode::OK, &json!(3)), "{done}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_of_several_workspaces_is_named_with_its_own() {
    let scene = Scene::new().await;
    let (one, other) = (scene.tenant(1, ENDLESS).await, scene.tenant(1, ENDLESS).await);
    name(&scene, one, "shop", "import").await;
    name(&scene, other, "store", "import").await;
    let client = scene.admin().await;
    let refused = client.workflow("import").await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused}");
    let words = refused.to_string();
    assert!(
        words.contains("shop.import") && words.contains("store.import"),
        "{words}"
    );
    assert_eq!(client.workflow("store.import").await.unwrap().id, other.workflow);
    // Whoever sees one of them needs to say no more.
    let scoped = scene.client(&scene.token(Role::Operator, Some(one.workspace)).await);
    assert_eq!(scoped.workflow("import").await.unwrap().id, one.workflow);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_learns_nothing_of_names_that_are_not_its_own() {
    let scene = Scene::new().await;
    let (own, foreign) = (scene.tenant(1, ENDLESS).await, scene.tenant(1, ENDLESS).await);
    name(&scene, own, "shop", "import").await;
    name(&scene, foreign, "rival", "secret").await;
    let token = scene.token(Role::Admin, Some(own.workspace)).await;
    // The same answer as for what is not there, but for the name that was asked for.
    let same = |(status, body): (StatusCode, Value), name: &str| {
        let detail = body["detail"].as_str().unwrap_or_default().replace(name, "NAME");
        (status, problem(&body).to_owned(), detail)
    };
    let enqueue = |workspace: &str, workflow: &str| {
        let body = json!({"workspace": workspace, "workflow": workflow});
        scene
            .ask(Method::POST, "/v1/executions", Some(&token))
            .json(&body)
    };
    let foreign_one = same(answer(enqueue("rival", "secret")).await, "rival");
    assert_eq!(
        foreign_one,
        same(answer(enqueue("nobody", "secret")).await, "nobody")
    );
    assert_eq!(foreign_one.0, StatusCode::NOT_FOUND);
    for path in [
        "/v1/workspaces/rival",
        "/v1/queue?workspace=rival",
        "/v1/alarms?workspace_id=rival",
        "/v1/workflows/rival.import",
        "/v1/names?noun=workspace&text=rival&workspace=rival",
    ] {
        let told = same(get(&scene, &token, path).await, "rival");
        let nobody = same(
            get(&scene, &token, &path.replace("rival", "nobody")).await,
            "nobody",
        );
        assert_eq!(told, nobody, "{path}");
        assert_eq!(told.0, StatusCode::NOT_FOUND, "{path}");
    }
    let told = same(
        put(&scene, &token, "/v1/workspaces/rival", json!({})).await,
        "rival",
    );
    let nobody = same(
        put(&scene, &token, "/v1/workspaces/nobody", json!({})).await,
        "nobody",
    );
    assert_eq!(told, nobody);
    let (_, found) = get(&scene, &token, "/v1/names?noun=workspace&text=").await;
    assert_eq!(found["near"], json!(["shop"]), "{found}");
    let (_, found) = get(&scene, &token, "/v1/names?noun=workflow&text=secret").await;
    assert_eq!(found["items"], json!([]), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_beginning_of_an_id_finds_what_begins_so() {
    let scene = Scene::new().await;
    let tenant = scene.tenant(1, ENDLESS).await;
    name(&scene, tenant, "shop", "import").await;
    let items = [scene.item(tenant).await, scene.item(tenant).await];
    let client = scene.admin().await;
    let find = async |noun, text: &str| {
        let query = NameQuery {
            noun,
            text: text.to_owned(),
            workspace_id: None,
        };
        let found = client.names(&query).await.unwrap();
        found.items.into_iter().map(|one| one.id).collect::<Vec<Uuid>>()
    };
    let whole = items[0].to_string();
    assert_eq!(find(Noun::Item, &whole).await, [items[0]]);
    assert_eq!(find(Noun::Item, &whole[..30]).await, [items[0]]);
    let both = find(Noun::Item, &whole[..4]).await;
    assert_eq!(both, [items[1], items[0]], "newest first");
    assert!(find(Noun::Item, &whole[..3]).await.is_empty(), "too short");
    assert_eq!(
        find(Noun::Workspace, &tenant.workspace.to_string()[..32]).await,
        [tenant.workspace]
    );
    assert_eq!(
        find(Noun::Workflow, &tenant.workflow.to_string()[..32]).await,
        [tenant.workflow]
    );
    assert_eq!(find(Noun::Workspace, "SHOP").await, [tenant.workspace]);
    assert!(find(Noun::Item, "ffff").await.is_empty());
    // Of others' items nothing is told.
    let other = scene.tenant(1, ENDLESS).await;
    let scoped = scene.client(&scene.token(Role::Viewer, Some(other.workspace)).await);
    let query = NameQuery {
        noun: Noun::Item,
        text: whole,
        workspace_id: None,
    };
    assert!(scoped.names(&query).await.unwrap().items.is_empty());
}
