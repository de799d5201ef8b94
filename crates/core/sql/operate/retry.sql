-- Puts items that ended badly back into the queue, under a new execution: the old one stays in the record. Items whose
-- execution was completed, or that are not over, are left alone. Called by people, singly or in batches.
-- Locks finished rows in id order. Index: executions_finished_items_badly, executions_finished_pkey, queue_items_pkey; given as
-- arrays, because a join of a page with a large table may be planned as one that reads the table.
-- $1 items, $2 who.
with ended as materialized (
    select f.execution_id, f.item_id
    from stationmaster_internal.executions_finished f
    where f.item_id = any ($1) and f.superseded_at is null and coalesce(f.status, '') <> 'COMPLETED'
    order by f.execution_id
    for update
), superseded as (
    update stationmaster_internal.executions_finished f
    set superseded_at = now()
    where f.execution_id = any (array(select execution_id from ended))
    returning f.item_id, f.execution_id, f.workspace_id
), waiting as (
    insert into stationmaster_internal.queue_pending
        (item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, execution_id)
    select i.id, i.seq, -i.priority::bigint, i.workspace_id, i.workflow_definition_id, i.workflow_definition_version_id,
           stationmaster.new_id()
    from stationmaster_internal.queue_items i
    where i.id = any (array(select item_id from superseded))
    returning item_id, workspace_id, rank, seq
), hinted as (
    insert into stationmaster_internal.queue_hints (workspace_id, rank, seq)
    select distinct on (workspace_id) workspace_id, rank, seq
    from waiting
    order by workspace_id, rank, seq
    returning stationmaster_internal.ring_for_hint(id)
), noted as (
    insert into stationmaster_internal.queue_events (item_id, execution_id, workspace_id, event, actor, detail)
    select item_id, execution_id, workspace_id, 'retried', $2, 'a new execution follows'
    from superseded
)
select item_id, workspace_id
from waiting
