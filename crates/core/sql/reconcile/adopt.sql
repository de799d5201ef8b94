-- The ended run of an execution was reset on the engine, and another one is open: the execution runs again, and holds a slot, beyond the
-- limit if there is none. Its former end stays in the history. Only while the engine's own word of another run's end is the record, and
-- no retry followed. Called by the reconciler. Locks the capacity row, then the finished one.
-- Index: executions_finished_pkey, queue_items_pkey, workspace_capacity_pkey.
-- $1 execution, $2 its run now, $3 engine, $4 which one, $5 the server that saw it. Answers slots in use and the limit; nothing: it is not so.
with locked as materialized (
    select c.workspace_id, c.active, c.max_concurrent
    from stationmaster_internal.workspace_capacity c
    where c.workspace_id = (select f.workspace_id from stationmaster_internal.executions_finished f where f.execution_id = $1)
    for update
), former as (
    delete from stationmaster_internal.executions_finished f
    where f.execution_id = $1 and f.superseded_at is null and f.closed_at is not null and f.run_id is distinct from $2
      and f.workflow_definition_version_id is not null
      and exists (select from locked)
      and exists (select from stationmaster_internal.queue_items i where i.id = f.item_id)
    returning f.*
), active as (
    insert into stationmaster_internal.executions_active
        (execution_id, item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, state, holder, token,
         engine, engine_id, run_id, attempts, recoveries, claimed_at, dispatched_at, reset_after)
    select f.execution_id, f.item_id, i.seq, -i.priority::bigint, f.workspace_id, f.workflow_definition_id,
           f.workflow_definition_version_id, 'RUNNING', $5, nextval('stationmaster_internal.claim_token'),
           $3, $4, $2, f.attempts, f.recoveries, coalesce(f.claimed_at, now()), coalesce(f.dispatched_at, now()), f.closed_at
    from former f
    join stationmaster_internal.queue_items i on i.id = f.item_id
), taken as (
    update stationmaster_internal.workspace_capacity c
    set active = c.active + 1
    from former f
    where c.workspace_id = f.workspace_id
), noted as (
    insert into stationmaster_internal.queue_events (item_id, execution_id, workspace_id, at, event, actor, detail)
    select item_id, execution_id, workspace_id, finished_at, lower(status), finished_by, run_id
    from former
    union all
    select item_id, execution_id, workspace_id, clock_timestamp(), 'reset', $3, $2
    from former
)
select l.active + 1 as active, l.max_concurrent
from locked l
where exists (select from former)
