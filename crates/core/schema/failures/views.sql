-- Failures as everybody may read them. The views ask with their caller's eyes.

create or replace view stationmaster.failures with (security_invoker = true) as
select lpad(to_hex(f.group_id), 15, '0') as group_id, f.kind,
       nullif(f.workspace_id, '00000000-0000-0000-0000-000000000000') as workspace_id, f.workflow_definition_id, f.at, f.message,
       f.item_id as queue_item_id, f.execution_id, f.alarm_id, f.scheduled_for, f.signal_id, f.set_aside_at, f.set_aside_by, f.note,
       (select w.name from stationmaster.workspaces w where w.id = f.workspace_id) as workspace,
       (select d.name from stationmaster.workflow_definitions d where d.id = f.workflow_definition_id) as workflow,
       (select a.name from stationmaster_internal.alarm_definitions a where a.id = f.alarm_id) as alarm
from stationmaster_internal.failures f;

create or replace view stationmaster.failure_groups with (security_invoker = true) as
select lpad(to_hex(f.group_id), 15, '0') as id, f.kind,
       nullif(f.workspace_id, '00000000-0000-0000-0000-000000000000') as workspace_id, f.workflow_definition_id, f.alarm_id,
       count(*) as count, min(f.at) as first_at, max(f.at) as last_at, (array_agg(f.message order by f.at desc))[1] as message,
       (select w.name from stationmaster.workspaces w where w.id = f.workspace_id) as workspace,
       (select d.name from stationmaster.workflow_definitions d where d.id = f.workflow_definition_id) as workflow,
       (select a.name from stationmaster_internal.alarm_definitions a where a.id = f.alarm_id) as alarm
from stationmaster_internal.failures f
where f.set_aside_at is null
group by f.group_id, f.kind, f.workspace_id, f.workflow_definition_id, f.alarm_id;
