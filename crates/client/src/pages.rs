//! Lists without pages: one thing after the other, the next page asked for when the last one is used up.

use futures::{Stream, TryStreamExt as _, stream};

use crate::Client;
use crate::error::{Error, Result};
use crate::wire::{
    Alarm, AlarmQuery, AuditEntry, AuditQuery, Dispatcher, DispatcherQuery, Execution, ExecutionQuery,
    FailureQuery, OccurrenceQuery, OperationQuery, Page, PageQuery, QueueItem, QueueQuery, Signal,
    SignalQuery, Stray, Token, Trigger, TriggerQuery, Version, Workflow, WorkflowQuery, Workspace,
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

paged!(AlarmQuery AuditQuery DispatcherQuery ExecutionQuery FailureQuery OccurrenceQuery OperationQuery PageQuery QueueQuery SignalQuery TriggerQuery WorkflowQuery);

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
    let pages = stream::try_unfold((Some(query), read), move |(query, read)| async move {
        let Some(mut query) = query else {
            return Ok::<_, Error>(None);
        };
        let page = read(client, &query).await?;
        let next = page.next_cursor.map(|cursor| {
            *query.cursor() = Some(cursor);
            query
        });
        Ok(Some((stream::iter(page.items.into_iter().map(Ok)), (next, read))))
    });
    pages.try_flatten()
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

    /// All runs that the engine holds open and that no row tells of.
    pub fn all_strays(&self) -> impl Stream<Item = Result<Stray>> + '_ {
        all(self, PageQuery::default(), Client::strays)
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
