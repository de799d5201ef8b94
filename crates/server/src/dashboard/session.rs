//! Who looks: a token in a cookie that no script can read, or nobody at a server that asks nobody. Every page passes [`enter`], and
//! every POST says by its `Origin` that it comes from a page of this very server.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header, request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use stationmaster_client::wire::Role;
use stationmaster_client::{Client, Error};
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

use super::fields::{Fields, address, ours};
use super::frame::{self, Trouble};
use super::pieces::SINCE;

/// Where the token is kept.
const TOKEN: &str = "stationmaster_token";
/// Where it is kept how a person wants pages to look.
const LOOK: &str = "stationmaster_look";
/// The time that was chosen last: how far back pages look, until another is chosen.
const TIME: &str = "stationmaster_time";
/// What was done last, for the next page to say.
const SAID: &str = "stationmaster_said";

/// Makes a client for whoever made this request, with the token that is given.
type Clients = dyn Fn(&request::Parts, Option<&str>) -> Result<Client, Error> + Send + Sync;

/// What pages stand on.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) clients: Arc<Clients>,
    /// Cookies travel only where nobody can read along.
    pub(crate) secure: bool,
    /// Pages show everything and do nothing, whoever looks.
    pub(crate) read_only: bool,
    /// Where Temporal shows its runs to people.
    pub(crate) temporal_ui: Option<Url>,
    pub(crate) stop: CancellationToken,
}

/// Whoever looks at a page.
#[derive(Clone)]
pub(super) struct Visitor {
    pub(super) client: Client,
    /// The name of the token; none: nobody was asked for one.
    pub(super) name: Option<String>,
    pub(super) role: Role,
    /// Is the token for all workspaces?
    pub(super) sees_all: bool,
    /// Nothing is done from here, whatever the token may do.
    pub(super) read_only: bool,
    pub(super) look: Look,
    /// The address of the page.
    pub(super) here: String,
    /// How far back this page looks, or the last one that could: other pages are about the same time.
    pub(super) time: Option<String>,
    pub(super) said: Option<String>,
    pub(super) temporal_ui: Option<Url>,
}

/// How a person wants pages to look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) theme: Theme,
    pub(super) times: Times,
}

stationmaster_client::wire::words! {
    /// Light or dark.
    #[derive(Default)]
    pub(super) enum Theme {
        /// As the machine wants it.
        #[default]
        Auto = "auto",
        /// Light.
        Light = "light",
        /// Dark.
        Dark = "dark",
    }

    /// How times are told.
    #[derive(Default)]
    pub(super) enum Times {
        /// How long ago.
        #[default]
        Relative = "relative",
        /// In the zone of whoever looks.
        Local = "local",
        /// In UTC.
        Utc = "utc",
    }
}

impl Look {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let kept = cookie(headers, LOOK).unwrap_or_default();
        let (theme, times) = kept.split_once('.').unwrap_or_default();
        Self {
            theme: theme.parse().unwrap_or_default(),
            times: times.parse().unwrap_or_default(),
        }
    }
}

impl Visitor {
    /// Would the API do for this one what needs this role?
    pub(super) fn may(&self, role: Role) -> bool {
        self.role >= role
    }

    pub(super) fn operates(&self) -> bool {
        !self.read_only && self.may(Role::Operator)
    }

    pub(super) fn administers(&self) -> bool {
        !self.read_only && self.may(Role::Admin)
    }

    /// Administers what belongs to no workspace: servers, plans, dispatchers' runs.
    pub(super) fn administers_all(&self) -> bool {
        self.administers() && self.sees_all
    }

    /// Where Temporal shows the run of an execution to people.
    pub(super) fn on_temporal(&self, execution: Uuid) -> Option<String> {
        let mut url = self.temporal_ui.clone()?;
        url.path_segments_mut()
            .ok()?
            .pop_if_empty()
            .push("workflows")
            .push(&format!("execution-{execution}"));
        Some(url.into())
    }
}

impl<S: Sync> FromRequestParts<S> for Visitor {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut request::Parts, _: &S) -> Result<Self, StatusCode> {
        let visitor = parts.extensions.get::<Self>().cloned();
        visitor.ok_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// Finds out who looks, lets the page be made, and puts the frame around it.
pub(super) async fn enter(State(desk): State<Desk>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let look = Look::of(&parts.headers);
    if parts.method == Method::POST
        && let Err(trouble) = comes_from_here(&parts)
    {
        return frame::alone(look, &trouble);
    }
    let visitor = match visitor(&desk, &parts).await {
        Ok(visitor) => visitor,
        Err(Error::Unauthenticated(_)) => {
            if frame::is_fragment(&parts.headers) || parts.uri.path() == "/live" {
                return StatusCode::UNAUTHORIZED.into_response();
            }
            let next = parts.uri.path_and_query().map_or("/", |path| path.as_str());
            return Redirect::to(&address("/sign-in", &[("next", ours(Some(next)))])).into_response();
        }
        Err(error) => return frame::alone(look, &error.into()),
    };
    let headers = parts.headers.clone();
    let mut request = Request::from_parts(parts, body);
    request.extensions_mut().insert(visitor.clone());
    let response = next.run(request).await;
    let mut response = frame::dress(response, &visitor, &headers);
    let is_page = response.status() == StatusCode::OK && !frame::is_fragment(&headers);
    if visitor.said.is_some() && is_page {
        set(&mut response, SAID, "", 0, desk.secure);
    }
    let time = visitor.time.as_deref().unwrap_or_default();
    if is_page && time != cookie(&headers, TIME).unwrap_or_default() {
        set(&mut response, TIME, time, 12 * 3600, desk.secure);
    }
    response
}

/// How far back: as the address says, also when it says that it does not matter; else as it was chosen before.
fn chosen_time(parts: &request::Parts) -> Option<String> {
    let said = Fields::read(parts.uri.query().unwrap_or_default().as_bytes());
    let time = match said.said("since") {
        Some(said) => Some(said),
        None => cookie(&parts.headers, TIME),
    };
    time.filter(|time| SINCE.iter().any(|(known, _)| known == time))
        .map(ToOwned::to_owned)
}

async fn visitor(desk: &Desk, parts: &request::Parts) -> Result<Visitor, Error> {
    let token = cookie(&parts.headers, TOKEN).filter(|token| !token.is_empty());
    let client = (desk.clients)(parts, token)?;
    let own = match client.own_token().await {
        Ok(own) => Some(own),
        // A server that asks nobody.
        Err(Error::NotFound(_)) if token.is_none() => None,
        Err(error) => return Err(error),
    };
    let said = cookie(&parts.headers, SAID).filter(|said| !said.is_empty());
    let said = said.map(|said| {
        percent_encoding::percent_decode_str(said)
            .decode_utf8_lossy()
            .into_owned()
    });
    Ok(Visitor {
        client,
        role: own.as_ref().map_or(Role::Admin, |own| own.role),
        sees_all: own.as_ref().is_none_or(|own| own.workspaces.is_none()),
        read_only: desk.read_only,
        name: own.map(|own| own.name),
        look: Look::of(&parts.headers),
        here: parts
            .uri
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned(),
        time: chosen_time(parts),
        said,
        temporal_ui: desk.temporal_ui.clone(),
    })
}

/// A form on a page of somebody else must not act in the name of whoever is signed in here.
fn comes_from_here(parts: &request::Parts) -> Result<(), Trouble> {
    let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).or(parts.uri.authority().map(axum::http::uri::Authority::as_str));
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://"));
    match (host, origin) {
        (Some(host), Some((_, origin))) if origin.eq_ignore_ascii_case(host) => Ok(()),
        _ => Err(Trouble::new(
            StatusCode::FORBIDDEN,
            "Not from here",
            "a form is taken only from a page of this server (Origin); open the page again and repeat it there",
        )),
    }
}

/// Asks for a token.
pub(super) async fn ask(headers: HeaderMap, fields: Fields) -> Response {
    frame::door(Look::of(&headers), ours(fields.get("next")), None)
}

/// Takes a token, if it opens the door.
pub(super) async fn sign_in(State(desk): State<Desk>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let look = Look::of(&parts.headers);
    if let Err(trouble) = comes_from_here(&parts) {
        return frame::alone(look, &trouble);
    }
    let fields = Fields::read(&whole(body).await);
    let next = ours(fields.get("next"));
    let token = fields.get("token").unwrap_or_default();
    let plain = token
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if token.is_empty() || !plain {
        return frame::door(look, next, Some("a token looks like smt_…"));
    }
    let known = match (desk.clients)(&parts, Some(token)) {
        Ok(client) => client.own_token().await,
        Err(error) => Err(error),
    };
    match known {
        Ok(_) => {
            let mut response = Redirect::to(next).into_response();
            set(&mut response, TOKEN, token, 30 * 24 * 3600, desk.secure);
            response
        }
        Err(error @ Error::Unauthenticated(_)) => frame::door(look, next, Some(&error.to_string())),
        Err(error) => frame::alone(look, &error.into()),
    }
}

/// Forgets the token.
pub(super) async fn sign_out(State(desk): State<Desk>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    if let Err(trouble) = comes_from_here(&parts) {
        return frame::alone(Look::of(&parts.headers), &trouble);
    }
    let mut response = Redirect::to("/sign-in").into_response();
    set(&mut response, TOKEN, "", 0, desk.secure);
    response
}

/// Remembers how pages should look.
pub(super) async fn change_look(State(desk): State<Desk>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let look = Look::of(&parts.headers);
    if let Err(trouble) = comes_from_here(&parts) {
        return frame::alone(look, &trouble);
    }
    let fields = Fields::read(&whole(body).await);
    let theme = fields.get("theme").and_then(|theme| theme.parse().ok());
    let times = fields.get("times").and_then(|times| times.parse().ok());
    let kept = format!("{}.{}", theme.unwrap_or(look.theme), times.unwrap_or(look.times));
    let mut response = Redirect::to(ours(fields.get("back"))).into_response();
    set(&mut response, LOOK, &kept, 365 * 24 * 3600, desk.secure);
    response
}

/// Goes to a page, which then says what was done.
pub(super) fn tell(words: &str, next: &str, secure: bool) -> Response {
    let said = percent_encoding::utf8_percent_encode(words, percent_encoding::NON_ALPHANUMERIC).to_string();
    let mut response = Redirect::to(ours(Some(next))).into_response();
    set(&mut response, SAID, &said, 60, secure);
    response
}

/// A form's body; more than a form of ours has is cut off.
pub(super) async fn whole(body: axum::body::Body) -> Bytes {
    axum::body::to_bytes(body, 4 << 20).await.unwrap_or_default()
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).into_iter();
    let mut pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}

fn set(response: &mut Response, name: &str, value: &str, seconds: u64, secure: bool) {
    let secure = if secure { "; Secure" } else { "" };
    // A link from elsewhere finds its reader signed in; a form from elsewhere is refused by where it comes from.
    let line = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    if let Ok(line) = HeaderValue::try_from(line) {
        response.headers_mut().append(header::SET_COOKIE, line);
    }
}
