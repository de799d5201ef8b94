-- The alarms of a name, with the workspace of each. Called by the API for requests that name one. Locks nothing.
-- Index: alarm_definitions_by_name.
-- $1 name, $2 only of this workspace, $3 only of the workspace of this name (null: of any), $4 only of these (null: all), $5 how many.
select d.id, d.name, w.name as workspace
from stationmaster_internal.alarm_definitions d
join stationmaster.workspaces w on w.id = d.workspace_id
where d.name = $1 and ($2::uuid is null or d.workspace_id = $2) and ($3::text is null or w.name = $3)
  and ($4::uuid[] is null or d.workspace_id = any ($4))
order by w.name
limit $5
