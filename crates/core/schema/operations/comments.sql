-- What is in this room, for people who read the tables.

comment on table stationmaster_internal.operations is
'What servers do to everything that matches, while nobody waits for it: what was asked for, and how far it has come.
Room: operations. Written by: the API, and the server that works on it.';
comment on index stationmaster_internal.operations_open is 'What is to be worked on, what has rested longest first';
comment on index stationmaster_internal.operations_ended is 'What is forgotten when it is old';

comment on view stationmaster.operations is
'What servers do to everything that matches, while nobody waits for it, and what they have done: begun by the API (Prefer: respond-async) or a command with --detach.
Room: operations. Written by: nobody; it shows what the API and the servers have written.';
comment on column stationmaster.operations.id is 'Which one it is';
comment on column stationmaster.operations.kind is 'What it does: cancel_queue, retry_queue, prioritise_queue, retry_failures, set_failures_aside, cancel_failures or replay_signals';
comment on column stationmaster.operations.filter is 'What was asked for, by ids, bound to as_of';
comment on column stationmaster.operations.workspaces is 'Of which workspaces; null: of all';
comment on column stationmaster.operations.status is 'PENDING, RUNNING, COMPLETED, FAILED or CANCELLED';
comment on column stationmaster.operations.as_of is 'When what matches was looked at; what came later is not touched';
comment on column stationmaster.operations.total is 'How many matched then';
comment on column stationmaster.operations.total_is_least is 'There were more than were counted';
comment on column stationmaster.operations.done is 'How many were changed; when a server was lost in between, those that do not match any more count';
comment on column stationmaster.operations.unchanged is 'How many of those counted were not changed, because something else had happened to them or there was nothing to change; null: it is not over, or not all were counted';
comment on column stationmaster.operations.created_at is 'When it was asked for';
comment on column stationmaster.operations.created_by is 'Who asked for it';
comment on column stationmaster.operations.started_at is 'When a server began with it; null: none has yet';
comment on column stationmaster.operations.server is 'The server that worked on it last; null: none has yet';
comment on column stationmaster.operations.ended_at is 'When it was over; null: it is not';
comment on column stationmaster.operations.ended_by is 'Who cancelled it; null: nobody';
comment on column stationmaster.operations.error is 'Why it failed; null: it did not';
