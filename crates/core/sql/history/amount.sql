-- How much there is to count: the larger of what was enqueued and what ended, up to a bound. Called by the duty that counts, before it does.
-- Locks nothing. Index: queue_items_at, executions_finished_at (brin). $1 from, $2 to, $3 the bound.
select greatest(
    (select count(*) from (select from stationmaster_internal.queue_items where created_at >= $1 and created_at < $2 limit $3) i),
    (select count(*) from (select from stationmaster_internal.executions_finished where finished_at >= $1 and finished_at < $2 limit $3) f))
