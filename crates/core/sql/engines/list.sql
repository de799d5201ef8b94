-- The engines on record, the current one of each name first, with what still runs on each. Called by `engine show`.
-- Locks nothing. The table has a row for each engine ever used; the active table is small.
select e.name, e.identity, e.place, e.recorded_by, e.recorded_at::text as recorded_at, e.retired_at::text as retired_at,
       (select count(*) from stationmaster_internal.executions_active a where a.engine_id = e.id) as active
from stationmaster_internal.engines e
order by e.retired_at is not null, e.name, e.id desc
