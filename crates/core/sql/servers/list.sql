-- Servers, for people: those that are there, the oldest first, then, when they are asked for, those that have left, the last one first.
-- Locks nothing. The tables have a row per server, so they are read whole; what runs is counted.
-- $1 those that left too, $2 only this one, by its id (null: all), $3 or by its name, $4 whose executions are counted (null: everybody's).
-- How much was taken out of a server's hands is kept for everybody together, so it is told only to whoever sees all.
with held as (
    select holder, count(*) as executions
    from stationmaster_internal.executions_active
    where $4::uuid[] is null or workspace_id = any ($4)
    group by holder
)
select coalesce(s.id, n.id) as id, coalesce(s.name, n.name) as name, coalesce(s.version, n.version) as version,
       coalesce(s.engine, n.engine) as engine, coalesce(s.engine_up, false) as engine_up, coalesce(s.claiming, false) as claiming,
       s.engine_away_at,
       coalesce(s.started_at, n.since) as started_at, coalesce(s.seen_at, n.left_at, n.since) as seen_at,
       coalesce(s.lease_until > now(), false) as alive, coalesce(s.wish is not null and s.lease_until > now(), false) as draining,
       coalesce(h.executions, 0) as in_hand, n.left_at, n.ended, case when $4::uuid[] is null then coalesce(n.recovered, 0) else 0 end as recovered,
       (select r.name from stationmaster_internal.server_names r where r.id = n.recovered_by) as recovered_by
from stationmaster_internal.servers s
full join stationmaster_internal.server_names n on n.id = s.id
left join held h on h.holder = coalesce(s.id, n.id)
where (s.id is not null or $1)
  and (($2::uuid is null and $3::text is null) or coalesce(s.id, n.id) = $2 or coalesce(s.name, n.name) = $3)
order by s.id is null, coalesce(s.lease_until > now(), false) desc, case when s.id is not null then s.started_at end, n.left_at desc nulls last,
         n.since desc, id
limit 1000
