-- A server's heartbeat: lengthens its lease, or registers it. A lease that has run out is not lengthened: others may
-- have taken over already, so the answer is empty and the server must come back under a new id.
-- `made` says that there was no row: a server that had one knows by it that it was taken for dead meanwhile.
-- With it comes what else has happened, so that nobody else has to ask once a second: are there servers whose lease has run
-- out, wakes in the hands of such, wishes to cancel, executions that hold a slot?
-- Called by presence, every second. Locks its own row. Index: servers_pkey; the table of servers has a row for each, and is read whole.
-- What is asked of other tables is asked by news_for, which waits for none of them: a lease must not depend on a table that somebody rebuilds.
-- And what somebody wishes of this server: to take no new work, or to leave.
-- $1 id, $2 name, $3 version, $4 engine, $5 engine answers, $6 claims, $7 lease in seconds, $8 the id that it had before, if any, $9 what was
-- wished of it then.
with beaten as (
    insert into stationmaster_internal.servers (id, name, version, engine, engine_up, claiming, lease_until, wish, engine_away_at)
    values ($1, case when exists (select from stationmaster_internal.servers s where s.id = $1) then $2
                     else stationmaster_internal.register_server($1, $2, $3, $4, $8) end,
            $3, $4, $5, $6, now() + make_interval(secs => $7), $9, case when not $5 then now() end)
    on conflict (id) do update
        set seen_at = now(), lease_until = excluded.lease_until, engine_up = excluded.engine_up, claiming = excluded.claiming,
            engine_away_at = case when not excluded.engine_up then coalesce(servers.engine_away_at, now()) end
        where servers.lease_until > clock_timestamp()
    returning id, xmax = 0 as made, wish
)
select b.id, b.made, b.wish,
       exists (select from stationmaster_internal.servers s where s.lease_until <= now() and s.id <> b.id) as lost_servers,
       n.lost_wakes, n.cancels, n.active
from beaten b
cross join lateral stationmaster_internal.news_for(b.id) n
