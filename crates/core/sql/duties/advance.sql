-- Remembers how far a duty has come, under its token. Locks the duty's row. Index: duties_pkey.
-- $1 name, $2 token, $3 position.
update stationmaster_internal.duties
set position = $3
where name = $1 and token = $2
