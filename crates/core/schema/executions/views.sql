-- Items and executions as everybody may read them, and a plain INSERT as a way in. Each view asks with its caller's eyes.

-- Both tables by item. Each half goes by an index of its own.
create or replace view stationmaster_internal.active_by_item with (security_invoker = true) as
select a.execution_id as of_item, a.* from stationmaster_internal.executions_active a where a.execution_id = a.item_id
union all
select a.item_id, a.* from stationmaster_internal.executions_active a where a.execution_id <> a.item_id;

create or replace view stationmaster_internal.finished_by_item with (security_invoker = true) as
select f.execution_id as of_item, f.* from stationmaster_internal.executions_finished f where f.execution_id = f.item_id
union all
select f.item_id, f.* from stationmaster_internal.executions_finished f where f.execution_id <> f.item_id;

-- What was asked for is joined from the outside, so that whoever only counts does not read it.
create or replace view stationmaster.workflow_execution_queue with (security_invoker = true) as
select p.item_id as id, p.workspace_id, p.workflow_definition_id, p.workflow_definition_version_id, i.input,
       (-p.rank)::integer as priority, coalesce(p.run_at, i.run_at) as run_at, i.idempotency_key, p.execution_id,
       'PENDING'::text as status, p.attempts as attempt_count, p.recoveries as recovery_count, i.created_at,
       null::timestamptz as claimed_at, null::timestamptz as dispatched_at, p.last_error, i.traceparent, i.correlation_id,
       i.enqueued_by,
       (select w.name from stationmaster.workspaces w where w.id = p.workspace_id) as workspace,
       (select d.name from stationmaster.workflow_definitions d where d.id = p.workflow_definition_id) as workflow, null::text as outcome
from stationmaster_internal.queue_pending p
left join stationmaster_internal.queue_items i on i.id = p.item_id
union all
select a.of_item, a.workspace_id, a.workflow_definition_id, a.workflow_definition_version_id, i.input,
       (-a.rank)::integer, i.run_at, i.idempotency_key, a.execution_id,
       case a.state when 'STARTING' then 'CLAIMED' else 'DISPATCHED' end, a.attempts, a.recoveries, i.created_at,
       a.claimed_at, a.dispatched_at, null, i.traceparent, i.correlation_id, i.enqueued_by,
       (select w.name from stationmaster.workspaces w where w.id = a.workspace_id),
       (select d.name from stationmaster.workflow_definitions d where d.id = a.workflow_definition_id), null
from stationmaster_internal.active_by_item a
left join stationmaster_internal.queue_items i on i.id = a.of_item
union all
select f.of_item, f.workspace_id, f.workflow_definition_id, f.workflow_definition_version_id, i.input,
       i.priority, i.run_at, i.idempotency_key, case when f.status is not null then f.execution_id end,
       f.item_status, f.attempts, f.recoveries, i.created_at,
       f.claimed_at, f.dispatched_at,
       case when coalesce(f.status, f.item_status) in ('FAILED', 'TERMINATED', 'TIMED_OUT')
            then stationmaster_internal.words_of_end(f.last_error, f.error, f.reason, coalesce(f.status, f.item_status))
            else f.last_error end,
       i.traceparent, i.correlation_id, i.enqueued_by,
       (select w.name from stationmaster.workspaces w where w.id = f.workspace_id),
       (select d.name from stationmaster.workflow_definitions d where d.id = f.workflow_definition_id), f.status
from stationmaster_internal.finished_by_item f
left join stationmaster_internal.queue_items i on i.id = f.of_item
where f.superseded_at is null;

alter view stationmaster.workflow_execution_queue alter column id set default stationmaster.new_id();
alter view stationmaster.workflow_execution_queue alter column input set default '{}';
alter view stationmaster.workflow_execution_queue alter column priority set default 0;
alter view stationmaster.workflow_execution_queue alter column enqueued_by set default session_user;

-- A plain INSERT becomes an insert at the door, as one statement, however many rows it has.
create or replace rule enqueue as on insert to stationmaster.workflow_execution_queue do instead
insert into stationmaster_internal.queue_door
    (id, workspace_id, workflow_definition_id, workflow_definition_version_id, input, priority, run_at, idempotency_key,
     traceparent, correlation_id, enqueued_by)
values (new.id, new.workspace_id, new.workflow_definition_id,
        coalesce(new.workflow_definition_version_id,
                 (select d.current_version_id from stationmaster.workflow_definitions d where d.id = new.workflow_definition_id)),
        coalesce(new.input, '{}'), coalesce(new.priority, 0), new.run_at, new.idempotency_key, new.traceparent,
        new.correlation_id, coalesce(new.enqueued_by, session_user))
returning id, workspace_id, workflow_definition_id, workflow_definition_version_id, input, priority, run_at,
          idempotency_key, null::uuid, 'PENDING'::text, 0, 0, created_at, null::timestamptz, null::timestamptz, null::text,
          traceparent, correlation_id, enqueued_by,
          (select w.name from stationmaster.workspaces w where w.id = workspace_id),
          (select d.name from stationmaster.workflow_definitions d where d.id = workflow_definition_id), null::text;

-- COPY does not know rules; it comes in row by row, and each row goes by the rule.
create or replace function stationmaster_internal.enqueue_row() returns trigger language plpgsql as $$
begin
    insert into stationmaster.workflow_execution_queue values (new.*);
    return new;
end
$$;
create or replace trigger enqueue_row instead of insert on stationmaster.workflow_execution_queue
    for each row execute function stationmaster_internal.enqueue_row();

create or replace view stationmaster.workflow_executions with (security_invoker = true) as
select a.execution_id as id, a.of_item as queue_item_id, a.workspace_id, a.workflow_definition_id,
       a.workflow_definition_version_id, a.state as status, a.dispatched_at as started_at, null::timestamptz as completed_at,
       null::jsonb as error, i.input, null::jsonb as output, a.claimed_at, a.engine, a.run_id, a.holder, null::text as reason,
       a.attempts, a.recoveries, null::timestamptz as closed_at,
       (select w.name from stationmaster.workspaces w where w.id = a.workspace_id) as workspace,
       (select d.name from stationmaster.workflow_definitions d where d.id = a.workflow_definition_id) as workflow, null::timestamptz as superseded_at, null::jsonb as output_omitted
from stationmaster_internal.active_by_item a
left join stationmaster_internal.queue_items i on i.id = a.of_item
union all
select p.execution_id, p.item_id, p.workspace_id, p.workflow_definition_id, p.workflow_definition_version_id,
       'PENDING', null, null, null, i.input, null, null, null, null, null, null, p.attempts, p.recoveries, null,
       (select w.name from stationmaster.workspaces w where w.id = p.workspace_id),
       (select d.name from stationmaster.workflow_definitions d where d.id = p.workflow_definition_id), null, null
from stationmaster_internal.queue_pending p
left join stationmaster_internal.queue_items i on i.id = p.item_id
where p.execution_id is not null
union all
select f.execution_id, f.of_item, f.workspace_id, f.workflow_definition_id, f.workflow_definition_version_id,
       f.status, f.dispatched_at, f.finished_at, f.error, i.input, f.output, f.claimed_at, f.engine, f.run_id, f.holder,
       f.reason, f.attempts, f.recoveries, f.closed_at,
       (select w.name from stationmaster.workspaces w where w.id = f.workspace_id),
       (select d.name from stationmaster.workflow_definitions d where d.id = f.workflow_definition_id), f.superseded_at, f.output_omitted
from stationmaster_internal.finished_by_item f
left join stationmaster_internal.queue_items i on i.id = f.of_item
where f.status is not null;

-- The whole life of an item, ordinary steps and exceptions together.
create or replace view stationmaster.execution_history with (security_invoker = true) as
select id as item_id, null::uuid as execution_id, workspace_id, created_at as at, 'enqueued' as event, enqueued_by as actor,
       null::text as detail
from stationmaster_internal.queue_items
union all
select a.of_item, a.execution_id, a.workspace_id, step.at, step.event, step.actor, step.detail
from stationmaster_internal.active_by_item a
cross join lateral (values (a.claimed_at, 'claimed', a.holder::text, null),
                           (a.dispatched_at, 'dispatched', a.holder::text, a.run_id)) as step (at, event, actor, detail)
where step.at is not null
  and not exists (select from stationmaster_internal.queue_events e
                  where e.item_id = a.of_item and e.execution_id = a.execution_id and e.event = step.event and e.at = step.at)
union all
select f.of_item, f.execution_id, f.workspace_id, step.at, step.event, step.actor, step.detail
from stationmaster_internal.finished_by_item f
cross join lateral (values (f.claimed_at, 'claimed', f.holder::text, null),
                           (f.dispatched_at, 'dispatched', f.holder::text, f.run_id),
                           (f.finished_at, lower(coalesce(f.status, f.item_status)), f.finished_by,
                            coalesce(f.reason, f.last_error))) as step (at, event, actor, detail)
where step.at is not null
  and not exists (select from stationmaster_internal.queue_events e
                  where e.item_id = f.of_item and e.execution_id = f.execution_id and e.event = step.event and e.at = step.at)
union all
select item_id, execution_id, workspace_id, at, event, actor, detail
from stationmaster_internal.queue_events;
