//! Lists without pages: one thing after the other, the next page asked for when the last one is used up.

use std::collections::VecDeque;

use futures::{Stream, stream};

use crate::Client;
use crate::error::Result;
use crate::wire::{
    Alarm, AlarmQuery, AuditEntry, AuditQuery, Dispatcher, DispatcherQuery, Execution, ExecutionQuery,
    OccurrenceQuery, Page, PageQuery, QueueItem, QueueQuery, Signal, SignalQuery, Token, Trigger,
    TriggerQuery, Version, Workflow, WorkflowQuery, Workspace,
};

/// Things on a page when we choose.
const PAGE: u32 = 200;

/// A query for one page of a list.
pub trait Paged {
    /// Where the page begins; none: the first page.
    fn cursor(&mut self) -> &mut Option<String>;
    /// Things on the page at most; none: as many as the server chooses.
    fn limit(&mut self) -> &mut Option<u32>;
}

macro_rules! paged {
    ($($query:ident)*) => {
        $(impl Paged for $query {
            fn cursor(&mut self) -> &mut Option<String> {
                &mut self.cursor
            }

            fn limit(&mut self) -> &mut Option<u32> {
                &mut self.limit
            }
        })*
    };
}

paged!(AlarmQuery AuditQuery DispatcherQuery ExecutionQuery OccurrenceQuery PageQuery QueueQuery SignalQuery TriggerQuery WorkflowQuery);

/// Where a list stands.
struct Reading<'a, Q, T> {
    client: &'a Client,
    query: Q,
    ready: VecDeque<T>,
    over: bool,
}

/// Reads page after page. An error ends it.
fn all<'a, Q, T>(
    client: &'a Client,
    mut query: Q,
    read: impl AsyncFn(&Client, &Q) -> Result<Page<T>> + 'a,
) -> impl Stream<Item = Result<T>> + 'a
where
    Q: Paged + 'a,
    T: 'a,
{
    *query.cursor() = None;
    query.limit().get_or_insert(PAGE);
    let reading = Reading {
        client,
        query,
        ready: VecDeque::new(),
        over: false,
    };
    stream::unfold((reading, read), |(mut reading, read)| async move {
        loop {
            if let Some(thing) = reading.ready.pop_front() {
                return Some((Ok(thing), (reading, read)));
            }
            if reading.over {
                return None;
            }
            match read(reading.client, &reading.query).await {
                Ok(page) => {
                    reading.over = page.next_cursor.is_none();
                    *reading.query.cursor() = page.next_cursor;
                    reading.ready.extend(page.items);
                }
                Err(error) => {
                    reading.over = true;
                    return Some((Err(error), (reading, read)));
                }
            }
        }
    })
}

/// All of a list, whatever its number of pages. The cursor of the query is not looked at, its limit is the size of a page.
impl Client {
    /// All workspaces, in the order of their ids.
    pub fn all_workspaces(&self) -> impl Stream<Item = Result<Workspace>> + '_ {
        all(self, PageQuery::default(), Client::workspaces)
    }

    /// All workflows that match, in the order of their ids.
    pub fn all_workflows(&self, query: WorkflowQuery) -> impl Stream<Item = Result<Workflow>> + '_ {
        all(self, query, Client::workflows)
    }

    /// All versions of a workflow, newest first.
    pub fn all_versions(&self, workflow: uuid::Uuid) -> impl Stream<Item = Result<Version>> + '_ {
        all(self, PageQuery::default(), async move |client, query| {
            client.versions(workflow, query).await
        })
    }

    /// All items of the queue that match, newest first.
    pub fn all_queue_items(&self, query: QueueQuery) -> impl Stream<Item = Result<QueueItem>> + '_ {
        all(self, query, Client::queue)
    }

    /// All executions that match, newest first.
    pub fn all_executions(&self, query: ExecutionQuery) -> impl Stream<Item = Result<Execution>> + '_ {
        all(self, query, Client::executions)
    }

    /// All alarms that match, newest first.
    pub fn all_alarms(&self, query: AlarmQuery) -> impl Stream<Item = Result<Alarm>> + '_ {
        all(self, query, Client::alarms)
    }

    /// All signals that match, newest first.
    pub fn all_signals(&self, query: SignalQuery) -> impl Stream<Item = Result<Signal>> + '_ {
        all(self, query, Client::signals)
    }

    /// All triggers that match, in the order of their names.
    pub fn all_triggers(&self, query: TriggerQuery) -> impl Stream<Item = Result<Trigger>> + '_ {
        all(self, query, Client::triggers)
    }

    /// All dispatchers that match, in the order of their ids.
    pub fn all_dispatchers(&self, query: DispatcherQuery) -> impl Stream<Item = Result<Dispatcher>> + '_ {
        all(self, query, Client::dispatchers)
    }

    /// All tokens that may do no more than the one that asks.
    pub fn all_tokens(&self) -> impl Stream<Item = Result<Token>> + '_ {
        all(self, PageQuery::default(), Client::tokens)
    }

    /// All lines of the audit that match, newest first.
    pub fn all_audit(&self, query: AuditQuery) -> impl Stream<Item = Result<AuditEntry>> + '_ {
        all(self, query, Client::audit)
    }
}
