-- Which targets do not answer which servers, the one that has been silent longest first. Called for people. Locks nothing.
-- Index: target_breakers_pkey, servers_pkey, alarm_definitions_by_workspace. Whoever does not see all is told of the targets of the alarms that they see.
-- $1 workspaces (null: all), $2 how many.
select b.target, b.server_id, s.name as server, b.opened_at
from stationmaster_internal.target_breakers b
join stationmaster_internal.servers s on s.id = b.server_id
where s.lease_until > now()
  and ($1::uuid[] is null
       or exists (select from stationmaster_internal.alarm_definitions d
                  where d.workspace_id = any ($1)
                    and (d.target_url = b.target or starts_with(d.target_url, b.target || '/') or (d.target_url is null and b.target = 'router'))))
order by b.opened_at, b.target, b.server_id
limit $2
