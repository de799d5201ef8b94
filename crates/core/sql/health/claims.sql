-- Claims whose lease is over for longer than recovery should take, and how old the oldest item is that waits and could run.
-- Called by `health::claims`. Locks nothing. Index: the active executions are few; queue_pending_in_line has no age, so at most
-- 1,000 ready items are looked at. $1 seconds.
select (select count(*) from stationmaster_internal.executions_active
        where state = 'STARTING' and lease_until < now() - make_interval(secs => $1)) as overdue,
       (select count(*) from (select from stationmaster_internal.queue_pending where stage = 'ready' limit 1000) ready) as ready
