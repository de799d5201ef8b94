-- Items that were enqueued before under the same keys, and whether the request is the same.
-- Called after an enqueue that skipped some. Locks nothing. Index: queue_items_idempotency.
-- $1 workspaces, $2 keys, $3 definitions, $4 inputs, $5 priorities, $6 earliest starts.
select a.place, i.id,
       i.workflow_definition_id = a.definition_id and i.input = a.input::jsonb and i.priority = a.priority
           and i.run_at is not distinct from a.run_at as same
from unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::integer[], $6::timestamptz[]) with ordinality
    as a (workspace_id, idempotency_key, definition_id, input, priority, run_at, place)
join stationmaster_internal.queue_items i on i.workspace_id = a.workspace_id and i.idempotency_key = a.idempotency_key
