-- Comments on items and executions. They are what docs/schema.md shows.

comment on view stationmaster.workflow_execution_queue is
'Requests to run a definition. INSERT enqueues (also COPY, many rows at once); idempotent repeats need enqueue_execution(). To cancel call cancel_execution(); an UPDATE is refused.
Room: executions. Written by: applications (INSERT).';
comment on column stationmaster.workflow_execution_queue.id is 'The id of the item; a new one when left out';
comment on column stationmaster.workflow_execution_queue.workspace_id is 'Whose it is';
comment on column stationmaster.workflow_execution_queue.workflow_definition_id is
    'What is run; a definition of the same workspace';
comment on column stationmaster.workflow_execution_queue.workflow_definition_version_id is
    'The version, fixed at the enqueue; the published one when left out';
comment on column stationmaster.workflow_execution_queue.input is 'What the run gets; JSON of at most 256 KiB';
comment on column stationmaster.workflow_execution_queue.priority is 'Higher first; then older first';
comment on column stationmaster.workflow_execution_queue.run_at is
    'Not before this time; null: at once. While an item is tried again: when';
comment on column stationmaster.workflow_execution_queue.idempotency_key is 'At most one item of a workspace has it; null: none';
comment on column stationmaster.workflow_execution_queue.execution_id is
    'The execution, once a first start was tried; null before';
comment on column stationmaster.workflow_execution_queue.status is 'PENDING, CLAIMED, DISPATCHED, FAILED or CANCELLED';
comment on column stationmaster.workflow_execution_queue.attempt_count is 'Starts that the engine refused';
comment on column stationmaster.workflow_execution_queue.recovery_count is
    'Starts that were lost with a server or an engine and made again';
comment on column stationmaster.workflow_execution_queue.created_at is 'When it was enqueued';
comment on column stationmaster.workflow_execution_queue.claimed_at is 'When a server took it; null: not yet';
comment on column stationmaster.workflow_execution_queue.dispatched_at is 'When the engine had it; null: not yet';
comment on column stationmaster.workflow_execution_queue.last_error is 'What went wrong last, with its start or with its execution; null: nothing did';
comment on column stationmaster.workflow_execution_queue.traceparent is
    'The W3C trace context of whoever enqueued it; null: none';
comment on column stationmaster.workflow_execution_queue.correlation_id is 'A reference of whoever enqueued it; null: none';
comment on column stationmaster.workflow_execution_queue.enqueued_by is 'Who enqueued it; the account when left out';
comment on column stationmaster.workflow_execution_queue.outcome is 'How its execution ended; null: it has not, or there was none';

comment on view stationmaster.workflow_executions is
'Runs. To cancel one call cancel_execution().
Room: executions. Written by: servers (through the tables below).';
comment on column stationmaster.workflow_executions.id is 'The id; the workflow on the engine is execution-<id>';
comment on column stationmaster.workflow_executions.queue_item_id is 'The item that it came from';
comment on column stationmaster.workflow_executions.workspace_id is 'Whose it is';
comment on column stationmaster.workflow_executions.workflow_definition_id is 'What is run';
comment on column stationmaster.workflow_executions.workflow_definition_version_id is 'The version that is run';
comment on column stationmaster.workflow_executions.status is
    'PENDING (between two starts), STARTING, RUNNING, COMPLETED, FAILED, CANCELLED, TERMINATED or TIMED_OUT; STARTING and RUNNING hold a slot';
comment on column stationmaster.workflow_executions.started_at is 'When the engine had it; null: not yet';
comment on column stationmaster.workflow_executions.completed_at is 'When it ended; null: it has not';
comment on column stationmaster.workflow_executions.error is 'Why it failed; null: it has not';
comment on column stationmaster.workflow_executions.input is 'What it was given';
comment on column stationmaster.workflow_executions.output is 'What it gave back; null: nothing, or it has not ended';
comment on column stationmaster.workflow_executions.claimed_at is 'When a server took it; null while it waits';
comment on column stationmaster.workflow_executions.engine is 'temporal or embedded; null while it waits';
comment on column stationmaster.workflow_executions.run_id is
    'The engine''s own id of the run, of the last one when the execution continued in several; null: not yet known';
comment on column stationmaster.workflow_executions.closed_at is
    'When its run closed, by the engine''s clock; null: it has not, or the engine did not tell';
comment on column stationmaster.workflow_executions.superseded_at is 'When a retry followed it; null: none has';
comment on column stationmaster.workflow_executions.output_omitted is
    'What came of it was too large to be kept and stays with the engine: {"size": bytes, "encoding": name}; null: it is in output';
comment on column stationmaster.workflow_executions.holder is 'The id of the server that started it; null while it waits';
comment on column stationmaster.workflow_executions.reason is 'Why it ended, in a word; null: nothing to add';
comment on column stationmaster.workflow_executions.attempts is 'Starts that the engine refused';
comment on column stationmaster.workflow_executions.recoveries is 'Starts that were lost and made again';

comment on view stationmaster.execution_history is
'Everything that happened to an item, ordinary steps and exceptions, one row for each. Order by at.
Room: executions. Written by: nobody: it is read from times and events.';
comment on column stationmaster.execution_history.item_id is 'The item';
comment on column stationmaster.execution_history.execution_id is 'The execution; null: it had none yet';
comment on column stationmaster.execution_history.workspace_id is 'Whose it is';
comment on column stationmaster.execution_history.at is 'When';
comment on column stationmaster.execution_history.event is
    'What: enqueued, claimed, dispatched, completed, failed, cancelled, retried, …';
comment on column stationmaster.execution_history.actor is 'Who: an account, a token, a server';
comment on column stationmaster.execution_history.detail is 'More of it; null: nothing';

comment on table stationmaster_internal.queue_items is
'What was asked for. Never changed while the item is hot; pruned after the retention.
Room: executions. Written by: whoever enqueues; pruned by housekeeping.';
comment on column stationmaster_internal.queue_items.seq is 'The order of arrival: age order within one priority';
comment on index stationmaster_internal.queue_items_idempotency is 'One item for each idempotency key of a workspace';
comment on index stationmaster_internal.queue_items_by_workspace is 'Lists of a workspace, by id and so by time';
comment on index stationmaster_internal.queue_items_at is 'Lists by time, across workspaces';

comment on table stationmaster_internal.queue_door is
'The way in for several items in one statement. What is inserted here lies in queue_items and is accepted by a trigger of the whole statement.
Room: executions. Written by: whoever enqueues.';
comment on index stationmaster_internal.queue_door_idempotency is 'For ON CONFLICT: the index of queue_items under it';
comment on sequence stationmaster_internal.queue_order is 'The order of arrival: numbers of items and of hints';
comment on sequence stationmaster_internal.queue_watched is
    'Until when, in milliseconds since 1970, nobody needs to ring: some server looks into the queue again and again, or was rung and is yet to come';

comment on table stationmaster_internal.queue_pending is
'Items that wait, one narrow row each.
Room: executions. Written by: enqueue, retry and release (insert), admission and cancel (delete), claims (unseen).';
comment on column stationmaster_internal.queue_pending.rank is
    'Minus the priority, so that one ascending index gives priority, then age';
comment on column stationmaster_internal.queue_pending.stage is
    'ready to be claimed; later, at run_at; parked, because its definition is paused';
comment on column stationmaster_internal.queue_pending.waits_for is 'Of later items, and of no others: schedule, backoff or recovery';
comment on column stationmaster_internal.queue_pending.execution_id is
    'Null before the first try, which takes the id of the item; after a retry that of the execution to come; the same in every try';
comment on index stationmaster_internal.queue_pending_in_line is
    'The heart of a claim: the ready items of a workspace, in the order in which they are taken; and those that are parked, when their definition is resumed';
comment on column stationmaster_internal.queue_pending.unseen is
    'Came alone, and no claim has taken note of it yet: it is its own hint';
comment on index stationmaster_internal.queue_pending_later is 'The next item that becomes due';
comment on index stationmaster_internal.queue_pending_unseen is 'Items that are their own hints, in the order of arrival';
comment on index stationmaster_internal.queue_pending_by_execution is 'An item by its execution, to cancel it';

comment on table stationmaster_internal.executions_active is
'Executions that hold a slot, one narrow row each.
Room: executions. Written by: admission (insert), settle, recover and reconcile (update), finish and release (delete).';
comment on column stationmaster_internal.executions_active.engine_id is
    'Which of the engines on record it was given to: servers of that one judge it, and no others';
comment on column stationmaster_internal.executions_active.lease_until is 'Of the claim; null once the start is settled';
comment on column stationmaster_internal.executions_active.reset_after is
    'It had ended, then its run was reset on the engine: when that former run closed, by the engine''s clock; null: it was not reset';
comment on column stationmaster_internal.executions_active.missing_since is
    'When the reconciler first found that the engine does not know this run';
comment on index stationmaster_internal.executions_active_again is
    'Executions after a retry, by their item; a first execution has the id of its item';

comment on table stationmaster_internal.executions_finished is
'How executions, and items that never had one, ended.
Room: executions. Written by: finish, cancel and failed starts (insert), retry (superseded_at); pruned by housekeeping.';
comment on column stationmaster_internal.executions_finished.status is 'Null: the item ended without ever having an execution';
comment on column stationmaster_internal.executions_finished.superseded_at is 'When a retry gave the item another execution';
comment on index stationmaster_internal.executions_finished_again is 'Executions after a retry, by their item';
comment on index stationmaster_internal.executions_finished_at is 'What the retention may remove, and counts by time';
comment on index stationmaster_internal.executions_finished_by_workspace is 'Lists of a workspace';
comment on index stationmaster_internal.executions_finished_badly is 'Lists of what went wrong, by execution';
comment on index stationmaster_internal.executions_finished_items_badly is 'Lists of what went wrong, by item, and retries';

comment on table stationmaster_internal.workspace_capacity is
'One narrow row for each workspace, which every admission locks first: limit, active, virtual time, and whether it has ready items. ready may be true with nothing pending, never false with something pending and no hint.
Room: executions. Written by: admission, settle and finish; triggers on workspaces and plans.';
comment on column stationmaster_internal.workspace_capacity.head_rank is
    'With head_seq: no ready item lies before it, so a claim need not walk over what earlier claims left dead; null: from the top';
comment on index stationmaster_internal.workspace_capacity_eligible is
    'Workspaces that may be served now, those with the lowest virtual time first; a full one is not in it';
comment on index stationmaster_internal.workspace_capacity_gone is
    'Workspaces that were deleted and still have something to fail';

comment on table stationmaster_internal.queue_hints is
'Says that a workspace has ready items from a position on. A row, so that it becomes visible exactly when the items do, however long the transaction lasts that made them ready. An item that came alone needs none: see queue_pending.unseen.
Room: executions. Written by: whoever makes items ready (insert), claims (delete).';

comment on table stationmaster_internal.queue_events is
'State changes that the rows themselves do not tell: what departs from the ordinary way of an item.
Room: executions. Written by: people and servers; pruned by housekeeping.';
comment on index stationmaster_internal.queue_events_by_item is 'The history of an item';
comment on index stationmaster_internal.queue_events_at is 'What the retention may remove';

comment on table stationmaster_internal.cancel_requests is
'Wishes to cancel, terminate or complete executions that hold a slot. Inserting one locks nothing that a server needs; a server carries it out.
Room: executions. Written by: cancel_execution and people (insert), servers (delete).';

comment on column stationmaster_internal.cancel_requests.kind is
    'cancel: its run is asked to end; terminate: its run is ended; complete: the same, and it is recorded as end_status, output and error say';

comment on table stationmaster_internal.stray_runs is
'Runs that the engine holds open for a workspace of ours and that no row tells of: lost with the last commits of a failed primary, or younger than a backup that was brought back.
Room: executions. Written by: the reconciler (insert, delete); people wish that one be ended (update), and a server ends it.';
comment on column stationmaster_internal.stray_runs.end_wished_at is 'When somebody wished that it be ended; null: nobody did';

comment on table stationmaster_internal.embedded_runs is
'How far the embedded engine has come with each execution that is not over.
Room: executions. Written by: the embedded engine.';
comment on column stationmaster_internal.embedded_runs.deadline_at is
    'When it has to be over, from the run_timeout of its definition and its first start; null: it has for ever';

comment on view stationmaster_internal.active_by_item is
'executions_active by item, each half by an index of its own.
Room: executions. Written by: nobody.';

comment on view stationmaster_internal.finished_by_item is
'executions_finished by item, each half by an index of its own.
Room: executions. Written by: nobody.';

comment on function stationmaster.enqueue_execution is
    'Enqueues inside the caller''s transaction and answers the id of the item. The same idempotency key with the same request gives the first item again; with another request it is an error (unique_violation)';

comment on function stationmaster.cancel_execution is
    'Cancels by the id of an execution or of a queue item, inside the caller''s transaction: at once while it waits, by way of the engine once it holds a slot. Answers CANCELLED, CANCELLING, or the status in which it had ended before';

comment on function stationmaster.enqueue is
    'Enqueues by the names of a workspace and of a workflow in it (ids are taken too), inside the caller''s transaction, and answers the id of the item; the rest is as of enqueue_execution()';

comment on column stationmaster.workflow_execution_queue.workspace is 'The name of its workspace; null when that is gone. Only read';
comment on column stationmaster.workflow_execution_queue.workflow is 'The name of its definition; null when that is gone. Only read';
comment on column stationmaster.workflow_executions.workspace is 'The name of its workspace; null when that is gone';
comment on column stationmaster.workflow_executions.workflow is 'The name of its definition; null when that is gone';
