-- What happens by itself when an alarm is set, and how an alarm ends.

-- What is wrong with a cron expression, by the shape of its fields, and what to do about it; null: nothing. Whoever sets an alarm hears of it
-- at once. What passes is read again by a server, which knows calendars and zones: an expression of days that never come passes here, and
-- fails there with the reason. The grammar is that of the crate stationmaster-schedule; a test holds the two against each other.
create or replace function stationmaster_internal.fault_of_expression(expression text) returns text[] language plpgsql immutable as $$
declare
    blanks constant text := E' \t\n\f\r';
    words text[] := regexp_split_to_array(btrim(expression, blanks), '[' || blanks || ']+');
    fields constant text[] := array['second', 'minute', 'hour', 'day of the month', 'month', 'weekday'];
    reach constant text[] := array['0 to 59', '0 to 59', '0 to 23', '1 to 31, L or 15W', '1 to 12 or JAN to DEC', '0 to 7, SUN to SAT, 5L or MON#2'];
    value constant text[] := array[
        '0*[0-5]?[0-9]', '0*[0-5]?[0-9]', '0*(1?[0-9]|2[0-3])', '0*([1-9]|[12][0-9]|3[01])',
        '(0*([1-9]|1[0-2])|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)', '(0*[0-7]|sun|mon|tue|wed|thu|fri|sat)'];
    step constant text[] := array[
        '0*([1-9]|[1-5][0-9]|60)', '0*([1-9]|[1-5][0-9]|60)', '0*([1-9]|1[0-9]|2[0-4])', '0*([1-9]|[12][0-9]|3[01])', '0*([1-9]|1[0-2])',
        '0*[1-7]'];
    more constant text[] := array['', '', '', '|\?|L(-0*([1-9]|[12][0-9]|30))?W?|' || value[4] || 'W', '',
                                  '|\?|' || value[6] || '(L|#0*[1-5])'];
    nicknames constant text[] := array['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'];
    part text;
begin
    if expression is null then
        return null;
    end if;
    if words[1] like '@%' then
        if lower(words[1]) = any (nicknames) and cardinality(words) = 1
           or lower(words[1]) = '@every' and cardinality(words) > 1
              and not exists (select from unnest(words[2:]) as w (word) where w.word !~* '^([0-9]+[smhdw])+$') then
            return null;
        end if;
        return array[format('the expression "%s" cannot be used: it is no nickname', expression),
                     format('There are %s, and @every with a duration, as in "@every 1h30m".', array_to_string(nicknames, ', '))];
    end if;
    if cardinality(words) not in (5, 6) then
        return array[format('the expression "%s" cannot be used: it has %s fields', expression,
                            case words[1] when '' then 0 else cardinality(words) end),
                     'Write five fields (minute, hour, day of the month, month, weekday), or six with the second before them.'];
    end if;
    for place in 7 - cardinality(words)..6 loop
        foreach part in array string_to_array(words[place - 6 + cardinality(words)], ',') loop
            if part !~* format('^((\*|%1$s(-%1$s)?)(/%2$s)?%3$s)$', value[place], step[place], more[place]) then
                return array[format('the expression "%s" cannot be used: "%s" is no %s', expression, part, fields[place]),
                             format('Write %s, a range, a list, or * with or without a step.', reach[place])];
            end if;
        end loop;
    end loop;
    return null;
end
$$;

-- Every way in ends here: an instant is due as it stands; an expression, a civil time or a jitter is left to a server.
create or replace function stationmaster_internal.accept_alarms() returns trigger language plpgsql as $$
declare
    missing uuid;
begin
    select a.workspace_id into missing
    from new_alarms a
    where not exists (select from stationmaster.workspaces w where w.id = a.workspace_id)
    limit 1;
    if found then
        raise exception 'there is no workspace %', missing using errcode = 'foreign_key_violation',
            hint = 'Create it first: insert into stationmaster.workspaces, or "stationmaster workspaces create".';
    end if;
    insert into stationmaster_internal.alarm_standings (alarm_id, next_fire_at, next_due_at, follows_at)
    select id, fire_at, case when jitter = interval '0' then fire_at end, created_at
    from new_alarms;
    insert into stationmaster_internal.alarm_unplanned (alarm_id, reason)
    select id, 'set'
    from new_alarms
    where fire_at is null or jitter > interval '0';
    insert into stationmaster_internal.alarm_events (alarm_id, event, actor, detail)
    select id, 'set', set_by, coalesce(cron_expr, civil_at::text)
    from new_alarms;
    return null;
end
$$;
create or replace trigger accept_alarms after insert on stationmaster_internal.alarm_definitions
    referencing new table as new_alarms
    for each statement execute function stationmaster_internal.accept_alarms();

-- Ends an alarm: nothing more of it is claimed. What is being delivered at this moment is settled by its server.
-- Whoever calls this has locked the alarm's row of alarm_standings.
create or replace function stationmaster_internal.end_alarm(alarm uuid, new_status text, why text) returns void language sql as $$
    update stationmaster_internal.alarm_standings
    set status = new_status, next_fire_at = null, next_due_at = null, held = false, free_at = null,
        ended_at = clock_timestamp(), last_error = coalesce(why, last_error)
    where alarm_id = alarm;
    delete from stationmaster_internal.alarm_unplanned where alarm_id = alarm;
    with gone as (
        delete from stationmaster_internal.occurrences_open o
        where o.alarm_id = alarm
          and o.scheduled_for = any (array(select p.scheduled_for from stationmaster_internal.occurrences_open p
                                           where p.alarm_id = alarm and p.holder is null
                                           order by p.scheduled_for for update skip locked))
        returning o.*
    )
    insert into stationmaster_internal.occurrences_finished
        (alarm_id, scheduled_for, origin, status, reason, attempts, recoveries, due_at, last_error, note)
    select alarm_id, scheduled_for, origin, 'cancelled', why, attempts, recoveries, due_at, last_error, note
    from gone
    on conflict do nothing;
$$;

-- Gives the turns of an alarm anew. Of the open occurrences of its schedule that are in nobody's hands:
--
--   paused                     none may be claimed
--   overlap allow, or once     each may
--   overlap queue or skip      none while one is in somebody's hands; otherwise the earliest
--
-- and its series waits (held) while any of them is open, where they take turns. What waits for its next try keeps its time.
-- Whoever calls this has locked the alarm's row of alarm_standings. (Settlements do the same for many alarms at once.)
create or replace function stationmaster_internal.give_turns(alarm uuid) returns void language sql as $$
    with standing as materialized (
        select s.status, d.kind = 'cron' and d.overlap <> 'allow' as in_turns
        from stationmaster_internal.alarm_standings s
        join stationmaster_internal.alarm_definitions d on d.id = s.alarm_id
        where s.alarm_id = alarm
    ), turn as materialized (
        select case when not bool_or(holder is not null) then min(scheduled_for) end as scheduled_for
        from stationmaster_internal.occurrences_open
        where alarm_id = alarm and origin = 'schedule'
    ), wanted as materialized (
        select o.scheduled_for, s.status <> 'paused' and (not s.in_turns or o.scheduled_for is not distinct from t.scheduled_for) as may
        from stationmaster_internal.occurrences_open o, standing s, turn t
        where o.alarm_id = alarm and o.origin = 'schedule'
    )
    update stationmaster_internal.occurrences_open o
    set ready_at = case when w.may then clock_timestamp() else 'infinity' end
    from wanted w
    where o.alarm_id = alarm and o.scheduled_for = w.scheduled_for and o.holder is null and w.may = (o.ready_at = 'infinity');
    update stationmaster_internal.alarm_standings s
    set held = s.status in ('active', 'paused') and d.kind = 'cron' and d.overlap <> 'allow'
               and exists (select from stationmaster_internal.occurrences_open o where o.alarm_id = alarm and o.origin = 'schedule')
    from stationmaster_internal.alarm_definitions d
    where s.alarm_id = alarm and d.id = alarm;
$$;

create or replace function stationmaster_internal.cancel_alarms_of_workspace() returns trigger language plpgsql as $$
declare
    alarm uuid;
begin
    for alarm in
        select s.alarm_id from stationmaster_internal.alarm_standings s
        join stationmaster_internal.alarm_definitions d on d.id = s.alarm_id
        where d.workspace_id = old.id and s.status in ('active', 'paused')
        order by s.alarm_id for update of s
    loop
        perform stationmaster_internal.end_alarm(alarm, 'cancelled', 'the workspace was deleted');
        insert into stationmaster_internal.alarm_events (alarm_id, event, actor, detail)
        values (alarm, 'cancelled', session_user, 'the workspace was deleted');
    end loop;
    return null;
end
$$;
create or replace trigger cancel_alarms_of_workspace after delete on stationmaster.workspaces
    for each row execute function stationmaster_internal.cancel_alarms_of_workspace();
