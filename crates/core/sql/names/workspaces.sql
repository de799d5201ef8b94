-- Workspaces by the beginning of their ids or of their names. Called by the API to say what may have been meant. Locks
-- nothing. Index: workspaces_pkey, workspaces_by_name. $1 from this id, $2 to this id, $3 names that begin so, $4 only of these (null: all), $5 how many.
select w.id, w.name, w.name as workspace
from stationmaster.workspaces w
where w.id between $1 and $2 and starts_with(w.name, $3) and ($4::uuid[] is null or w.id = any ($4))
order by w.name
limit $5
