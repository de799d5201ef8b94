-- Operations as people see them.

create or replace view stationmaster.operations with (security_invoker = true) as
select o.id, o.kind, o.request as filter, o.workspaces, o.status, o.as_of, o.total, o.more as total_is_least, o.done,
       case when o.ended_at is not null and not o.more then greatest(o.total - o.done, 0) end as unchanged,
       o.created_at, o.created_by, o.started_at, s.name as server, o.ended_at, o.ended_by, o.error
from stationmaster_internal.operations o
left join stationmaster_internal.server_names s on s.id = o.server_id;
