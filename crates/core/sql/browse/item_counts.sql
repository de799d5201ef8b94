-- How many items are in each status, looking at no more than a bound of each kind, the newest: where it was reached there may be more. Called
-- by people. Locks nothing. Planned anew for each filter. Index: queue_pending_in_line, queue_pending_later, executions_active_pkey,
-- executions_finished_pkey, executions_finished_by_workspace, executions_finished_badly, queue_items_pkey where a time is asked for.
-- $1 workspaces, $2 definition, $3 enqueued at or after, $4 enqueued before (null: any), $5 the bound, $6 that of what ended well where no workspace narrows it.
with waiting as (
    (select p.item_id, p.workspace_id, p.workflow_definition_id
     from stationmaster_internal.queue_pending p
     where $1::uuid[] is null
     limit $5)
    union all
    (select mine.item_id, mine.workspace_id, mine.workflow_definition_id
     from unnest($1::uuid[]) as w (id)
     cross join lateral (
         select p.item_id, p.workspace_id, p.workflow_definition_id
         from stationmaster_internal.queue_pending p
         where p.workspace_id = w.id and p.stage = 'ready'
         limit $5) mine
     limit $5)
    union all
    -- Of these no index knows the workspace: those of all are looked at, and not counted by whose they are not.
    (select p.item_id, p.workspace_id, p.workflow_definition_id
     from stationmaster_internal.queue_pending p
     where $1 is not null and p.stage = 'later' and p.waits_for is not null
     order by p.run_at
     limit $5)
    union all
    (select p.item_id, p.workspace_id, p.workflow_definition_id
     from stationmaster_internal.queue_pending p
     where $1 is not null and p.stage = 'parked'
     limit $5)
), active as (
    select a.item_id, a.workflow_definition_id, a.state
    from stationmaster_internal.executions_active a
    where $1 is null or a.workspace_id = any ($1)
    limit $5
), ended as (
    (select f.item_id, f.workflow_definition_id, f.item_status, f.superseded_at
     from stationmaster_internal.executions_finished f
     where $1 is null
     order by f.execution_id desc
     limit $6)
    union all
    (select mine.item_id, mine.workflow_definition_id, mine.item_status, mine.superseded_at
     from unnest($1) as w (id)
     cross join lateral (
         select f.item_id, f.workflow_definition_id, f.item_status, f.superseded_at
         from stationmaster_internal.executions_finished f
         where f.workspace_id = w.id
         order by f.workspace_id desc, f.execution_id desc
         limit $5) mine
     limit $5)
), badly as (
    select f.item_id, f.workflow_definition_id, f.item_status, f.superseded_at
    from stationmaster_internal.executions_finished f
    where $1 is null and coalesce(f.status, '') <> 'COMPLETED'
    order by f.execution_id desc
    limit $5
), looked as (
    select item_id, workflow_definition_id, 'PENDING' as status
    from waiting
    where $1 is null or workspace_id = any ($1)
    union all
    select item_id, workflow_definition_id, case state when 'STARTING' then 'CLAIMED' else 'DISPATCHED' end
    from active
    union all
    select item_id, workflow_definition_id, item_status
    from ended
    where superseded_at is null and ($1 is not null or item_status = 'DISPATCHED')
    union all
    select item_id, workflow_definition_id, item_status
    from badly
    where superseded_at is null and item_status <> 'DISPATCHED'
), counted as (
    select l.status, count(*) as count
    from looked l
    where ($2::uuid is null or l.workflow_definition_id = $2)
      and (($3::timestamptz is null and $4::timestamptz is null)
           or exists (select from stationmaster_internal.queue_items i where i.id = l.item_id
                      and ($3::timestamptz is null or i.created_at >= $3) and ($4::timestamptz is null or i.created_at < $4)))
    group by l.status
), reached as (
    select (select count(*) from waiting) >= $5 as waiting, (select count(*) from active) >= $5 as active,
           (select count(*) from ended) >= case when $1 is null then $6 else $5 end as ended, (select count(*) from badly) >= $5 as badly
), fuller as (
    select waiting, active, ended, case when $1 is null then badly else ended end as badly
    from reached
)
select known.status, coalesce(c.count, 0) as count, known.more
from fuller f
cross join lateral (values ('PENDING', f.waiting), ('CLAIMED', f.active), ('DISPATCHED', f.active or f.ended), ('FAILED', f.badly),
                           ('CANCELLED', f.badly)) as known (status, more)
left join counted c on c.status = known.status
