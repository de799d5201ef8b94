-- What servers are called, also those that are gone, and what became of each.

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
