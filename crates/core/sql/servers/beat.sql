-- A server's heartbeat: lengthens its lease, or registers it. A lease that has run out is not lengthened: others may
-- have taken over already, so the answer is empty and the server must come back under a new id.
-- Called by presence, every second. Locks its own row. Index: servers_pkey.
-- $1 id, $2 name, $3 version, $4 engine, $5 engine answers, $6 claims, $7 lease in seconds.
insert into stationmaster_internal.servers (id, name, version, engine, engine_up, claiming, lease_until)
values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7))
on conflict (id) do update
    set seen_at = now(), lease_until = excluded.lease_until, engine_up = excluded.engine_up, claiming = excluded.claiming
    where servers.lease_until > clock_timestamp()
returning id
