-- Failures: what needs a person, whatever it comes from, in one place.
--
-- One narrow row for each item whose start failed for good, each execution that ended FAILED, TERMINATED or TIMED_OUT, each failed
-- occurrence and each dead letter. Triggers on the tables where these things end write it and remove it (schema/failures), so that
-- nobody who ends, retries, replays or prunes something has to think of it. What ends well never comes here.
--
-- Rows that are about the same trouble share a group: the same kind, workspace and workflow (alarm, signal), and the same message
-- once numbers, ids and times are taken out of it.

create table stationmaster_internal.failures (
    id                     bigint generated always as identity primary key,
    kind                   text not null check (kind in ('start', 'execution', 'occurrence', 'signal')),
    -- That of nobody, all zeroes, for signals of projects that belong to no workspace.
    workspace_id           uuid not null,
    group_id               bigint not null,
    at                     timestamptz not null,
    message                text not null,
    workflow_definition_id uuid,
    item_id                uuid,
    execution_id           uuid,
    alarm_id               uuid,
    scheduled_for          timestamptz,
    signal_id              text,
    signal_key             text collate "C",
    set_aside_at           timestamptz,
    set_aside_by           text,
    note                   text
);
create index failures_open on stationmaster_internal.failures (workspace_id, group_id, at) where set_aside_at is null;
create index failures_by_group on stationmaster_internal.failures (group_id, id);
create unique index failures_by_execution on stationmaster_internal.failures (execution_id) where execution_id is not null;
create unique index failures_by_occurrence on stationmaster_internal.failures (alarm_id, scheduled_for) where alarm_id is not null;
create unique index failures_by_signal on stationmaster_internal.failures (signal_key) where signal_key is not null;
