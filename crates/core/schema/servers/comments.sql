-- Comments on servers and events. They are what docs/schema.md shows.

comment on view stationmaster.event_feed is
'Events one by one, in an order in which whoever has read up to a position has missed nothing below it. Numbers are given by a server while somebody listens.
Room: servers. Written by: nobody: it shows events.';
comment on column stationmaster.event_feed.last is 'The position up to which one has read with this row, to go on from';
comment on column stationmaster.event_feed.position is 'The position of this event';
comment on column stationmaster.event_feed.at is 'When it happened';
comment on column stationmaster.event_feed.kind is 'What: <family>.<event>';
comment on column stationmaster.event_feed.workspace_id is 'In which workspace; null: in none';
comment on column stationmaster.event_feed.detail is 'The ids it is about, and more of it';

comment on table stationmaster_internal.servers is
'One row for each server process. lease_until is its heartbeat: past it, what the server holds may be taken over.
Room: servers. Written by: each server (its own row); dead ones are buried by the others.';

comment on column stationmaster_internal.servers.engine_away_at is 'Since when its engine has not answered it; null: it does';

comment on table stationmaster_internal.target_breakers is
'Targets of wakes that do not answer a server, so that it holds back what would go there.
Room: servers. Written by: each server (its own rows).';
comment on column stationmaster_internal.target_breakers.target is 'Scheme, host and port, or the word router';
comment on column stationmaster_internal.target_breakers.opened_at is 'Since when it has not answered';

comment on table stationmaster_internal.duties is
'Work that one server at a time does for all: a lease with a token.
Room: servers. Written by: whoever takes a duty.';

comment on table stationmaster_internal.engines is
'Which engines executions run on: the first server that meets an engine puts it on record, and a server that meets another one under the same name does nothing. Of each name one is current.
Room: servers. Written by: servers (the first of an engine), stationmaster engine change.';
comment on column stationmaster_internal.engines.name is 'temporal, embedded';
comment on column stationmaster_internal.engines.identity is 'What tells it from every other one: the ids of its cluster and namespace';
comment on column stationmaster_internal.engines.recorded_by is 'The server that met it first, or whoever changed engines';
comment on column stationmaster_internal.engines.place is 'Where it was found, in words for people';
comment on column stationmaster_internal.engines.retired_at is 'Since when another one is used instead; null: it is the current one';
comment on index stationmaster_internal.engines_current is 'One engine of each name is current';

comment on table stationmaster_internal.attention is
'Until when somebody looks into a lane every few milliseconds anyway, so that nobody needs to ring.
Room: servers. Written by: claim loops and dispatchers.';
comment on column stationmaster_internal.attention.lane is 'executions, alarms, or a dispatcher''s id';
comment on column stationmaster_internal.attention.virtual_time is
    'Of executions: how far virtual time has come, so that whoever enters begins there';

comment on table stationmaster_internal.timeline is
'Where numbers were last given out: timeline, database and cluster of PostgreSQL.
Room: servers. Written by: the first server that finds another one.';

comment on table stationmaster_internal.event_inbox is
'Events as they were written, not yet numbered.
Room: servers. Written by: triggers in the transactions of whoever acts (insert), the numbering (delete).';
comment on column stationmaster_internal.event_inbox.items is
    'Of a row that tells the same of several: their items, one for each; null: the row is one event';

comment on table stationmaster_internal.events is
'Events, numbered after their commit.
Room: servers. Written by: the numbering, on a server that has listeners; pruned by housekeeping.';
comment on column stationmaster_internal.events.items is
    'Of a row that tells the same of several: their items, one for each; null: the row is one event';
comment on index stationmaster_internal.events_at is 'What the retention may remove';

comment on table stationmaster_internal.event_sequence is
'The last number that was given; whoever numbers locks it.
Room: servers. Written by: the numbering.';

comment on function stationmaster.tell_steps is
    'Begins (true) or ends (false) to tell of the ordinary steps of executions in event_feed, for all servers; for the owner of the tables. It costs the statements that take the steps a few microseconds each. Answers what holds now';

comment on table stationmaster_internal.server_names is
'What servers are called, also those that have left, and what became of each. Kept for 400 days after a server came.
Room: servers. Written by: a server that registers or leaves (its own), recovery (those that were lost).';
comment on column stationmaster_internal.server_names.ended is 'left: in good order; drained: the same, because somebody wished it; lost: its lease ran out; replaced: the same process went on under another id, after its lease had run out. Null: it is there';
comment on column stationmaster_internal.server_names.left_at is 'When it left, or its lease ran out';
comment on column stationmaster_internal.server_names.recovered is 'Executions and wakes that others took out of its hands';
comment on column stationmaster_internal.server_names.recovered_by is 'The server that did so last';
comment on column stationmaster_internal.servers.wish is 'What somebody wishes of it: drain (take no new work) or exit (and leave); it finds out by its next heartbeat';

comment on table stationmaster_internal.history_minutes is
'What happened in each minute, by workspace and workflow: the hundred of them with the most, and everything in one row whose ids are zero. Of a minute in which nothing happened there is no row.
Room: servers. Written by: the server that has the duty history; pruned by retention.';
comment on column stationmaster_internal.history_minutes.minute is 'Its beginning';
comment on column stationmaster_internal.history_minutes.moved is 'The sum of what was enqueued, started and ended, and of wakes: a count that sees more replaces one that saw less';
comment on column stationmaster_internal.history_minutes.alarms_late is 'Those of alarms_fired that were confirmed more than a second after they were due';
comment on column stationmaster_internal.history_minutes.waiting is 'Items that were ready and waited when the minute was counted; null: it was counted later';
comment on column stationmaster_internal.history_minutes.active is 'Slots in use when the minute was counted; null: it was counted later';
comment on column stationmaster_internal.history_minutes.waits is 'How many starts came how long after their items were due, by bounds that the program knows; of at most 5,000 starts a minute, spread evenly';
comment on column stationmaster_internal.history_minutes.runs is 'How many executions that ended had run for how long, by the same bounds';
comment on index stationmaster_internal.history_minutes_at is 'What the retention may remove';

comment on table stationmaster_internal.history_servers is
'What each server started and brought to an end in each minute. Of a minute in which it did nothing there is no row.
Room: servers. Written by: the server that has the duty history; pruned by retention.';
comment on column stationmaster_internal.history_servers.minute is 'Its beginning';
comment on column stationmaster_internal.history_servers.moved is 'The sum of what was started and ended: a count that sees more replaces one that saw less';
comment on column stationmaster_internal.history_servers.active is 'What it had in hand when the minute was counted; null: it was counted later';
comment on column stationmaster_internal.history_servers.runs is 'How many executions that ended had run for how long, by the bounds of history_minutes';
comment on index stationmaster_internal.history_servers_at is 'What the retention may remove';
