//! The same done to everything that matches: the look counts, and the deed is bound to the instant of the look.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use maud::html;
use stationmaster_client::wire::{
    BulkAnswer, BulkCancel, BulkFailures, BulkPriority, BulkReplay, BulkRetry, CancellableStatus,
    FailureKind, Reference, RetriableStatus, StatusOf,
};
use uuid::Uuid;

use super::super::fields::Fields;
use super::super::frame::Trouble;
use super::super::pieces::since_then;
use super::super::session::Visitor;
use super::{Deed, Done, Input, Kind, Look, Seen};

/// Walks over everything at most: what changed hands while it was walked past is met by the next one.
const WALKS: u32 = 5;
/// Nobody waits longer for a page; what is left is said.
const PATIENCE: Duration = Duration::from_secs(20);
/// What the deed is bound to besides the instant.
const FILTER: [&str; 9] = [
    "group",
    "workspace",
    "workflow",
    "kind",
    "status",
    "status_of",
    "from",
    "project",
    "reason",
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bulk {
    RetryFailures,
    SetAside,
    CancelFailing,
    Retry,
    Cancel,
    Priority,
    Replay,
}

/// One call of many.
struct Step<'a> {
    dry_run: bool,
    before: Option<Timestamp>,
    after: Option<String>,
    key: Option<&'a str>,
}

impl Bulk {
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "retry-failures" => Self::RetryFailures,
            "set-failures-aside" => Self::SetAside,
            "cancel-failing" => Self::CancelFailing,
            "retry-all" => Self::Retry,
            "cancel-all" => Self::Cancel,
            "set-priorities" => Self::Priority,
            "replay-all" => Self::Replay,
            _ => return None,
        })
    }

    /// Title, noun, what the button says, what was done.
    fn words(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::RetryFailures => ("Retry failures", "failure", "Retry", "Retried"),
            Self::SetAside => ("Set failures aside", "failure", "Set aside", "Set aside"),
            Self::CancelFailing => (
                "Cancel what waits of this workflow",
                "item",
                "Cancel",
                "Cancelled",
            ),
            Self::Retry => ("Retry everything that matches", "item", "Retry", "Retried"),
            Self::Cancel => ("Cancel everything that matches", "item", "Cancel", "Cancelled"),
            Self::Priority => (
                "Change the priority of what waits",
                "item",
                "Change",
                "Changed the priority of",
            ),
            Self::Replay => ("Replay dead letters", "dead letter", "Replay", "Replayed"),
        }
    }

    async fn call(self, visitor: &Visitor, fields: &Fields, step: Step<'_>) -> Result<BulkAnswer, Trouble> {
        let client = &visitor.client;
        let Step {
            dry_run,
            before,
            after,
            key,
        } = step;
        let (workspace, workflow) = (fields.get("workspace"), fields.get("workflow"));
        let from = fields.parse::<Timestamp>("from")?;
        let narrowed = FILTER.iter().any(|name| fields.get(name).is_some());
        let answer = match self {
            Self::RetryFailures | Self::SetAside | Self::CancelFailing => {
                let (workspace_id, workflow_definition_id) = ids(visitor, workspace, workflow).await?;
                let which = BulkFailures {
                    group: fields.owned("group"),
                    workspace_id,
                    workflow_definition_id,
                    kind: fields.parse::<FailureKind>("kind")?,
                    ended_after: from,
                    before,
                    note: fields.owned("note"),
                    after,
                    all: !narrowed,
                    dry_run,
                };
                match self {
                    Self::RetryFailures => client.retry_failures(&which, key).await,
                    Self::SetAside => client.set_failures_aside(&which, key).await,
                    _ => client.cancel_failing(&which, key).await,
                }
            }
            Self::Retry => {
                let which = BulkRetry::<Reference> {
                    workspace_id: fields.reference("workspace"),
                    workflow_definition_id: fields.reference("workflow"),
                    status: fields.parse::<RetriableStatus>("status")?,
                    status_of: fields.parse::<StatusOf>("status_of")?,
                    end_reason: None,
                    ended_after: from,
                    ended_before: before,
                    after,
                    all: !narrowed,
                    dry_run,
                };
                client.retry_all(&which, key).await
            }
            Self::Cancel => {
                let which = BulkCancel::<Reference> {
                    workspace_id: fields.reference("workspace"),
                    workflow_definition_id: fields.reference("workflow"),
                    status: fields.parse::<CancellableStatus>("status")?,
                    created_after: from,
                    created_before: before,
                    reason: fields.owned("note"),
                    after,
                    all: !narrowed,
                    dry_run,
                };
                client.cancel_all(&which, key).await
            }
            Self::Priority => {
                let (workspace_id, workflow_definition_id) = ids(visitor, workspace, workflow).await?;
                let which = BulkPriority {
                    workspace_id,
                    workflow_definition_id,
                    created_after: from,
                    created_before: before,
                    // A look asks for none.
                    priority: if dry_run { 0 } else { fields.must("priority")? },
                    after,
                    all: !narrowed,
                    dry_run,
                };
                client.set_priorities(&which, key).await
            }
            Self::Replay => {
                let which = BulkReplay::<Reference> {
                    workspace_id: fields.reference("workspace"),
                    project: fields.owned("project"),
                    task_queue: None,
                    name: None,
                    reason: fields.owned("reason"),
                    before,
                    after,
                    all: !narrowed,
                    dry_run,
                };
                client.replay_all(&which, key).await
            }
        };
        Ok(answer?)
    }
}

/// The ids of what is named.
async fn ids(
    visitor: &Visitor,
    workspace: Option<&str>,
    workflow: Option<&str>,
) -> Result<(Option<Uuid>, Option<Uuid>), Trouble> {
    let workspace_id = match workspace {
        Some(name) => Some(visitor.client.workspace(name).await?.id),
        None => None,
    };
    let workflow_id = match (workspace, workflow) {
        (_, None) => None,
        (Some(workspace), Some(name)) if Uuid::try_parse(name).is_err() && !name.contains('.') => {
            Some(visitor.client.workflow(format!("{workspace}.{name}")).await?.id)
        }
        (_, Some(name)) => Some(visitor.client.workflow(name).await?.id),
    };
    Ok((workspace_id, workflow_id))
}

pub(super) async fn look(visitor: &Visitor, name: &str, fields: &Fields) -> Seen {
    let Some(bulk) = Bulk::of(name) else {
        return Err(Trouble::not_found(name));
    };
    // What "the last hour" means is settled by the look.
    let mut pairs = fields.only(&FILTER);
    if fields.get("from").is_none()
        && let Some(from) = since_then(fields)
    {
        pairs.push(("from".to_owned(), from.to_string()));
    }
    let filter = Fields::from_pairs(pairs.clone());
    let step = Step {
        dry_run: true,
        before: None,
        after: None,
        key: None,
    };
    let seen = bulk.call(visitor, &filter, step).await?;
    let (title, noun, button, _) = bulk.words();
    let many = super::super::pieces::many(seen.items, noun);
    let words = html! {
        p.count-words { @if seen.more { "More than " } strong { (many) } @if seen.items == 1 { " matches" } @else { " match" } "." }
        dl.facts {
            @for (name, value) in &pairs { dt { (name) } dd { (value) } }
            @if pairs.is_empty() { dt { "filter" } dd { "none: everything that you may see" } }
            dt { "as of" } dd { (super::super::pieces::time(seen.as_of)) }
        }
        @if !seen.sample.is_empty() { p.quiet { "Such as:" } ul.sample { @for id in &seen.sample { li { code { (id) } } } } }
        p.quiet { "What comes after this instant is not touched, however long this page stays open." }
    };
    let more = if seen.more { "more than " } else { "" };
    let mut look = Look::new(title, &format!("{button} {more}{many}"), words)
        .bind("as_of", seen.as_of)
        .bind("count", seen.items)
        .bind("key", Uuid::now_v7());
    look.bound.extend(pairs);
    look.final_ = matches!(bulk, Bulk::Cancel | Bulk::CancelFailing);
    if seen.items == 0 {
        look.button = None;
        return Ok(look);
    }
    Ok(match bulk {
        Bulk::SetAside | Bulk::RetryFailures => look.ask(Input::note("note", "Note, for the record")),
        Bulk::Cancel | Bulk::CancelFailing => look.ask(Input::note("note", "Why, for the history")),
        Bulk::Priority => look.ask(Input::new(
            Kind::Number,
            "priority",
            "Priority (higher goes first)",
            10,
        )),
        Bulk::Retry | Bulk::Replay => look,
    })
}

pub(super) async fn carry(visitor: &Visitor, name: &str, fields: &Fields) -> Deed {
    let Some(bulk) = Bulk::of(name) else {
        return Err(Trouble::not_found(name));
    };
    // Without a look there is nothing to be bound to.
    let as_of = fields.must::<Timestamp>("as_of")?;
    let (expected, key) = (fields.must::<u64>("count")?, fields.need("key")?);
    let began = Instant::now();
    let (mut done, mut calls, mut left) = (0, 0, false);
    'walks: for _ in 0..WALKS {
        let (mut after, mut walked) = (None, 0);
        loop {
            calls += 1;
            let key = format!("{key}-{calls}");
            let step = Step {
                dry_run: false,
                before: Some(as_of),
                after,
                key: Some(&key),
            };
            let answer = bulk.call(visitor, fields, step).await?;
            walked += answer.items;
            after = answer.next.filter(|_| answer.more);
            if after.is_none() {
                break;
            }
            if began.elapsed() > PATIENCE {
                done += walked;
                left = true;
                break 'walks;
            }
        }
        done += walked;
        if walked == 0 || done >= expected {
            break;
        }
    }
    let (_, noun, _, did) = bulk.words();
    let mut words = format!("{did} {}.", super::super::pieces::many(done, noun));
    if left {
        words.push_str(" There are more: do it again.");
    } else if done < expected {
        words.push_str(" The others had changed meanwhile.");
    }
    Ok(Done::said(words))
}
