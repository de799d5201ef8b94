-- Ends executions and frees their slots, in one step: the active row becomes a finished one, the workspace's counter
-- goes down. With a token only under that claim; without one (null) whoever holds it: the engine, a person or the
-- reconciler says that it is over.
-- Called by the settler, the watcher of closes, the canceller and the reconciler. Locks capacity rows, skipping those that
-- others hold: such executions are answered as busy and come again; then active rows in id order, by deleting them. A row
-- that changed while it was waited for is looked at again, and stays when its token is another one by then: what the delete
-- asks are constants and arrays, so that nothing rests on how subplans fare in that second look.
-- Index: executions_active_pkey, workspace_capacity_pkey. Arrays and rows are paired by a full join, and membership is asked
-- in a select list: neither can be planned as a nested loop, whatever the planner believes of a table that fills and
-- empties all day. A plain `is not null` would turn the full join into one that can.
-- $1 executions, $2 tokens, $3 item statuses, $4 statuses, $5 reasons, $6 last errors, $7 errors, $8 outputs,
-- $9 attempts spent by this try, $10 run ids, $11 who says so, $12 the virtual time below which nobody may enter,
-- $13 their workspaces, when all are known and all ends are under one token (else null: they are looked up),
-- $14 the engine that says so (null: not an engine): its word holds for what runs on it alone, $15 the ids of the server whose
-- claims these are (null: whoever's): after a failover that lost commits the same token may have been given twice,
-- $16 when their runs closed, by the engine's clock (null: not told): of an execution that was reset, the end of its former run says
-- nothing, $17 what is known of outputs that were left with the engine.
with known as materialized (
    select k.execution_id, k.token, k.workspace_id
    from unnest($1::uuid[], $2::bigint[], $13::uuid[]) as k (execution_id, token, workspace_id)
    where $13::uuid[] is not null
    union all
    select execution_id, token, workspace_id
    from (select a.execution_id, a.token, a.workspace_id, a.reset_after
          from stationmaster_internal.executions_active a
          where $13::uuid[] is null and a.execution_id = any ($1) and ($14::integer is null or a.engine_id = $14)
            and ($15::uuid[] is null or a.holder = any ($15))) found
    full join unnest($1::uuid[], $2::bigint[], $16::timestamptz[]) as k (execution_id, under_token, told_closed_at) using (execution_id)
    where $13::uuid[] is null and (token is null) is not true and (under_token is null or under_token = token)
      and (reset_after is null or told_closed_at is null or told_closed_at > reset_after)
), locked as materialized (
    select workspace_id
    from stationmaster_internal.workspace_capacity
    where workspace_id = any (array(select distinct workspace_id from known))
    order by workspace_id
    for update skip locked
), decided as materialized (
    select execution_id, workspace_id in (select workspace_id from locked) as free
    from known
), gone as (
    delete from stationmaster_internal.executions_active a
    where a.execution_id = any (array(select execution_id from decided where free))
      and a.token = any (array(select distinct token from known))
      and ($15::uuid[] is null or a.holder = any ($15))
    returning a.execution_id, a.item_id, a.workspace_id, a.workflow_definition_id, a.workflow_definition_version_id, a.engine,
              a.run_id, a.attempts, a.recoveries, a.holder, a.claimed_at, a.dispatched_at
), freed as (
    update stationmaster_internal.workspace_capacity c
    set active       = c.active - n.ended,
        virtual_time = case when c.eligible then c.virtual_time else greatest(c.virtual_time, $12) end
    from (select workspace_id, count(*) as ended from gone group by workspace_id) n
    where c.workspace_id = n.workspace_id
), recorded as (
    insert into stationmaster_internal.executions_finished
        (execution_id, item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, item_status, status,
         reason, engine, run_id, attempts, recoveries, holder, claimed_at, dispatched_at, finished_at, closed_at, finished_by,
         last_error, error, output, output_omitted)
    select execution_id, item_id, workspace_id, workflow_definition_id, workflow_definition_version_id, item_status, status,
           reason, engine, coalesce(known_run_id, run_id), attempts + spent, recoveries, holder, claimed_at,
           case when item_status = 'DISPATCHED' then coalesce(dispatched_at, clock_timestamp()) else dispatched_at end,
           clock_timestamp() + interval '1 microsecond', known_closed_at, $11, last_error, error::jsonb, output::jsonb,
           omitted::jsonb
    from gone
    full join unnest($1::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::integer[], $10::text[],
                     $16::timestamptz[], $17::text[])
        as asked (execution_id, item_status, status, reason, last_error, error, output, spent, known_run_id, known_closed_at,
                  omitted)
        using (execution_id)
    where (item_id is null) is not true
)
select execution_id, ended
from (select d.execution_id, d.free, d.execution_id in (select execution_id from gone) as ended from decided d) answered
where ended or not free or $13::uuid[] is null
