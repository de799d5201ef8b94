//! Another tenant with an admin's token, who knows every id of ours and tries them everywhere: in addresses, bodies, filters, cursors,
//! conditions, pages and forms. What is ours must look to him like what nobody has, and cost the server the same: the same statements in the
//! same order, which is how the time of an answer could tell the two apart.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use stationmaster_client::wire;
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::matrix::{Operation, Things, nothings, operations, settled, snapshot, things, things_named};
use crate::scene::{Scene, answer};
use crate::support::eventually;

/// A server that tells of every statement, a tenant, and an attacker.
pub(crate) struct Attack {
    pub(crate) scene: Scene,
    pub(crate) own: Things,
    pub(crate) foreign: Things,
    pub(crate) nothings: Things,
    /// The attacker's, for his own workspace.
    pub(crate) token: String,
    /// Requests that were made twice, of what is foreign and of what nobody has: under which ids.
    made: Vec<(String, [String; 2])>,
}

/// A request as it would be made of some things; the words in capitals stand for them.
#[derive(Clone)]
pub(crate) struct Asked {
    method: Method,
    pub(crate) path: String,
    body: Option<String>,
    headers: Vec<(&'static str, String)>,
}

impl Asked {
    pub(crate) fn new(method: &Method, path: &str, body: Option<Value>) -> Self {
        Self {
            method: method.clone(),
            path: path.to_owned(),
            body: body.map(|body| body.to_string()),
            headers: Vec::new(),
        }
    }

    fn get(path: &str) -> Self {
        Self::new(&Method::GET, path, None)
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// As the document has it, with things in it.
    fn of(operation: &Operation, things: &Things) -> Self {
        Self::new(
            &operation.method,
            &things.address(operation),
            things.body(operation),
        )
    }

    /// With what is somebody's in place of the words.
    pub(crate) fn about(&self, things: &Things, own: &Things) -> Self {
        let put = |text: &str| {
            let words = [
                ("OWN_WORKSPACE", own.tenant.workspace.to_string()),
                ("OWN_WORKFLOW", own.tenant.workflow.to_string()),
                ("OWN_PROJECT", own.project.clone()),
                ("WORKSPACE", things.tenant.workspace.to_string()),
                ("WORKFLOW", things.tenant.workflow.to_string()),
                ("ITEM", things.item.to_string()),
                ("EXECUTION", things.execution.to_string()),
                ("TOKEN", things.token.to_string()),
                ("ALARM", things.alarm.to_string()),
                ("PROJECT", things.project.clone()),
                ("SIGNAL", things.signal.clone()),
                ("GROUP", things.group.clone()),
            ];
            words
                .iter()
                .fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
        };
        Self {
            path: put(&self.path),
            body: self.body.as_deref().map(put),
            ..self.clone()
        }
    }
}

impl Attack {
    pub(crate) async fn begin() -> Self {
        let telling = "info,sqlx::query=debug,stationmaster::http::guard=debug";
        let scene = Scene::with(&[("HTTP__RATE_LIMIT", "100000"), ("LOG__LEVEL", telling)]).await;
        let (own, foreign) = (things(&scene).await, things(&scene).await);
        settled(&scene, &foreign.signal).await;
        settled(&scene, &own.signal).await;
        let token = scene.token(Role::Admin, Some(own.tenant.workspace)).await;
        Self {
            scene,
            own,
            foreign,
            nothings: nothings(),
            token,
            made: Vec::new(),
        }
    }

    fn request(&self, asked: &Asked, id: &str) -> RequestBuilder {
        let request = self
            .scene
            .ask(asked.method.clone(), &asked.path, Some(&self.token))
            .header("x-request-id", id);
        let request = asked
            .headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, value));
        match &asked.body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(body.clone()),
            None => request,
        }
    }

    /// Asks for what is foreign and for what nobody has: the answers are the same.
    async fn alike(&mut self, what: &str, foreign: &Asked, nobodys: &Asked) {
        let ids = [Uuid::now_v7().to_string(), Uuid::now_v7().to_string()];
        let (status, mut body) = answer(self.request(foreign, &ids[0])).await;
        let (other, mut nothing) = answer(self.request(nobodys, &ids[1])).await;
        // What resembles a text is another thing for every text; here ids are tried, and what is like them is the attacker's own.
        for told in [&mut body, &mut nothing] {
            if let Some(told) = told.as_object_mut() {
                told.remove("near");
            }
        }
        assert_eq!(status, other, "{what}: {body} and {nothing}");
        assert_eq!(
            self.foreign.taken_out(&body),
            self.nothings.taken_out(&nothing),
            "{what}"
        );
        self.made.push((what.to_owned(), ids));
    }

    async fn alike_about(&mut self, asked: &Asked) {
        let (foreign, nobodys) = (
            asked.about(&self.foreign, &self.own),
            asked.about(&self.nothings, &self.own),
        );
        let what = format!(
            "{} {} {}",
            asked.method,
            asked.path,
            asked.body.as_deref().unwrap_or_default()
        );
        self.alike(&what, &foreign, &nobodys).await;
    }

    /// The statements of each request, in their order, by its id.
    async fn statements(&self) -> BTreeMap<String, Vec<String>> {
        let last = self.made.last().unwrap().1[1].clone();
        let answered = format!("\"id\":\"{last}\"");
        eventually("the log is written", async || {
            let log = self.scene.server.log();
            log.lines()
                .any(|line| line.contains("Answered a request") && line.contains(&answered))
        })
        .await;
        let mut statements: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in self.scene.server.log().lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            if line["target"] != "sqlx::query" || line["span"]["name"] != "request" {
                continue;
            }
            let told = line["db.statement"]
                .as_str()
                .filter(|told| !told.trim().is_empty());
            let told = told.or_else(|| line["summary"].as_str()).unwrap_or_default();
            // Who comes in is asked now and then, whatever is asked for.
            if told.contains("where hash = $1") || told.contains("last_used_at = now()") {
                continue;
            }
            let id = line["span"]["id"].as_str().unwrap_or_default().to_owned();
            statements
                .entry(id)
                .or_default()
                .push(told.trim().chars().take(120).collect());
        }
        statements
    }

    /// Every pair of requests took the same way through the database.
    async fn assert_same_ways(&self) {
        let statements = self.statements().await;
        let of = |id: &String| statements.get(id).cloned().unwrap_or_default();
        let mut all = 0;
        for (what, [foreign, nobodys]) in &self.made {
            assert_eq!(of(foreign), of(nobodys), "{what}");
            all += of(foreign).len();
        }
        assert!(all > self.made.len(), "statements are heard of: {all}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_foreign_costs_the_same_statements_as_what_is_not_there_on_every_route() {
    let mut attack = Attack::begin().await;
    let before = snapshot(&attack.scene, &attack.foreign).await;
    for operation in &operations(&attack.scene).await {
        let nobodys = ["/locks", "/plans", "/servers", "/events", "/views"];
        if !things_named(operation) && !operation.path.contains("{project}")
            || nobodys.iter().any(|noun| operation.path.contains(noun))
        {
            continue;
        }
        let (foreign, nothing) = (
            Asked::of(operation, &attack.foreign),
            Asked::of(operation, &attack.nothings),
        );
        // A route that names things anew in every address names the same for both.
        let nothing = if operation.path.contains("{name}") && !operation.path.contains("{project}") {
            Asked {
                path: foreign.path.clone(),
                ..nothing
            }
        } else {
            nothing
        };
        let conditions: &[(&'static str, &str)] = match operation.method {
            Method::GET => &[("", "")],
            Method::POST => &[("", ""), ("idempotency-key", "KEY")],
            _ => &[
                ("", ""),
                ("if-match", "\"0123456789abcdef\""),
                ("if-none-match", "*"),
            ],
        };
        for (name, value) in conditions {
            let what = format!("{} {} {name}", operation.method, operation.path);
            // A key of its own for each, as one that was used before is another matter.
            let given = |whose: &str| value.replace("KEY", &format!("{}-{whose}", operation.id));
            let (foreign, nothing) = match *name {
                "" => (foreign.clone(), nothing.clone()),
                name => (
                    foreign.clone().with(name, given("foreign")),
                    nothing.clone().with(name, given("nobody")),
                ),
            };
            attack.alike(&what, &foreign, &nothing).await;
        }
    }
    assert!(attack.made.len() > 60, "{}", attack.made.len());
    attack.assert_same_ways().await;
    assert_eq!(snapshot(&attack.scene, &attack.foreign).await, before);
}

/// What is foreign as a part of what is asked for: a filter, a reference within one's own things, a text that is looked for.
fn crossings() -> Vec<Asked> {
    let get = |path: &str| Asked::get(path);
    let post = |path: &str, body: Value| Asked::new(&Method::POST, path, Some(body));
    let put = |path: &str, body: Value| Asked::new(&Method::PUT, path, Some(body));
    let enqueue = json!({ "workspace_id": "OWN_WORKSPACE", "workflow_definition_id": "WORKFLOW" });
    let mut all = vec![
        post("/v1/executions", enqueue.clone()),
        post("/v1/executions/bulk", json!({ "items": [enqueue] })),
        put(
            "/v1/triggers/OWN_PROJECT/other",
            json!({ "workflow_definition_id": "WORKFLOW" }),
        ),
        put(
            "/v1/triggers/PROJECT/other",
            json!({ "workflow_definition_id": "OWN_WORKFLOW" }),
        ),
        post(
            "/v1/signals",
            json!({ "project": "PROJECT", "name": "order.paid", "id": "SIGNAL" }),
        ),
        post(
            "/v1/signals/bulk",
            json!({ "items": [{ "project": "OWN_PROJECT", "name": "order.paid" }, { "project": "PROJECT", "name": "x" }] }),
        ),
        post(
            "/v1/tokens",
            json!({ "name": "both", "role": "viewer", "workspaces": ["OWN_WORKSPACE", "WORKSPACE"] }),
        ),
        post(
            "/v1/queue/cancel",
            json!({ "workflow_definition_id": "WORKFLOW", "dry_run": true }),
        ),
        post(
            "/v1/queue/retry",
            json!({ "workspace_id": "OWN_WORKSPACE", "workflow_definition_id": "WORKFLOW", "dry_run": true }),
        ),
        post(
            "/v1/failures/retry",
            json!({ "workflow_definition_id": "WORKFLOW", "dry_run": true }),
        ),
        post(
            "/v1/failures/set-aside",
            json!({ "workspace_id": "OWN_WORKSPACE", "group": "GROUP", "dry_run": true }),
        ),
        post(
            "/v1/failures/cancel",
            json!({ "group": "GROUP", "dry_run": true }),
        ),
        post(
            "/v1/signals/replay",
            json!({ "project": "PROJECT", "dry_run": true }),
        ),
        get("/v1/signals?project=PROJECT"),
        get("/v1/signals/SIGNAL?project=PROJECT"),
        get("/v1/dispatchers?project=PROJECT"),
        get("/v1/triggers?project=PROJECT"),
        get("/v1/audit?subject=ALARM"),
        get("/v1/queue?search=ITEM"),
        get("/v1/history?workflow=WORKFLOW"),
    ];
    for noun in [
        "queue",
        "executions",
        "workflows",
        "audit",
        "alarms",
        "triggers",
        "failures",
    ] {
        all.push(get(&format!("/v1/{noun}?workspace_id=WORKSPACE")));
    }
    for noun in ["queue", "executions", "failures"] {
        all.push(get(&format!("/v1/{noun}?workflow_definition_id=WORKFLOW")));
    }
    for path in [
        "history?workspace=WORKSPACE",
        "events?workspace_id=WORKSPACE",
        "names?noun=alarm&text=x&workspace_id=WORKSPACE",
    ] {
        all.push(get(&format!("/v1/{path}")));
    }
    for (noun, thing) in [
        ("workspace", "WORKSPACE"),
        ("workflow", "WORKFLOW"),
        ("alarm", "ALARM"),
        ("item", "ITEM"),
        ("execution", "EXECUTION"),
        ("token", "TOKEN"),
    ] {
        all.push(get(&format!("/v1/names?noun={noun}&text={thing}")));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_foreign_within_what_is_ones_own_is_as_if_it_were_not_there() {
    let mut attack = Attack::begin().await;
    let before = snapshot(&attack.scene, &attack.foreign).await;
    for asked in crossings() {
        attack.alike_about(&asked).await;
    }
    attack.assert_same_ways().await;
    // An id is one for all. Whoever gives it to something of its own learns that it is taken, and nothing else; what has it stays as it is.
    let path = format!("/v1/workflows/{}", attack.foreign.tenant.workflow);
    let body = json!({ "workspace_id": attack.own.tenant.workspace, "name": "mine now" });
    let (status, refused) = answer(
        attack
            .scene
            .ask(Method::PUT, &path, Some(&attack.token))
            .json(&body),
    )
    .await;
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
    let told = refused["detail"].as_str().unwrap();
    assert!(
        !told.contains(&attack.foreign.tenant.workspace.to_string()),
        "{told}"
    );
    assert_eq!(snapshot(&attack.scene, &attack.foreign).await, before);
}

/// All pages of a list, two things on each; what is on them, and where they ended, as bytes.
async fn walked(scene: &Scene, path: &str, token: &str) -> (Vec<Value>, Vec<Vec<u8>>) {
    let (mut items, mut ends) = (Vec::new(), Vec::new());
    let mut cursor = String::new();
    loop {
        let joint = if path.contains('?') { '&' } else { '?' };
        let page = format!("{path}{joint}limit=2{cursor}");
        let (status, body) = answer(scene.ask(Method::GET, &page, Some(token))).await;
        assert_eq!(status, StatusCode::OK, "{page}: {body}");
        let rows = body["items"].as_array().unwrap();
        let next = body["next_cursor"].as_str();
        assert!(
            !rows.is_empty() || next.is_none(),
            "{page}: nothing, and yet more"
        );
        items.extend(rows.iter().cloned());
        let Some(next) = next else {
            return (items, ends);
        };
        ends.push(URL_SAFE_NO_PAD.decode(next).unwrap());
        cursor = format!("&cursor={next}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_pages_nor_their_ends_nor_cursors_of_others_tell_of_foreign_things() {
    let attack = Attack::begin().await;
    let (scene, foreign) = (&attack.scene, &attack.foreign);
    let all = scene.token(Role::Admin, None).await;
    // Of either tenant more than a page, one after the other.
    for _ in 0..2 {
        for things in [&attack.own, foreign, foreign] {
            scene.item(things.tenant).await;
            scene.token(Role::Viewer, Some(things.tenant.workspace)).await;
            let client = scene.client(&all);
            let alarm = wire::NewAlarm {
                workspace_id: things.tenant.workspace,
                cron_expr: Some("@yearly".to_owned()),
                ..wire::NewAlarm::default()
            };
            client.set_alarm(&alarm).await.unwrap();
            let signal = wire::NewSignal::new(&things.project, "order.paid");
            client.send_signal(&signal).await.unwrap();
        }
    }
    let workspace = foreign.tenant.workspace;
    let query = "select id from stationmaster_internal.tokens where workspaces = array[$1]::uuid[]
                 union all select id from stationmaster_internal.queue_items where workspace_id = $1
                 union all select id from stationmaster_internal.alarm_definitions where workspace_id = $1
                 union all select id from stationmaster.workflow_definitions where workspace_id = $1
                 union all select $1";
    let hidden: Vec<Uuid> = sqlx::query_scalar(query)
        .bind(workspace)
        .fetch_all(&scene.database.pool)
        .await
        .unwrap();
    assert!(hidden.len() > 12, "{}", hidden.len());
    for list in [
        "workspaces",
        "workflows",
        "queue",
        "executions",
        "alarms",
        "signals",
        "triggers",
        "dispatchers",
        "failures",
        "audit",
        "tokens",
        "queue?status=PENDING",
        "alarms?status=active",
    ] {
        let path = format!("/v1/{list}");
        let (rows, ends) = walked(scene, &path, &attack.token).await;
        let text = serde_json::to_string(&rows).unwrap();
        let is_told = |id: &Uuid| {
            let written = id.to_string();
            text.contains(&written)
                || ends.iter().any(|end| {
                    end.windows(16).any(|bytes| bytes == id.as_bytes())
                        || String::from_utf8_lossy(end).contains(&written)
                })
        };
        let told: Vec<&Uuid> = hidden.iter().filter(|id| is_told(id)).collect();
        assert!(told.is_empty(), "{path} tells of {told:?}: {text}");
        assert!(
            !text.contains(&foreign.project) && !text.contains(&foreign.signal),
            "{path}: {text}"
        );
        assert!(!rows.is_empty(), "{path}: the attacker sees his own");
        // Where somebody else's page ended.
        let page = format!("{path}{}limit=1", if list.contains('?') { '&' } else { '?' });
        let (_, theirs) = answer(scene.ask(Method::GET, &page, Some(&all))).await;
        if let Some(cursor) = theirs["next_cursor"].as_str() {
            let page = format!("{page}&cursor={cursor}");
            let (_, body) = answer(scene.ask(Method::GET, &page, Some(&attack.token))).await;
            let text = body.to_string();
            let told = hidden.iter().any(|id| text.contains(&id.to_string()));
            assert!(!told && !text.contains(&foreign.project), "{page}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_busy_others_are_is_told_to_nobody_and_servers_obey_only_who_sees_all() {
    let attack = Attack::begin().await;
    let (scene, token) = (&attack.scene, attack.token.as_str());
    let all = scene.token(Role::Admin, None).await;
    let in_hand = async |token: &str, path: &str, place: &str| {
        let (status, body) = answer(scene.ask(Method::GET, path, Some(token))).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        let servers = body.pointer(place).unwrap().as_array().unwrap().clone();
        servers
            .iter()
            .map(|server| server["in_hand"].as_i64().unwrap())
            .sum::<i64>()
    };
    for (path, place) in [("/v1/servers", "/items"), ("/v1/overview", "/servers")] {
        assert_eq!(in_hand(&all, path, place).await, 2, "{path}");
        assert_eq!(in_hand(token, path, place).await, 1, "{path}");
    }
    let (_, servers) = answer(scene.ask(Method::GET, "/v1/servers", Some(token))).await;
    let server = servers["items"][0]["id"].as_str().unwrap();
    let (_, one) = answer(scene.ask(Method::GET, &format!("/v1/servers/{server}"), Some(token))).await;
    assert_eq!(one["in_hand"], 1, "{one}");
    // What others have lost with a server is theirs too.
    let lost = "update stationmaster_internal.server_names set recovered = 7";
    sqlx::query(lost).execute(&scene.database.pool).await.unwrap();
    for (token, seen) in [(token, 0), (all.as_str(), 7)] {
        let (_, one) = answer(scene.ask(Method::GET, &format!("/v1/servers/{server}"), Some(token))).await;
        assert_eq!(one["recovered"], seen, "{one}");
    }
    for verb in ["drain", "resume"] {
        let ask = async |id: &str| {
            let path = format!("/v1/servers/{id}/{verb}");
            let (status, body) = answer(scene.ask(Method::POST, &path, Some(token)).json(&json!({}))).await;
            (status, body["detail"].clone())
        };
        let there = ask(server).await;
        assert_eq!(there, ask(&Uuid::now_v7().to_string()).await, "{verb}");
        assert_eq!(there.0, StatusCode::FORBIDDEN, "{verb}");
    }
    assert_eq!(scene.server.readiness().await.0, 200);
    // Numbers of the whole are of one's own: nothing moves when somebody else is busy.
    let overview = async || {
        let (_, body) = answer(scene.ask(Method::GET, "/v1/overview", Some(token))).await;
        body["overview"].clone()
    };
    let before = overview().await;
    for _ in 0..3 {
        scene.item(attack.foreign.tenant).await;
    }
    assert_eq!(overview().await, before);
    scene.item(attack.own.tenant).await;
    assert_ne!(overview().await, before, "the numbers are counted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_that_name_workspaces_are_for_tokens_that_are_for_all_of_them() {
    let scene = Scene::with(&[("HTTP__PROTECT_METRICS", "true")]).await;
    let (own, _) = (things(&scene).await, things(&scene).await);
    let scoped = scene.token(Role::Admin, Some(own.tenant.workspace)).await;
    let (status, body) = answer(scene.ask(Method::GET, "/metrics", Some(&scoped))).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{body}");
    let all = scene.token(Role::Viewer, None).await;
    let (status, body) = answer(scene.ask(Method::GET, "/metrics", Some(&all))).await;
    assert_eq!(status, StatusCode::OK);
    let told = body.as_str().unwrap();
    let named = told
        .matches("stationmaster_workspace_slots_used{workspace=")
        .count();
    assert_eq!(named, 2, "{told}");
}
