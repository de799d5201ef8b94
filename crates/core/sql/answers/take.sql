-- Takes a key for a request: inserts it, or takes it over when it is a day old; else tells what is known of it, also that its
-- request was cut off: no request takes a minute. Called for requests with an idempotency key. Locks the key's row. Index: api_answers_pkey.
-- $1 token, $2 key, $3 hash of the request.
with taken as (
    insert into stationmaster_internal.api_answers as a (token_id, key, request)
    values ($1, $2, $3)
    on conflict (token_id, key) do update
        set request = excluded.request, status = null, kind = null, body = null, created_at = now()
        where a.created_at < now() - interval '1 day'
    returning true as taken, request, status, kind, body
)
select taken, request, status, kind, body, false as cut_off from taken
union all
select false, request, status, kind, body, status is null and created_at < now() - interval '1 minute'
from stationmaster_internal.api_answers
where token_id = $1 and key = $2 and not exists (select from taken)
