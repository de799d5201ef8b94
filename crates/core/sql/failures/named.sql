-- Groups whose ids begin with the same digits, at most two of them. Called by people. Locks nothing. Index: failures_by_group.
-- $1 the first id of the range, $2 the last, $3 workspaces (null: all).
with recursive step (group_id) as (
    (select f.group_id
     from stationmaster_internal.failures f
     where f.group_id between $1 and $2 and ($3::uuid[] is null or f.workspace_id = any ($3))
     order by f.group_id
     limit 1)
    union all
    select (select f.group_id
            from stationmaster_internal.failures f
            where f.group_id > step.group_id and f.group_id <= $2 and ($3::uuid[] is null or f.workspace_id = any ($3))
            order by f.group_id
            limit 1)
    from step
    where step.group_id is not null
)
select group_id
from step
where group_id is not null
limit 2
