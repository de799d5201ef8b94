//! Around every page: its head, the way to all others, what was just done, and what could not be shown.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use stationmaster_client::Error;
use stationmaster_client::wire::Role;

use super::assets;
use super::fields::address;
use super::session::{Look, Theme, Times, Visitor};

/// Pages have what they need from this server, and nothing from anybody else; nothing in them runs but our script.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// The script asks for what is inside the frame alone.
const FRAGMENT: HeaderName = HeaderName::from_static("x-fragment");

/// A page: what is inside the frame.
#[derive(Clone)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) body: String,
}

impl Page {
    pub(super) fn new(title: impl Into<String>, body: Markup) -> Self {
        Self {
            title: title.into(),
            body: body.into_string(),
        }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let mut response = StatusCode::OK.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Why a page cannot be shown, or something cannot be done.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    pub(super) status: StatusCode,
    pub(super) title: String,
    pub(super) words: String,
}

impl Trouble {
    pub(super) fn new(status: StatusCode, title: impl Into<String>, words: impl Into<String>) -> Self {
        Self {
            status,
            title: title.into(),
            words: words.into(),
        }
    }

    pub(super) fn invalid(words: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "This cannot be read", words)
    }

    pub(super) fn not_found(words: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "There is no such thing", words)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        let status = error.problem().map(|problem| problem.status);
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        let title = error.problem().map(|problem| problem.title.clone());
        Self::new(
            status.unwrap_or(StatusCode::BAD_GATEWAY),
            title.unwrap_or_else(|| "No answer".to_owned()),
            error.to_string(),
        )
    }
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// A place that the navigation leads to: path, word, key after `g`, who may see it.
struct Place {
    path: &'static str,
    word: &'static str,
    key: char,
    role: Role,
    /// For tokens that are for all workspaces.
    all: bool,
}

impl Place {
    fn is_open_to(&self, visitor: &Visitor) -> bool {
        visitor.may(self.role) && (visitor.sees_all || !self.all)
    }
}

const fn place(path: &'static str, word: &'static str, key: char) -> Place {
    Place {
        path,
        word,
        key,
        role: Role::Viewer,
        all: false,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a table is made of it")]
const fn kept(place: Place, role: Role, all: bool) -> Place {
    Place { role, all, ..place }
}

/// The navigation, in groups.
const PLACES: [&[Place]; 3] = [
    &[
        place("/", "Overview", 'o'),
        place("/failures", "Failures", 'f'),
        place("/queue", "Queue", 'q'),
        place("/executions", "Executions", 'e'),
        place("/operations", "Operations", 'b'),
    ],
    &[
        place("/workspaces", "Workspaces", 'w'),
        place("/workflows", "Workflows", 'd'),
        place("/alarms", "Alarms", 'a'),
        place("/signals", "Signals", 's'),
    ],
    &[
        place("/dispatchers", "Dispatchers", 'r'),
        place("/servers", "Servers", 'v'),
        kept(place("/locks", "Locks", 'l'), Role::Viewer, true),
        kept(place("/audit", "Audit", 'u'), Role::Admin, false),
        kept(place("/tokens", "Tokens", 't'), Role::Admin, false),
        place("/settings", "Settings", 'p'),
        kept(place("/health", "Health", 'h'), Role::Operator, true),
        place("/runbooks", "Runbooks", 'n'),
    ],
];

pub(super) fn is_fragment(headers: &HeaderMap) -> bool {
    headers.contains_key(FRAGMENT)
}

/// Puts the frame around what a handler answered.
pub(super) fn dress(mut response: Response, visitor: &Visitor, headers: &HeaderMap) -> Response {
    let status = response.status();
    let page = match response.extensions_mut().remove::<Page>() {
        Some(page) => page,
        None => match response.extensions_mut().remove::<Trouble>() {
            Some(trouble) => Page::new(trouble.title.clone(), trouble_body(&trouble)),
            None => return response,
        },
    };
    let tag = tag(&page, visitor);
    let seen = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|seen| seen.to_str().ok());
    if is_fragment(headers) && status == StatusCode::OK && seen == Some(tag.as_str()) {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let text = if is_fragment(headers) {
        page.body
    } else {
        whole(visitor, &page).into_string()
    };
    let mut answer = finish(status, text);
    if let Ok(tag) = HeaderValue::try_from(tag) {
        answer.headers_mut().insert(header::ETAG, tag);
    }
    answer
}

fn tag(page: &Page, visitor: &Visitor) -> String {
    let mut hasher = DefaultHasher::new();
    (&page.body, &visitor.here).hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

fn finish(status: StatusCode, text: String) -> Response {
    let mut response = (status, Html(text)).into_response();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // A page of ours may know where a form comes from; nobody else learns where anybody was.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

fn trouble_body(trouble: &Trouble) -> Markup {
    html! {
        section.trouble role="alert" data-again[trouble.status.is_server_error()] {
            h1 { (trouble.title) }
            p { (trouble.words) }
            @if trouble.status.is_server_error() {
                p.quiet { "This page asks again by itself." }
            }
        }
    }
}

fn head(look: Look, title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content=(match look.theme { Theme::Auto => "light dark", Theme::Light => "light", Theme::Dark => "dark" });
            title { (title) " · Stationmaster" }
            link rel="icon" type="image/svg+xml" href=(assets::address("icon.svg"));
            link rel="stylesheet" href=(assets::address("style.css"));
            script src=(assets::address("script.js")) defer {}
        }
    }
}

/// The signal of the house.
fn mark() -> Markup {
    PreEscaped(concat!(
        r#"<svg class="mark" viewBox="0 0 20 20" aria-hidden="true"><rect x="8.5" y="2" width="3" height="16" rx="1.5"/>"#,
        r#"<rect class="arm" x="1" y="4" width="12" height="5" rx="1.5"/><circle class="glow" cx="15.5" cy="6.5" r="3"/></svg>"#
    )
    .to_owned())
}

fn whole(visitor: &Visitor, page: &Page) -> Markup {
    let look = visitor.look;
    let path = visitor.here.split('?').next().unwrap_or("/");
    let first = path.split('/').nth(1).unwrap_or_default();
    html! {
        (DOCTYPE)
        html lang="en" data-theme=(look.theme) data-times=(look.times) {
            (head(look, &page.title))
            body {
                a.skip href="#main" { "Skip to the page" }
                header.top {
                    a.brand href="/" { (mark()) "Stationmaster" }
                    form.jump action="/jump" role="search" {
                        input #jump name="q" type="search" autocomplete="off" placeholder="Jump to any id or name" aria-label="Jump to any id or name" list="jump-names";
                        datalist #jump-names {}
                        kbd aria-hidden="true" { "/" }
                    }
                    div.live #live role="status" hidden {
                        span.pulse {} span.words { "live" }
                        button type="button" #pause aria-pressed="false" { "Pause" }
                    }
                    @if visitor.read_only { span.quiet title="Nothing is done from here (setting http.dashboard_read_only)" { "read only" } }
                    (choices(visitor))
                }
                nav aria-label="Pages" {
                    details.menu {
                        summary { "Pages" }
                    }
                    div.places {
                        @for group in PLACES {
                            ul {
                                @for place in group.iter().filter(|place| place.is_open_to(visitor)) {
                                    li {
                                        a href=(lasting(place.path, visitor)) data-key=(place.key) aria-current=[(place.path.trim_start_matches('/') == first).then_some("page")] { (place.word) }
                                    }
                                }
                            }
                        }
                    }
                }
                main #main tabindex="-1" {
                    @if visitor.name.is_none() {
                        p.banner { "Open: whoever reaches this address may do everything. For development only." }
                    }
                    p.banner.stale #stale role="alert" hidden {}
                    @if let Some(said) = &visitor.said {
                        p.banner.said role="status" { (said) }
                    }
                    div #page { (PreEscaped(page.body.clone())) }
                }
                (keys(visitor))
            }
        }
    }
}

fn choices(visitor: &Visitor) -> Markup {
    let Look { theme, times } = visitor.look;
    let (dark, dark_word) = match theme {
        Theme::Auto => (Theme::Light, "Theme: auto"),
        Theme::Light => (Theme::Dark, "Theme: light"),
        Theme::Dark => (Theme::Auto, "Theme: dark"),
    };
    let (zone, zone_word) = match times {
        Times::Relative => (Times::Local, "Times: ago"),
        Times::Local => (Times::Utc, "Times: local"),
        Times::Utc => (Times::Relative, "Times: UTC"),
    };
    html! {
        form.choices method="post" action="/look" {
            input type="hidden" name="back" value=(visitor.here);
            button.plain name="times" value=(zone) title="How times are told" { (zone_word) }
            button.plain name="theme" value=(dark) title="Light, dark, or as this machine wants it" { (dark_word) }
        }
        @if let Some(name) = &visitor.name {
            form.who method="post" action="/sign-out" {
                span title="The token that you signed in with, and its role" { (name) " · " (visitor.role) }
                button.plain { "Sign out" }
            }
        }
    }
}

fn keys(visitor: &Visitor) -> Markup {
    html! {
        dialog #keys aria-label="Keys" {
            h2 { "Keys" }
            dl.keys {
                dt { kbd { "/" } } dd { "jump to any id or name" }
                dt { kbd { "j" } " " kbd { "k" } } dd { "next row, row before" }
                dt { kbd { "Enter" } } dd { "open the row" }
                dt { kbd { "x" } } dd { "tick the row, to act on several together" }
                dt { kbd { "p" } } dd { "pause and go on" }
                @for place in PLACES.iter().flat_map(|group| group.iter()).filter(|place| place.is_open_to(visitor)) {
                    dt { kbd { "g" } " " kbd { (place.key) } } dd { (place.word) }
                }
                dt { kbd { "?" } } dd { "this list" }
            }
            form method="dialog" { button { "Close" } }
        }
    }
}

/// The way to a page, with the time that was chosen: it stays until somebody chooses another.
fn lasting(path: &str, visitor: &Visitor) -> String {
    let time = visitor.time.iter().map(|time| ("since", time));
    address(path, &time.collect::<Vec<_>>())
}

/// A page without the way to others: nobody is known to look.
fn bare(status: StatusCode, look: Look, title: &str, body: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" data-theme=(look.theme) data-times=(look.times) {
            (head(look, title))
            body.bare {
                main #main {
                    p.brand { (mark()) "Stationmaster" }
                    (body)
                }
            }
        }
    };
    finish(status, page.into_string())
}

/// What went wrong, before anybody is known.
pub(super) fn alone(look: Look, trouble: &Trouble) -> Response {
    bare(trouble.status, look, &trouble.title, &trouble_body(trouble))
}

/// Where a token is asked for.
pub(super) fn door(look: Look, next: &str, wrong: Option<&str>) -> Response {
    let body = html! {
        h1 { "Sign in" }
        p.quiet { "This server asks for a token. To make one: " code { "stationmaster tokens create NAME --role operator" } }
        @if let Some(wrong) = wrong { p.wrong role="alert" { (wrong) } }
        form.door method="post" action="/sign-in" {
            input type="hidden" name="next" value=(next);
            label for="token" { "Token" }
            input #token name="token" type="password" autocomplete="current-password" placeholder="smt_…" required autofocus;
            button.primary { "Sign in" }
        }
    };
    let status = if wrong.is_some() {
        StatusCode::UNAUTHORIZED
    } else {
        StatusCode::OK
    };
    bare(status, look, "Sign in", &body)
}
