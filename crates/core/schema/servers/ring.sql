-- "Ring unless watched": whoever leaves work behind wakes the servers, unless one has said that it looks again in a moment
-- anyway (stationmaster_internal.attention).

-- NOTIFY takes a lock of the whole instance at commit, so it is sent only when nobody is attentive: under load it is not sent at
-- all. The triggers of alarms and signals are deferred, so that it is decided at the moment of the commit, however long the transaction was open. A ring
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

-- Rings for a hint of the queue, which nobody watches just now, unless another hint is still there: somebody was rung for that one, and
-- whoever takes it in looks again and again for a while. So a queue that nobody serves is rung for once, not by every enqueue. Only
-- the last before this one are looked at, however many there were, first among items that are their own hints. A transaction that sees the past cannot tell.
--
-- It is decided when the hint is written, and the hint becomes visible at the commit, perhaps much later. So whoever stops to watch
-- remembers which transactions were open at its last look, and looks again until they are over (executions/claim.rs).
--
-- Whoever finds such a hint of another says so for all: for a moment, a quarter of the time that the one who takes that hint in will look, nobody
-- needs to look for one.
create or replace function stationmaster_internal.ring_unwatched(hint bigint) returns void language plpgsql as $$
declare
    of_another boolean;
begin
    if current_setting('transaction_isolation') = 'read committed' then
        select p.xmin <> pg_current_xact_id()::xid into of_another
        from stationmaster_internal.queue_pending p
        where p.unseen and p.seq between hint - 200 and hint - 1
        order by p.seq
        limit 1;
        if not found then
            select h.xmin <> pg_current_xact_id()::xid into of_another
            from stationmaster_internal.queue_hints h
            where h.id between hint - 200 and hint - 1
            order by h.id
            limit 1;
        end if;
    end if;
    if of_another is null then
        perform pg_notify('stationmaster', 'queue');
    elsif of_another and has_sequence_privilege('stationmaster_internal.queue_watched', 'update') then
        perform setval('stationmaster_internal.queue_watched', (date_part('epoch', clock_timestamp()) * 1000)::bigint + 250);
    end if;
end
$$;

-- Rings for a hint that was just written, unless the queue is watched. Every statement that leaves a hint calls it: a trigger would cost each
-- enqueue, which rings by itself, a third of what its hint costs.
create or replace function stationmaster_internal.ring_for_hint(hint bigint) returns void language plpgsql as $$
begin
    if not stationmaster_internal.is_watched() then
        perform stationmaster_internal.ring_unwatched(hint);
    end if;
end
$$;

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
