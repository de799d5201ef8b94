-- What outsiders use: views under the public names, functions to call inside any transaction, the history, and the
-- tables by which servers know of each other.

-- Every state change that the rows themselves do not tell. The ordinary way of an item (enqueued, claimed, dispatched,
-- ended) is read from its times; what departs from it is written down here. See the view execution_history.
create table stationmaster.queue_events (
    id           bigint generated always as identity primary key,
    item_id      uuid not null,
    execution_id uuid,
    workspace_id uuid not null,
    at           timestamptz not null default clock_timestamp(),
    event        text not null,
    actor        text not null,
    detail       text
);
create index queue_events_by_item on stationmaster.queue_events (item_id, id);
create index queue_events_at on stationmaster.queue_events using brin (at) with (autosummarize = on);

-- Wishes to cancel executions that hold a slot. Inserting one locks nothing that a server needs; a server carries it out.
create table stationmaster.cancel_requests (
    execution_id uuid primary key,
    actor        text not null,
    reason       text,
    requested_at timestamptz not null default now()
);

create table stationmaster.audit (
    id           bigint generated always as identity primary key,
    at           timestamptz not null default clock_timestamp(),
    actor        text not null,
    action       text not null,
    workspace_id uuid,
    subject      text not null,
    detail       jsonb not null default '{}'
);
create index audit_at on stationmaster.audit using brin (at) with (autosummarize = on);

-- One row per server process. lease_until is its heartbeat: past it, what the server holds may be taken over.
create table stationmaster.servers (
    id          uuid primary key,
    name        text not null,
    version     text not null,
    engine      text not null,
    engine_up   boolean not null,
    claiming    boolean not null,
    started_at  timestamptz not null default now(),
    seen_at     timestamptz not null default now(),
    lease_until timestamptz not null
) with (fillfactor = 50);

-- Work that one server at a time does for all: a lease with a token, like everything exclusive.
create table stationmaster.duties (
    name        text primary key,
    holder      uuid,
    token       bigint not null default 0,
    lease_until timestamptz not null default '-infinity',
    position    timestamptz
) with (fillfactor = 50);

-- How far the embedded engine has come with each execution that is not over.
create table stationmaster.embedded_runs (
    execution_id uuid primary key,
    token        bigint not null,
    position     integer not null default 0,
    wake_at      timestamptz,
    outputs      jsonb not null default '{}'
) with (fillfactor = 70);

create view stationmaster.workflow_execution_queue as
select i.id, i.workspace_id, i.workflow_definition_id, i.workflow_definition_version_id, i.input,
       (-p.rank)::integer as priority, coalesce(p.run_at, i.run_at) as run_at, i.idempotency_key, p.execution_id,
       'PENDING'::text as status, p.attempts as attempt_count, p.recoveries as recovery_count, i.created_at,
       null::timestamptz as claimed_at, null::timestamptz as dispatched_at, p.last_error, i.traceparent, i.correlation_id,
       i.enqueued_by
from stationmaster.queue_pending p
join stationmaster.queue_items i on i.id = p.item_id
union all
select i.id, i.workspace_id, i.workflow_definition_id, i.workflow_definition_version_id, i.input,
       (-a.rank)::integer, i.run_at, i.idempotency_key, a.execution_id,
       case a.state when 'STARTING' then 'CLAIMED' else 'DISPATCHED' end, a.attempts, a.recoveries, i.created_at,
       a.claimed_at, a.dispatched_at, null, i.traceparent, i.correlation_id, i.enqueued_by
from stationmaster.executions_active a
join stationmaster.queue_items i on i.id = a.item_id
union all
select i.id, i.workspace_id, i.workflow_definition_id, i.workflow_definition_version_id, i.input,
       i.priority, i.run_at, i.idempotency_key, case when f.status is not null then f.execution_id end,
       f.item_status, f.attempts, f.recoveries, i.created_at,
       f.claimed_at, f.dispatched_at, f.last_error, i.traceparent, i.correlation_id, i.enqueued_by
from stationmaster.executions_finished f
join stationmaster.queue_items i on i.id = f.item_id
where f.superseded_at is null;

alter view stationmaster.workflow_execution_queue alter column id set default stationmaster.new_id();
alter view stationmaster.workflow_execution_queue alter column input set default '{}';
alter view stationmaster.workflow_execution_queue alter column priority set default 0;
alter view stationmaster.workflow_execution_queue alter column enqueued_by set default session_user;

-- A plain INSERT becomes an insert into queue_items, as one statement, however many rows it has.
create rule enqueue as on insert to stationmaster.workflow_execution_queue do instead
insert into stationmaster.queue_items
    (id, workspace_id, workflow_definition_id, workflow_definition_version_id, input, priority, run_at, idempotency_key,
     traceparent, correlation_id, enqueued_by)
values (new.id, new.workspace_id, new.workflow_definition_id,
        coalesce(new.workflow_definition_version_id, stationmaster.current_version(new.workflow_definition_id)),
        coalesce(new.input, '{}'), coalesce(new.priority, 0), new.run_at, new.idempotency_key, new.traceparent,
        new.correlation_id, coalesce(new.enqueued_by, session_user))
returning id, workspace_id, workflow_definition_id, workflow_definition_version_id, input, priority, run_at,
          idempotency_key, null::uuid, 'PENDING'::text, 0, 0, created_at, null::timestamptz, null::timestamptz, null::text,
          traceparent, correlation_id, enqueued_by;

-- COPY does not know rules; it comes in row by row.
create function stationmaster.enqueue_row() returns trigger language plpgsql as $$
begin
    insert into stationmaster.queue_items
        (id, workspace_id, workflow_definition_id, workflow_definition_version_id, input, priority, run_at,
         idempotency_key, traceparent, correlation_id, enqueued_by)
    values (new.id, new.workspace_id, new.workflow_definition_id,
            coalesce(new.workflow_definition_version_id, stationmaster.current_version(new.workflow_definition_id)),
            coalesce(new.input, '{}'), coalesce(new.priority, 0), new.run_at, new.idempotency_key, new.traceparent,
            new.correlation_id, coalesce(new.enqueued_by, session_user));
    return new;
end
$$;
create trigger enqueue_row instead of insert on stationmaster.workflow_execution_queue
    for each row execute function stationmaster.enqueue_row();

create view stationmaster.workflow_executions as
select a.execution_id as id, a.item_id as queue_item_id, a.workspace_id, a.workflow_definition_id,
       a.workflow_definition_version_id, a.state as status, a.dispatched_at as started_at, null::timestamptz as completed_at,
       null::jsonb as error, i.input, null::jsonb as output, a.claimed_at, a.engine, a.run_id, a.holder, null::text as reason,
       a.attempts, a.recoveries
from stationmaster.executions_active a
join stationmaster.queue_items i on i.id = a.item_id
union all
select p.execution_id, p.item_id, p.workspace_id, p.workflow_definition_id, p.workflow_definition_version_id,
       'PENDING', null, null, null, i.input, null, null, null, null, null, null, p.attempts, p.recoveries
from stationmaster.queue_pending p
join stationmaster.queue_items i on i.id = p.item_id
where p.execution_id is not null
union all
select f.execution_id, f.item_id, f.workspace_id, f.workflow_definition_id, f.workflow_definition_version_id,
       f.status, f.dispatched_at, f.finished_at, f.error, i.input, f.output, f.claimed_at, f.engine, f.run_id, f.holder,
       f.reason, f.attempts, f.recoveries
from stationmaster.executions_finished f
join stationmaster.queue_items i on i.id = f.item_id
where f.status is not null;

-- The whole life of an item, ordinary steps and exceptions together.
create view stationmaster.execution_history as
select id as item_id, null::uuid as execution_id, workspace_id, created_at as at, 'enqueued' as event, enqueued_by as actor,
       null::text as detail
from stationmaster.queue_items
union all
select item_id, execution_id, workspace_id, claimed_at, 'claimed', holder::text, null
from stationmaster.executions_active
union all
select item_id, execution_id, workspace_id, dispatched_at, 'dispatched', holder::text, run_id
from stationmaster.executions_active where dispatched_at is not null
union all
select item_id, execution_id, workspace_id, claimed_at, 'claimed', holder::text, null
from stationmaster.executions_finished where claimed_at is not null
union all
select item_id, execution_id, workspace_id, dispatched_at, 'dispatched', holder::text, run_id
from stationmaster.executions_finished where dispatched_at is not null
union all
select item_id, execution_id, workspace_id, finished_at, lower(coalesce(status, item_status)), finished_by,
       coalesce(reason, last_error)
from stationmaster.executions_finished
union all
select item_id, execution_id, workspace_id, at, event, actor, detail
from stationmaster.queue_events;

-- Enqueues inside the caller's transaction. The same idempotency key with the same request gives the first item again;
-- with another request it is an error.
create function stationmaster.enqueue_execution(
    workspace_id uuid,
    workflow_definition_id uuid,
    input jsonb default '{}',
    priority integer default 0,
    run_at timestamptz default null,
    idempotency_key text default null,
    traceparent text default null,
    correlation_id text default null,
    enqueued_by text default null
) returns uuid language plpgsql as $$
#variable_conflict use_column
declare
    item uuid;
    asked_input jsonb := coalesce(enqueue_execution.input, '{}');
    asked_priority integer := coalesce(enqueue_execution.priority, 0);
begin
    insert into stationmaster.queue_items
        (workspace_id, workflow_definition_id, workflow_definition_version_id, input, priority, run_at, idempotency_key,
         traceparent, correlation_id, enqueued_by)
    values (enqueue_execution.workspace_id, enqueue_execution.workflow_definition_id,
            stationmaster.current_version(enqueue_execution.workflow_definition_id), asked_input, asked_priority,
            enqueue_execution.run_at, enqueue_execution.idempotency_key, enqueue_execution.traceparent,
            enqueue_execution.correlation_id, coalesce(enqueue_execution.enqueued_by, session_user))
    on conflict (workspace_id, idempotency_key) where idempotency_key is not null do nothing
    returning id into item;
    if item is not null then
        return item;
    end if;
    select id into item from stationmaster.queue_items
    where workspace_id = enqueue_execution.workspace_id and idempotency_key = enqueue_execution.idempotency_key
      and workflow_definition_id = enqueue_execution.workflow_definition_id and input = asked_input
      and priority = asked_priority and run_at is not distinct from enqueue_execution.run_at;
    if item is null then
        raise exception 'the idempotency key "%" was used in this workspace with another request',
            enqueue_execution.idempotency_key using errcode = 'unique_violation';
    end if;
    return item;
end
$$;

-- Cancels by the id of the execution or of its queue item: at once while it waits, by way of the engine once it holds
-- a slot. Answers CANCELLED, CANCELLING, or the status in which it had ended before.
create function stationmaster.cancel_execution(id uuid, reason text default null, actor text default null)
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
            values (coalesce(waiting.execution_id, stationmaster.new_id()), waiting.item_id, waiting.workspace_id,
                    waiting.workflow_definition_id, waiting.workflow_definition_version_id, 'CANCELLED',
                    case when waiting.execution_id is not null then 'CANCELLED' end, cancel_execution.reason, waiting.attempts,
                    waiting.recoveries, clock_timestamp(), coalesce(cancel_execution.actor, session_user), waiting.last_error);
            return 'CANCELLED';
        end if;
        select * into running from stationmaster.executions_active a where a.execution_id = cancel_execution.id or a.item_id = cancel_execution.id limit 1;
        if found then
            insert into stationmaster.cancel_requests (execution_id, actor, reason)
            values (running.execution_id, coalesce(cancel_execution.actor, session_user), cancel_execution.reason)
            on conflict do nothing;
            perform pg_notify('stationmaster', 'cancel');
            return 'CANCELLING';
        end if;
        select coalesce(f.status, f.item_status) into ended from stationmaster.executions_finished f
        where f.execution_id = cancel_execution.id or f.item_id = cancel_execution.id order by f.finished_at desc limit 1;
        if found then
            return ended;
        end if;
    end loop;
    raise exception 'there is no execution or queue item %', cancel_execution.id using errcode = 'no_data_found';
end
$$;
