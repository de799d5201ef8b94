-- Our tables and views, with their comments. Called by `schema::describe`. Locks nothing; asks the catalogue only.
-- Ordered by schema and name.
select n.nspname = 'stationmaster' as public, c.relname::text as name, c.relkind = 'v' as view,
       coalesce(obj_description(c.oid, 'pg_class'), '') as comment
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('stationmaster', 'stationmaster_internal') and c.relkind in ('r', 'p', 'v') and c.relname <> '_sqlx_migrations'
order by n.nspname, c.relname
