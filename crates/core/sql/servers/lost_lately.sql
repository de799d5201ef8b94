-- Servers that were lost within the last hour and buried since, each name once, unless one of that name is there again: for people, who would
-- not learn of it otherwise. Locks nothing. The tables have a row per server, so they are read whole.
-- $1 whose executions are told of (null: everybody's). How much was taken out of a server's hands is kept for everybody together, so it is
-- told only to whoever sees all.
select id, name, version, engine, engine_up, claiming, engine_away_at, started_at, seen_at, alive, draining, in_hand, left_at, ended, recovered,
       recovered_by
from (select distinct on (n.name) n.id, n.name, n.version, n.engine, false as engine_up, false as claiming, null::timestamptz as engine_away_at,
             n.since as started_at, n.left_at as seen_at, false as alive, false as draining, 0::bigint as in_hand, n.left_at, n.ended,
             case when $1::uuid[] is null then n.recovered else 0 end as recovered,
             (select r.name from stationmaster_internal.server_names r where r.id = n.recovered_by) as recovered_by
      from stationmaster_internal.server_names n
      where n.ended = 'lost' and n.left_at > now() - interval '1 hour'
        and not exists (select from stationmaster_internal.servers s where s.name = n.name and s.lease_until > now())
      order by n.name, n.left_at desc) as lost
order by left_at desc, id
limit 20
