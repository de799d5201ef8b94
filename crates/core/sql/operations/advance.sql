-- Writes down what a call of an operation has done, and where the next one goes on; or that it is over: when a walk has met nothing to change,
-- or as much was changed as was counted, or there were walks enough. Called by the server that has the duty.
-- A call that does not know the one before changes nothing. Locks the row. Index: operations_pkey.
-- $1 operation, $2 the step that it went on from, $3 server, $4 how many it changed, $5 where to go on (null: the walk is over), $6 walks at most.
-- Answers how the operation is then (null: nothing was written), and whether another server was faster.
with known as (
    select id, step, ended_at, $5::text is null and (walked + $4 = 0 or (done + $4 >= total and not more) or walk >= $6) as is_over
    from stationmaster_internal.operations
    where id = $1
    for update
), moved as (
    update stationmaster_internal.operations o
    set step = o.step + 1, done = o.done + $4, total = greatest(o.total, o.done + $4), next = $5,
        walk = o.walk + ($5::text is null)::integer, walked = case when $5::text is null then 0 else o.walked + $4 end,
        started_at = coalesce(o.started_at, clock_timestamp()), moved_at = clock_timestamp(), server_id = $3,
        status = case when k.is_over then 'COMPLETED' else 'RUNNING' end, ended_at = case when k.is_over then clock_timestamp() end
    from known k
    where o.id = k.id and k.step = $2 and k.ended_at is null
    returning o.status
)
select (select status from moved) as status, coalesce((select step <> $2 from known), false) as is_stale
