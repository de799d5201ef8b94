-- Alarms that can never fire, newest first: a server could not make anything of their expression, their zone or their time. Called by the
-- doctor. Locks nothing. Index: alarm_standings_stopped, that of occurrences by alarm. Those whose wake failed are failures.
select coalesce(nullif(d.name, ''), nullif(d.label, ''), d.id::text) as name, w.name as workspace, coalesce(s.last_error, '') as why
from stationmaster_internal.alarm_standings s
join stationmaster_internal.alarm_definitions d on d.id = s.alarm_id
left join stationmaster.workspaces w on w.id = d.workspace_id
where s.status = 'failed' and s.last_fired_at is null
  and not exists (select from stationmaster_internal.occurrences_finished o where o.alarm_id = s.alarm_id)
order by s.alarm_id desc
limit 100
