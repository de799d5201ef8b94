-- How much of each of our tables is dead. Called by `health::tables`. Locks nothing; reads the statistics only.
select relname::text as name, n_live_tup as live, n_dead_tup as dead, pg_total_relation_size(relid) as bytes
from pg_stat_user_tables
where schemaname = 'stationmaster'
order by n_dead_tup desc, relname
limit 100
