-- Tokens in the order of their ids, for people. Locks nothing. Index: tokens_pkey.
-- $1 after this id, $2 how many, $3 only this one (null: all), $4 those that are for nothing but these workspaces (null: all).
select id, name, hint, role, workspaces, stationmaster_internal.workspaces_called(workspaces) as workspace_names,
       created_at, created_by, expires_at, revoked_at, last_used_at,
       revoked_at is null and (expires_at is null or expires_at > now()) as active
from stationmaster_internal.tokens
where id > $1 and ($3::uuid is null or id = $3) and ($4::uuid[] is null or workspaces <@ $4)
order by id
limit $2
