-- What was counted of some workspaces, or of everything, in steps of some minutes; of a step in which nothing was counted there is no row.
-- Called by the API. Locks nothing. Planned anew for each scope. Index: history_minutes_pkey.
-- $1 workspaces (null: all), $2 workflow (null: all), $3 from, $4 to, $5 the step in seconds.
with asked as (
    select coalesce($1::uuid[], case when $2::uuid is null then array['00000000-0000-0000-0000-000000000000'::uuid]
                                     else array(select workspace_id from stationmaster.workflow_definitions where id = $2) end) as workspaces
), minutes as (
    select date_bin(make_interval(secs => $5), h.minute, $3) as at, h.*,
           sum(waiting) over (partition by h.minute) as waiting_then, sum(active) over (partition by h.minute) as active_then
    from asked
    join stationmaster_internal.history_minutes h on h.workspace_id = any (asked.workspaces)
    where h.minute >= $3 and h.minute < $4 and ($2::uuid is null or h.workflow_definition_id = $2)
)
select at, sum(enqueued)::bigint as enqueued, sum(started)::bigint as started, sum(completed)::bigint as completed, sum(failed)::bigint as failed,
       sum(cancelled)::bigint as cancelled, sum(terminated)::bigint as terminated, sum(timed_out)::bigint as timed_out,
       sum(alarms_fired)::bigint as alarms_fired, sum(alarms_failed)::bigint as alarms_failed, sum(alarms_late)::bigint as alarms_late,
       max(waiting_then)::bigint as waiting, max(active_then)::bigint as active,
       sum(wait_seconds) as wait_seconds, max(wait_longest) as wait_longest,
       array[coalesce(sum(waits[1]), 0), coalesce(sum(waits[2]), 0), coalesce(sum(waits[3]), 0), coalesce(sum(waits[4]), 0), coalesce(sum(waits[5]), 0), coalesce(sum(waits[6]), 0),
                   coalesce(sum(waits[7]), 0), coalesce(sum(waits[8]), 0), coalesce(sum(waits[9]), 0), coalesce(sum(waits[10]), 0), coalesce(sum(waits[11]), 0), coalesce(sum(waits[12]), 0),
                   coalesce(sum(waits[13]), 0), coalesce(sum(waits[14]), 0), coalesce(sum(waits[15]), 0), coalesce(sum(waits[16]), 0), coalesce(sum(waits[17]), 0)]::bigint[] as waits,
       sum(run_seconds) as run_seconds, max(run_longest) as run_longest,
       array[coalesce(sum(runs[1]), 0), coalesce(sum(runs[2]), 0), coalesce(sum(runs[3]), 0), coalesce(sum(runs[4]), 0), coalesce(sum(runs[5]), 0), coalesce(sum(runs[6]), 0),
                   coalesce(sum(runs[7]), 0), coalesce(sum(runs[8]), 0), coalesce(sum(runs[9]), 0), coalesce(sum(runs[10]), 0), coalesce(sum(runs[11]), 0), coalesce(sum(runs[12]), 0),
                   coalesce(sum(runs[13]), 0), coalesce(sum(runs[14]), 0), coalesce(sum(runs[15]), 0), coalesce(sum(runs[16]), 0), coalesce(sum(runs[17]), 0)]::bigint[] as runs
from minutes
group by at
order by at
