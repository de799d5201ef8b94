-- The first execution of an item has the item's own id, so that one index finds both; only what follows a retry, and what
-- older releases wrote, has an id of its own and needs to be found by its item. Three indexes fewer are written for every
-- execution.

drop index stationmaster.executions_active_by_item;
create index executions_active_again on stationmaster.executions_active (item_id) where execution_id <> item_id;
drop index stationmaster.executions_finished_by_item;
create index executions_finished_again on stationmaster.executions_finished (item_id) where execution_id <> item_id;

-- Leases are looked at by reading the table, which holds what runs and no more: recovery does so at most every second, while
-- every execution paid for the index twice, because the update that settles a start changed an indexed column.
drop index stationmaster.executions_active_lease;

-- What waits without an id of its own gets that of its item. Servers of an older release, which put an item back without
-- saying so, must not give it the id of the execution that failed.
alter table stationmaster.queue_pending alter column execution_id set default stationmaster.new_id();

comment on column stationmaster.queue_pending.execution_id is
    'null before the first try, which takes the id of the item; after a retry that of the execution to come; the same in every try';

-- Both tables by item. Each half goes by an index of its own.
create view stationmaster.active_by_item with (security_invoker = true) as
select a.execution_id as of_item, a.* from stationmaster.executions_active a where a.execution_id = a.item_id
union all
select a.item_id, a.* from stationmaster.executions_active a where a.execution_id <> a.item_id;

create view stationmaster.finished_by_item with (security_invoker = true) as
select f.execution_id as of_item, f.* from stationmaster.executions_finished f where f.execution_id = f.item_id
union all
select f.item_id, f.* from stationmaster.executions_finished f where f.execution_id <> f.item_id;

do $$
begin
    if exists (select from pg_roles where rolname = 'stationmaster_api') then
        grant select on stationmaster.active_by_item, stationmaster.finished_by_item to stationmaster_api;
    end if;
end
$$;

-- What was asked for is joined from the outside, so that whoever only counts does not read it.
create or replace view stationmaster.workflow_execution_queue with (security_invoker = true) as
select p.item_id as id, p.workspace_id, p.workflow_definition_id, p.workflow_definition_version_id, i.input,
       (-p.rank)::integer as priority, coalesce(p.run_at, i.run_at) as run_at, i.idempotency_key, p.execution_id,
       'PENDING'::text as status, p.attempts as attempt_count, p.recoveries as recovery_count, i.created_at,
       null::timestamptz as claimed_at, null::timestamptz as dispatched_at, p.last_error, i.traceparent, i.correlation_id,
       i.enqueued_by
from stationmaster.queue_pending p
left join stationmaster.queue_items i on i.id = p.item_id
union all
select a.of_item, a.workspace_id, a.workflow_definition_id, a.workflow_definition_version_id, i.input,
       (-a.rank)::integer, i.run_at, i.idempotency_key, a.execution_id,
       case a.state when 'STARTING' then 'CLAIMED' else 'DISPATCHED' end, a.attempts, a.recoveries, i.created_at,
       a.claimed_at, a.dispatched_at, null, i.traceparent, i.correlation_id, i.enqueued_by
from stationmaster.active_by_item a
left join stationmaster.queue_items i on i.id = a.of_item
union all
select f.of_item, f.workspace_id, f.workflow_definition_id, f.workflow_definition_version_id, i.input,
       i.priority, i.run_at, i.idempotency_key, case when f.status is not null then f.execution_id end,
       f.item_status, f.attempts, f.recoveries, i.created_at,
       f.claimed_at, f.dispatched_at, f.last_error, i.traceparent, i.correlation_id, i.enqueued_by
from stationmaster.finished_by_item f
left join stationmaster.queue_items i on i.id = f.of_item
where f.superseded_at is null;

create or replace view stationmaster.workflow_executions with (security_invoker = true) as
select a.execution_id as id, a.of_item as queue_item_id, a.workspace_id, a.workflow_definition_id,
       a.workflow_definition_version_id, a.state as status, a.dispatched_at as started_at, null::timestamptz as completed_at,
       null::jsonb as error, i.input, null::jsonb as output, a.claimed_at, a.engine, a.run_id, a.holder, null::text as reason,
       a.attempts, a.recoveries
from stationmaster.active_by_item a
left join stationmaster.queue_items i on i.id = a.of_item
union all
select p.execution_id, p.item_id, p.workspace_id, p.workflow_definition_id, p.workflow_definition_version_id,
       'PENDING', null, null, null, i.input, null, null, null, null, null, null, p.attempts, p.recoveries
from stationmaster.queue_pending p
left join stationmaster.queue_items i on i.id = p.item_id
where p.execution_id is not null
union all
select f.execution_id, f.of_item, f.workspace_id, f.workflow_definition_id, f.workflow_definition_version_id,
       f.status, f.dispatched_at, f.finished_at, f.error, i.input, f.output, f.claimed_at, f.engine, f.run_id, f.holder,
       f.reason, f.attempts, f.recoveries
from stationmaster.finished_by_item f
left join stationmaster.queue_items i on i.id = f.of_item
where f.status is not null;

create or replace view stationmaster.execution_history with (security_invoker = true) as
select id as item_id, null::uuid as execution_id, workspace_id, created_at as at, 'enqueued' as event, enqueued_by as actor,
       null::text as detail
from stationmaster.queue_items
union all
select a.of_item, a.execution_id, a.workspace_id, step.at, step.event, step.actor, step.detail
from stationmaster.active_by_item a
cross join lateral (values (a.claimed_at, 'claimed', a.holder::text, null),
                           (a.dispatched_at, 'dispatched', a.holder::text, a.run_id)) as step (at, event, actor, detail)
where step.at is not null
union all
select f.of_item, f.execution_id, f.workspace_id, step.at, step.event, step.actor, step.detail
from stationmaster.finished_by_item f
cross join lateral (values (f.claimed_at, 'claimed', f.holder::text, null),
                           (f.dispatched_at, 'dispatched', f.holder::text, f.run_id),
                           (f.finished_at, lower(coalesce(f.status, f.item_status)), f.finished_by,
                            coalesce(f.reason, f.last_error))) as step (at, event, actor, detail)
where step.at is not null
union all
select item_id, execution_id, workspace_id, at, event, actor, detail
from stationmaster.queue_events;

create or replace view stationmaster.signals with (security_invoker = true) as
select s.id, s.project, s.task_queue, s.name, coalesce(d.status, 'PENDING') as status, e.execution_id, s.received_at, s.payload,
       s.correlation_id, s.traceparent, s.sent_by, s.dispatcher_id, s.seq, d.item_id as queue_item_id, d.reason, d.detail,
       d.epoch, d.settled_at, coalesce(d.replays, p.replays, 0) as replays
from stationmaster.signals_inbox s
left join stationmaster.signals_settled d on d.signal_id = s.id
left join stationmaster.signals_pending p on p.signal_id = s.id
left join lateral (
    select q.execution_id from stationmaster.queue_pending q where q.item_id = d.item_id and q.execution_id is not null
    union all
    select a.execution_id from stationmaster.active_by_item a where a.of_item = d.item_id
    union all
    select f.execution_id from stationmaster.finished_by_item f
    where f.of_item = d.item_id and f.superseded_at is null and f.status is not null
    limit 1
) e on true;

-- Every way in ends here: what was inserted is looked at, becomes pending, and leaves one hint for each workspace.
create or replace function stationmaster.accept_items() returns trigger language plpgsql as $$
declare
    bad record;
begin
    select i.workspace_id, i.workflow_definition_id, w.id as workspace, d.id as definition
    into bad
    from new_items i
    left join stationmaster.workspaces w on w.id = i.workspace_id
    left join stationmaster.workflow_definitions d on d.id = i.workflow_definition_id and d.workspace_id = i.workspace_id
    where w.id is null or d.id is null or i.workflow_definition_version_id is null
    limit 1;
    if found then
        if bad.workspace is null then
            raise exception 'there is no workspace %', bad.workspace_id using errcode = 'foreign_key_violation',
                hint = 'Create it first: insert into stationmaster.workspaces, or "stationmaster workspaces create".';
        elsif bad.definition is null then
            raise exception 'workspace % has no workflow definition %', bad.workspace_id, bad.workflow_definition_id
                using errcode = 'foreign_key_violation';
        else
            raise exception 'workflow definition % has no published version', bad.workflow_definition_id
                using errcode = 'foreign_key_violation',
                hint = 'Insert a version first, or set published_version to one that exists.';
        end if;
    end if;

    insert into stationmaster.queue_pending
        (item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, execution_id, lane, run_at, waits_for)
    select id, seq, -priority::bigint, workspace_id, workflow_definition_id, workflow_definition_version_id, null,
           case when run_at > now() then 'l' else 'r' end::"char",
           case when run_at > now() then run_at end,
           case when run_at > now() then 'schedule' end
    from new_items;

    insert into stationmaster.queue_hints (workspace_id, rank, seq)
    select distinct on (workspace_id) workspace_id, -priority::bigint, seq
    from new_items where run_at is null or run_at <= now()
    order by workspace_id, priority desc, seq;

    -- A server must learn of a time that comes before its next poll; ready items ring by their hints.
    if exists (select from new_items where run_at > now() and run_at < now() + interval '10 seconds') then
        perform pg_notify('stationmaster', 'queue');
    end if;
    return null;
end
$$;

-- Cancels by the id of the execution or of its queue item (an id that both have means the item): at once while it waits, by way of the engine once it holds
-- a slot. Answers CANCELLED, CANCELLING, or the status in which it had ended before.
create or replace function stationmaster.cancel_execution(id uuid, reason text default null, actor text default null)
returns text language plpgsql as $$
declare
    waiting stationmaster.queue_pending;
    running stationmaster.executions_active;
    ended text;
begin
    -- An item that changes tables between two looks is found at the next round.
    for round in 1..3 loop
        delete from stationmaster.queue_pending p
        where p.item_id = cancel_execution.id or p.execution_id = cancel_execution.id
        returning p.* into waiting;
        if found then
            insert into stationmaster.executions_finished
                (execution_id, item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, item_status,
                 status, reason, attempts, recoveries, finished_at, finished_by, last_error)
            values (coalesce(waiting.execution_id, waiting.item_id), waiting.item_id, waiting.workspace_id,
                    waiting.workflow_definition_id, waiting.workflow_definition_version_id, 'CANCELLED',
                    case when waiting.execution_id is not null then 'CANCELLED' end, cancel_execution.reason, waiting.attempts,
                    waiting.recoveries, clock_timestamp(), coalesce(cancel_execution.actor, session_user), waiting.last_error);
            return 'CANCELLED';
        end if;
        select * into running from stationmaster.executions_active a
        where a.execution_id = cancel_execution.id or (a.item_id = cancel_execution.id and a.execution_id <> a.item_id)
        limit 1;
        if found then
            insert into stationmaster.cancel_requests (execution_id, actor, reason)
            values (running.execution_id, coalesce(cancel_execution.actor, session_user), cancel_execution.reason)
            on conflict do nothing;
            perform pg_notify('stationmaster', 'cancel');
            return 'CANCELLING';
        end if;
        select coalesce(f.status, f.item_status) into ended from stationmaster.executions_finished f
        where f.execution_id = cancel_execution.id or (f.item_id = cancel_execution.id and f.execution_id <> f.item_id)
        order by f.finished_at desc limit 1;
        if found then
            return ended;
        end if;
    end loop;
    raise exception 'there is no execution or queue item %', cancel_execution.id using errcode = 'no_data_found';
end
$$;
