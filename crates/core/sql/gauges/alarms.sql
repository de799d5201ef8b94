-- How the alarms stand: occurrences that are open, how late the latest of what is due is, and alarms whose occurrences keep
-- failing. Called when metrics are asked for. Locks nothing. Index: alarm_standings_due, alarm_standings_failing; open rows are few.
select (select count(*)::double precision from stationmaster_internal.occurrences_open) as open,
       coalesce(extract(epoch from clock_timestamp() - (
           select min(next_due_at) from stationmaster_internal.alarm_standings
           where next_due_at is not null and not held and next_due_at <= clock_timestamp())), 0)::double precision as late,
       (select count(*)::double precision from stationmaster_internal.alarm_standings where failed_in_a_row > 0 and status in ('active', 'paused')) as failing
