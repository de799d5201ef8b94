//! A scene: a database, a server on it, two tenants, tokens, and a way to ask.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use stationmaster_client::{Client, wire};
use stationmaster_core::access::{self, NewToken, Role};
use stationmaster_core::db::Database;
use uuid::Uuid;

use crate::support::{Launch, Process, TestDatabase};

/// Runs for longer than any test.
pub(crate) const ENDLESS: &str = crate::support::ENDLESS;

/// A tenant and what is his.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tenant {
    pub(crate) workspace: Uuid,
    pub(crate) workflow: Uuid,
}

/// Everything that a test needs.
pub(crate) struct Scene {
    pub(crate) server: Process,
    pub(crate) core: Database,
    pub(crate) database: TestDatabase,
    pub(crate) address: String,
}

impl Scene {
    /// A server with its default settings.
    pub(crate) async fn new() -> Self {
        Self::with(&[]).await
    }

    /// A server with these settings.
    pub(crate) async fn with(settings: &[(&str, &str)]) -> Self {
        let database = TestDatabase::new().await;
        let launch = launch(&database, settings);
        let server = launch.start_ready().await;
        let core = Database::new(&database.url, 4).unwrap();
        Self {
            address: server.address().unwrap(),
            server,
            core,
            database,
        }
    }

    pub(crate) async fn tenant(&self, limit: i32, graph: &str) -> Tenant {
        let (workspace, workflow) = self.database.workflow(limit, graph).await;
        Tenant { workspace, workflow }
    }

    /// A token; with a workspace, only for it.
    pub(crate) async fn token(&self, role: Role, workspace: Option<Uuid>) -> String {
        let new = NewToken {
            name: format!("{} {}", role.as_str(), Uuid::now_v7()),
            role,
            workspaces: workspace.map(|id| vec![id]),
            expires_at: None,
        };
        let (_, secret) = access::create(&self.core, &new, "a test").await.unwrap();
        secret.expose().to_owned()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A typed client with a token.
    pub(crate) fn client(&self, token: &str) -> Client {
        Client::builder().token(token).build(&self.url("")).unwrap()
    }

    /// A typed client that may do everything.
    pub(crate) async fn admin(&self) -> Client {
        let token = self.token(Role::Admin, None).await;
        self.client(&token)
    }

    /// Asks by hand.
    pub(crate) fn ask(&self, method: Method, path: &str, token: Option<&str>) -> reqwest::RequestBuilder {
        let request = http().request(method, self.url(path));
        match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Enqueues one item as the program itself would.
    pub(crate) async fn item(&self, tenant: Tenant) -> Uuid {
        let client = self.admin().await;
        let request = wire::Enqueue::new(tenant.workspace, tenant.workflow);
        client.enqueue(&request).await.unwrap().id
    }

    /// An operation that changes nothing: to the priority that everything has.
    pub(crate) async fn operation(&self, tenant: Tenant) -> Uuid {
        let request = wire::BulkPriority::<Uuid> {
            workspace_id: Some(tenant.workspace),
            ..wire::BulkPriority::default()
        };
        let kind = wire::OperationKind::PrioritiseQueue;
        self.admin().await.begin(kind, &request, None).await.unwrap().id
    }

    /// Rows straight into the table of events, as the lanes write them.
    pub(crate) async fn happens(&self, workspace: Uuid, event: &str) {
        insert_event(&self.database.pool, workspace, event).await;
    }
}

/// Something that the lanes would write down.
pub(crate) async fn insert_event(executor: impl sqlx::PgExecutor<'_>, workspace: Uuid, event: &str) {
    let query = "insert into stationmaster_internal.queue_events (item_id, workspace_id, event, actor) values ($1, $2, $3, 'a test')";
    let query = sqlx::query(query)
        .bind(Uuid::now_v7())
        .bind(workspace)
        .bind(event);
    query.execute(executor).await.unwrap();
}

pub(crate) fn launch(database: &TestDatabase, settings: &[(&str, &str)]) -> Launch {
    let launch = Launch::on(database);
    settings
        .iter()
        .fold(launch, |launch, (name, value)| launch.with(name, value))
}

/// A client that follows nothing and keeps nothing.
pub(crate) fn http() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap()
}

/// The status and the body; a refusal must be a problem.
pub(crate) async fn answer(request: reqwest::RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let kind = response
        .headers()
        .get("content-type")
        .map(|kind| kind.to_str().unwrap().to_owned());
    let request_id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let body = response.text().await.unwrap();
    let value: Value = if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_str(&body).unwrap_or(json!(body))
    };
    if status.is_client_error() || status.is_server_error() {
        assert_eq!(
            kind.as_deref(),
            Some("application/problem+json"),
            "{status}: {body}"
        );
        assert_eq!(value["status"], status.as_u16(), "{body}");
        assert_eq!(value["request_id"], request_id.as_str(), "{body}");
        let problem = value["type"].as_str().unwrap();
        assert!(problem.starts_with("urn:stationmaster:problem:"), "{body}");
    }
    (status, value)
}

/// The name of a problem.
pub(crate) fn problem(value: &Value) -> &str {
    value["type"]
        .as_str()
        .unwrap_or_default()
        .rsplit(':')
        .next()
        .unwrap_or_default()
}
