-- Signals that were sent before under the same ids, and whether they are the same.
-- Called after a send that skipped some. Locks nothing. Index: signals_inbox_pkey.
-- $1 ids, $2 projects, $3 task queues, $4 names, $5 payloads, $6 correlation ids.
select a.place,
       s.task_queue = a.task_queue and s.name = a.name and s.payload = a.payload::jsonb
           and s.correlation_id is not distinct from a.correlation_id as same
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) with ordinality
    as a (id, project, task_queue, name, payload, correlation_id, place)
join stationmaster_internal.signals_inbox s on s.key = stationmaster_internal.signal_key(a.id, a.project)
