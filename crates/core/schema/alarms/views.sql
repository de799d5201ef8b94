-- Alarms and occurrences as everybody may read them. Each view asks with its caller's eyes.

create or replace view stationmaster.alarms with (security_invoker = true) as
select d.id, d.workspace_id, d.label, d.kind, d.cron_expr, d.timezone, d.civil_at, d.fire_at,
       coalesce(s.next_fire_at,
                case when d.kind = 'once' then (select min(o.scheduled_for) from stationmaster_internal.occurrences_open o
                                                where o.alarm_id = d.id and o.origin = 'schedule') end) as next_fire_at,
       s.status, s.failure_count, s.failed_in_a_row, s.last_error, s.last_fired_at,
       d.dst, d.misfire, d.catch_up, d.misfire_window, d.overlap, d.jitter, d.start_at, d.end_at, d.target_url, d.user_id,
       d.conversation_id, d.message, d.payload, d.max_failures, d.pause_after, d.idempotency_key, d.traceparent, d.set_by,
       d.created_at, d.updated_at,
       exists (select from stationmaster_internal.alarm_unplanned u where u.alarm_id = d.id) as unplanned, d.name,
       (select w.name from stationmaster.workspaces w where w.id = d.workspace_id) as workspace
from stationmaster_internal.alarm_definitions d
join stationmaster_internal.alarm_standings s on s.alarm_id = d.id;

create or replace view stationmaster.alarm_occurrences with (security_invoker = true) as
select o.alarm_id, o.scheduled_for,
       case when o.holder is not null then 'claimed' when o.attempts > 0 then 'retrying' else 'pending' end as status,
       o.origin, o.attempts, o.recoveries, o.last_error, null::timestamptz as fired_at, null::text as reason,
       case when o.holder is null and o.ready_at < 'infinity' then o.ready_at end as retry_at,
       o.due_at, null::timestamptz as finished_at, null::integer as answer_status, null::text as answer, o.note,
       1::bigint as covers, null::timestamptz as until
from stationmaster_internal.occurrences_open o
union all
select f.alarm_id, f.scheduled_for, f.status, f.origin, f.attempts, f.recoveries, f.last_error, f.fired_at, f.reason, null,
       f.due_at, f.finished_at, f.answer_status, f.answer, f.note, 1, null
from stationmaster_internal.occurrences_finished f
union all
select r.alarm_id, r.scheduled_for, r.status, 'schedule', 0, 0, null, null, r.reason, null, r.scheduled_for, r.finished_at,
       null, null, null, r.covers, r.until
from stationmaster_internal.occurrence_ranges r;
