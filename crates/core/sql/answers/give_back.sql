-- Gives a key back whose request was not carried out. Called when the server is at fault. Locks the key's row.
-- Index: api_answers_pkey. $1 token, $2 key.
delete from stationmaster_internal.api_answers
where token_id = $1 and key = $2 and status is null
