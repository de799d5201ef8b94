-- The public functions, with their arguments and comments. Called by `schema::describe`. Locks nothing; asks the catalogue only.
-- Ordered by name and arguments.
select p.proname::text as name, pg_get_function_arguments(p.oid) as arguments, pg_get_function_result(p.oid) as answer,
       coalesce(obj_description(p.oid, 'pg_proc'), '') as comment
from pg_proc p
where p.pronamespace = 'stationmaster'::regnamespace
order by p.proname, pg_get_function_identity_arguments(p.oid) collate "C"
