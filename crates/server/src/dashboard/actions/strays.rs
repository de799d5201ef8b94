//! A run that no row tells of is ended: the very run that was looked at, and no other of the same name.

use futures::TryStreamExt as _;
use maud::html;
use stationmaster_client::wire::{EndStray, Stray};
use uuid::Uuid;

use super::super::fields::Fields;
use super::super::frame::Trouble;
use super::super::pieces::{maybe_time, time};
use super::super::session::Visitor;
use super::{Deed, Done, Input, Look, Seen};

pub(super) async fn look(visitor: &Visitor, fields: &Fields) -> Seen {
    let (execution, run) = (fields.must::<Uuid>("id")?, fields.need("run")?);
    let stray = find(visitor, execution, run).await?;
    let words = html! {
        p { "Ends " code { "execution-" (execution) } " on the engine, which has run since " (maybe_time(stray.started_at)) " for " (stray.workspace.as_deref().unwrap_or("a workspace that is gone")) ". What it is at is not finished, and nothing is undone. If its row is back by then, nothing is done." }
        p.quiet { "It is run " code { (run) } ", found " (time(stray.found_at)) "." }
        @if let Some(at) = stray.end_requested_at { p { "That was asked for " (time(at)) @if let Some(by) = &stray.end_requested_by { " by " (by) } ", and a server does it as soon as it can." } }
    };
    let mut look = Look::new("End a run that no row tells of", "End it", words)
        .bind("id", execution)
        .bind("run", run)
        .ask(Input::note("reason", "Why, for the audit and the engine"))
        .for_good();
    look.button = look.button.filter(|_| stray.end_requested_at.is_none());
    Ok(look)
}

pub(super) async fn carry(visitor: &Visitor, fields: &Fields) -> Deed {
    let end = EndStray {
        run_id: fields.need("run")?.to_owned(),
        reason: fields.owned("reason"),
    };
    visitor.client.end_stray(fields.must::<Uuid>("id")?, &end).await?;
    Ok(Done::said("A server ends it as soon as it can."))
}

/// The stray as it is now.
async fn find(visitor: &Visitor, execution: Uuid, run: &str) -> Result<Stray, Trouble> {
    let meant = |stray: &Stray| stray.execution_id == execution && stray.run_id == run;
    let all = visitor.client.all_strays();
    let mut found = std::pin::pin!(all.try_filter(|stray| std::future::ready(meant(stray))));
    found.try_next().await?.ok_or_else(|| {
        Trouble::not_found("this run is on record by now, or has ended: there is nothing to do")
    })
}
