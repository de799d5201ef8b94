//! What is done to dispatchers, signals, locks, tokens and servers.

use maud::html;
use stationmaster_client::wire::{Drain, NewToken, NewView, Reconcile, Reference, Role};
use uuid::Uuid;

use super::super::fields::{Fields, ours};
use super::super::frame::Trouble;
use super::super::pieces::{copy, many, maybe_time};
use super::super::session::Visitor;
use super::{Deed, Done, Input, Kind, Look, Seen};

pub(super) async fn look(visitor: &Visitor, name: &str, fields: &Fields) -> Seen {
    let client = &visitor.client;
    Ok(match name {
        "reconcile" => {
            let how = Reconcile {
                dry_run: true,
                legacy: fields.get("legacy").is_some(),
            };
            let seen = client.reconcile_dispatchers(&how).await?;
            let acts = seen
                .findings
                .iter()
                .filter(|finding| finding.act.act.is_some())
                .count();
            let words = html! {
                p { (many(seen.findings.len(), "finding")) ", of which " strong { (acts) } " would be acted upon." }
                @for problem in &seen.problems { p.wrong { (problem) } }
                div.scroll tabindex="0" { table.rows {
                    thead { tr { th { "Dispatcher" } th { "Class" } th { "Why" } th { "What is done" } } }
                    tbody { @for finding in &seen.findings { tr { td { (finding.dispatcher_id) } td { (finding.class) } td.long { (finding.reason) } td { (finding.act.act.as_deref().unwrap_or("nothing")) } } } }
                } }
            };
            let mut look = Look::new("Reconcile dispatchers", "Remove what is left behind", words).for_good();
            look.button = look.button.filter(|_| acts > 0);
            look
        }
        "replay" => {
            let (project, id) = (fields.need("project")?, fields.need("id")?);
            let signal = client.signal_of(project, id).await?;
            let words = html! { p { "Puts signal " code { (id) } " (" (signal.name) ") back into the inbox; it was put aside for " (signal.reason.as_deref().unwrap_or("no reason")) "." } };
            Look::new("Replay a dead letter", "Replay it", words)
                .bind("project", project)
                .bind("id", id)
        }
        "release-lock" => {
            let found = client.lock(fields.need("id")?).await?;
            let words = html! {
                p { "Held by " strong { (found.by) } " since " (maybe_time(found.since)) ", until " (maybe_time(found.until)) "." }
                p { "The holder may still be at work and learns of it only when it extends. If somebody else holds it by then, nothing is done." }
            };
            let mut look = Look::new(format!("Free lock {}", found.name), "Free it", words)
                .bind("id", &found.name)
                .bind("holder", &found.by)
                .for_good();
            look.button = look.button.filter(|_| found.held);
            look
        }
        "create-token" => Look::new(
            "Make a token",
            "Make it",
            html! { p { "Its secret is shown once. It may do no more than you." } },
        )
        .ask(Input::new(Kind::Text, "name", "Name", ""))
        .ask(Input::new(
            Kind::Choice(Role::ALL.iter().map(ToString::to_string).collect()),
            "role",
            "Role",
            "viewer",
        ))
        .ask(Input::new(
            Kind::Text,
            "workspaces",
            "Workspaces, with spaces between (empty: all)",
            "",
        )),
        "revoke-token" => {
            let token = client.token(fields.need("id")?).await?;
            let words = html! { p { "Token " strong { (token.name) } " (" (token.role) ", …" (token.hint) ") opens no door any more, within five seconds. It was last used " (maybe_time(token.last_used_at)) "." } };
            Look::new(format!("Revoke {}", token.name), "Revoke it", words)
                .bind("id", token.id)
                .for_good()
        }
        "drain-server" | "resume-server" => {
            let server = client.server(fields.need("id")?).await?;
            let has = html! { p.quiet { (many(server.in_hand, "execution")) " in hand." } };
            let look = if name == "drain-server" {
                let words = html! { p { "It takes no new work; what it has in hand it brings to an end. Other servers go on." } (has) };
                Look::new(format!("Drain {}", server.name), "Drain it", words).ask(Input::new(
                    Kind::Choice(vec!["stay".to_owned(), "leave".to_owned()]),
                    "then",
                    "Then it is to",
                    "stay",
                ))
            } else {
                Look::new(
                    format!("Resume {}", server.name),
                    "Resume it",
                    html! { p { "It takes work again." } (has) },
                )
            };
            look.bind("id", server.id)
        }
        "keep-view" => {
            let path = ours(fields.get("path"));
            let words = html! {
                p { "Keeps this address with its filters under a name, beside the filters of its list:" }
                p { code { (path) } }
                p.quiet { "A name that you use already gets the new address." }
            };
            let look = Look::new("Keep a view", "Keep it", words)
                .bind("path", path)
                .ask(Input::new(Kind::Text, "name", "Name", ""));
            if visitor.sees_all {
                let whom = Kind::Choice(vec!["me".to_owned(), "all".to_owned()]);
                look.ask(Input::new(whom, "whom", "For", "me"))
            } else {
                look
            }
        }
        "forget-view" => {
            let id = fields.must::<Uuid>("id")?;
            let views = client.views().await?;
            let view = views.into_iter().find(|view| view.id == id);
            let view = view.ok_or_else(|| Trouble::not_found("there is no such view any more"))?;
            let words = html! { p { strong { (view.name) } @if view.shared { " is for all; nobody sees it any more then" } ": " code { (view.path) } } };
            Look::new("Forget a view", "Forget it", words).bind("id", id)
        }
        _ => return Err(Trouble::not_found(name)),
    })
}

pub(super) async fn carry(visitor: &Visitor, name: &str, fields: &Fields) -> Deed {
    let client = &visitor.client;
    Ok(match name {
        "reconcile" => {
            let how = Reconcile {
                dry_run: false,
                legacy: fields.get("legacy").is_some(),
            };
            let done = client.reconcile_dispatchers(&how).await?;
            Done::said(format!("Did {}.", many(done.done.len(), "thing")))
        }
        "replay" => {
            client
                .replay_signal_of(fields.need("project")?, fields.need("id")?)
                .await?;
            Done::said("It is back in the inbox.")
        }
        "release-lock" => {
            let answer = client
                .release_lock(fields.need("id")?, fields.need("holder")?)
                .await?;
            Done::said(if answer.released {
                "It is free."
            } else {
                "It had ended before."
            })
        }
        "create-token" => {
            let workspaces: Vec<Reference> = fields
                .get("workspaces")
                .unwrap_or_default()
                .split_whitespace()
                .map(Reference::from)
                .collect();
            let new = NewToken::<Reference> {
                name: fields.need("name")?.to_owned(),
                role: fields.must("role")?,
                workspaces: Some(workspaces).filter(|workspaces| !workspaces.is_empty()),
                expires_at: None,
            };
            let made = client.make_token(&new).await?;
            let shown = html! {
                section.confirm {
                    h1 { "Token " (made.token.name) }
                    p { "Its secret is shown this once; nobody can tell it again." }
                    pre { code.copied { (made.secret) } } (copy("Copy"))
                    p { a.button href="/tokens" { "Done" } }
                }
            };
            Done {
                words: "A token".to_owned(),
                next: None,
                shown: Some(shown),
            }
        }
        "keep-view" => {
            let view = NewView {
                name: fields.need("name")?.to_owned(),
                path: ours(fields.get("path")).to_owned(),
                shared: fields.get("whom") == Some("all"),
            };
            let kept = client.keep_view(&view).await?;
            Done::said(format!("{} is kept.", kept.name)).at(kept.path)
        }
        "forget-view" => {
            client.forget_view(fields.must::<Uuid>("id")?).await?;
            Done::said("It is forgotten.")
        }
        "drain-server" => {
            let exit = fields.get("then") == Some("leave");
            let server = client.drain_server(fields.need("id")?, &Drain { exit }).await?;
            Done::said(format!("{} takes no new work.", server.name))
        }
        "resume-server" => {
            let server = client.resume_server(fields.need("id")?).await?;
            Done::said(format!("{} takes work again.", server.name))
        }
        "revoke-token" => {
            client.revoke_token(fields.need("id")?).await?;
            Done::said("It is revoked.")
        }
        _ => return Err(Trouble::not_found(name)),
    })
}
