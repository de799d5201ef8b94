-- The token with this hash, and whether it opens the door. Called for requests, behind a cache of seconds. Locks nothing.
-- What its workspaces are called is asked when somebody is shown it.
-- Index: tokens_hash_key. $1 hash.
select id, name, hint, role, workspaces, null::text[] as workspace_names, created_at, created_by, expires_at, revoked_at, last_used_at,
       revoked_at is null and (expires_at is null or expires_at > now()) as active
from stationmaster_internal.tokens
where hash = $1
