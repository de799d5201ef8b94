-- Dead rows of the tables that are written most, as PostgreSQL estimates them. Called when metrics are asked for.
-- Locks nothing; reads the statistics.
select relname::text as "table", n_dead_tup::double precision as dead
from pg_stat_user_tables
where schemaname = 'stationmaster_internal'
  and relname in ('queue_items', 'queue_pending', 'queue_hints', 'workspace_capacity', 'executions_active', 'executions_finished',
                  'alarm_standings', 'occurrences_open', 'signals_pending', 'servers')
