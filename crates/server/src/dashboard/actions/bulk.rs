//! The same done to everything that matches: the look counts, and the deed is bound to the instant of the look. What is much is done by the
//! servers, as an operation that has a page of its own; nobody waits for it with a page that loads.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use maud::html;
use serde::Serialize;
use serde_json::Value;
use stationmaster_client::wire::{
    CancellableStatus, FailureKind, OperationKind, RetriableStatus, StatusOf, asked,
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
/// More than this the servers do, while the person looks on.
const FEW: u64 = 1_000;
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

/// One call of many, or the whole as an operation.
struct Step {
    dry_run: bool,
    before: Option<Timestamp>,
    after: Option<String>,
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

    /// What the API calls it.
    fn kind(self) -> OperationKind {
        match self {
            Self::RetryFailures => OperationKind::RetryFailures,
            Self::SetAside => OperationKind::SetFailuresAside,
            Self::CancelFailing => OperationKind::CancelFailures,
            Self::Retry => OperationKind::RetryQueue,
            Self::Cancel => OperationKind::CancelQueue,
            Self::Priority => OperationKind::PrioritiseQueue,
            Self::Replay => OperationKind::ReplaySignals,
        }
    }

    /// What is asked of the API.
    fn request(self, fields: &Fields, step: Step) -> Result<Value, Trouble> {
        let Step {
            dry_run,
            before,
            after,
        } = step;
        let from = fields.parse::<Timestamp>("from")?;
        let all = !FILTER.iter().any(|name| fields.get(name).is_some());
        match self {
            Self::RetryFailures | Self::SetAside | Self::CancelFailing => written(&asked::BulkFailures {
                group: fields.owned("group"),
                workspace_id: fields.reference("workspace"),
                workflow_definition_id: fields.reference("workflow"),
                kind: fields.parse::<FailureKind>("kind")?,
                ended_after: from,
                before,
                note: fields.owned("note"),
                after,
                all,
                dry_run,
            }),
            Self::Retry => written(&asked::BulkRetry {
                workspace_id: fields.reference("workspace"),
                workflow_definition_id: fields.reference("workflow"),
                status: fields.parse::<RetriableStatus>("status")?,
                status_of: fields.parse::<StatusOf>("status_of")?,
                end_reason: None,
                ended_after: from,
                ended_before: before,
                after,
                all,
                dry_run,
            }),
            Self::Cancel => written(&asked::BulkCancel {
                workspace_id: fields.reference("workspace"),
                workflow_definition_id: fields.reference("workflow"),
                status: fields.parse::<CancellableStatus>("status")?,
                created_after: from,
                created_before: before,
                reason: fields.owned("note"),
                after,
                all,
                dry_run,
            }),
            Self::Priority => written(&asked::BulkPriority {
                workspace_id: fields.reference("workspace"),
                workflow_definition_id: fields.reference("workflow"),
                created_after: from,
                created_before: before,
                // A look asks for none.
                priority: if dry_run { 0 } else { fields.must("priority")? },
                after,
                all,
                dry_run,
            }),
            Self::Replay => written(&asked::BulkReplay {
                workspace_id: fields.reference("workspace"),
                project: fields.owned("project"),
                task_queue: None,
                name: None,
                reason: fields.owned("reason"),
                before,
                after,
                all,
                dry_run,
            }),
        }
    }
}

fn written(request: &impl Serialize) -> Result<Value, Trouble> {
    serde_json::to_value(request).map_err(|error| Trouble::invalid(error.to_string()))
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
    };
    let look = bulk.request(&filter, step)?;
    let seen = visitor.client.carry_out(bulk.kind(), &look, None).await?;
    let much = seen.more || seen.items > FEW;
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
        @if much { p.quiet { "The servers do it one part after the other; the next page shows how far they are, and it can be ended there." } }
    };
    let more = if seen.more { "more than " } else { "" };
    let mut look = Look::new(title, &format!("{button} {more}{many}"), words)
        .bind("as_of", seen.as_of)
        .bind("count", seen.items)
        .bind("key", Uuid::now_v7());
    if much {
        look = look.bind("by", "servers");
    }
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
    if fields.get("by").is_some() {
        return begin(visitor, bulk, fields, as_of, key).await;
    }
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
            };
            let request = bulk.request(fields, step)?;
            let answer = visitor
                .client
                .carry_out(bulk.kind(), &request, Some(&key))
                .await?;
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

/// Lets the servers do it, and leads to where they tell how far they are.
async fn begin(visitor: &Visitor, bulk: Bulk, fields: &Fields, as_of: Timestamp, key: &str) -> Deed {
    let step = Step {
        dry_run: false,
        before: Some(as_of),
        after: None,
    };
    let request = bulk.request(fields, step)?;
    let begun = visitor.client.begin(bulk.kind(), &request, Some(key)).await?;
    Ok(Done::said("The servers do it now.").at(format!("/operations/{}", begun.id)))
}
