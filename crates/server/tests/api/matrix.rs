//! Every route x role x foreign workspace x without a token, from the document that the server serves.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use stationmaster_client::wire;
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene, Tenant, answer};

/// One operation of the document.
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) method: Method,
    pub(crate) path: String,
    role: Role,
    pub(crate) has_body: bool,
}

pub(crate) async fn operations(scene: &Scene) -> Vec<Operation> {
    let (status, document) = answer(scene.ask(Method::GET, "/v1/openapi.json", None)).await;
    assert_eq!(status, StatusCode::OK);
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(
                operation["security"][0]["token"].is_array(),
                "{method} {path} asks for no token"
            );
            operations.push(Operation {
                id: operation["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                role: role(operation["x-role"].as_str().unwrap()),
                has_body: operation["requestBody"].is_object(),
            });
        }
    }
    assert!(operations.len() > 30, "{}", operations.len());
    operations
}

fn role(text: &str) -> Role {
    match text {
        "viewer" => Role::Viewer,
        "operator" => Role::Operator,
        "admin" => Role::Admin,
        other => panic!("there is no role {other}"),
    }
}

/// What stands in the addresses of a tenant: his workspace, workflow, item, execution, token, alarm, operation, project with its signal.
#[derive(Clone)]
pub(crate) struct Things {
    pub(crate) tenant: Tenant,
    pub(crate) item: Uuid,
    pub(crate) execution: Uuid,
    pub(crate) token: Uuid,
    pub(crate) alarm: Uuid,
    pub(crate) operation: Uuid,
    pub(crate) project: String,
    pub(crate) signal: String,
    pub(crate) group: String,
}

impl Things {
    fn ids(&self) -> [Uuid; 7] {
        let Tenant { workspace, workflow } = self.tenant;
        let (item, run, token, alarm) = (self.item, self.execution, self.token, self.alarm);
        [workspace, workflow, item, run, token, alarm, self.operation]
    }

    pub(crate) fn address(&self, operation: &Operation) -> String {
        let noun = operation.path.split('/').nth(2).unwrap();
        let id = match noun {
            "workspaces" => self.tenant.workspace.to_string(),
            "workflows" => self.tenant.workflow.to_string(),
            "queue" => self.item.to_string(),
            "executions" => self.execution.to_string(),
            "tokens" => self.token.to_string(),
            "alarms" => self.alarm.to_string(),
            "signals" => self.signal.clone(),
            "operations" => self.operation.to_string(),
            "dispatchers" => format!("dispatcher-{}-default", self.project),
            _ => Uuid::now_v7().to_string(),
        };
        let name = match noun {
            "triggers" => SIGNAL.to_owned(),
            _ => format!("P-{}", Uuid::now_v7().simple()),
        };
        let path = operation.path.replace("{id}", &id).replace("{name}", &name);
        let path = path
            .replace("{project}", &self.project)
            .replace("{group}", &self.group);
        let path = match operation.id.as_str() {
            "preview_fires" => format!("{path}?expr=@daily"),
            "show_waits" => format!("{path}?ids={}", self.item),
            "find_names" => format!("{path}?noun=workspace&text=w"),
            _ => path,
        };
        assert!(!path.contains('{'), "no value for a part of {path}");
        path
    }

    /// A body that the route accepts. A new route with a body must tell one here.
    pub(crate) fn body(&self, operation: &Operation) -> Option<Value> {
        let enqueue =
            json!({ "workspace_id": self.tenant.workspace, "workflow_definition_id": self.tenant.workflow });
        let body = match operation.id.as_str() {
            "enqueue_execution" => enqueue,
            "enqueue_executions" => json!({ "items": [enqueue] }),
            "complete_execution" => json!({ "status": "COMPLETED" }),
            "cancel_execution" | "cancel_queue_item" | "terminate_execution" => json!({ "reason": "a test" }),
            "end_stray" => json!({ "run_id": "none" }),
            "change_queue_item" => json!({ "priority": 7 }),
            "prioritise_queue" => {
                json!({ "workspace_id": self.tenant.workspace, "priority": 7, "dry_run": true })
            }
            "retry_failures" | "set_failures_aside" | "cancel_failures" => {
                json!({ "group": self.group, "dry_run": true })
            }
            "retry_queue" | "cancel_queue" => {
                json!({ "workspace_id": self.tenant.workspace, "dry_run": true })
            }
            "put_workspace" => json!({ "name": "changed" }),
            "put_workflow" => json!({ "workspace_id": self.tenant.workspace, "name": "changed" }),
            "add_workflow_version" | "check_graph" => {
                json!({ "workflow": { "nodes": [{ "id": "a", "type": "noop" }] } })
            }
            "put_plan" => json!({ "max_concurrent": 3 }),
            "acquire_lock" => json!({ "at_most": 60 }),
            "extend_lock" => json!({ "token": 1, "at_most": 60 }),
            "create_token" => {
                json!({ "name": format!("t-{}", Uuid::now_v7()), "role": "viewer", "workspaces": [self.tenant.workspace] })
            }
            "set_alarm" => json!({ "workspace_id": self.tenant.workspace, "cron_expr": "@daily" }),
            "change_alarm" => json!({ "label": "changed" }),
            "backfill_alarm" => {
                json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-03T00:00:00Z", "dry_run": true })
            }
            "send_signal" => json!({ "project": self.project, "name": SIGNAL }),
            "replay_signals" => json!({ "workspace_id": self.tenant.workspace, "dry_run": true }),
            "send_signals" => json!({ "items": [{ "project": self.project, "name": SIGNAL }] }),
            "keep_view" => json!({ "name": Uuid::now_v7(), "path": "/", "shared": true }),
            "put_trigger" => json!({ "workflow_definition_id": self.tenant.workflow, "priority": 3 }),
            "drain_server" => json!({ "exit": true }),
            "reconcile_dispatchers" => json!({ "dry_run": true }),
            other => {
                assert!(
                    !operation.has_body,
                    "{other} has a body: tell one that it accepts"
                );
                return None;
            }
        };
        Some(body)
    }
}

/// The name of the tenants' signals.
const SIGNAL: &str = "order.paid";

/// A tenant with one running execution, one waiting item, a token, an alarm, and a project with a trigger and a signal.
pub(crate) async fn things(scene: &Scene) -> Things {
    let tenant = scene.tenant(1, ENDLESS).await;
    let admin = scene.admin().await;
    let request = wire::Enqueue::new(tenant.workspace, tenant.workflow);
    let running = admin.enqueue(&request).await.unwrap().id;
    let mut execution = None;
    crate::support::eventually("an execution runs", async || {
        execution = admin.queue_item(running).await.unwrap().item.execution_id;
        execution.is_some()
    })
    .await;
    let item = admin.enqueue(&request).await.unwrap().id;
    let new = wire::NewToken {
        name: format!("t-{}", Uuid::now_v7()),
        role: wire::Role::Viewer,
        workspaces: Some(vec![tenant.workspace]),
        expires_at: None,
    };
    let token = admin.make_token(&new).await.unwrap().token.id;
    let request = wire::NewAlarm {
        workspace_id: tenant.workspace,
        cron_expr: Some("@yearly".to_owned()),
        ..wire::NewAlarm::default()
    };
    let alarm = admin.set_alarm(&request).await.unwrap().alarm.id;
    let operation = scene.operation(tenant).await;
    let project = format!("p{}", Uuid::now_v7().simple());
    let trigger = wire::TriggerChange {
        workflow_definition_id: tenant.workflow,
        payload_schema: None,
        priority: Some(0),
    };
    let place = wire::TriggerPlace::default();
    admin
        .put_trigger(&project, SIGNAL, &place, &trigger)
        .await
        .unwrap();
    let signal = wire::NewSignal::new(&project, SIGNAL);
    let signal = admin.send_signal(&signal).await.unwrap().id;
    let failed = "insert into stationmaster_internal.executions_finished
                      (execution_id, item_id, workspace_id, workflow_definition_id, item_status, status, attempts, recoveries,
                       finished_at, finished_by, last_error)
                  values ($1, $1, $2, $3, 'DISPATCHED', 'FAILED', 0, 0, now(), 'engine', 'as told')";
    sqlx::query(failed)
        .bind(Uuid::now_v7())
        .bind(tenant.workspace)
        .bind(tenant.workflow)
        .execute(&scene.database.pool)
        .await
        .unwrap();
    let query = "select group_id from stationmaster.failures where workspace_id = $1";
    let group = sqlx::query_scalar(query)
        .bind(tenant.workspace)
        .fetch_one(&scene.database.pool)
        .await
        .unwrap();
    Things {
        tenant,
        item,
        execution: execution.unwrap(),
        token,
        alarm,
        operation,
        project,
        signal,
        group,
    }
}

/// Streams do not end by themselves, so only their head is read.
async fn ask(
    scene: &Scene,
    operation: &Operation,
    things: &Things,
    token: Option<&str>,
) -> (StatusCode, Value) {
    let mut request = scene.ask(operation.method.clone(), &things.address(operation), token);
    if let Some(body) = things.body(operation) {
        request = request.json(&body);
    }
    if operation.id == "listen_events" {
        let response = request.send().await.unwrap();
        return (response.status(), Value::Null);
    }
    answer(request).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_route_answers_without_a_token_that_is_valid() {
    let scene = Scene::new().await;
    let things = things(&scene).await;
    let operations = operations(&scene).await;
    let revoked = scene.token(Role::Admin, None).await;
    let admin = scene.client(&revoked);
    let own = admin.own_token().await.unwrap();
    scene.admin().await.revoke_token(own.id).await.unwrap();
    let expired = scene.token(Role::Admin, None).await;
    let hint = &expired[expired.len() - 12..expired.len() - 8];
    let query =
        "update stationmaster_internal.tokens set expires_at = now() - interval '1 second' where hint = $1";
    sqlx::query(query)
        .bind(hint)
        .execute(&scene.database.pool)
        .await
        .unwrap();
    let mut typo = scene.token(Role::Admin, None).await;
    let last = if typo.ends_with('0') { "1" } else { "0" };
    typo.replace_range(75.., last);
    for operation in &operations {
        for token in [
            None,
            Some(revoked.as_str()),
            Some(&expired),
            Some(&typo),
            Some("secret"),
        ] {
            let (status, _) = ask(&scene, operation, &things, token).await;
            // Too many tokens that open no door make the address wait; either way nobody comes in.
            assert!(
                status == StatusCode::UNAUTHORIZED
                    || (token.is_some() && status == StatusCode::TOO_MANY_REQUESTS),
                "{} {}: {status}",
                operation.method,
                operation.path
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_is_denied_to_lesser_roles_and_open_to_its_own() {
    let scene = Scene::with(&[("HTTP__RATE_LIMIT", "100000")]).await;
    for operation in &operations(&scene).await {
        // What one route does to things must not be in the way of the next.
        let things = things(&scene).await;
        for role in [Role::Viewer, Role::Operator, Role::Admin] {
            let token = scene.token(role, None).await;
            let (status, body) = ask(&scene, operation, &things, Some(&token)).await;
            let denied = status == StatusCode::FORBIDDEN;
            assert_eq!(
                denied,
                role < operation.role,
                "{role:?} {} {}: {status} {body}",
                operation.method,
                operation.path
            );
            assert_ne!(status, StatusCode::UNAUTHORIZED);
            if !denied {
                assert!(
                    !status.is_server_error(),
                    "{role:?} {} {}: {body}",
                    operation.method,
                    operation.path
                );
                let fine =
                    status.is_success() || status == StatusCode::CONFLICT || status == StatusCode::NOT_FOUND;
                assert!(
                    fine,
                    "{role:?} {} {}: {status} {body}",
                    operation.method, operation.path
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_foreign_workspace_is_shown_or_changed() {
    let scene = Scene::with(&[("HTTP__RATE_LIMIT", "100000")]).await;
    let (own, foreign) = (things(&scene).await, things(&scene).await);
    settled(&scene, &foreign.signal).await;
    let before = snapshot(&scene, &foreign).await;
    let token = scene.token(Role::Admin, Some(own.tenant.workspace)).await;
    for operation in &operations(&scene).await {
        let named = things_named(operation);
        let (status, body) = ask(&scene, operation, &foreign, Some(&token)).await;
        let text = body.to_string();
        let by_name = operation.path.starts_with("/v1/locks") || operation.path.contains("{project}");
        if named || ["put_plan", "examine"].contains(&operation.id.as_str()) || by_name {
            let hidden = status == StatusCode::NOT_FOUND || status == StatusCode::FORBIDDEN;
            assert!(hidden, "{} {}: {status} {text}", operation.method, operation.path);
        } else {
            assert!(
                status.is_success() || status == StatusCode::NOT_FOUND,
                "{}: {status} {text}",
                operation.path
            );
            let ids = foreign.ids();
            let words = [foreign.project.clone(), foreign.signal.clone()];
            for id in ids.iter().map(Uuid::to_string).chain(words) {
                assert!(
                    !text.contains(&id),
                    "{} {}: {text}",
                    operation.method,
                    operation.path
                );
            }
        }
    }
    assert_eq!(snapshot(&scene, &foreign).await, before);
    for filter in ["queue", "executions", "workflows", "audit", "alarms", "triggers"] {
        let path = format!("/v1/{filter}?workspace_id={}", foreign.tenant.workspace);
        let (status, _) = answer(scene.ask(Method::GET, &path, Some(&token))).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
    }
}

/// Things that nobody has.
pub(crate) fn nothings() -> Things {
    let id = Uuid::now_v7;
    Things {
        tenant: Tenant {
            workspace: id(),
            workflow: id(),
        },
        item: id(),
        execution: id(),
        token: id(),
        alarm: id(),
        operation: id(),
        project: format!("p{}", id().simple()),
        signal: id().to_string(),
        group: "0123456789abcde".to_owned(),
    }
}

impl Things {
    /// An answer without what it was asked about.
    pub(crate) fn taken_out(&self, body: &Value) -> String {
        let mut body = body.clone();
        if let Some(problem) = body.as_object_mut() {
            problem.remove("request_id");
            problem.remove("instance");
            // When it was counted.
            problem.remove("as_of");
        }
        self.blotted(&body.to_string())
    }

    /// A text without what tells these things from others.
    pub(crate) fn blotted(&self, text: &str) -> String {
        let words = self.words();
        words
            .iter()
            .fold(text.to_owned(), |text, word| text.replace(word, "…"))
    }

    /// What they are known by.
    pub(crate) fn words(&self) -> Vec<String> {
        let ids = self.ids();
        let words = [self.project.clone(), self.signal.clone(), self.group.clone()];
        ids.iter().map(Uuid::to_string).chain(words).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_cannot_take_the_id_of_a_signal_or_a_key_from_another() {
    let scene = Scene::with(&[("HTTP__RATE_LIMIT", "100000")]).await;
    let (attacker, victim) = (things(&scene).await, things(&scene).await);
    let client = async |things: &Things| {
        let token = scene.token(Role::Admin, Some(things.tenant.workspace)).await;
        scene.client(&token)
    };
    let (evil, good) = (client(&attacker).await, client(&victim).await);
    let signal = |things: &Things, payload: &str| wire::NewSignal {
        id: Some("order-1".to_owned()),
        payload: Some(serde_json::value::to_raw_value(payload).unwrap()),
        ..wire::NewSignal::new(&things.project, SIGNAL)
    };
    let taken = evil.send_signal(&signal(&attacker, "mine now")).await.unwrap();
    assert!(!taken.duplicate);
    let sent = good.send_signal(&signal(&victim, "an order")).await.unwrap();
    assert_eq!((sent.id.as_str(), sent.duplicate), ("order-1", false));
    let again = good.send_signal(&signal(&victim, "an order")).await.unwrap();
    assert!(again.duplicate, "a repeat is known within the project");
    let other = good.send_signal(&signal(&victim, "another order")).await;
    assert!(
        matches!(other, Err(stationmaster_client::Error::Conflict(_))),
        "{other:?}"
    );
    for (client, things) in [(&evil, &attacker), (&good, &victim)] {
        assert_eq!(client.signal("order-1").await.unwrap().project, things.project);
        crate::support::eventually("each is routed", async || {
            let seen = client.signal("order-1").await.unwrap();
            seen.status == wire::SignalStatus::Routed
        })
        .await;
    }
    let hidden = evil.signal_of(&victim.project, "order-1").await;
    assert!(
        matches!(hidden, Err(stationmaster_client::Error::NotFound(_))),
        "{hidden:?}"
    );
    // Whoever sees both has to say which one he means.
    let admin = scene.admin().await;
    let which = admin.signal("order-1").await;
    assert!(
        matches!(which, Err(stationmaster_client::Error::Conflict(_))),
        "{which:?}"
    );
    let one = admin.signal_of(&victim.project, "order-1").await.unwrap();
    assert_eq!(one.project, victim.project);

    let keyed = |things: &Things| wire::Enqueue {
        idempotency_key: Some("order-1".to_owned()),
        ..wire::Enqueue::new(things.tenant.workspace, things.tenant.workflow)
    };
    let first = evil.enqueue(&keyed(&attacker)).await.unwrap();
    let second = good.enqueue(&keyed(&victim)).await.unwrap();
    assert!(!first.duplicate && !second.duplicate && first.id != second.id);
}

/// What a signal becomes must not look like a change.
pub(crate) async fn settled(scene: &Scene, signal: &str) {
    let admin = scene.admin().await;
    crate::support::eventually("the signal is routed", async || {
        admin.signal(signal).await.unwrap().status == wire::SignalStatus::Routed
    })
    .await;
}

/// Does the request name something of the tenant, in its address or in its body?
pub(crate) fn things_named(operation: &Operation) -> bool {
    // A graph that is only looked at is nobody's.
    operation.path.contains("{id}") || operation.has_body && operation.id != "check_graph"
}

/// Everything of a tenant that a request could change.
pub(crate) async fn snapshot(scene: &Scene, things: &Things) -> Vec<String> {
    let query = "select w::text from stationmaster.workspaces w where id = $1
                 union all select d::text from stationmaster.workflow_definitions d where workspace_id = $1
                 union all select v::text from stationmaster.workflow_definition_versions v
                           where workflow_definition_id = $2
                 union all select p::text from stationmaster_internal.queue_pending p where workspace_id = $1
                 union all select a::text from stationmaster_internal.executions_active a where workspace_id = $1
                 union all select c.execution_id::text from stationmaster_internal.cancel_requests c where execution_id = $3
                 union all select i::text from stationmaster_internal.queue_items i where workspace_id = $1
                 union all select t.revoked_at::text from stationmaster_internal.tokens t where id = $4
                 union all select d::text from stationmaster_internal.alarm_definitions d where workspace_id = $1
                 union all select s.status from stationmaster_internal.alarm_standings s where alarm_id = $5
                 union all select o::text from stationmaster_internal.occurrences_open o where alarm_id = $5
                 union all select t::text from stationmaster.triggers t where project = $6
                 union all select s.id from stationmaster_internal.signals_inbox s where project = $6
                 order by 1";
    sqlx::query_scalar::<_, Option<String>>(query)
        .bind(things.tenant.workspace)
        .bind(things.tenant.workflow)
        .bind(things.execution)
        .bind(things.token)
        .bind(things.alarm)
        .bind(&things.project)
        .fetch_all(&scene.database.pool)
        .await
        .unwrap()
        .into_iter()
        .map(Option::unwrap_or_default)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_of_the_document_can_be_read() {
    let scene = Scene::with(&[("HTTP__RATE_LIMIT", "100000")]).await;
    let token = scene.token(Role::Admin, None).await;
    let (_, document) = answer(scene.ask(Method::GET, "/v1/openapi.json", None)).await;
    let nothings = nothings();
    for operation in operations(&scene)
        .await
        .iter()
        .filter(|operation| operation.has_body)
    {
        let method = operation.method.as_str().to_lowercase();
        let example = &document["paths"][&operation.path][method]["requestBody"]["content"]["application/json"]
            ["example"];
        assert!(example.is_object(), "{} has no example", operation.id);
        let request = scene.ask(
            operation.method.clone(),
            &nothings.address(operation),
            Some(&token),
        );
        let (status, body) = answer(request.json(example)).await;
        assert!(
            ![StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY].contains(&status)
                && !status.is_server_error(),
            "{}: {status} {body}",
            operation.id
        );
    }
}
