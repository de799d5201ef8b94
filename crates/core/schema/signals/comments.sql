-- Comments on signals and dispatchers. They are what docs/schema.md shows.

comment on view stationmaster.signals is
'Incoming events. INSERT sends (many rows at once); idempotent repeats need send_signal().
Room: signals. Written by: applications (INSERT).';
comment on column stationmaster.signals.id is 'The id, by which repeats are known within the project; a new one when left out';
comment on column stationmaster.signals.project is 'The project, which belongs to a workspace';
comment on column stationmaster.signals.task_queue is 'The task queue; default when left out';
comment on column stationmaster.signals.name is 'What happened; a trigger maps it to a definition';
comment on column stationmaster.signals.status is 'PENDING, ROUTED or DEAD';
comment on column stationmaster.signals.execution_id is 'The execution that it led to; null: none yet';
comment on column stationmaster.signals.received_at is 'When it was committed to the inbox';
comment on column stationmaster.signals.payload is 'The input of the execution; JSON of at most 256 KiB';
comment on column stationmaster.signals.correlation_id is 'A reference of the sender; null: none';
comment on column stationmaster.signals.traceparent is 'The W3C trace context of the sender; null: none';
comment on column stationmaster.signals.sent_by is 'Who sent it; the account when left out';
comment on column stationmaster.signals.dispatcher_id is 'The dispatcher that routes it';
comment on column stationmaster.signals.seq is 'The order of arrival';
comment on column stationmaster.signals.queue_item_id is 'The queue item that it became; null: none';
comment on column stationmaster.signals.reason is 'Of a dead letter: why, in a word; null: it is none';
comment on column stationmaster.signals.detail is 'Of a dead letter: more of it; null: nothing';
comment on column stationmaster.signals.epoch is 'The epoch of the dispatcher that settled it; null: it waits';
comment on column stationmaster.signals.settled_at is 'When it was routed or given up; null: it waits';
comment on column stationmaster.signals.replays is 'How often it was replayed';

comment on table stationmaster.dispatchers is
'One row for each project and task queue: who routes its signals. A lease: owner, epoch, expiry.
Room: signals. Written by: servers; made with the first signal or trigger.';
comment on column stationmaster.dispatchers.id is 'dispatcher-<project>-<task queue>; see dispatcher_id()';
comment on column stationmaster.dispatchers.project is 'The project';
comment on column stationmaster.dispatchers.task_queue is 'The task queue';
comment on column stationmaster.dispatchers.owner is 'The id of the server that owns it; null: nobody does';
comment on column stationmaster.dispatchers.epoch is
    'The fence: grows with every owner, and every write of a dispatcher names it';
comment on column stationmaster.dispatchers.lease_until is 'Until when the owner may act; null: it never had one';
comment on column stationmaster.dispatchers.handed_over_at is
    'When the owner gave it up in good order, so that anybody may take it; null: it has not';
comment on column stationmaster.dispatchers.resting_since is
    'Since when nobody owns it because there was nothing to route; a signal wakes it; null: it does not rest';
comment on column stationmaster.dispatchers.engine is 'temporal or embedded; null: it never had an owner';
comment on column stationmaster.dispatchers.run_id is
    'The engine''s id of the first run of this epoch, which a run that continued as new keeps; null: not yet known';
comment on column stationmaster.dispatchers.removal_wished_at is 'When somebody wished that it be removed; its owner does that once nothing waits for it. null: nobody did';
comment on column stationmaster.dispatchers.removal_wished_by is 'Who did; null: nobody';
comment on table stationmaster_internal.dispatcher_floor is
'One row: the highest epoch of any dispatcher that was removed. One that is made anew begins above it.
Room: signals. Written by: whoever removes a dispatcher, and the first server on a new timeline.';
comment on column stationmaster.dispatchers.taken_at is 'When the owner took it; null: never';
comment on column stationmaster.dispatchers.run_started_at is 'When the run of this epoch began; null: it has not';
comment on column stationmaster.dispatchers.created_at is 'When it was made';
comment on index stationmaster.dispatchers_project_task_queue_key is 'One dispatcher for each project and task queue';

comment on table stationmaster.dispatcher_events is
'What happened to dispatchers, for the live stream and for webhooks; pruned after its retention. The audit has the same and is kept longer. NOTIFY stationmaster, ''dispatchers'' comes with each.
Room: signals. Written by: servers and the supervisor; pruned by housekeeping.';
comment on column stationmaster.dispatcher_events.id is 'Grows with time';
comment on column stationmaster.dispatcher_events.at is 'When';
comment on column stationmaster.dispatcher_events.dispatcher_id is 'The dispatcher';
comment on column stationmaster.dispatcher_events.event is 'What happened, such as handed_over or servers_evicted';
comment on column stationmaster.dispatcher_events.epoch is 'The epoch; null: none was known';
comment on column stationmaster.dispatcher_events.server_id is 'The server it is about; null: none';
comment on column stationmaster.dispatcher_events.run_id is 'The engine''s run; null: none';
comment on column stationmaster.dispatcher_events.actor is 'Who did it';
comment on column stationmaster.dispatcher_events.detail is 'More of it';
comment on column stationmaster.dispatcher_events.told_at is
    'When the webhook confirmed it; null: not yet, or there is no webhook';
comment on column stationmaster.dispatcher_events.traceparent is
    'The W3C trace context in which it was done: of whoever asked for it, otherwise of the server that did it; null: none';
comment on index stationmaster.dispatcher_events_by_dispatcher is 'The history of a dispatcher';
comment on index stationmaster.dispatcher_events_untold is 'What the webhook has still to be told';
comment on index stationmaster.dispatcher_events_at is 'What the retention may remove';

comment on table stationmaster.projects is
'Whose signals are whose: a project belongs to the workspace of its first trigger.
Room: signals. Written by: the first trigger.';
comment on column stationmaster.projects.name is 'The project';
comment on column stationmaster.projects.workspace_id is 'Whose it is';
comment on column stationmaster.projects.created_at is 'When it was made';
comment on column stationmaster.projects.max_task_queues is
    'The most task queues, each with a dispatcher of its own, that signals and triggers of it may name; to be changed by operators';
comment on index stationmaster.projects_by_workspace is 'The projects of a workspace';

comment on table stationmaster.triggers is
'Rules that map the name of a signal to a definition. INSERT, UPDATE and DELETE are allowed.
Room: signals. Written by: people.';
comment on column stationmaster.triggers.project is 'The project';
comment on column stationmaster.triggers.task_queue is
    'Empty: every task queue of the project that has no trigger of its own for the name';
comment on column stationmaster.triggers.name is 'The name of the signal';
comment on column stationmaster.triggers.workflow_definition_id is 'What is enqueued';
comment on column stationmaster.triggers.payload_schema is 'The JSON Schema that a payload has to satisfy; null: any will do';
comment on column stationmaster.triggers.priority is 'The priority of the items';
comment on column stationmaster.triggers.created_at is 'When it was set';
comment on column stationmaster.triggers.updated_at is 'When it was changed';
comment on index stationmaster.triggers_by_definition is 'The triggers of a definition, when it is deleted';

comment on table stationmaster_internal.dispatcher_servers is
'Which servers stand by a dispatcher, its owner among them.
Room: signals. Written by: servers.';
comment on index stationmaster_internal.dispatcher_servers_by_server is 'What a server stands by, when it leaves or is evicted';

comment on table stationmaster_internal.dispatcher_heartbeats is
'Heartbeats, when they are kept in PostgreSQL. They tell the supervisor what to look at; they are never the fence.
Room: signals. Written by: owners (upsert), the supervisor (delete).';

comment on table stationmaster_internal.signals_inbox is
'What was sent. Never changed; pruned after the retention.
Room: signals. Written by: whoever sends; pruned by housekeeping.';
comment on column stationmaster_internal.signals_inbox.key is 'What it is known by within: its id and its project';
comment on index stationmaster_internal.signals_inbox_seq is 'The order of arrival, for lists';
comment on index stationmaster_internal.signals_inbox_by_project is 'The same within a project, for lists of some projects';
comment on index stationmaster_internal.signals_inbox_at is 'Lists by time';

comment on table stationmaster_internal.signals_pending is
'Signals that wait to be routed, one narrow row each.
Room: signals. Written by: senders and replays (insert), routes (delete).';
comment on index stationmaster_internal.signals_pending_by_dispatcher is 'A dispatcher''s inbox, oldest first';

comment on table stationmaster_internal.signals_settled is
'What became of signals: ROUTED to a queue item, or DEAD with a reason.
Room: signals. Written by: routes (insert), replays (delete); pruned by housekeeping.';
comment on index stationmaster_internal.signals_settled_dead is 'Dead letters';
comment on index stationmaster_internal.signals_settled_at is 'What the retention may remove';

comment on function stationmaster.send_signal is
    'Sends a signal inside the caller''s transaction and answers its id. The same id with the same signal is acknowledged again; with another one it is an error (unique_violation)';

comment on function stationmaster.dispatcher_id is
    'The id of the dispatcher of a project and a task queue: dispatcher-<project>-<task queue>, dashes of the project doubled, and a suffix from a hash where the names are no plain slugs';
