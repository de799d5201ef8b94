-- Nobody owns the dispatcher any more, and nothing of its last owner is left: the row says so too. Called by the supervisor,
-- last of all. Locks the row. Index: dispatchers_pkey. $1 dispatcher, $2 epoch.
update stationmaster.dispatchers
set owner = null, run_id = null, run_started_at = null
where id = $1 and epoch = $2 and (lease_until > now() and handed_over_at is null) is not true
returning id
