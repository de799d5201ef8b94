-- The first event that is kept and the last that was numbered. Called when somebody begins to listen. Locks nothing.
-- Index: events_pkey.
select coalesce((select e.position - coalesce(cardinality(e.items), 1) + 1 from stationmaster_internal.events e order by e.position limit 1),
                s.position + 1) as oldest,
       s.position as newest
from stationmaster_internal.event_sequence s
