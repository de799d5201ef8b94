-- "Ring unless watched": whoever leaves work behind wakes the servers, unless one has said that it looks again in a moment
-- anyway (stationmaster_internal.attention).

-- NOTIFY takes a lock of the whole instance at commit, so it is sent only when nobody is attentive: under load it is not sent at
-- all. The triggers are deferred, so that it is decided at the moment of the commit, however long the transaction was open. A ring
-- that is lost costs the interval between two looks, never a piece of work.
--
-- Arguments: the lane, the word that is sent, and for rows that become due at next_due_at how soon that has to be to matter.
create or replace function stationmaster_internal.ring() returns trigger language plpgsql as $$
begin
    if tg_nargs > 2 then
        if new.next_due_at >= clock_timestamp() + tg_argv[2]::interval then
            return null;
        end if;
    end if;
    if not exists (select from stationmaster_internal.attention where lane = tg_argv[0] and until > clock_timestamp()) then
        perform pg_notify('stationmaster', tg_argv[1]);
    end if;
    return null;
end
$$;

-- For hints of the queue there is a second reason to be quiet: another hint that is still there. Somebody was rung for that one, and
-- whoever takes it in looks again and again for a while. So a queue that nobody serves is rung for once, not by every enqueue. Only the
-- last hints before this one are looked at, however many there were.
create or replace function stationmaster_internal.ring_for_hint() returns trigger language plpgsql as $$
begin
    if not exists (select from stationmaster_internal.attention where lane = 'executions' and until > clock_timestamp())
       and not exists (select from stationmaster_internal.queue_hints h where h.id between new.id - 200 and new.id - 1) then
        perform pg_notify('stationmaster', 'queue');
    end if;
    return null;
end
$$;

drop trigger if exists ring on stationmaster_internal.queue_hints;
create constraint trigger ring after insert on stationmaster_internal.queue_hints
    deferrable initially deferred
    for each row execute function stationmaster_internal.ring_for_hint();

drop trigger if exists ring on stationmaster_internal.alarm_standings;
create constraint trigger ring after insert on stationmaster_internal.alarm_standings
    deferrable initially deferred
    for each row when (new.next_due_at < now() + interval '10 minutes')
    execute function stationmaster_internal.ring('alarms', 'alarms', '10 seconds');

drop trigger if exists ring on stationmaster_internal.alarm_unplanned;
create constraint trigger ring after insert on stationmaster_internal.alarm_unplanned
    deferrable initially deferred
    for each row execute function stationmaster_internal.ring('alarms', 'alarms');

drop trigger if exists ring on stationmaster_internal.occurrences_open;
create constraint trigger ring after insert on stationmaster_internal.occurrences_open
    deferrable initially deferred
    for each row when (new.origin <> 'schedule') execute function stationmaster_internal.ring('alarms', 'alarms');
