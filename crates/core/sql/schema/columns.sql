-- The columns of our tables and views, with their types and comments. Called by `schema::describe`.
-- Locks nothing; asks the catalogue only. Ordered by relation and place.
select c.relname::text as relation, a.attname::text as name, format_type(a.atttypid, a.atttypmod) as kind,
       coalesce(col_description(c.oid, a.attnum), '') as comment
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where n.nspname in ('stationmaster', 'stationmaster_internal') and c.relkind in ('r', 'p', 'v')
order by n.nspname, c.relname, a.attnum
