//! What a person does from the live view, and what a closer look shows. Each is one call of the client's, or a few.

use anyhow::Result;
use jiff::Timestamp;
use stationmaster_client::Client;
use stationmaster_client::wire::{BulkFailures, Cancel, Drain, PageQuery, QueueQuery};
use uuid::Uuid;

use super::app::{Thing, ended_badly, is_live};
use crate::output::{details, fields_within, printable, rows_within};

/// Things that a closer look lists.
const LISTED: u32 = 50;

/// Something to be done.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Pause {
        id: Uuid,
        name: String,
    },
    Resume {
        id: Uuid,
        name: String,
    },
    Drain {
        id: Uuid,
        name: String,
    },
    ResumeServer {
        id: Uuid,
        name: String,
    },
    Cancel {
        id: Uuid,
    },
    Retry {
        item: Uuid,
    },
    RetryAll {
        group: String,
        count: i64,
        last: Timestamp,
    },
    SetAside {
        group: String,
        count: i64,
        last: Timestamp,
    },
}

impl Act {
    /// What a letter means for a thing; or why it means nothing.
    pub(super) fn of(letter: char, thing: Thing) -> Result<Self, String> {
        match (letter, thing) {
            ('p', Thing::Workspace(one)) if one.paused => Ok(Self::Resume {
                id: one.id,
                name: one.name,
            }),
            ('p', Thing::Workspace(one)) => Ok(Self::Pause {
                id: one.id,
                name: one.name,
            }),
            ('c', Thing::Execution(one)) if is_live(one.status) => Ok(Self::Cancel { id: one.id }),
            ('c', Thing::Execution(one)) => Err(format!("It has ended: {}.", one.status)),
            ('r', Thing::Execution(one)) if ended_badly(one.status) => Ok(Self::Retry {
                item: one.queue_item_id,
            }),
            ('r', Thing::Execution(one)) => Err(format!(
                "Only what ended badly can be retried; it is {}.",
                one.status
            )),
            ('r', Thing::Failures(group)) => Ok(Self::RetryAll {
                group: group.id,
                count: group.count,
                last: group.last_at,
            }),
            ('s', Thing::Failures(group)) => Ok(Self::SetAside {
                group: group.id,
                count: group.count,
                last: group.last_at,
            }),
            ('d', Thing::Server(one)) if !one.alive => Err(format!("{} is gone.", printable(&one.name))),
            ('d', Thing::Server(one)) if one.draining => Ok(Self::ResumeServer {
                id: one.id,
                name: one.name,
            }),
            ('d', Thing::Server(one)) => Ok(Self::Drain {
                id: one.id,
                name: one.name,
            }),
            (letter, _) => Err(format!("{letter} does nothing here; ? tells what does.")),
        }
    }

    /// The question before it.
    pub(super) fn question(&self) -> String {
        match self {
            Self::Pause { name, .. } => format!(
                "Pause {}? What runs goes on, what waits waits on.",
                printable(name)
            ),
            Self::Resume { name, .. } => format!("Resume {}?", printable(name)),
            Self::Drain { name, .. } => format!(
                "Let server {} take no new work? It finishes what it has.",
                printable(name)
            ),
            Self::ResumeServer { name, .. } => format!("Let server {} take work again?", printable(name)),
            Self::Cancel { id } => format!("Cancel execution {id}?"),
            Self::Retry { item } => format!("Put item {item} back into the queue?"),
            Self::RetryAll { group, count, .. } => format!("Try {count} failures of group {group} again?"),
            Self::SetAside { group, count, .. } => format!("Set {count} failures of group {group} aside?"),
        }
    }

    /// Does it, and says what was done.
    pub(super) async fn carry_out(self, client: &Client) -> Result<String> {
        Ok(match self {
            Self::Pause { id, name } => {
                client.pause_workspace(id).await?;
                format!("{} is paused.", printable(&name))
            }
            Self::Resume { id, name } => {
                client.resume_workspace(id).await?;
                format!("{} goes on.", printable(&name))
            }
            Self::Drain { id, name } => {
                client.drain_server(id, &Drain::default()).await?;
                format!("Server {} takes no new work.", printable(&name))
            }
            Self::ResumeServer { id, name } => {
                client.resume_server(id).await?;
                format!("Server {} takes work again.", printable(&name))
            }
            Self::Cancel { id } => {
                client.cancel_execution(id, &Cancel::default()).await?;
                format!("The cancel of {id} is on its way.")
            }
            Self::Retry { item } => {
                client.retry(item).await?;
                format!("Item {item} is back in the queue.")
            }
            Self::RetryAll { group, last, .. } => {
                let done = walk(&group, last, async |which| {
                    client.retry_failures(&which, None).await
                })
                .await?;
                format!("Tried again: {done}.")
            }
            Self::SetAside { group, last, .. } => {
                let done = walk(&group, last, async |which| {
                    client.set_failures_aside(&which, None).await
                })
                .await?;
                format!("Set aside: {done}.")
            }
        })
    }
}

/// Call after call, about what was seen and nothing that came later.
async fn walk(
    group: &str,
    last: Timestamp,
    call: impl AsyncFn(BulkFailures) -> stationmaster_client::Result<stationmaster_client::wire::BulkAnswer>,
) -> Result<u64> {
    let (mut done, mut after) = (0, None);
    loop {
        let answer = call(BulkFailures {
            group: Some(group.to_owned()),
            before: Some(last + jiff::SignedDuration::from_micros(1)),
            after,
            ..BulkFailures::default()
        })
        .await?;
        done += answer.items;
        after = answer.next;
        if after.is_none() {
            return Ok(done);
        }
    }
}

/// What a closer look shows, in a room of this width.
pub(super) async fn closer(client: &Client, thing: &Thing, room: usize) -> Result<String> {
    Ok(match thing {
        Thing::Workspace(one) => {
            let query = QueueQuery {
                workspace_id: Some(one.id.into()),
                limit: Some(LISTED),
                ..QueueQuery::default()
            };
            let items = client.queue(&query).await?.items;
            format!(
                "{}\n\n{}",
                fields_within(details(&**one), room),
                rows_within(&items, room)
            )
        }
        Thing::Failures(group) => {
            let query = PageQuery {
                limit: Some(LISTED),
                ..PageQuery::default()
            };
            let failures = client.failures_of(&group.id, &query).await?.items;
            format!(
                "{}\n\n{}",
                fields_within(details(&**group), room),
                rows_within(&failures, room)
            )
        }
        Thing::Execution(one) => {
            let execution = client.execution(one.id).await?;
            let history = client.queue_history(execution.queue_item_id).await?.items;
            format!(
                "{}\n\n{}",
                fields_within(details(&execution), room),
                rows_within(&history, room)
            )
        }
        Thing::Server(one) => fields_within(details(&**one), room),
    })
}
