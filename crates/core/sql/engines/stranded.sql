-- What holds a slot on engines of this name that are retired: nobody will ever hear of it. Called by `engine change`, which ends it.
-- Locks nothing; reads the small active table. $1 name, $2 how many.
select execution_id
from stationmaster_internal.executions_active
where engine_id in (select id from stationmaster_internal.engines where name = $1 and retired_at is not null)
order by execution_id
limit $2
