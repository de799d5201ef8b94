-- Compares the counters with the rows they count and mends what differs; there should never be anything.
-- Called by housekeeping. Locks capacity rows in id order, then counts in the same statement only what the lock protects
-- from change: rows of locked workspaces. $1 workspaces whose rows the caller has locked in an earlier statement.
with counted as (
    select c.workspace_id, count(a.execution_id)::integer as rows
    from stationmaster_internal.workspace_capacity c
    left join stationmaster_internal.executions_active a using (workspace_id)
    where c.workspace_id = any ($1)
    group by c.workspace_id
)
update stationmaster_internal.workspace_capacity c
set active = n.rows
from counted n
where c.workspace_id = n.workspace_id and c.active <> n.rows
returning c.workspace_id, n.rows
