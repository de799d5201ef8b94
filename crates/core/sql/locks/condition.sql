-- What there is of the lock table: may we use it, which columns has it, is the name its key? No row: it is not there.
-- Called at start, and to explain an error. Locks nothing; reads the catalogues by their keys. $1 the table.
select has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
           and has_table_privilege(c.oid, 'update') as allowed,
       array(select a.attname::text || ' ' || format_type(a.atttypid, null)
             from pg_attribute a
             where a.attrelid = c.oid and not a.attisdropped
               and a.attname in ('name', 'lock_until', 'locked_at', 'locked_by')
             order by a.attname) as columns,
       exists (select from pg_index i
               join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
               where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indpred is null
                 and i.indnkeyatts = 1 and a.attname = 'name') as keyed
from pg_class c
where c.oid = to_regclass($1)
