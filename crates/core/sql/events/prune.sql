-- Forgets the oldest events, a batch at a time, in order: what is kept has no gaps. Called now and then by every server.
-- Locks what it deletes. Index: events_pkey. $1 retention in seconds, $2 how many are kept at most.
delete from stationmaster_internal.events
where position = any (array(select position from (select position, at from stationmaster_internal.events order by position limit 5000) oldest
                            where at < now() - make_interval(secs => $1)
                               or position <= (select s.position - $2 from stationmaster_internal.event_sequence s)))
