-- The workspace of a name. Called by the API for requests that name one. Locks nothing. Index: workspaces_by_name.
-- $1 name, $2 only of these (null: all).
select id from stationmaster.workspaces where name = $1 and ($2::uuid[] is null or id = any ($2))
