-- Forgets operations that ended long ago, a batch at a time. Called now and then by every server. Locks what it deletes.
-- Index: operations_ended. $1 retention in seconds, $2 how many.
delete from stationmaster_internal.operations
where id = any (array(select id from stationmaster_internal.operations
                      where ended_at < now() - make_interval(secs => $1) order by ended_at limit $2))
