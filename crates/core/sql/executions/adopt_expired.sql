-- Takes over claims that nobody looks after any more, under a fresh token: those whose own lease has run out, and those
-- of servers whose heartbeat has. Called by recovery, which then asks the engine about each. Locks active rows in id
-- order, skipping what others hold. Reads the whole (small) table: recovery sees to it that this is not too often.
-- $1 new holder, $2 lease in seconds, $3 dead servers, $4 how many, $5 how old a claim must be, in seconds,
-- $6 engines whose runs end with their server, $7 the engine that will be asked: claims on another one are not its to judge.
with orphans as (
    select execution_id
    from stationmaster_internal.executions_active
    where (lease_until <= now() or (holder = any ($3) and (state = 'STARTING' or engine = any ($6))))
      and claimed_at <= now() - make_interval(secs => $5)
      and (engine_id = $7 or engine = any ($6))
    limit $4
), lost as materialized (
    select a.execution_id, a.holder
    from stationmaster_internal.executions_active a
    where a.execution_id = any (array(select execution_id from orphans))
      and (a.lease_until <= now() or a.holder = any ($3))
    order by a.execution_id
    for update skip locked
)
update stationmaster_internal.executions_active a
set holder = $1, token = nextval('stationmaster_internal.claim_token'), lease_until = now() + make_interval(secs => $2)
from lost
where a.execution_id = lost.execution_id
returning a.execution_id, a.item_id, a.workspace_id, a.token, a.recoveries, a.state, lost.holder as lost_by
