-- Turns hints that have become visible into `ready` workspaces, each from the earliest position hinted, and gives the claim
-- its token. Called by the claim, first thing in its transaction. Locks hints and capacity rows, skipping what others hold: a
-- workspace that somebody keeps locked keeps its hints for later and holds nobody up. Index: queue_hints_pkey.
-- $1 lowest hint id to look at, $2 how many, $3 the virtual time below which nobody may enter, as this server knows it; a server
-- that has just started knows nothing, so what was last said of it counts as well (attention), and is answered.
with reached as materialized (
    select greatest($3, (select virtual_time from stationmaster_internal.attention where lane = 'executions')) as virtual_time
), seen as materialized (
    select id, workspace_id, rank, seq
    from stationmaster_internal.queue_hints
    where id >= $1
    order by id
    limit $2
    for update skip locked
), earliest as (
    select distinct on (workspace_id) workspace_id, rank, seq
    from seen
    order by workspace_id, rank, seq
), locked as materialized (
    select workspace_id
    from stationmaster_internal.workspace_capacity
    where workspace_id = any (array(select workspace_id from earliest))
    order by workspace_id
    for update skip locked
), entering as materialized (
    -- Asked in a select list, so that it is answered by a hash and not by a nested loop.
    select e.*, e.workspace_id in (select workspace_id from locked) as free
    from earliest e
), absorbed as (
    update stationmaster_internal.workspace_capacity c
    set ready        = true,
        virtual_time = case when c.ready then c.virtual_time else greatest(c.virtual_time, (select virtual_time from reached)) end,
        head_rank    = case when c.ready and (c.head_rank is null or (c.head_rank, c.head_seq) <= (e.rank, e.seq))
                            then c.head_rank else e.rank end,
        head_seq     = case when c.ready and (c.head_rank is null or (c.head_rank, c.head_seq) <= (e.rank, e.seq))
                            then c.head_seq else e.seq end
    from entering e
    where e.free and c.workspace_id = e.workspace_id
), ghosts as (
    -- A workspace that was deleted in the meantime: its items must be found, to fail.
    insert into stationmaster_internal.workspace_capacity (workspace_id, max_concurrent, weight, gone)
    select e.workspace_id, 0, 1, true
    from entering e
    where not e.free
      and (select true from stationmaster_internal.workspace_capacity c where c.workspace_id = e.workspace_id) is null
    on conflict (workspace_id) do nothing
    returning workspace_id
), answered as materialized (
    select s.id, s.workspace_id in (select workspace_id from locked union all select workspace_id from ghosts) as used
    from seen s
), used as (
    delete from stationmaster_internal.queue_hints h
    where h.id = any (array(select id from answered where used))
    returning h.id
)
select (select max(id) from seen) as last_id,
       (select count(*) from seen) as seen,
       (select count(*) from used) as used,
       nextval('stationmaster_internal.claim_token') as token,
       (select virtual_time from reached) as virtual_time
