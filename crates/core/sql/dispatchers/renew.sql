-- Lengthens the leases that a server holds. A lease that has run out or was taken is not lengthened: what is missing from the
-- answer is lost. The lease is looked at again under the lock, which may have been long in coming. Called by the owner, several
-- times a lease. Locks the rows in id order. Index: dispatchers_pkey.
-- Answers what is kept, and whether somebody wishes that it be removed. $1 server, $2 dispatchers, $3 epochs, $4 lease in seconds.
with mine as materialized (
    select d.id
    from unnest($2::text[], $3::bigint[]) as a (id, epoch)
    join stationmaster.dispatchers d on d.id = a.id and d.epoch = a.epoch
    where d.owner = $1 and d.handed_over_at is null and d.lease_until > now()
    order by d.id
    for update of d
)
update stationmaster.dispatchers d
set lease_until = now() + make_interval(secs => $4)
from mine m
where d.id = m.id and d.lease_until > clock_timestamp()
returning d.id, d.removal_wished_at is not null as unwanted
