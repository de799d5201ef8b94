-- Writes one event about a dispatcher and the same into the audit. Called by whoever acts outside of a statement of its own.
-- Locks nothing. $1 dispatcher, $2 event, $3 epoch, $4 server, $5 run, $6 actor, $7 detail, $8 trace.
select stationmaster_internal.tell_of_dispatcher($1, $2, $3, $4, $5, $6, $7::jsonb, $8)
