-- What requests may do: the rights of the role stationmaster_api, in one place. It reads and writes what has a policy
-- (see wall.sql), and of what has none, only what is listed here. Tokens, kept answers, views, keys of targets, locks and the bookkeeping
-- of migrations are closed to it.

create or replace function stationmaster.grant_api() returns void language plpgsql as $$
begin
    revoke all on all tables in schema stationmaster, stationmaster_internal from stationmaster_api;
    grant usage on schema stationmaster, stationmaster_internal to stationmaster_api;

    -- Plans belong to no workspace; the API asks for the role of an administrator before it changes them.
    grant select, insert, update, delete on stationmaster.plans, stationmaster.workspaces, stationmaster.workflow_definitions,
        stationmaster.workflow_definition_versions, stationmaster.triggers to stationmaster_api;
    grant select, insert, update, delete on stationmaster_internal.queue_items, stationmaster_internal.queue_door, stationmaster_internal.queue_pending, stationmaster_internal.queue_hints,
        stationmaster_internal.executions_active, stationmaster_internal.executions_finished, stationmaster_internal.workspace_capacity,
        stationmaster_internal.cancel_requests to stationmaster_api;
    -- Servers note runs that no row tells of; people wish that they be ended.
    grant select on stationmaster_internal.stray_runs to stationmaster_api;
    grant update (end_wished_at, end_wished_by, end_reason) on stationmaster_internal.stray_runs to stationmaster_api;
    grant usage on sequence stationmaster_internal.queue_order to stationmaster_api;
    grant usage, update on sequence stationmaster_internal.queue_watched to stationmaster_api;
    -- Deleting a workspace ends its alarms, in the same transaction and so in the same role.
    grant select, insert, update, delete on stationmaster_internal.alarm_definitions, stationmaster_internal.alarm_standings,
        stationmaster_internal.alarm_unplanned, stationmaster_internal.occurrences_open, stationmaster_internal.occurrences_finished,
        stationmaster_internal.occurrence_ranges to stationmaster_api;
    -- A signal is sent and replayed in the request's own transaction.
    grant select, insert on stationmaster_internal.signals_inbox, stationmaster_internal.signals_pending, stationmaster.projects,
        stationmaster.dispatchers to stationmaster_api;
    -- People wish that a dispatcher be removed; its owner does it. One that is made anew begins above the floor.
    grant select on stationmaster_internal.dispatcher_floor to stationmaster_api;
    grant update (removal_wished_at, removal_wished_by) on stationmaster.dispatchers to stationmaster_api;
    grant select, update, delete on stationmaster_internal.signals_settled to stationmaster_api;
    -- Triggers write failures, in their owner's name; people set them aside.
    grant select on stationmaster_internal.failures to stationmaster_api;
    grant update (set_aside_at, set_aside_by, note) on stationmaster_internal.failures to stationmaster_api;
    -- Operations are begun and cancelled; servers carry them out, in their own name.
    grant select, insert on stationmaster_internal.operations to stationmaster_api;
    grant update (status, ended_at, ended_by, error) on stationmaster_internal.operations to stationmaster_api;
    -- What is on record is added to and never changed.
    grant select, insert on stationmaster_internal.queue_events, stationmaster_internal.alarm_events, stationmaster.audit to stationmaster_api;
    grant select on stationmaster_internal.occurrence_tries, stationmaster_internal.dispatcher_servers, stationmaster_internal.dispatcher_heartbeats,
        stationmaster.dispatcher_events, stationmaster_internal.events, stationmaster_internal.event_inbox, stationmaster_internal.history_minutes,
        stationmaster_internal.history_servers, stationmaster_internal.target_breakers to stationmaster_api;
    -- Without a policy, and nothing of a tenant in them: who serves and how much, who looks, and how far events are numbered.
    grant select on stationmaster_internal.servers, stationmaster_internal.server_names, stationmaster_internal.duties, stationmaster_internal.attention, stationmaster_internal.event_sequence
        to stationmaster_api;
    grant select on stationmaster.workflow_execution_queue, stationmaster.workflow_executions, stationmaster.execution_history,
        stationmaster_internal.active_by_item, stationmaster_internal.finished_by_item, stationmaster.alarms, stationmaster.alarm_occurrences,
        stationmaster.signals, stationmaster.failures, stationmaster.failure_groups, stationmaster.operations, stationmaster.event_feed to stationmaster_api;
end
$$;

do $$
begin
    if exists (select from pg_roles where rolname = 'stationmaster_api') then
        perform stationmaster.grant_api();
    end if;
end
$$;
