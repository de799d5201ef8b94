-- The facts from which it is told why an item waits, and for how long. Locks nothing; positions are counted up to 10,000, and of
-- what ended the last fifty executions of the workspace that ran are asked how long they did.
-- Index: queue_pending_pkey, queue_pending_ready, executions_finished_by_workspace; what runs is read whole.
-- $1 item.
select p.workspace_id, p.stage, p.run_at, p.waits_for, p.last_error, c.paused as workspace_paused,
       coalesce(d.paused, false) as definition_paused, c.active, c.max_concurrent,
       (select count(*) from (select from stationmaster_internal.queue_pending q
                              where q.workspace_id = p.workspace_id and q.stage = 'ready' and (q.rank, q.seq) < (p.rank, p.seq)
                              limit 10000) ahead) + 1 as position,
       (select count(*) from stationmaster_internal.servers where lease_until > now() and claiming) as servers,
       (select coalesce(bool_or(engine_up), false) from stationmaster_internal.servers where lease_until > now() and claiming) as engine_up,
       array(select a.execution_id from stationmaster_internal.executions_active a
             where a.workspace_id = p.workspace_id order by a.claimed_at limit 20) as holders,
       r.runs, r.seconds, now() as asked_at
from stationmaster_internal.queue_pending p
join stationmaster_internal.workspace_capacity c on c.workspace_id = p.workspace_id
left join stationmaster.workflow_definitions d on d.id = p.workflow_definition_id
cross join lateral (
    select count(*) as runs, avg(greatest(extract(epoch from f.ended_at - f.claimed_at), 0))::double precision as seconds
    from (select coalesce(f.closed_at, f.finished_at) as ended_at, f.claimed_at
          from stationmaster_internal.executions_finished f
          where f.workspace_id = p.workspace_id and f.dispatched_at is not null
          order by f.execution_id desc
          limit 50) f
) r
where p.item_id = $1
