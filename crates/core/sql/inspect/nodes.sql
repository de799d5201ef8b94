-- The graph that an execution runs, and where its run stands as far as that is remembered. Called for people, once they may see the execution.
-- Locks nothing. Index: workflow_definition_versions_pkey, embedded_runs_pkey. $1 version, $2 execution.
select v.workflow::text as graph, r.position, r.wake_at, r.wake_at <= now() as woken
from stationmaster.workflow_definition_versions v
left join stationmaster_internal.embedded_runs r on r.execution_id = $2
where v.id = $1
