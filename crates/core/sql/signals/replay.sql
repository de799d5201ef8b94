-- Puts dead letters back into the inbox, with a line of the audit for each. Called by people. Answers those that were dead and
-- wait again.
-- Locks settled rows in id order. Index: signals_settled_pkey. $1 signals, $2 who.
with dead as materialized (
    select signal_id, dispatcher_id, replays
    from stationmaster_internal.signals_settled
    where signal_id = any ($1) and status = 'DEAD'
    order by signal_id
    for update
), back as (
    insert into stationmaster_internal.signals_pending (signal_id, seq, dispatcher_id, received_at, replays)
    select d.signal_id, s.seq, d.dispatcher_id, s.received_at, d.replays + 1
    from dead d
    join stationmaster_internal.signals_inbox s on s.id = d.signal_id
    returning signal_id
), gone as (
    delete from stationmaster_internal.signals_settled s
    using back b
    where s.signal_id = b.signal_id
), noted as (
    insert into stationmaster.audit (actor, action, workspace_id, subject)
    select $2, 'signal.replay', p.workspace_id, b.signal_id
    from back b
    join stationmaster_internal.signals_inbox s on s.id = b.signal_id
    left join stationmaster.projects p on p.name = s.project
    order by b.signal_id
), rung as (
    select pg_notify('stationmaster', 'signals')
)
select b.signal_id
from back b
cross join rung
