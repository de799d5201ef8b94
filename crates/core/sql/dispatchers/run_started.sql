-- Remembers the run of an epoch. Refused under another epoch: the answer is empty. Called by the owner once the engine has it.
-- Locks the row. Index: dispatchers_pkey. $1 dispatcher, $2 epoch, $3 owner, $4 run.
update stationmaster.dispatchers
set run_id = $4, run_started_at = now()
where id = $1 and epoch = $2 and owner = $3 and handed_over_at is null
returning id
