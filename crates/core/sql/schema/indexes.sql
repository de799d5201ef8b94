-- The indexes of our tables, with what they are for. Called by `schema::describe`. Locks nothing; asks the catalogue only.
-- Ordered by relation and name; what an index is on is told without the names of index and table.
select c.relname::text as relation, x.relname::text as name,
       regexp_replace(pg_get_indexdef(i.indexrelid), '^CREATE (UNIQUE )?INDEX .* USING ', '\1') as definition,
       coalesce(obj_description(i.indexrelid, 'pg_class'), case when i.indisprimary then 'Primary key' else '' end) as comment
from pg_index i
join pg_class c on c.oid = i.indrelid
join pg_class x on x.oid = i.indexrelid
join pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('stationmaster', 'stationmaster_internal') and c.relname <> '_sqlx_migrations'
order by c.relname, not i.indisprimary, x.relname
