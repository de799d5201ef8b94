-- How many dispatchers are owned, rest until a signal comes, or are vacant; and for how many signals wait that nobody owns.
-- Called when metrics are asked for. Locks nothing. The table has a row per dispatcher, so it is read whole.
-- Index: signals_pending_by_dispatcher.
with standing as (
    select id, (lease_until > clock_timestamp() and handed_over_at is null) is true as owned, resting_since is not null as resting
    from stationmaster.dispatchers
)
select count(*) filter (where owned)::double precision as owned,
       count(*) filter (where not owned and resting)::double precision as resting,
       count(*) filter (where not owned and not resting)::double precision as vacant,
       count(*) filter (where not owned and exists (
           select from stationmaster_internal.signals_pending p where p.dispatcher_id = s.id))::double precision as unattended
from standing s
