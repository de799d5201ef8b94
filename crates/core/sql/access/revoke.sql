-- Revokes a token, by id or by name; the first revocation stays. Called by the API and the CLI. Locks the token's row.
-- Index: tokens_pkey, tokens_by_name. $1 id (null: by name), $2 name, $3 by whom.
update stationmaster_internal.tokens
set revoked_at = coalesce(revoked_at, now()), revoked_by = coalesce(revoked_by, $3)
where id = $1 or (name = $2 and revoked_at is null)
returning id, name, hint, role, workspaces, stationmaster_internal.workspaces_called(workspaces) as workspace_names,
          created_at, created_by, expires_at, revoked_at, last_used_at, false as active
