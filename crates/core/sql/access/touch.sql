-- Notes that a token was used, unless that was noted within the last minute. Called by servers, seldom. Locks its row.
-- Index: tokens_pkey. $1 token.
update stationmaster_internal.tokens
set last_used_at = now()
where id = $1 and (last_used_at is null or last_used_at < now() - interval '55 seconds')
