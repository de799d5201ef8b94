-- What servers are called, also those that are gone, what became of each, and what a heartbeat brings back.

-- Registers a server under a name that no other living one has: what it was given, as a slug, or else with a number behind it. One
-- registration after the other, so that two that start at the same moment see each other. Names are kept for histories, for as long as
-- those are. One that was taken for dead comes back under another id: then it replaces the former.
create or replace function stationmaster_internal.register_server(server uuid, given text, program text, its_engine text, former uuid)
returns text language plpgsql as $$
declare
    wanted text := coalesce(nullif(stationmaster.slug(given), ''), 'server');
    called text := wanted;
    number integer := 1;
begin
    perform pg_advisory_xact_lock(hashtextextended('stationmaster.server_names', 0));
    while exists (select from stationmaster_internal.servers s
                  where s.name = called and s.id <> server and s.lease_until > clock_timestamp()) loop
        number := number + 1;
        called := left(wanted, 57) || '-' || number;
    end loop;
    insert into stationmaster_internal.server_names (id, name, version, engine) values (server, called, program, its_engine)
    on conflict (id) do update set name = excluded.name, left_at = null, ended = null;
    update stationmaster_internal.server_names n set left_at = now(), ended = 'replaced'
    where n.id = former and n.ended is null;
    delete from stationmaster_internal.server_names n
    where n.since < now() - interval '400 days' and not exists (select from stationmaster_internal.servers s where s.id = n.id);
    return called;
end
$$;

-- What a server is called whose id stands where histories say who did something, also one that is gone. Null: it was somebody else, or a
-- server that was forgotten. Index: server_names_pkey.
create or replace function stationmaster_internal.server_behind(actor text) returns text language sql stable as $$
    select n.name
    from stationmaster_internal.server_names n
    where n.id = case when actor ~ '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' then actor::uuid end
$$;

-- What has happened that somebody should see to: wakes in the hands of servers that are gone, wishes to cancel, executions that hold a
-- slot. Called by the heartbeat, so it waits for no table that somebody has locked whole (a rebuild, an ALTER TABLE): then there may be something.
-- Index: occurrences_open_held, cancel_requests_pkey.
create or replace function stationmaster_internal.news_for(server uuid, out lost_wakes boolean, out cancels boolean, out active boolean)
language plpgsql set lock_timeout = '200ms' as $$
begin
    lost_wakes := exists (select from stationmaster_internal.occurrences_open o
                          where o.holder is not null and o.holder <> server
                            and not exists (select from stationmaster_internal.servers s
                                            where s.id = o.holder and s.lease_until > now()));
    cancels := exists (select from stationmaster_internal.cancel_requests);
    active := exists (select from stationmaster_internal.executions_active);
exception when lock_not_available then
    lost_wakes := true;
    cancels := true;
    active := true;
end
$$;
