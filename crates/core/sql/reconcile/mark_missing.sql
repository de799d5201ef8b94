-- A first look found that the engine does not know these runs; a second look decides. Called by the reconciler.
-- Locks active rows in id order. Index: executions_active_pkey. $1 executions, $2 missing (else: found again).
with mine as materialized (
    select execution_id
    from stationmaster_internal.executions_active
    where execution_id = any ($1) and (missing_since is not null) <> $2
    order by execution_id
    for update
)
update stationmaster_internal.executions_active a
set missing_since = case when $2 then now() end
from mine
where a.execution_id = mine.execution_id
