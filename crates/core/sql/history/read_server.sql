-- What a server had in hand, in steps of some minutes; of a step in which nothing was counted there is no row. The columns are those of
-- history/read. Called by the API. Locks nothing. Index: history_servers_pkey. $1 the server, $2 from, $3 to, $4 the step in seconds.
select date_bin(make_interval(secs => $4), minute, $2) as at, 0::bigint as enqueued, sum(started)::bigint as started, sum(completed)::bigint as completed,
       sum(failed)::bigint as failed, sum(cancelled)::bigint as cancelled, sum(terminated)::bigint as terminated, sum(timed_out)::bigint as timed_out,
       0::bigint as alarms_fired, 0::bigint as alarms_failed, 0::bigint as alarms_late, null::bigint as waiting, max(active) as active,
       0::double precision as wait_seconds, 0::double precision as wait_longest, '{}'::bigint[] as waits,
       sum(run_seconds) as run_seconds, max(run_longest) as run_longest,
       array[coalesce(sum(runs[1]), 0), coalesce(sum(runs[2]), 0), coalesce(sum(runs[3]), 0), coalesce(sum(runs[4]), 0), coalesce(sum(runs[5]), 0), coalesce(sum(runs[6]), 0), coalesce(sum(runs[7]), 0), coalesce(sum(runs[8]), 0), coalesce(sum(runs[9]), 0), coalesce(sum(runs[10]), 0), coalesce(sum(runs[11]), 0), coalesce(sum(runs[12]), 0), coalesce(sum(runs[13]), 0), coalesce(sum(runs[14]), 0), coalesce(sum(runs[15]), 0), coalesce(sum(runs[16]), 0), coalesce(sum(runs[17]), 0)]::bigint[] as runs
from stationmaster_internal.history_servers
where server_id = $1 and minute >= $2 and minute < $3
group by 1
order by 1
