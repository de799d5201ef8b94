-- Comments on alarms. They are what docs/schema.md shows.

comment on view stationmaster.alarms is
'Schedules. To set one call set_alarm(), to cancel one cancel_alarm().
Room: alarms. Written by: servers and people (through the tables below).';
comment on column stationmaster.alarms.id is 'The id';
comment on column stationmaster.alarms.workspace_id is 'Whose it is';
comment on column stationmaster.alarms.label is 'What people call it; may be empty';
comment on column stationmaster.alarms.kind is 'once or cron';
comment on column stationmaster.alarms.cron_expr is 'The expression; null: kind once';
comment on column stationmaster.alarms.timezone is
    'The IANA time zone of the expression or the civil time; null: an instant needs none';
comment on column stationmaster.alarms.civil_at is 'The date and time on the wall, in the zone; null: not given so';
comment on column stationmaster.alarms.fire_at is 'Of kind once: the instant; with civil_at, what it was resolved to';
comment on column stationmaster.alarms.next_fire_at is 'The next nominal instant; null: none, or not yet worked out (unplanned)';
comment on column stationmaster.alarms.status is 'active, paused, fired, cancelled or failed';
comment on column stationmaster.alarms.failure_count is 'Tries that failed since the last accepted wake';
comment on column stationmaster.alarms.failed_in_a_row is 'Occurrences that failed since the last accepted wake';
comment on column stationmaster.alarms.last_error is
    'Why the last try failed, or why the alarm cannot fire; null: nothing has failed';
comment on column stationmaster.alarms.last_fired_at is 'When a wake was last accepted; null: never';
comment on column stationmaster.alarms.dst is 'What happens when the clocks move: vixie, skip or both';
comment on column stationmaster.alarms.misfire is 'What happens to missed occurrences: coalesce, catch_up or skip';
comment on column stationmaster.alarms.catch_up is 'With catch_up: at most this many are fired late';
comment on column stationmaster.alarms.misfire_window is 'How late an occurrence may be fired; null: the server''s setting';
comment on column stationmaster.alarms.overlap is 'What happens while an earlier occurrence is open: allow, queue or skip';
comment on column stationmaster.alarms.jitter is 'Each occurrence is moved by chance up to this much later';
comment on column stationmaster.alarms.start_at is 'No occurrence before; null: none is too early';
comment on column stationmaster.alarms.end_at is 'No occurrence after; null: it never ends';
comment on column stationmaster.alarms.target_url is 'Where the wake goes; null: the router of the server''s settings';
comment on column stationmaster.alarms.user_id is 'Sent with the wake; null: none';
comment on column stationmaster.alarms.conversation_id is 'Sent with the wake; null: none';
comment on column stationmaster.alarms.message is 'Sent with the wake; null: none';
comment on column stationmaster.alarms.payload is 'Sent with the wake, character by character as it was given; null: none';
comment on column stationmaster.alarms.max_failures is 'Tries before an occurrence fails; null: the server''s setting';
comment on column stationmaster.alarms.pause_after is 'Failed occurrences in a row after which the alarm is paused; null: never';
comment on column stationmaster.alarms.idempotency_key is 'At most one alarm of a workspace has it; null: none';
comment on column stationmaster.alarms.traceparent is 'The W3C trace context of whoever set it; null: none';
comment on column stationmaster.alarms.set_by is 'Who set it';
comment on column stationmaster.alarms.created_at is 'When it was set; from here @every counts';
comment on column stationmaster.alarms.updated_at is 'When it was changed';
comment on column stationmaster.alarms.unplanned is 'True: a server has still to work out the next instant';

comment on view stationmaster.alarm_occurrences is
'The nominal instants of alarms that are due or over, and what became of each.
Room: alarms. Written by: servers (through the tables below).';
comment on column stationmaster.alarm_occurrences.alarm_id is 'The alarm';
comment on column stationmaster.alarm_occurrences.scheduled_for is 'The nominal instant; a wake''s id is <alarm id>:<this>';
comment on column stationmaster.alarm_occurrences.status is
    'pending, claimed, retrying, fired, failed, skipped, coalesced or cancelled';
comment on column stationmaster.alarm_occurrences.origin is 'schedule, manual or backfill';
comment on column stationmaster.alarm_occurrences.attempts is 'Tries that the target did not confirm';
comment on column stationmaster.alarm_occurrences.recoveries is 'Tries that were lost with a server';
comment on column stationmaster.alarm_occurrences.last_error is 'Why the last try failed; null: none has';
comment on column stationmaster.alarm_occurrences.fired_at is 'When the wake was accepted; null: it was not';
comment on column stationmaster.alarm_occurrences.reason is
    'Why it was skipped, coalesced, cancelled or failed; null: nothing to add';
comment on column stationmaster.alarm_occurrences.retry_at is 'When it is tried next; null: it is over, or being tried';
comment on column stationmaster.alarm_occurrences.due_at is 'When it was due, with its jitter';
comment on column stationmaster.alarm_occurrences.finished_at is 'When it was over; null: it is not';
comment on column stationmaster.alarm_occurrences.answer_status is 'The HTTP status of the last answer; null: none came';
comment on column stationmaster.alarm_occurrences.answer is 'The beginning of the last answer; null: none came';
comment on column stationmaster.alarm_occurrences.note is 'What the change of the clocks did to it; null: nothing';
comment on column stationmaster.alarm_occurrences.covers is 'How many occurrences this row stands for; null: very many';
comment on column stationmaster.alarm_occurrences.until is
    'Of a row that stands for several: up to here, exclusive; null: it is one';

comment on table stationmaster_internal.alarm_definitions is
'What was asked for. Changed only by people.
Room: alarms. Written by: people and applications; pruned by housekeeping.';
comment on column stationmaster_internal.alarm_definitions.fire_at is
    'Of kind once: the instant; with civil_at, what it was resolved to';
comment on column stationmaster_internal.alarm_definitions.target_url is 'Null: the router of the server that fires';
comment on column stationmaster_internal.alarm_definitions.payload is
    'json and not jsonb: what was given is sent, character by character';
comment on column stationmaster_internal.alarm_definitions.request is
    'A digest of what was asked for, to tell a repeat from another request';
comment on column stationmaster_internal.alarm_definitions.created_at is 'From where @every counts';
comment on index stationmaster_internal.alarm_definitions_idempotency is 'One alarm for each idempotency key of a workspace';
comment on index stationmaster_internal.alarm_definitions_by_workspace is 'The alarms of a workspace, for lists';

comment on table stationmaster_internal.alarm_standings is
'How an alarm stands: one narrow row, which everybody who moves a series locks first.
Room: alarms. Written by: claims, settlements, the planner, people.';
comment on column stationmaster_internal.alarm_standings.next_fire_at is
    'The nominal instant of the next occurrence that is not yet made';
comment on column stationmaster_internal.alarm_standings.next_due_at is
    'The same with its jitter; null: there is nothing to claim';
comment on column stationmaster_internal.alarm_standings.follows_at is 'The instant after which the next one was looked for';
comment on column stationmaster_internal.alarm_standings.held is
    'By the overlap policy: an earlier occurrence is not settled yet';
comment on column stationmaster_internal.alarm_standings.free_at is
    'When the hold ended; what was nominal before is skipped by the policy skip';
comment on column stationmaster_internal.alarm_standings.note is 'What the change of the clocks does to the next one';
comment on column stationmaster_internal.alarm_standings.failure_count is 'Tries that failed since the last accepted wake';
comment on column stationmaster_internal.alarm_standings.failed_in_a_row is
    'Occurrences that failed since the last accepted wake';
comment on index stationmaster_internal.alarm_standings_due is 'The heart of a claim: series by when they are due';
comment on index stationmaster_internal.alarm_standings_stopped is 'The few alarms that were paused or have failed, for lists';
comment on index stationmaster_internal.alarm_standings_failing is 'The few alarms that keep failing, for measures and lists';
comment on index stationmaster_internal.alarm_standings_ended is 'What the retention may remove';

comment on table stationmaster_internal.alarm_unplanned is
'Alarms that a server has to look at: their expression or civil time becomes an instant there, not here.
Room: alarms. Written by: whoever sets or changes an alarm (insert), the planner (delete).';

comment on table stationmaster_internal.occurrences_open is
'Occurrences from the moment they are due until they are settled.
Room: alarms. Written by: claims (insert, update), settlements (update, delete), people.';
comment on column stationmaster_internal.occurrences_open.ready_at is
    'The one thing that a claim looks at: when it is due, when it is tried again, or when the lease of its holder ends; infinity: it waits for an earlier one, or its alarm is paused';
comment on column stationmaster_internal.occurrences_open.attempts is
    'Tries that the target did not confirm; our own crashes and waits are not among them';
comment on index stationmaster_internal.occurrences_open_ready is
    'The heart of a claim: open occurrences by when they may be taken';
comment on index stationmaster_internal.occurrences_open_held is 'What a server holds, to recover and to hand over';

comment on table stationmaster_internal.occurrences_finished is
'How occurrences ended.
Room: alarms. Written by: settlements and people; pruned by housekeeping.';
comment on index stationmaster_internal.occurrences_finished_at is 'What the retention may remove';

comment on table stationmaster_internal.occurrence_ranges is
'Long rows of missed occurrences, from scheduled_for up to, not with, until.
Room: alarms. Written by: claims and people; pruned by housekeeping.';
comment on column stationmaster_internal.occurrence_ranges.covers is 'How many; null: very many';
comment on index stationmaster_internal.occurrence_ranges_by_alarm is 'The occurrences of an alarm';

comment on table stationmaster_internal.occurrence_tries is
'Every try that was not confirmed. The one that was, or the last, is on the occurrence itself.
Room: alarms. Written by: settlements; pruned by housekeeping.';
comment on index stationmaster_internal.occurrence_tries_by_occurrence is 'The tries of an occurrence';
comment on index stationmaster_internal.occurrence_tries_at is 'What the retention may remove';

comment on table stationmaster_internal.alarm_events is
'What people and servers did to an alarm, beside firing it.
Room: alarms. Written by: people and servers; pruned with the alarm.';
comment on index stationmaster_internal.alarm_events_by_alarm is 'The history of an alarm';

comment on table stationmaster_internal.wake_keys is
'Which generation of secret the router or a target has, where it was rotated; all others have their first. The secrets themselves are derived by the servers and stored nowhere.
Room: alarms. Written by: people.';

comment on table stationmaster_internal.zone_data is
'Under which release of the time zone data the stored instants were computed.
Room: alarms. Written by: the planner.';

comment on function stationmaster.set_alarm(uuid, text, timestamptz, interval, timestamp, text, text, text, text, json, text, text, text, integer, text, integer, interval, text, text, interval, timestamptz, timestamptz, integer, text, text, uuid, text) is
    'Sets an alarm inside the caller''s transaction and answers its id. Of fire_at, delay, civil_at (with timezone) and cron_expr (with timezone, UTC when left out) exactly one is given. An expression that is none, and a traceparent that is none, are refused (check_violation). When it fires, and whether ever, a server works out once the transaction is committed: then next_fire_at is there, or the alarm is failed and last_error says why; the doctor tells of those (work.alarms). The same idempotency key with the same request gives the first alarm again; with another request it is an error (unique_violation)';

comment on function stationmaster.cancel_alarm(uuid, text) is
    'Cancels an alarm inside the caller''s transaction. Answers its status: cancelled, or the one in which it had ended before';

comment on function stationmaster.set_alarm(text, text, timestamptz, interval, timestamp, text, text, text, text, json, text, text, text, integer, text, integer, interval, text, text, interval, timestamptz, timestamptz, integer, text, text, uuid, text) is
    'Sets an alarm of the workspace of this name (its id is taken too); the rest is as of set_alarm by id';
comment on function stationmaster.cancel_alarm(text, text, text) is
    'Cancels the alarm of this name in the workspace of that name (ids are taken too); the rest is as of cancel_alarm by id';
comment on column stationmaster.alarms.name is 'Its name, if it was given one: a slug, unique in its workspace; one that has ended gives it up to the next';
comment on column stationmaster.alarms.workspace is 'The name of its workspace; null when that is gone';
comment on index stationmaster_internal.alarm_definitions_by_name is 'A name is one alarm''s in its workspace';
