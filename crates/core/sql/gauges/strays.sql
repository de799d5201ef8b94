-- How many runs the engine holds open that no row tells of. Called when metrics are asked for. Locks nothing. The table holds nothing
-- else, and is read whole.
select count(*)::double precision as strays
from stationmaster_internal.stray_runs
