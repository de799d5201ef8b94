-- Removes what ended longer ago than the retention time: the finished rows, their items when no younger execution needs
-- them, and their history. Called by housekeeping, a small batch at a time. Locks only rows that nobody works on.
-- What is retried between the look and the lock stays: the last execution of an item is asked for as one that is not
-- superseded, and the row that the retry has changed does not answer to that any more. One that was superseded before has a
-- successor, and the look has seen where it is.
-- Index: executions_finished_at (brin); by item, those behind active_by_item and finished_by_item, written out here.
-- $1 retention in seconds, $2 how many.
with last as materialized (
    select execution_id, item_id
    from stationmaster_internal.executions_finished
    where finished_at < now() - make_interval(secs => $1) and superseded_at is null
    order by execution_id
    limit $2
    for update skip locked
), superseded as materialized (
    select execution_id, item_id
    from stationmaster_internal.executions_finished
    where finished_at < now() - make_interval(secs => $1) and superseded_at is not null
    order by execution_id
    limit $2
    for update skip locked
), old as materialized (
    select execution_id, item_id from last
    union all
    select execution_id, item_id from superseded
), removed as (
    delete from stationmaster_internal.executions_finished f
    where f.execution_id = any (array(select execution_id from old))
    returning f.item_id
), items as (
    select distinct o.item_id
    from old o
    where not exists (select from stationmaster_internal.queue_pending p where p.item_id = o.item_id)
      and not exists (select from stationmaster_internal.executions_active a where a.execution_id = o.item_id)
      and not exists (select from stationmaster_internal.executions_active a
                      where a.item_id = o.item_id and a.execution_id <> a.item_id)
      and not exists (select from stationmaster_internal.executions_finished f
                      where f.execution_id = o.item_id and f.execution_id <> all (array(select execution_id from old)))
      and not exists (select from stationmaster_internal.executions_finished f
                      where f.item_id = o.item_id and f.execution_id <> f.item_id
                        and f.execution_id <> all (array(select execution_id from old)))
), forgotten as (
    delete from stationmaster_internal.queue_items i
    where i.id = any (array(select item_id from items))
), unwritten as (
    delete from stationmaster_internal.queue_events e
    where e.item_id = any (array(select item_id from items))
)
select count(*)
from removed
