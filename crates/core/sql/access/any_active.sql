-- Is there a token that opens the door? Called when a server starts. Locks nothing.
-- The table has a row per token, so it is read until one is found.
select exists (select from stationmaster_internal.tokens
               where revoked_at is null and (expires_at is null or expires_at > now()))
