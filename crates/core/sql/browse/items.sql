-- The rows of a page of items, from its candidates and in their order; or one of them alone. Locks nothing. Index: the primary keys, executions_active_again, executions_finished_again.
-- $1 candidates, $2 definition, $3 status, $4 pattern in input or last error (null: any), $5 how many.
select id, workspace_id, (select w.name from stationmaster.workspaces w where w.id = workspace_id) as workspace, workflow_definition_id,
       (select d.name from stationmaster.workflow_definitions d where d.id = workflow_definition_id) as workflow, execution_id, status, priority, run_at, attempt_count, recovery_count,
       created_at, claimed_at, dispatched_at, last_error, idempotency_key, correlation_id, enqueued_by, input::text as input, outcome,
       -- The first of what inspect/waiting tells in full.
       (select case when p.stage = 'later' and p.waits_for is not distinct from 'schedule' then 'scheduled'
                    when p.stage = 'later' then 'backing_off'
                    when c.paused then 'workspace_paused'
                    when exists (select from stationmaster.workflow_definitions d where d.id = p.workflow_definition_id and d.paused)
                        then 'definition_paused'
                    when not exists (select from stationmaster_internal.servers where lease_until > now() and claiming) then 'no_server'
                    when not exists (select from stationmaster_internal.servers where lease_until > now() and claiming and engine_up)
                        then 'engine_down'
                    when c.active >= c.max_concurrent then 'limit'
                    else 'queued' end
        from stationmaster_internal.queue_pending p
        join stationmaster_internal.workspace_capacity c on c.workspace_id = p.workspace_id
        where p.item_id = workflow_execution_queue.id) as waits_for
from stationmaster.workflow_execution_queue
join unnest($1::uuid[]) with ordinality as chosen (candidate, place) on candidate = id
where id = any ($1)
  and ($2::uuid is null or workflow_definition_id = $2)
  and ($3::text is null or status = $3)
  and ($4::text is null or input::text ilike $4 or last_error ilike $4)
order by place
limit $5
