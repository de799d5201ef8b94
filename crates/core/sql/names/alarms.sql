-- Alarms that have names, by the beginning of those, with the workspace before it or without. Called by the API to say what may have been
-- meant. Locks nothing. Index: alarm_definitions_by_name, alarm_definitions_pkey, workspaces_by_name, alarm_definitions_by_workspace.
-- $1 from this id, $2 to this id, $3 names that begin so, $4 only of these workspaces (null: all), $5 how many.
select id, name, workspace
from ((select d.id, d.name, w.name as workspace
       from stationmaster_internal.alarm_definitions d
       join stationmaster.workspaces w on w.id = d.workspace_id
       where d.name is not null and d.id between $1 and $2 and starts_with(d.name, $3) and ($4::uuid[] is null or d.workspace_id = any ($4))
       order by d.name, w.name
       limit $5)
      union
      (select d.id, d.name, w.name as workspace
       from stationmaster.workspaces w
       join stationmaster_internal.alarm_definitions d on d.workspace_id = w.id
       where $3 <> '' and starts_with(w.name, split_part($3, '.', 1)) and starts_with(w.name || '.' || d.name, $3) and d.name is not null
         and d.id between $1 and $2 and ($4::uuid[] is null or d.workspace_id = any ($4))
       order by d.name, w.name
       limit $5)) as found
order by name, workspace
limit $5
