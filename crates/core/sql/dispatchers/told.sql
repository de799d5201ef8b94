-- The webhook has confirmed an event. Called by the herald. Locks the row.
-- Index: dispatcher_events_pkey. $1 event.
update stationmaster.dispatcher_events
set told_at = now()
where id = $1
