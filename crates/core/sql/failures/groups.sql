-- Groups of failures that need a person, the one with the newest failure first. Called by people. Locks nothing. Planned anew for each
-- scope. Steps from one workspace to the next and from one group to the next by the index, whatever their failures number, and then
-- looks at the ends of each. Index: failures_open, alarm_definitions_pkey.
-- $1 workspaces (null: all), $2 kind, $3 definition, $4 at or after, $5 before, $6 pattern in the message (null: any), $7 groups that
-- are looked at at most, $8 failures of a group that are counted at most, $9 only this group (null: any).
with recursive spaces (workspace_id) as (
    (select f.workspace_id
     from stationmaster_internal.failures f
     where $1::uuid[] is null and f.set_aside_at is null
     order by f.workspace_id
     limit 1)
    union all
    select (select f.workspace_id
            from stationmaster_internal.failures f
            where f.set_aside_at is null and f.workspace_id > s.workspace_id
            order by f.workspace_id
            limit 1)
    from spaces s
    where s.workspace_id is not null
), scope as (
    select workspace_id from spaces where workspace_id is not null
    union all
    select w.id from unnest($1::uuid[]) as w (id)
), groups as (
    select s.workspace_id, g.group_id
    from scope s
    cross join lateral (
        with recursive step (group_id) as (
            (select f.group_id
             from stationmaster_internal.failures f
             where f.set_aside_at is null and f.workspace_id = s.workspace_id and ($9::bigint is null or f.group_id = $9)
             order by f.group_id
             limit 1)
            union all
            select (select f.group_id
                    from stationmaster_internal.failures f
                    where f.set_aside_at is null and f.workspace_id = s.workspace_id and f.group_id > step.group_id and $9::bigint is null
                    order by f.group_id
                    limit 1)
            from step
            where step.group_id is not null
        )
        select group_id from step where group_id is not null
    ) g
    limit $7
)
select lpad(to_hex(g.group_id), 15, '0') as id, newest.kind, nullif(g.workspace_id, '00000000-0000-0000-0000-000000000000') as workspace_id,
       (select w.name from stationmaster.workspaces w where w.id = g.workspace_id) as workspace, newest.workflow_definition_id,
       (select d.name from stationmaster.workflow_definitions d where d.id = newest.workflow_definition_id) as workflow, newest.alarm_id,
       (select a.name from stationmaster_internal.alarm_definitions a where a.id = newest.alarm_id) as alarm, counted.count, oldest.at as first_at, newest.at as last_at, newest.message,
       newest.item_id as queue_item_id, newest.execution_id, newest.scheduled_for, newest.signal_id
from groups g
cross join lateral (
    select f.*
    from stationmaster_internal.failures f
    where f.set_aside_at is null and f.workspace_id = g.workspace_id and f.group_id = g.group_id
      and ($5::timestamptz is null or f.at < $5)
    order by f.at desc
    limit 1) newest
cross join lateral (
    select f.at
    from stationmaster_internal.failures f
    where f.set_aside_at is null and f.workspace_id = g.workspace_id and f.group_id = g.group_id
      and ($4::timestamptz is null or f.at >= $4)
    order by f.at
    limit 1) oldest
cross join lateral (
    select count(*)
    from (select from stationmaster_internal.failures f
          where f.set_aside_at is null and f.workspace_id = g.workspace_id and f.group_id = g.group_id
            and ($4::timestamptz is null or f.at >= $4) and ($5::timestamptz is null or f.at < $5)
          limit $8) few) counted
where ($2::text is null or newest.kind = $2) and ($3::uuid is null or newest.workflow_definition_id = $3)
  and ($4::timestamptz is null or newest.at >= $4) and ($6::text is null or newest.message ilike $6) and counted.count > 0
order by newest.at desc, g.group_id desc
