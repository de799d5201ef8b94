//! Who is at the door: a token becomes a [`Caller`], or the request goes no further. Everything under `/v1` passes here. Only a
//! client in this process brings its caller along (`in_process`); nothing that comes over the network can.
//!
//! What is known of a token is believed for [`BELIEVED`], and forgotten at once when a notification says that tokens have
//! changed; so a revocation holds everywhere within five seconds, with a notification or without. The secret itself is
//! kept nowhere: the cache knows its hash.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, Request, State as Shared};
use axum::http::{HeaderMap, header, request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use stationmaster_core::access::{self, Role, Secret, Token};
use stationmaster_core::db::Database;
use stationmaster_core::id::{TokenId, WorkspaceId};
use stationmaster_core::session::Scope;
use stationmaster_core::task::Bell;
use uuid::Uuid;

use super::problem::{Kind, Problem};
use super::{State, doctor};

/// How long what was read of a token is believed.
const BELIEVED: Duration = Duration::from_secs(3);
/// How long ago somebody may have been let in who is let in while the database is away.
const MET: Duration = Duration::from_hours(1);
/// How often the use of a token is noted.
const NOTED: Duration = Duration::from_mins(1);
/// Tokens remembered at most; beyond it the memory is cleared, which costs a read each.
const REMEMBERED: usize = 10_000;

/// Where a request came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// Who makes a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The token; nil when nobody is asked for one.
    pub(super) token: TokenId,
    /// In words for histories.
    pub(super) actor: Arc<str>,
    pub(super) role: Role,
    pub(super) scope: Scope,
    /// When the token ends, if it does.
    pub(super) expires_at: Option<Timestamp>,
}

impl Caller {
    fn of(token: Token) -> Self {
        Self {
            token: TokenId(token.id),
            actor: format!("token:{}:{}", token.name, token.id).into(),
            role: token.role,
            scope: token.workspaces.into(),
            expires_at: token.expires_at,
        }
    }

    /// Whoever reaches a server that is open to all.
    fn anybody() -> Self {
        Self {
            token: TokenId(Uuid::nil()),
            actor: "open".into(),
            role: Role::Admin,
            scope: Scope::All,
            expires_at: None,
        }
    }

    /// Whoever works on the database itself, and may do everything.
    pub(super) fn on_the_database(actor: &str) -> Self {
        Self {
            actor: actor.into(),
            ..Self::anybody()
        }
    }

    /// A workspace that the request names must be in scope.
    pub(super) fn may_use(&self, workspace: Uuid) -> Result<WorkspaceId, Problem> {
        let workspace = WorkspaceId(workspace);
        if self.scope.holds(workspace) {
            return Ok(workspace);
        }
        let words = format!("the token's workspaces do not include {workspace}");
        Err(Problem::new(Kind::Forbidden, words))
    }

    /// A workspace that the address names must be in scope; else it is as if it were not there.
    pub(super) fn may_see(&self, workspace: Uuid) -> Result<WorkspaceId, Problem> {
        self.may_use(workspace)
            .map_err(|_| Problem::not_found(format!("there is no workspace {workspace}")))
    }

    /// Things that belong to no workspace are for whoever sees all of them.
    pub(super) fn sees_all(&self) -> Result<(), Problem> {
        match self.scope {
            Scope::All => Ok(()),
            Scope::Only(_) => {
                let words = "this is for tokens that are for all workspaces";
                Err(Problem::new(Kind::Forbidden, words))
            }
        }
    }
}

/// What every handler has at hand: who asks, and the database as that one may see it.
pub(super) struct Visit {
    pub(super) state: State,
    pub(super) caller: Caller,
    pub(super) database: Database,
}

impl FromRequestParts<State> for Visit {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, state: &State) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller =
            caller.ok_or_else(|| Problem::new(Kind::Unauthenticated, "nobody was asked for a token"))?;
        Ok(Self {
            database: state.database.on_behalf(&caller.actor, caller.scope.clone()),
            state: state.clone(),
            caller,
        })
    }
}

struct Known {
    caller: Caller,
    /// None: it has to be read again before it is believed.
    read_at: Option<Instant>,
    noted_at: Option<Instant>,
}

/// What is known of tokens, for a few seconds.
#[derive(Clone, Default)]
pub(super) struct Access {
    known: Arc<Mutex<HashMap<[u8; 32], Known>>>,
}

impl Access {
    /// Forgets everything whenever the bell rings.
    pub(super) async fn forget_on(self, bell: Bell) {
        loop {
            bell.rung().await;
            self.forget();
        }
    }

    /// Believes nothing any more until it is read again.
    pub(super) fn forget(&self) {
        for known in self.lock().values_mut() {
            known.read_at = None;
        }
    }

    /// Has this secret opened the door before, and was never refused since?
    fn has_met(&self, secret: &Secret) -> bool {
        self.lock().contains_key(&secret.hash())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recall(&self, hash: [u8; 32]) -> Option<Caller> {
        let known = self.lock();
        known
            .get(&hash)
            .filter(|known| known.read_at.is_some_and(|at| at.elapsed() < BELIEVED))
            .map(|known| known.caller.clone())
    }

    /// Who holds the secret, from memory or from the database.
    pub(super) async fn who(&self, database: &Database, secret: &Secret) -> Result<Caller, Problem> {
        let hash = secret.hash();
        if let Some(caller) = self.recall(hash) {
            return Ok(caller);
        }
        let refused = |words: &str| {
            self.lock().remove(&hash);
            Problem::new(Kind::Unauthenticated, words)
        };
        let token = access::find(database, secret).await?;
        let token = token.ok_or_else(|| refused("there is no such token"))?;
        if token.revoked_at.is_some() {
            return Err(refused("the token was revoked"));
        }
        if !token.active {
            return Err(refused("the token has expired"));
        }
        let caller = Caller::of(token);
        let note = self.remember(hash, caller.clone());
        if note && let Err(error) = access::touch(database, caller.token).await {
            tracing::debug!(%error, "The use of a token could not be noted");
        }
        Ok(caller)
    }

    /// Who was let in with this secret not long ago. For what must be answered while the database cannot be asked.
    fn met_before(&self, secret: &Secret) -> Option<Caller> {
        let known = self.lock();
        let known = known.get(&secret.hash())?;
        known
            .noted_at
            .is_some_and(|at| at.elapsed() < MET)
            .then(|| known.caller.clone())
    }

    /// Answers whether the token's use should be noted now.
    fn remember(&self, hash: [u8; 32], caller: Caller) -> bool {
        let mut known = self.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        let noted_at = known.get(&hash).and_then(|known| known.noted_at);
        let note = noted_at.is_none_or(|at| at.elapsed() >= NOTED);
        let now = Instant::now();
        let noted_at = if note { Some(now) } else { noted_at };
        known.insert(
            hash,
            Known {
                caller,
                read_at: Some(now),
                noted_at,
            },
        );
        note
    }
}

/// Lets a request in, or not.
pub(super) async fn authenticate(Shared(state): Shared<State>, mut request: Request, next: Next) -> Response {
    if request.extensions().get::<Caller>().is_some() {
        request.extensions_mut().insert(state);
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let caller = match identify(&state, &parts).await {
        Ok(caller) => caller,
        Err(problem) => return problem.into_response(),
    };
    let permit = match state.limits.admit(caller.token) {
        Ok(permit) => permit,
        Err(refusal) => return *refusal,
    };
    let share = match state.limits.share(&caller.scope) {
        Ok(share) => share,
        Err(problem) => return problem.into_response(),
    };
    let mut request = Request::from_parts(parts, body);
    request.extensions_mut().insert(caller);
    request.extensions_mut().insert(state);
    let mut response = next.run(request).await;
    drop(share);
    permit.tell(response.headers_mut());
    response
}

async fn identify(state: &State, request: &request::Parts) -> Result<Caller, Problem> {
    let peer = request.extensions.get::<Peer>().map(|peer| peer.0);
    match bearer(&request.headers) {
        Ok(None) if state.settings.open => {
            only_this_host(request)?;
            Ok(Caller::anybody())
        }
        // While the database is away, who knows why must be found.
        Ok(Some(secret)) if request.uri.path() == doctor::PATH => {
            state.who_by_memory_too(peer, &secret).await
        }
        Ok(Some(secret)) => state.who(peer, &secret).await,
        Ok(None) => {
            let words = "send a token: Authorization: Bearer smt_…; `stationmaster tokens create NAME --role ROLE` makes one";
            Err(Problem::new(Kind::Unauthenticated, words))
        }
        Err(problem) => Err(state.limits.failed(peer, problem)),
    }
}

impl State {
    /// Who holds this secret, or was let in with it not long ago, where the database cannot be asked: for what tells of that.
    pub(super) async fn who_by_memory_too(
        &self,
        peer: Option<IpAddr>,
        secret: &Secret,
    ) -> Result<Caller, Problem> {
        match self.who(peer, secret).await {
            Err(problem) if problem.is(Kind::Unavailable) => self.access.met_before(secret).ok_or(problem),
            other => other,
        }
    }

    /// Who holds this secret. Whoever comes with too many that open no door is refused before the database is asked.
    pub(super) async fn who(&self, peer: Option<IpAddr>, secret: &Secret) -> Result<Caller, Problem> {
        if !self.access.has_met(secret) {
            self.limits.may_try(peer)?;
        }
        let who = self.access.who(&self.database, secret).await;
        who.map_err(|problem| {
            if problem.is(Kind::Unauthenticated) {
                self.limits.failed_after_a_look(peer, problem)
            } else {
                problem
            }
        })
    }
}

/// The secret that a request carries.
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<Secret>, Problem> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Ok(None);
    };
    let refused = |words: String| Problem::new(Kind::Unauthenticated, words);
    let text = value
        .to_str()
        .map_err(|_| refused("the token is not text".to_owned()))?;
    let (scheme, secret) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(refused("the scheme of Authorization is Bearer".to_owned()));
    }
    Secret::parse(secret.trim())
        .map(Some)
        .map_err(|error| refused(error.to_string()))
}

/// A page of another host must not reach an open server through a browser of this machine: neither by a name that leads here,
/// nor by a request that a browser lets any page send, of which it tells where it comes from.
fn only_this_host(request: &request::Parts) -> Result<(), Problem> {
    let text = |name| request.headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST);
    let host = host.or(request.uri.authority().map(axum::http::uri::Authority::as_str));
    let name = host.map_or("", |host| {
        let end = if host.starts_with('[') {
            host.find(']').map(|at| at + 1)
        } else {
            host.find(':')
        };
        &host[..end.unwrap_or(host.len())]
    });
    let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
    if !(name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())) {
        let words = "an open server answers only to localhost and loopback addresses";
        return Err(Problem::new(Kind::Misdirected, words));
    }
    let is_ours = |origin: &str| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_some_and(|authority| host.is_some_and(|host| host.eq_ignore_ascii_case(authority)))
    };
    if request.headers.contains_key(header::ORIGIN) && !text(header::ORIGIN).is_some_and(is_ours) {
        let words = "an open server answers no pages of others (Origin)";
        return Err(Problem::new(Kind::Forbidden, words));
    }
    Ok(())
}
