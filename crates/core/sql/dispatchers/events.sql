-- What happened to a dispatcher, or to all of them, newest first. Called for people. Locks nothing.
-- Index: dispatcher_events_by_dispatcher, dispatcher_events_pkey, server_names_pkey. $1 dispatcher, $2 older than this event, $3 how many.
select id, at, dispatcher_id, event, epoch, server_id, run_id, actor,
       stationmaster_internal.server_behind(actor) as server, detail::text as detail
from stationmaster.dispatcher_events
where ($1::text is null or dispatcher_id = $1) and id < $2
order by id desc
limit $3
