-- The token of a name that is not revoked, for people. Locks nothing. Index: tokens_by_name.
-- $1 name.
select id, name, hint, role, workspaces, stationmaster_internal.workspaces_called(workspaces) as workspace_names,
       created_at, created_by, expires_at, revoked_at, last_used_at,
       expires_at is null or expires_at > now() as active
from stationmaster_internal.tokens
where name = $1 and revoked_at is null
