-- Forgets answers that are older than a day. Called now and then by every server. Locks what it deletes, skipping others.
-- Index: api_answers_at.
delete from stationmaster_internal.api_answers
where (token_id, key) in (select token_id, key from stationmaster_internal.api_answers
                          where created_at < now() - interval '1 day' limit 1000 for update skip locked)
