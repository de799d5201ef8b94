-- Removes occurrences that were settled longer ago than the retention time, with their tries. Called by housekeeping, a small
-- batch at a time. Locks only rows that nobody works on. Index: occurrences_finished_at (brin), occurrence_tries_by_occurrence.
-- $1 retention in seconds, $2 how many.
with old as materialized (
    select alarm_id, scheduled_for
    from stationmaster_internal.occurrences_finished
    where finished_at < now() - make_interval(secs => $1)
    order by alarm_id, scheduled_for
    limit $2
    for update skip locked
), forgotten as (
    delete from stationmaster_internal.occurrence_tries t
    using old
    where t.alarm_id = old.alarm_id and t.scheduled_for = old.scheduled_for
), ranges as (
    delete from stationmaster_internal.occurrence_ranges r
    where r.id = any (array(select id from stationmaster_internal.occurrence_ranges
                            where finished_at < now() - make_interval(secs => $1) order by id limit $2 for update skip locked))
), removed as (
    delete from stationmaster_internal.occurrences_finished f
    using old
    where f.alarm_id = old.alarm_id and f.scheduled_for = old.scheduled_for
    returning f.alarm_id
)
select count(*)
from removed
