-- The lock table, which lies outside our schemas, is made where there is none.

-- Makes the lock table where there is none, as ShedLock documents it. Answers nothing when it is there now, and the reason
-- when it may not be made. A table that the search path finds is not shadowed by a second one; a new one never lies in
-- our schemas, where other applications would not look for it, not even for a user who is called like it.
create or replace function stationmaster_internal.make_lock_table(relation text) returns text language plpgsql as $$
declare
    parts text[] := parse_ident(relation);
begin
    if to_regclass(relation) is not null then
        return null;
    end if;
    if cardinality(parts) = 1 then
        parts := (select array[name, parts[1]]
                  from unnest(current_schemas(false)) with ordinality as path (name, nth)
                  where name not in ('stationmaster', 'stationmaster_internal')
                  order by nth
                  limit 1);
        if parts is null then
            return 'the search path names no schema to make it in';
        end if;
    end if;
    execute format(
        'create table if not exists %I.%I (name varchar(64) not null primary key, lock_until timestamp not null, '
        'locked_at timestamp not null, locked_by varchar(255) not null)', parts[1], parts[2]);
    return null;
exception
    -- Somebody else made it at the same moment.
    when duplicate_table or unique_violation then return null;
    when insufficient_privilege or invalid_schema_name then return sqlerrm;
end
$$;

-- The default name, by the search path of this user: migrations run with a path of their own. Where it may not be
-- made, everything else still is; a server that starts says what is missing.
do $$
declare
    path_of_migrations text := current_setting('search_path');
    reason text;
begin
    perform set_config('search_path', (select reset_val from pg_settings where name = 'search_path'), true);
    reason := stationmaster_internal.make_lock_table('shedlock');
    perform set_config('search_path', path_of_migrations, true);
    if reason is not null then
        raise warning 'the lock table shedlock could not be made: %', reason;
    end if;
end
$$;
