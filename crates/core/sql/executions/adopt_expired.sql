-- Takes over claims that nobody looks after any more, under a fresh token: those whose own lease has run out, and those
-- of servers whose heartbeat has. Called by recovery, which then asks the engine about each. Locks active rows in id
-- order, skipping what others hold. Reads the whole (small) table: recovery sees to it that this is not too often. Index of what it
-- writes down: queue_events_by_item.
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
    select a.execution_id, a.item_id, a.workspace_id, a.holder, a.claimed_at, a.dispatched_at, a.run_id
    from stationmaster_internal.executions_active a
    where a.execution_id = any (array(select execution_id from orphans))
      and (a.lease_until <= now() or a.holder = any ($3))
    order by a.execution_id
    for update skip locked
), noted as (
    -- From here on the row names another holder: what it knew of the claim goes to the history, once.
    insert into stationmaster_internal.queue_events (item_id, execution_id, workspace_id, at, event, actor, detail)
    select l.item_id, l.execution_id, l.workspace_id, step.at, step.event, l.holder::text, step.detail
    from lost l
    cross join lateral (values (l.claimed_at, 'claimed', null), (l.dispatched_at, 'dispatched', l.run_id)) as step (at, event, detail)
    where step.at is not null and l.holder is not null
      and not exists (select from stationmaster_internal.queue_events e
                      where e.item_id = l.item_id and e.execution_id = l.execution_id and e.event = step.event and e.at = step.at)
)
update stationmaster_internal.executions_active a
set holder = $1, token = nextval('stationmaster_internal.claim_token'), lease_until = now() + make_interval(secs => $2)
from lost
where a.execution_id = lost.execution_id
returning a.execution_id, a.item_id, a.workspace_id, a.token, a.recoveries, a.state, lost.holder as lost_by
