-- How much of each of our tables is dead, the most first. Called by `health::tables`. Locks nothing.
-- Reads the statistics of the collector only, so it costs nothing and may be a little late.
select relname::text as name, n_live_tup as live, n_dead_tup as dead, pg_total_relation_size(relid) as bytes
from pg_stat_user_tables
where schemaname in ('stationmaster', 'stationmaster_internal')
order by n_dead_tup desc, relname
limit 100
