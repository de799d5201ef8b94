-- Forgets what happened to dispatchers longer ago than the retention time; the audit keeps it. Called by housekeeping of
-- signals. Locks only rows that nobody works on. Index: dispatcher_events_at (brin). $1 retention in seconds, $2 how many.
delete from stationmaster.dispatcher_events e
where e.id = any (array(select id from stationmaster.dispatcher_events
                        where at < now() - make_interval(secs => $1) order by id limit $2))
