-- Strays, in the order of their runs, for people. Locks nothing. Index: stray_runs_pkey.
-- $1 of these workspaces (null: of all), $2 after this run (null: from the first), $3 how many, $4 only of this execution (null: of any).
select s.execution_id, s.run_id, s.workspace_id, w.name as workspace, s.started_at, s.found_at, s.end_wished_at as end_requested_at,
       s.end_wished_by as end_requested_by
from stationmaster_internal.stray_runs s
left join stationmaster.workspaces w on w.id = s.workspace_id
where ($1::uuid[] is null or s.workspace_id = any ($1)) and ($2::text is null or s.run_id > $2)
  and ($4::uuid is null or s.execution_id = $4)
order by s.run_id
limit $3
