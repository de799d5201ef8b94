-- Turns hints that have become visible into `ready` workspaces, each from the earliest position hinted, and gives the claim
-- its token. Called by the claim, first thing in its transaction. Locks hints, unseen items and capacity rows, skipping what others hold: a
-- workspace that somebody keeps locked keeps its hints for later and holds nobody up.
-- An item that came alone is its own hint, and is noted as seen. Only of those that its workspace has a free slot for, as many as it
-- has, is that not written: the claim that called this takes them away, or comes back for them.
-- Index: queue_hints_pkey, queue_pending_unseen.
-- $1 lowest hint id to look at, $2 how many, $3 the virtual time below which nobody may enter, as this server knows it; a server
-- that has just started knows nothing, so what was last said of it counts as well (attention), and is answered.
with reached as materialized (
    select greatest($3, (select virtual_time from stationmaster_internal.attention where lane = 'executions')) as virtual_time
), hinted as materialized (
    select id, workspace_id, rank, seq
    from stationmaster_internal.queue_hints
    where id >= $1
    order by id
    limit $2
    for update skip locked
), unseen as materialized (
    select ctid as place, seq as id, workspace_id, rank, seq, stage = 'ready' as is_ready
    from stationmaster_internal.queue_pending
    where unseen and seq >= $1
    order by seq
    limit $2
    for update skip locked
), seen as materialized (
    select *, row_number() over (partition by workspace_id, is_ready order by rank, seq) as in_line
    from (
        select *
        from (
            select null::tid as place, id, workspace_id, rank, seq, true as is_ready from hinted
            union all
            select place, id, workspace_id, rank, seq, is_ready from unseen
        ) of_both
        order by id
        limit $2
    ) first_of_both
), earliest as (
    select workspace_id, rank, seq
    from seen
    where is_ready and in_line = 1
), locked as materialized (
    select workspace_id, case when paused or gone then 0 else max_concurrent - active end as free
    from stationmaster_internal.workspace_capacity
    where workspace_id = any (array(select distinct workspace_id from seen))
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
        head_rank    = e.rank,
        head_seq     = e.seq
    from entering e
    where e.free and c.workspace_id = e.workspace_id
      and not (c.ready and (c.head_rank is null or (c.head_rank, c.head_seq) <= (e.rank, e.seq)))
), ghosts as (
    -- A workspace that was deleted in the meantime: its items must be found, to fail.
    insert into stationmaster_internal.workspace_capacity (workspace_id, max_concurrent, weight, gone)
    select e.workspace_id, 0, 1, true
    from entering e
    where not e.free
      and (select true from stationmaster_internal.workspace_capacity c where c.workspace_id = e.workspace_id) is null
    on conflict (workspace_id) do nothing
    returning workspace_id
), found as materialized (
    select workspace_id, free from locked
    union all
    select workspace_id, 0 from ghosts
), answered as materialized (
    select s.id, s.place, f.workspace_id is not null as used,
           s.place is not null and s.is_ready and s.in_line <= f.free as is_taken
    from seen s
    left join found f using (workspace_id)
), used as (
    delete from stationmaster_internal.queue_hints h
    where h.id = any (array(select id from answered where used and place is null))
), noted as (
    update stationmaster_internal.queue_pending p
    set unseen = false
    where p.ctid = any (array(select place from answered where used and place is not null and not is_taken))
)
select (select max(id) from seen) as last_id,
       (select count(*) from seen) as seen,
       (select count(*) from answered where used) as used,
       (select count(*) from answered where is_taken) as taken,
       nextval('stationmaster_internal.claim_token') as token,
       (select virtual_time from reached) as virtual_time
