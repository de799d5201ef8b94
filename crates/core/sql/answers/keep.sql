-- Keeps the answer to a request for its repeats. Called after the request was carried out. Locks the key's row.
-- Index: api_answers_pkey. $1 token, $2 key, $3 status, $4 media type, $5 body.
update stationmaster_internal.api_answers
set status = $3, kind = $4, body = $5
where token_id = $1 and key = $2
