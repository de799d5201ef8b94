-- Moves committed rows from the inbox into events and numbers them without gaps. The row of the sequence is locked until
-- the commit, so numbers become visible in their order: a second caller waits, then counts on from what the first wrote.
-- Called by servers that have listeners. Locks inbox rows, skipping others', then the sequence. Index: event_inbox_pkey.
-- $1 how many.
with committed as materialized (
    select id
    from stationmaster.event_inbox
    order by id
    limit $1
    for update skip locked
), moved as (
    delete from stationmaster.event_inbox i
    where i.id = any (array(select id from committed))
    returning i.id, i.at, i.kind, i.workspace_id, i.detail
), advanced as (
    update stationmaster.event_sequence
    set position = position + (select count(*) from moved)
    where exists (select from moved)
    returning position
), numbered as (
    insert into stationmaster.events (position, at, kind, workspace_id, detail)
    select a.position - (select count(*) from moved) + row_number() over (order by m.id), m.at, m.kind, m.workspace_id, m.detail
    from moved m, advanced a
)
select count(*)
from moved
