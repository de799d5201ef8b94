-- Makes a token, unless its end has come already. Called by the API and the CLI. Locks nothing but its own row. Index: tokens_by_name, tokens_hash_key.
-- $1 name, $2 hash, $3 hint, $4 role, $5 workspaces (null: all), $6 end (null: never), $7 by whom.
insert into stationmaster_internal.tokens (name, hash, hint, role, workspaces, expires_at, created_by)
select $1, $2, $3, $4, $5, $6, $7
where $6::timestamptz is null or $6 > now()
returning id, name, hint, role, workspaces, stationmaster_internal.workspaces_called(workspaces) as workspace_names,
          created_at, created_by, expires_at, revoked_at, last_used_at, true as active
