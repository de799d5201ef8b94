-- Up to where minutes are counted. Called by the API. Locks nothing.
-- Index: duties_pkey. $1 the duty.
select position
from stationmaster_internal.duties
where name = $1
