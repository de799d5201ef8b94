-- Events that the webhook has not confirmed, oldest first; those of long ago are left out, as nobody wants to be woken by them.
-- Called by the herald. Locks nothing. Index: dispatcher_events_untold, server_names_pkey. $1 younger than these seconds, $2 how many.
select id, at, dispatcher_id, event, epoch, server_id, run_id, actor,
       stationmaster_internal.server_behind(actor) as server, detail::text as detail, traceparent
from stationmaster.dispatcher_events
where told_at is null and at > now() - make_interval(secs => $1)
order by id
limit $2
