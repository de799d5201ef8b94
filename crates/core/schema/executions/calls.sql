-- What applications call inside their own transactions: enqueue and cancel.

-- The item that this idempotency key belongs to, if it was asked for in the same words.
create or replace function stationmaster_internal.item_of_key(
    workspace uuid, definition uuid, input jsonb, priority integer, run_at timestamptz, idempotency_key text
) returns uuid language plpgsql as $$
declare
    item uuid;
begin
    select i.id into item
    from stationmaster_internal.queue_items i
    where i.workspace_id = workspace and i.idempotency_key = item_of_key.idempotency_key
      and i.workflow_definition_id = definition and i.input = item_of_key.input and i.priority = item_of_key.priority
      and i.run_at is not distinct from item_of_key.run_at;
    if item is null then
        raise exception 'the idempotency key "%" was used in this workspace with another request', idempotency_key
            using errcode = 'unique_violation';
    end if;
    return item;
end
$$;

-- Enqueues inside the caller's transaction. The same idempotency key with the same request gives the first item again;
-- with another request it is an error. This is the way that most items come, one in a transaction, so it does what accept_items does in as
-- few and as plain statements as it can: preparing them is most of what an enqueue costs. A clause ON CONFLICT, and a query among the
-- values, cost more than the same in a statement of its own; and a hint of its own would cost four times as much as the mark on the item.
create or replace function stationmaster.enqueue_execution(
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
    item uuid := stationmaster.new_id();
    place bigint := nextval('stationmaster_internal.queue_order');
    version uuid;
    asked jsonb := coalesce(enqueue_execution.input, '{}');
    wanted integer := coalesce(enqueue_execution.priority, 0);
    due timestamptz := case when enqueue_execution.run_at > now() then enqueue_execution.run_at end;
begin
    if not stationmaster_internal.fits(asked, enqueue_execution.run_at, enqueue_execution.idempotency_key,
                                       enqueue_execution.traceparent, enqueue_execution.correlation_id) then
        perform stationmaster_internal.refuse_values(enqueue_execution.run_at, enqueue_execution.idempotency_key,
                                                     enqueue_execution.traceparent, enqueue_execution.correlation_id);
    end if;
    select d.current_version_id into version
    from stationmaster.workflow_definitions d
    where d.id = enqueue_execution.workflow_definition_id and d.workspace_id = enqueue_execution.workspace_id;
    if enqueue_execution.idempotency_key is null then
        insert into stationmaster_internal.queue_items
            (id, seq, workspace_id, workflow_definition_id, workflow_definition_version_id, input, priority, run_at, traceparent,
             correlation_id, enqueued_by)
        values (item, place, enqueue_execution.workspace_id, enqueue_execution.workflow_definition_id, version, asked, wanted,
                enqueue_execution.run_at, enqueue_execution.traceparent, enqueue_execution.correlation_id,
                coalesce(enqueue_execution.enqueued_by, session_user));
    else
        insert into stationmaster_internal.queue_items
            (id, seq, workspace_id, workflow_definition_id, workflow_definition_version_id, input, priority, run_at, idempotency_key,
             traceparent, correlation_id, enqueued_by)
        values (item, place, enqueue_execution.workspace_id, enqueue_execution.workflow_definition_id, version, asked, wanted,
                enqueue_execution.run_at, enqueue_execution.idempotency_key, enqueue_execution.traceparent,
                enqueue_execution.correlation_id, coalesce(enqueue_execution.enqueued_by, session_user))
        on conflict (workspace_id, idempotency_key) where idempotency_key is not null do nothing;
        if not found then
            return stationmaster_internal.item_of_key(
                enqueue_execution.workspace_id, enqueue_execution.workflow_definition_id, asked, wanted, enqueue_execution.run_at,
                enqueue_execution.idempotency_key);
        end if;
    end if;
    if version is null then
        perform stationmaster_internal.refuse_item(enqueue_execution.workspace_id, enqueue_execution.workflow_definition_id);
    elsif due is null then
        insert into stationmaster_internal.queue_pending
            (item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, unseen)
        values (item, place, -wanted::bigint, enqueue_execution.workspace_id, enqueue_execution.workflow_definition_id, version, true);
    else
        insert into stationmaster_internal.queue_pending
            (item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, stage, run_at, waits_for, unseen)
        values (item, place, -wanted::bigint, enqueue_execution.workspace_id, enqueue_execution.workflow_definition_id, version,
                'later', due, 'schedule', due < now() + interval '10 seconds');
        if due >= now() + interval '10 seconds' then
            return item;
        end if;
    end if;
    if not stationmaster_internal.is_watched() then
        perform stationmaster_internal.ring_unwatched(place);
    end if;
    return item;
end
$$;

-- Cancels by the id of the execution or of its queue item (an id that both have means the item): at once while it waits, by way of the engine once it holds
-- a slot. Answers CANCELLED, CANCELLING, or the status in which it had ended before.
create or replace function stationmaster.cancel_execution(id uuid, reason text default null, actor text default null)
returns text language plpgsql as $$
declare
    waiting stationmaster_internal.queue_pending;
    running stationmaster_internal.executions_active;
    ended text;
begin
    -- An item that changes tables between two looks is found at the next round.
    for round in 1..3 loop
        delete from stationmaster_internal.queue_pending p
        where p.item_id = cancel_execution.id or p.execution_id = cancel_execution.id
        returning p.* into waiting;
        if found then
            insert into stationmaster_internal.executions_finished
                (execution_id, item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, item_status,
                 status, reason, attempts, recoveries, finished_at, finished_by, last_error)
            values (coalesce(waiting.execution_id, waiting.item_id), waiting.item_id, waiting.workspace_id,
                    waiting.workflow_definition_id, waiting.workflow_definition_version_id, 'CANCELLED',
                    case when waiting.execution_id is not null then 'CANCELLED' end, cancel_execution.reason, waiting.attempts,
                    waiting.recoveries, clock_timestamp(), coalesce(cancel_execution.actor, session_user), waiting.last_error);
            return 'CANCELLED';
        end if;
        select * into running from stationmaster_internal.executions_active a
        where a.execution_id = cancel_execution.id or (a.item_id = cancel_execution.id and a.execution_id <> a.item_id)
        limit 1;
        if found then
            insert into stationmaster_internal.cancel_requests (execution_id, actor, reason)
            values (running.execution_id, coalesce(cancel_execution.actor, session_user), cancel_execution.reason)
            on conflict do nothing;
            perform pg_notify('stationmaster', 'cancel');
            return 'CANCELLING';
        end if;
        select coalesce(f.status, f.item_status) into ended from stationmaster_internal.executions_finished f
        where f.execution_id = cancel_execution.id or (f.item_id = cancel_execution.id and f.execution_id <> f.item_id)
        order by f.finished_at desc limit 1;
        if found then
            return ended;
        end if;
    end loop;
    raise exception 'there is no execution or queue item %', cancel_execution.id using errcode = 'no_data_found';
end
$$;

-- Enqueues by names (ids are taken too), inside the caller's transaction; the rest is as of enqueue_execution.
create or replace function stationmaster.enqueue(
    workspace text,
    workflow text,
    input jsonb default '{}',
    priority integer default 0,
    run_at timestamptz default null,
    idempotency_key text default null,
    traceparent text default null,
    correlation_id text default null,
    enqueued_by text default null
) returns uuid language sql as $$
    select stationmaster.enqueue_execution(stationmaster.workspace_id(workspace), stationmaster.workflow_id(workspace, workflow),
                                           input, priority, run_at, idempotency_key, traceparent, correlation_id, enqueued_by)
$$;
