-- Enqueues many items in one statement. Called by the API, in batches. The trigger accept_items does the rest.
-- $1 ids, $2 workspaces, $3 definitions, $4 inputs, $5 priorities, $6 earliest starts (null: now),
-- $7 idempotency keys, $8 trace contexts, $9 correlation ids, $10 who.
insert into stationmaster_internal.queue_door
    (id, workspace_id, workflow_definition_id, workflow_definition_version_id, input, priority, run_at, idempotency_key,
     traceparent, correlation_id, enqueued_by)
select a.id, a.workspace_id, a.definition_id, d.current_version_id, a.input::jsonb, a.priority, a.run_at,
       a.idempotency_key, a.traceparent, a.correlation_id, $10
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::integer[], $6::timestamptz[], $7::text[], $8::text[], $9::text[])
    with ordinality
    as a (id, workspace_id, definition_id, input, priority, run_at, idempotency_key, traceparent, correlation_id, place)
left join stationmaster.workflow_definitions d on d.id = a.definition_id
order by a.place
on conflict (workspace_id, idempotency_key) where idempotency_key is not null do nothing
returning id
