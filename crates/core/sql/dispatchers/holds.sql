-- Does this epoch still own the dispatcher? Called by self-checks. Locks nothing. Index: dispatchers_pkey.
-- $1 dispatcher, $2 epoch, $3 owner.
select exists (select from stationmaster.dispatchers
               where id = $1 and epoch = $2 and owner = $3 and handed_over_at is null and lease_until > now())
