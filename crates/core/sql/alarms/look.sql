-- One look without a write: is there anything to plan, and how long until the next claim? Called by the claim loop before it
-- opens a transaction, so that idle alarms cost a read and nothing else. Locks nothing.
-- Index: alarm_standings_due, occurrences_open_ready. $1, $2 the instants (in seconds since 1970) to look from.
select exists (select from stationmaster_internal.alarm_unplanned) as unplanned,
       extract(epoch from least(
           (select min(next_due_at) from stationmaster_internal.alarm_standings
            where next_due_at >= to_timestamp($1) and next_due_at is not null and not held),
           (select min(ready_at) from stationmaster_internal.occurrences_open where ready_at >= to_timestamp($2) and ready_at < 'infinity')
       ) - clock_timestamp())::double precision as next_due_in,
       extract(epoch from clock_timestamp())::double precision as now
