-- Puts dead letters back into the inbox, with a line of the audit for each. Called by people. Answers those that were dead and
-- wait again.
-- Locks settled rows in id order. Index: signals_settled_pkey. $1 signals, $2 who.
with dead as materialized (
    select signal_key, dispatcher_id, replays
    from stationmaster_internal.signals_settled
    where signal_key = any ($1) and status = 'DEAD'
    order by signal_key
    for update
), back as (
    insert into stationmaster_internal.signals_pending (signal_key, seq, dispatcher_id, received_at, replays)
    select d.signal_key, s.seq, d.dispatcher_id, s.received_at, d.replays + 1
    from dead d
    join stationmaster_internal.signals_inbox s on s.key = d.signal_key
    returning signal_key
), gone as (
    delete from stationmaster_internal.signals_settled s
    using back b
    where s.signal_key = b.signal_key
), noted as (
    insert into stationmaster.audit (actor, action, workspace_id, subject)
    select $2, 'signal.replay', p.workspace_id, s.id
    from back b
    join stationmaster_internal.signals_inbox s on s.key = b.signal_key
    left join stationmaster.projects p on p.name = s.project
    order by s.seq
), rung as (
    select pg_notify('stationmaster', 'signals')
)
select b.signal_key
from back b
cross join rung
