-- Puts many signals into the inbox in one statement; an id that was used before in its project is skipped. Called by the API, in batches.
-- Every way in ends in the trigger accept_signals. Index: signals_inbox_pkey.
-- $1 ids, $2 projects, $3 task queues, $4 names, $5 payloads, $6 correlation ids, $7 trace contexts, $8 who.
insert into stationmaster_internal.signals_inbox (id, project, task_queue, name, payload, correlation_id, traceparent, sent_by)
select a.id, a.project, a.task_queue, a.name, a.payload::jsonb, a.correlation_id, a.traceparent, $8
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) with ordinality
    as a (id, project, task_queue, name, payload, correlation_id, traceparent, place)
order by a.place
on conflict (key) do nothing
returning id, project
