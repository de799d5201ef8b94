-- How much waits in each of these inboxes, counted up to 1,000. Called by whoever announces. Locks nothing.
-- Index: signals_pending_by_dispatcher. $1 dispatchers.
select d.id, w.count, w.newest
from unnest($1::text[]) as d (id)
cross join lateral (
    select count(*) as count, max(p.seq) as newest
    from (select seq from stationmaster_internal.signals_pending where dispatcher_id = d.id order by seq limit 1000) p
) w
where w.count > 0
