-- What waits in a dispatcher's inbox, oldest first, each with the trigger that its name meets. Called before a route.
-- The payload is read only where a schema wants to see it. Locks nothing. Index: signals_pending_by_dispatcher.
-- $1 dispatcher, $2 how many.
select p.signal_key, s.name, t.workflow_definition_id, d.workspace_id, coalesce(t.priority, 0) as priority,
       t.payload_schema::text as payload_schema, case when t.payload_schema is not null then s.payload::text end as payload,
       d.current_version_id is not null as published
from stationmaster_internal.signals_pending p
join stationmaster_internal.signals_inbox s on s.key = p.signal_key
left join lateral (
    select g.workflow_definition_id, g.payload_schema, g.priority
    from stationmaster.triggers g
    where g.project = s.project and g.name = s.name and g.task_queue in (s.task_queue, '')
    order by g.task_queue desc
    limit 1
) t on true
left join stationmaster.workflow_definitions d on d.id = t.workflow_definition_id
where p.dispatcher_id = $1
order by p.seq
limit $2
