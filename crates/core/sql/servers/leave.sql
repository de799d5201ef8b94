-- A server leaves in good order: its lease ends now. What it could not give back is recovered by the others at once;
-- the row goes when nothing is in its hands. Called at the end of a shutdown. Locks its own row and its record. Index: servers_pkey,
-- server_names_pkey. $1 id, $2 engines whose runs end with their server.
with ended as (
    update stationmaster_internal.servers
    set lease_until = now() - interval '1 millisecond', claiming = false
    where id = $1 and exists (select from stationmaster_internal.executions_active a
                              where a.holder = $1 and (a.state = 'STARTING' or a.engine = any ($2)))
    returning id
), told as (
    update stationmaster_internal.server_names n
    set left_at = now(), ended = case when s.wish is not null then 'drained' else 'left' end
    from stationmaster_internal.servers s
    where n.id = $1 and s.id = $1 and n.ended is null
)
delete from stationmaster_internal.servers
where id = $1 and not exists (select from ended)
