-- Workflows that are paused while items wait for them, with how many of them a claim has found, counted up to 10,000 each. Called by the
-- overview. Locks nothing. Index: queue_pending_in_line. $1 workspaces (null: all), $2 how many.
select d.id as workflow_definition_id, d.name as workflow, d.workspace_id, w.name as workspace,
       (select count(*) from (select from stationmaster_internal.queue_pending p
                              where p.workspace_id = d.workspace_id and p.stage = 'parked' and p.workflow_definition_id = d.id
                              limit 10001) counted) as held
from stationmaster.workflow_definitions d
join stationmaster.workspaces w on w.id = d.workspace_id
where d.paused and ($1::uuid[] is null or d.workspace_id = any ($1))
  and exists (select from stationmaster_internal.queue_pending p
              where p.workspace_id = d.workspace_id and p.stage = 'parked' and p.workflow_definition_id = d.id)
order by w.name, d.name
limit $2
