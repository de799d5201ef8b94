-- The rows of a page of alarms, from its candidates; or one of them alone. Called for people. Locks nothing. Planned anew for each
-- filter. Index: alarm_definitions_pkey, alarm_standings_pkey.
-- $1 candidates, $2 status, $3 kind (null: any), $4 only of these workspaces, $5 a text in the label, the target or the last error (null: any),
-- $6 how many.
select id, workspace_id, (select w.name from stationmaster.workspaces w where w.id = workspace_id) as workspace, name, label, kind, cron_expr, timezone, to_char(civil_at, 'YYYY-MM-DD"T"HH24:MI:SS') as civil_at, fire_at,
       next_fire_at, status, failure_count, failed_in_a_row, last_error, last_fired_at, dst, misfire, catch_up,
       extract(epoch from misfire_window)::double precision as misfire_window, overlap,
       extract(epoch from jitter)::double precision as jitter, start_at, end_at, target_url, user_id, conversation_id, message,
       payload::text as payload, max_failures, pause_after, idempotency_key, traceparent, set_by, created_at, updated_at, unplanned
from unnest($1::uuid[]) as candidate (candidate_id)
-- From each candidate to its row and no other way, however few rows the planner expects of the filters: `offset` holds it to that.
cross join lateral (
    select *
    from stationmaster.alarms a
    where a.id = candidate_id
      and ($2::text is null or a.status = $2)
      and ($3::text is null or a.kind = $3)
      and ($4::uuid[] is null or a.workspace_id = any ($4))
      and ($5::text is null or position(lower($5) in lower(a.label)) > 0 or position(lower($5) in lower(a.last_error)) > 0
           or position(lower($5) in lower(a.target_url)) > 0)
    offset 0) found
order by id desc
limit $6
