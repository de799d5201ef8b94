-- How many signals wait, counted up to 100,000, and how long the oldest has. Called when metrics are asked for. Locks nothing.
-- Index: signals_pending_by_dispatcher for the oldest of each dispatcher.
select (select count(*)::double precision from (select from stationmaster_internal.signals_pending limit 100000) p) as waiting,
       (select extract(epoch from now() - min(o.received_at))::double precision
        from stationmaster.dispatchers d
        cross join lateral (select received_at from stationmaster_internal.signals_pending p
                            where p.dispatcher_id = d.id order by p.seq limit 1) o) as oldest
