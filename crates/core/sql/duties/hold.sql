-- Takes or keeps a duty: work that one server does for all. Answers a row only to its holder, with the token that
-- fences its writes and the position where the work stands. Called before every round of such work.
-- A duty is free when its lease has run out, and when its holder's own has.
-- Locks the duty's row. Index: duties_pkey, servers_pkey. $1 name, $2 server, $3 lease in seconds.
insert into stationmaster_internal.duties as d (name, holder, token, lease_until)
values ($1, $2, 1, now() + make_interval(secs => $3))
on conflict (name) do update
    set holder = excluded.holder,
        token = d.token + (d.holder is distinct from excluded.holder)::integer,
        lease_until = excluded.lease_until
    where d.holder = excluded.holder or d.lease_until <= now()
       or not exists (select from stationmaster_internal.servers s where s.id = d.holder and s.lease_until > now())
returning token, position
