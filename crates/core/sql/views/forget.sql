-- Forgets a view of an owner, or one that is for all. Called by the API. Locks its row. Index: views_pkey.
-- $1 the view, $2 owner, $3 those for all too.
delete from stationmaster_internal.views
where id = $1 and (owner = $2 or ($3 and shared))
returning id
