-- The views of an owner, and those that are for all, by name. Called by the API. Locks nothing. Index: views_by_owner, views_shared.
-- $1 owner, $2 those for all too, $3 only this one (null: any), $4 how many.
select id, name, path, shared, owner = $1 as own, made_by, created_at
from stationmaster_internal.views
where (owner = $1 or ($2 and shared)) and ($3::uuid is null or id = $3)
order by name, id
limit $4
