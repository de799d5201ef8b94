-- What a change of the engine of this name would meet: what starts and runs on it or on one before it. Called by `engine change`
-- before it asks. Locks nothing; reads the small active table. $1 name.
select count(*) filter (where a.state = 'STARTING') as starting, count(*) filter (where a.state = 'RUNNING') as running
from stationmaster_internal.executions_active a
join stationmaster_internal.engines e on e.id = a.engine_id
where e.name = $1
