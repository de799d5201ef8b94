-- What the user of this connection may do with our tables, and which of them are closed to it. Called by `health::rights`.
-- Locks nothing; asks the catalogue only.
select current_user::text as role,
       coalesce(has_schema_privilege(to_regnamespace('stationmaster'), 'create')
                and has_schema_privilege(to_regnamespace('stationmaster_internal'), 'create'), false) as may_migrate,
       coalesce((select array_agg(c.relname::text order by c.relname)
                 from pg_class c
                 join pg_namespace n on n.oid = c.relnamespace
                 where n.nspname in ('stationmaster', 'stationmaster_internal')
                   and c.relkind in ('r', 'p')
                   and not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
                            and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))), '{}') as closed
