-- Forgets the oldest minutes of servers, a batch at a time. Called now and then by every server. Locks what it deletes.
-- Index: history_servers_at (brin). $1 retention in seconds, $2 how many.
delete from stationmaster_internal.history_servers
where ctid = any (array(select ctid from stationmaster_internal.history_servers
                        where minute < now() - make_interval(secs => $1) limit $2))
