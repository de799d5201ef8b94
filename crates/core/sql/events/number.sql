-- Moves committed rows from the inbox into events and numbers them without gaps; a row of steps takes a number for each. The row
-- of the sequence is locked until the commit, so numbers become visible in their order: a second caller waits, then counts on
-- from what the first wrote. Called by servers that have listeners. Locks inbox rows, skipping others', then the sequence.
-- Index: event_inbox_pkey. $1 how many.
with committed as materialized (
    select id
    from stationmaster_internal.event_inbox
    order by id
    limit $1
    for update skip locked
), moved as (
    delete from stationmaster_internal.event_inbox i
    where i.id = any (array(select id from committed))
    returning i.id, i.at, i.kind, i.workspace_id, i.detail, i.items, i.executions, i.workspaces
), counted as (
    select m.*, sum(coalesce(cardinality(m.items), 1)) over (order by m.id) as place, sum(coalesce(cardinality(m.items), 1)) over () as total
    from moved m
), advanced as (
    update stationmaster_internal.event_sequence
    set position = position + (select max(total) from counted)
    where exists (select from counted)
    returning position
), numbered as (
    insert into stationmaster_internal.events (position, at, kind, workspace_id, detail, items, executions, workspaces)
    select a.position - c.total + c.place, c.at, c.kind, c.workspace_id, c.detail, c.items, c.executions, c.workspaces
    from counted c, advanced a
)
select count(*)
from moved
