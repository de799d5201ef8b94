-- A node with an effect outside is finished, or a long wait has begun: remembered, so that another server goes on from
-- there. Only a claim as young as the last writer's may write; an older one gets no answer and must stop.
-- Called by a run of the embedded engine. Locks the run's row. Index: embedded_runs_pkey.
-- $1 execution, $2 token, $3 position, $4 seconds to wait (null: none), $5 outputs so far.
insert into stationmaster_internal.embedded_runs as r (execution_id, token, position, wake_at, outputs)
values ($1, $2, $3, clock_timestamp() + make_interval(secs => $4), $5::jsonb)
on conflict (execution_id) do update
    set token = excluded.token, position = excluded.position, wake_at = excluded.wake_at, outputs = excluded.outputs
    where r.token <= excluded.token
returning r.execution_id
