//! What people do: first a look at what would be done, with whatever must be said for it, then the deed. The look writes into its form
//! all that the deed is bound to, so neither a reload nor the way back ever does more than was shown.

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use stationmaster_client::wire::Role;

use super::Answer;
use super::fields::{Fields, ours};
use super::frame::{Page, Trouble};
use super::session::{self, Desk, Visitor};

mod alarms;
mod bulk;
mod catalogue;
mod detached;
mod items;
mod operations;
mod strays;
mod ticked;

/// What is done, by the name in its address, and who may.
const ACTIONS: [(&str, Role); 45] = [
    ("retry-failures", Role::Operator),
    ("set-failures-aside", Role::Operator),
    ("cancel-failing", Role::Operator),
    ("retry-all", Role::Operator),
    ("cancel-all", Role::Operator),
    ("set-priorities", Role::Operator),
    ("replay-all", Role::Operator),
    ("cancel-operation", Role::Operator),
    ("resume-operation", Role::Operator),
    ("cancel-these", Role::Operator),
    ("retry-these", Role::Operator),
    ("prefer-these", Role::Operator),
    ("cancel", Role::Operator),
    ("retry", Role::Operator),
    ("priority", Role::Operator),
    ("terminate", Role::Operator),
    ("end-stray", Role::Operator),
    ("run-again", Role::Operator),
    ("run-now", Role::Operator),
    ("pause-workspace", Role::Operator),
    ("resume-workspace", Role::Operator),
    ("change-workspace", Role::Admin),
    ("pause-workflow", Role::Operator),
    ("resume-workflow", Role::Operator),
    ("change-workflow", Role::Admin),
    ("publish-version", Role::Admin),
    ("change-plan", Role::Admin),
    ("pause-alarm", Role::Operator),
    ("resume-alarm", Role::Operator),
    ("fire-alarm", Role::Operator),
    ("cancel-alarm", Role::Operator),
    ("backfill", Role::Operator),
    ("set-alarm", Role::Operator),
    ("change-alarm", Role::Operator),
    ("pause-alarms", Role::Operator),
    ("resume-alarms", Role::Operator),
    ("reconcile", Role::Admin),
    ("replay", Role::Operator),
    ("release-lock", Role::Operator),
    ("create-token", Role::Admin),
    ("revoke-token", Role::Admin),
    ("drain-server", Role::Admin),
    ("resume-server", Role::Admin),
    ("keep-view", Role::Operator),
    ("forget-view", Role::Operator),
];

/// A look at what would be done.
pub(super) struct Look {
    pub(super) title: String,
    pub(super) words: Markup,
    /// What the deed is bound to.
    pub(super) bound: Vec<(String, String)>,
    pub(super) inputs: Vec<Input>,
    /// What the button says; none: there is nothing to do.
    pub(super) button: Option<String>,
    /// It cannot be taken back.
    pub(super) final_: bool,
}

impl Look {
    pub(super) fn new(title: impl Into<String>, button: &str, words: Markup) -> Self {
        Self {
            title: title.into(),
            words,
            bound: Vec::new(),
            inputs: Vec::new(),
            button: Some(button.to_owned()),
            final_: false,
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "what is bound is written down on the spot"
    )]
    pub(super) fn bind(mut self, name: &str, value: impl ToString) -> Self {
        self.bound.push((name.to_owned(), value.to_string()));
        self
    }

    pub(super) fn ask(mut self, input: Input) -> Self {
        self.inputs.push(input);
        self
    }

    pub(super) fn for_good(mut self) -> Self {
        self.final_ = true;
        self
    }
}

/// Something that must be said for it.
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) value: String,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Text,
    Number,
    Area,
    Choice(Vec<String>),
}

impl Input {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the value is written down on the spot"
    )]
    pub(super) fn new(kind: Kind, name: &'static str, label: &'static str, value: impl ToString) -> Self {
        Self {
            name,
            label,
            value: value.to_string(),
            kind,
        }
    }

    /// A reason or a note, which may stay empty.
    pub(super) fn note(name: &'static str, label: &'static str) -> Self {
        Self::new(Kind::Text, name, label, "")
    }

    fn show(&self, fields: &Fields) -> Markup {
        let value = fields.get(self.name).unwrap_or(&self.value);
        html! {
            label.field { (self.label)
                @match &self.kind {
                    Kind::Text => { input name=(self.name) value=(value) maxlength="2000"; },
                    Kind::Number => { input name=(self.name) type="number" value=(value); },
                    Kind::Area => { textarea name=(self.name) rows="12" spellcheck="false" { (value) } },
                    Kind::Choice(words) => { select name=(self.name) { @for word in words { option value=(word) selected[word == value] { (word) } } } },
                }
            }
        }
    }
}

/// What came of it.
pub(super) struct Done {
    pub(super) words: String,
    /// Where to go; none: back.
    pub(super) next: Option<String>,
    /// Something that is shown this once, instead of going anywhere.
    pub(super) shown: Option<Markup>,
}

impl Done {
    pub(super) fn said(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            next: None,
            shown: None,
        }
    }

    pub(super) fn at(self, next: String) -> Self {
        Self {
            next: Some(next),
            ..self
        }
    }
}

type Seen = Result<Look, Trouble>;
type Deed = Result<Done, Trouble>;

/// May this visitor do what is called so? Forms ask too, so that nobody fills in one that is refused then.
pub(super) fn allowed(visitor: &Visitor, name: &str) -> Result<(), Trouble> {
    let known = ACTIONS.iter().find(|(known, _)| *known == name);
    let (_, role) = known.ok_or_else(|| Trouble::not_found(format!("nothing is called {name}")))?;
    if visitor.read_only {
        return Err(Trouble::new(
            StatusCode::FORBIDDEN,
            "This dashboard only shows",
            "nothing is done from here (setting http.dashboard_read_only); the API and the command line are as they were",
        ));
    }
    if visitor.may(*role) {
        return Ok(());
    }
    let words = format!("this needs the role {role}; the token has {}", visitor.role);
    Err(Trouble::new(
        StatusCode::FORBIDDEN,
        "The token may not do this",
        words,
    ))
}

/// Shows what would be done.
pub(super) async fn look(visitor: Visitor, Path(name): Path<String>, fields: Fields) -> Answer {
    allowed(&visitor, &name)?;
    let look = see(&visitor, &name, &fields).await?;
    Ok(Page::new(look.title.clone(), form(&name, &look, &fields, None)))
}

/// Who knows how it is looked at and done.
enum Room {
    Bulk,
    Detached,
    Ticked,
    Items,
    Strays,
    Catalogue,
    Alarms,
    Operations,
}

fn room(name: &str) -> Room {
    match name {
        _ if bulk::Bulk::of(name).is_some() => Room::Bulk,
        _ if ticked::is_one(name) => Room::Ticked,
        "cancel-operation" | "resume-operation" => Room::Detached,
        "cancel" | "retry" | "priority" | "terminate" | "run-again" | "run-now" => Room::Items,
        "end-stray" => Room::Strays,
        "publish-version" | "change-plan" => Room::Catalogue,
        _ if name.ends_with("workspace") || name.ends_with("workflow") => Room::Catalogue,
        _ if name.contains("alarm") || name == "backfill" => Room::Alarms,
        _ => Room::Operations,
    }
}

async fn see(visitor: &Visitor, name: &str, fields: &Fields) -> Seen {
    match room(name) {
        Room::Bulk => bulk::look(visitor, name, fields).await,
        Room::Detached => detached::look(visitor, name, fields).await,
        Room::Ticked => ticked::look(visitor, name, fields).await,
        Room::Items => items::look(visitor, name, fields).await,
        Room::Strays => strays::look(visitor, fields).await,
        Room::Catalogue => catalogue::look(visitor, name, fields).await,
        Room::Alarms => alarms::look(visitor, name, fields).await,
        Room::Operations => operations::look(visitor, name, fields).await,
    }
}

async fn act(visitor: &Visitor, name: &str, fields: &Fields) -> Deed {
    match room(name) {
        Room::Bulk => bulk::carry(visitor, name, fields).await,
        Room::Detached => detached::carry(visitor, name, fields).await,
        Room::Ticked => ticked::carry(visitor, name, fields).await,
        Room::Items => items::carry(visitor, name, fields).await,
        Room::Strays => strays::carry(visitor, fields).await,
        Room::Catalogue => catalogue::carry(visitor, name, fields).await,
        Room::Alarms => alarms::carry(visitor, name, fields).await,
        Room::Operations => operations::carry(visitor, name, fields).await,
    }
}

/// Does it, and says what came of it; what was refused is shown in the form, with what had been typed.
pub(super) async fn carry_out(
    State(desk): State<Desk>,
    visitor: Visitor,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let fields = Fields::read(&session::whole(request.into_body()).await);
    if let Err(trouble) = allowed(&visitor, &name) {
        return trouble.into_response();
    }
    let trouble = match act(&visitor, &name, &fields).await {
        Ok(Done {
            words,
            shown: Some(shown),
            ..
        }) => return Page::new(words, shown).into_response(),
        Ok(done) => {
            let next = done.next.as_deref().unwrap_or(ours(fields.get("back")));
            return session::tell(&done.words, next, desk.secure);
        }
        Err(trouble) => trouble,
    };
    // What has a page of its own is shown there again, with what was typed.
    let sheet = match name.as_str() {
        "set-alarm" => Some(super::alarm_form::new_form(&visitor, &fields, Some(&trouble)).await),
        "change-alarm" => {
            let id = fields.get("id").unwrap_or_default();
            Some(super::alarm_form::edit_form(&visitor, id, &fields, Some(&trouble)).await)
        }
        _ => None,
    };
    if let Some(sheet) = sheet {
        let mut response = sheet.into_response();
        *response.status_mut() = trouble.status;
        return response;
    }
    match see(&visitor, &name, &fields).await {
        Ok(look) => {
            let page = Page::new(look.title.clone(), form(&name, &look, &fields, Some(&trouble)));
            let mut response = page.into_response();
            *response.status_mut() = trouble.status;
            response
        }
        Err(_) => trouble.into_response(),
    }
}

fn form(name: &str, look: &Look, fields: &Fields, wrong: Option<&Trouble>) -> Markup {
    let back = ours(fields.get("back"));
    html! {
        section.confirm {
            h1 { (look.title) }
            @if let Some(wrong) = wrong { p.wrong role="alert" { (wrong.words) } }
            (look.words)
            form method="post" action=(format!("/act/{name}")) {
                input type="hidden" name="back" value=(back);
                @for (name, value) in &look.bound { input type="hidden" name=(name) value=(value); }
                @for input in &look.inputs { (input.show(fields)) }
                div.actions {
                    @if let Some(button) = &look.button { button.primary.danger[look.final_] { (button) } }
                    a.button.plain href=(back) { @if look.button.is_some() { "Leave it" } @else { "Back" } }
                }
            }
        }
    }
}

/// JSON that was typed, as it was typed.
fn typed(fields: &Fields, name: &str) -> Result<Option<Box<serde_json::value::RawValue>>, Trouble> {
    let wrong = |error: serde_json::Error| Trouble::invalid(format!("{name}: this is no JSON: {error}"));
    let text = fields.owned(name);
    text.map(|text| serde_json::value::RawValue::from_string(text).map_err(wrong))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_a_role_beyond_looking() {
        assert!(ACTIONS.iter().all(|(_, role)| *role > Role::Viewer));
    }
}
