-- How many failures of some groups ended in each of the last hours, the newest up to a bound. Called by people. Locks nothing. Planned
-- anew for each scope. Index: failures_by_group, failures_open. $1 groups, $2 workspaces (null: all), $3 hours, $4 how many of each group.
select f.group_id, ($3 - 1 - floor(extract(epoch from now() - f.at) / 3600))::integer as hour, count(*)
from unnest($1::bigint[]) as g (id)
cross join lateral (
    select f.group_id, f.at
    from stationmaster_internal.failures f
    where f.group_id = g.id and f.set_aside_at is null and f.at > now() - make_interval(hours => $3)
      and ($2::uuid[] is null or f.workspace_id = any ($2))
    order by f.id desc
    limit $4) f
group by f.group_id, 2
