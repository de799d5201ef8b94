-- Failures of a group, newest first. Called by people. Locks nothing. Index: failures_by_group, alarm_definitions_pkey.
-- $1 workspaces (null: all), $2 group, $3 below this id, $4 how many.
select f.id, lpad(to_hex(f.group_id), 15, '0') as group_id, f.kind, nullif(f.workspace_id, '00000000-0000-0000-0000-000000000000') as workspace_id,
       (select w.name from stationmaster.workspaces w where w.id = f.workspace_id) as workspace, f.workflow_definition_id,
       (select d.name from stationmaster.workflow_definitions d where d.id = f.workflow_definition_id) as workflow, f.at, f.message, f.item_id as queue_item_id, f.execution_id, f.alarm_id,
       (select a.name from stationmaster_internal.alarm_definitions a where a.id = f.alarm_id) as alarm, f.scheduled_for, f.signal_id,
       f.set_aside_at, f.set_aside_by, f.note
from stationmaster_internal.failures f
where f.group_id = $2 and f.id < $3 and ($1::uuid[] is null or f.workspace_id = any ($1))
order by f.id desc
limit $4
