-- Numbers that must never be given out twice, after a failover or a restore.

-- Whoever promotes a replica that had not everything, or restores a backup, goes back to a state in which numbers are free that somebody has
-- already seen: tokens of claims, duties and locks, epochs of dispatchers, positions of events. On a new timeline, or in another database or
-- cluster, all of them go far ahead, and dispatchers are free to be taken under a new epoch. Called by a server whenever it has a new
-- connection to watch the database by; answers whether it was the first to see it. Locks the row of timeline, so that only one does it.
create or replace function stationmaster_internal.follow_timeline() returns boolean language plpgsql as $$
declare
    seen text := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
    before text;
    far bigint := 1000000;
begin
    -- A dump is restored into another database, which has a number of its own; but the first one of every cluster has the same.
    seen := seen || ' ' || (select oid from pg_database where datname = current_database());
    if has_function_privilege('pg_control_system()', 'execute') then
        seen := seen || ' ' || (select system_identifier from pg_control_system());
    end if;
    if exists (select from stationmaster_internal.timeline where name = seen) then
        return false;
    end if;
    select name into before from stationmaster_internal.timeline for update;
    if before = seen then
        return false;
    end if;
    update stationmaster_internal.timeline set name = seen;
    if before = '' then
        return false;
    end if;
    perform setval('stationmaster_internal.claim_token', nextval('stationmaster_internal.claim_token') + far);
    update stationmaster_internal.duties set token = token + far;
    update stationmaster_internal.lock_tokens set token = token + far;
    update stationmaster_internal.event_sequence set position = position + far;
    update stationmaster_internal.dispatcher_floor set epoch = epoch + far;
    update stationmaster.dispatchers set epoch = epoch + far, lease_until = least(lease_until, now());
    return true;
end
$$;
