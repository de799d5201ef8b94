//! Tokens, audit, overview, servers, names, views.

use serde::Serialize;
use uuid::Uuid;

use crate::Client;
use crate::error::Result;
use crate::wire::{
    AuditEntry, AuditQuery, Drain, Examination, HistoryChart, HistoryQuery, NameQuery, NamesFound, NewToken,
    NewView, Overview, OverviewQuery, Page, PageQuery, Reference, Server, ServerQuery, Servers, Token,
    TokenMade, View, Views,
};

impl Client {
    /// Makes a token. Its secret is in the answer, and nowhere else.
    pub async fn make_token<Id: Serialize + Sync>(&self, token: &NewToken<Id>) -> Result<TokenMade> {
        self.post(&["tokens"]).unkept().json(token).send().await
    }

    /// Tokens, in the order of their ids.
    pub async fn tokens(&self, query: &PageQuery) -> Result<Page<Token>> {
        self.read(&["tokens"], query).await
    }

    /// One token.
    pub async fn token(&self, which: impl Into<Reference>) -> Result<Token> {
        self.get(&["tokens", &which.into().to_string()]).send().await
    }

    /// The token that this client comes in with.
    pub async fn own_token(&self) -> Result<Token> {
        self.get(&["tokens", "self"]).send().await
    }

    /// Revokes a token; every server forgets it within five seconds.
    pub async fn revoke_token(&self, which: impl Into<Reference>) -> Result<()> {
        self.remove(&["tokens", &which.into().to_string()]).await
    }

    /// The views of this client's token, and those for all, by name.
    pub async fn views(&self) -> Result<Vec<View>> {
        let views: Views = self.get(&["views"]).send().await?;
        Ok(views.items)
    }

    /// Keeps a view under a name.
    pub async fn keep_view(&self, view: &NewView) -> Result<View> {
        self.ask(&["views"], view).await
    }

    /// Forgets a view.
    pub async fn forget_view(&self, id: Uuid) -> Result<()> {
        self.remove(&["views", &id.to_string()]).await
    }

    /// Lines of the audit, newest first.
    pub async fn audit(&self, query: &AuditQuery) -> Result<Page<AuditEntry>> {
        self.read(&["audit"], query).await
    }

    /// The whole at a glance.
    pub async fn overview(&self, query: &OverviewQuery) -> Result<Overview> {
        self.read(&["overview"], query).await
    }

    /// What happened in each minute, or longer step.
    pub async fn history_chart(&self, query: &HistoryQuery) -> Result<HistoryChart> {
        self.read(&["history"], query).await
    }

    /// Is the server ready? If not, the error says why, in as many words as there are reasons.
    pub async fn readiness(&self) -> Result<()> {
        self.get_beside(&["readyz"]).send_for_nothing().await
    }

    /// What the server sees of everything that it stands on.
    pub async fn doctor(&self) -> Result<Examination> {
        self.get(&["doctor"]).send().await
    }

    /// What a text means: a name, an id, or the beginning of one.
    pub async fn names(&self, query: &NameQuery) -> Result<NamesFound> {
        self.read(&["names"], query).await
    }

    /// The servers that share the work.
    pub async fn servers(&self) -> Result<Vec<Server>> {
        self.servers_on_record(&ServerQuery::default()).await
    }

    /// The servers that share the work, or those too that have left.
    pub async fn servers_on_record(&self, query: &ServerQuery) -> Result<Vec<Server>> {
        let servers: Servers = self.read(&["servers"], query).await?;
        Ok(servers.items)
    }

    /// One server, also one that has left.
    pub async fn server(&self, which: impl Into<Reference>) -> Result<Server> {
        self.get(&["servers", &which.into().to_string()]).send().await
    }

    /// Wishes that a server takes no new work, or leaves.
    pub async fn drain_server(&self, which: impl Into<Reference>, how: &Drain) -> Result<Server> {
        let path = ["servers", &which.into().to_string(), "drain"];
        self.post(&path).json(how).send().await
    }

    /// Lets a server take work again.
    pub async fn resume_server(&self, which: impl Into<Reference>) -> Result<Server> {
        let path = ["servers", &which.into().to_string(), "resume"];
        self.post(&path).send().await
    }
}
