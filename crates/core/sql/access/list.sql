-- Tokens in the order of their ids, for people. Locks nothing. Index: tokens_pkey.
-- $1 after this id, $2 how many, $3 only this one (null: all).
select id, name, hint, role, workspaces, created_at, created_by, expires_at, revoked_at, last_used_at,
       revoked_at is null and (expires_at is null or expires_at > now()) as active
from stationmaster_internal.tokens
where id > $1 and ($3::uuid is null or id = $3)
order by id
limit $2
