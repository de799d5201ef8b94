-- The facts from which the reason for waiting is told. Locks nothing; positions are counted up to 10,000.
-- $1 item.
select p.stage, p.run_at, p.waits_for, p.attempts, p.last_error, c.paused as workspace_paused, c.gone,
       coalesce(d.paused, false) as definition_paused, c.active, c.max_concurrent,
       (select count(*) from (select from stationmaster_internal.queue_pending q
                              where q.workspace_id = p.workspace_id and q.stage = 'ready' and (q.rank, q.seq) < (p.rank, p.seq)
                              limit 10000) ahead) + 1 as position,
       (select count(*) from stationmaster_internal.servers where lease_until > now() and claiming) as servers,
       (select coalesce(bool_or(engine_up), false) from stationmaster_internal.servers where lease_until > now() and claiming) as engine_up,
       array(select a.execution_id from stationmaster_internal.executions_active a
             where a.workspace_id = p.workspace_id order by a.claimed_at limit 20) as holders
from stationmaster_internal.queue_pending p
join stationmaster_internal.workspace_capacity c on c.workspace_id = p.workspace_id
left join stationmaster.workflow_definitions d on d.id = p.workflow_definition_id
where p.item_id = $1
