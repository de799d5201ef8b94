-- What waits in a workspace, by workflow: what is ready, up to a bound, and what is held because its workflow is paused. Called by people.
-- Locks nothing. Index: queue_pending_in_line, workflow_definitions_by_workspace, queue_items_pkey.
-- $1 workspace, $2 how many are looked at.
with waiting as (
    (select workflow_definition_id, item_id, false as parked
     from stationmaster_internal.queue_pending
     where workspace_id = $1 and stage = 'ready'
     limit $2)
    union all
    select p.workflow_definition_id, p.item_id, true
    from stationmaster.workflow_definitions d
    cross join lateral (
        select workflow_definition_id, item_id
        from stationmaster_internal.queue_pending
        where workspace_id = $1 and stage = 'parked' and workflow_definition_id = d.id
        limit $2) p
    where d.workspace_id = $1 and d.paused
), counted as (
    -- Ids grow with time, so the smallest is the oldest.
    select workflow_definition_id, count(*) filter (where not parked) as ready, count(*) filter (where parked) as parked,
           (array_agg(item_id order by item_id))[1] as oldest
    from waiting
    group by workflow_definition_id
)
select c.workflow_definition_id, d.name as workflow, c.ready, c.parked, i.created_at as oldest_at
from counted c
left join stationmaster.workflow_definitions d on d.id = c.workflow_definition_id
join stationmaster_internal.queue_items i on i.id = c.oldest
order by c.ready + c.parked desc, d.name
