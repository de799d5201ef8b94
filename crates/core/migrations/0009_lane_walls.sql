-- Alarms, signals and dispatchers behind the second wall, in the audit, and in the feed of events.

-- Tables without a workspace of their own go by what they belong to: what belongs to an alarm by its definition, what
-- belongs to a signal by the signal, everything else by its project. A project without a workspace is for whoever sees all.
do $$
declare
    name text;
begin
    foreach name in array array['alarm_standings', 'alarm_unplanned', 'alarm_events', 'occurrences_open', 'occurrences_finished',
                                'occurrence_ranges', 'occurrence_tries']
    loop
        execute format('alter table stationmaster.%I enable row level security', name);
        execute format('create policy in_scope on stationmaster.%I using ((select stationmaster.sees_all()) or exists '
                       '(select from stationmaster.alarm_definitions d where d.id = %1$I.alarm_id))', name);
    end loop;
    foreach name in array array['triggers', 'signals_inbox', 'dispatchers']
    loop
        execute format('alter table stationmaster.%I enable row level security', name);
        execute format('create policy in_scope on stationmaster.%I using ((select stationmaster.sees_all()) or exists '
                       '(select from stationmaster.projects p where p.name = %1$I.project))', name);
    end loop;
    foreach name in array array['signals_pending', 'signals_settled']
    loop
        execute format('alter table stationmaster.%I enable row level security', name);
        execute format('create policy in_scope on stationmaster.%I using ((select stationmaster.sees_all()) or exists '
                       '(select from stationmaster.signals_inbox s where s.id = %1$I.signal_id))', name);
    end loop;
    foreach name in array array['dispatcher_servers', 'dispatcher_heartbeats', 'dispatcher_events']
    loop
        execute format('alter table stationmaster.%I enable row level security', name);
        execute format('create policy in_scope on stationmaster.%I using ((select stationmaster.sees_all()) or exists '
                       '(select from stationmaster.dispatchers d where d.id = %1$I.dispatcher_id))', name);
    end loop;
end
$$;

-- Deleting a workspace ends its alarms, in the same transaction and so in the same role. Signals and dispatchers are only
-- looked at behind the wall.
do $$
begin
    if exists (select from pg_roles where rolname = 'stationmaster_api') then
        grant select, insert, update, delete on stationmaster.alarm_standings, stationmaster.alarm_unplanned,
            stationmaster.occurrences_open, stationmaster.occurrences_finished, stationmaster.occurrence_ranges to stationmaster_api;
        grant select, insert on stationmaster.alarm_events to stationmaster_api;
        grant select on stationmaster.occurrence_tries, stationmaster.alarm_attention, stationmaster.alarms,
            stationmaster.alarm_occurrences, stationmaster.triggers, stationmaster.signals_inbox, stationmaster.signals_pending,
            stationmaster.signals_settled, stationmaster.signals, stationmaster.dispatchers, stationmaster.dispatcher_servers,
            stationmaster.dispatcher_heartbeats, stationmaster.dispatcher_events to stationmaster_api;
        revoke insert, update, delete on stationmaster.projects from stationmaster_api;
    end if;
end
$$;

-- What is done to an alarm is audited and told. What an application sets by SQL, in its own name and perhaps by the thousand,
-- is on record with the alarm itself.
create function stationmaster.feed_alarm_events() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    if not exists (select from new_rows where event <> 'set' or actor <> session_user) then
        return null;
    end if;
    insert into stationmaster.audit (actor, action, workspace_id, subject, detail)
    select e.actor, 'alarm.' || replace(e.event, ' ', '_'), d.workspace_id, e.alarm_id::text,
           jsonb_strip_nulls(jsonb_build_object('detail', e.detail))
    from new_rows e
    left join stationmaster.alarm_definitions d on d.id = e.alarm_id
    where e.event <> 'set' or e.actor <> session_user
    order by e.id;
    insert into stationmaster.event_inbox (at, kind, workspace_id, detail)
    select e.at, 'alarm.' || replace(e.event, ' ', '_'), d.workspace_id,
           jsonb_build_object('alarm_id', e.alarm_id, 'actor', e.actor, 'detail', e.detail)
    from new_rows e
    left join stationmaster.alarm_definitions d on d.id = e.alarm_id
    where e.event <> 'set' or e.actor <> session_user
    order by e.id;
    return null;
end
$$;
create trigger feed_alarm_events after insert on stationmaster.alarm_events
    referencing new table as new_rows
    for each statement execute function stationmaster.feed_alarm_events();

-- Every occurrence that fired or failed is told; what was skipped or coalesced can be read.
create function stationmaster.feed_occurrences() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster.event_inbox (at, kind, workspace_id, detail)
    select o.finished_at, 'alarm.' || o.status, d.workspace_id,
           jsonb_strip_nulls(jsonb_build_object('alarm_id', o.alarm_id, 'scheduled_for', o.scheduled_for, 'origin', o.origin,
                                                'attempts', o.attempts, 'reason', o.reason, 'error', left(o.last_error, 500)))
    from new_rows o
    join stationmaster.alarm_definitions d on d.id = o.alarm_id
    where o.status in ('fired', 'failed')
    order by o.finished_at;
    return null;
end
$$;
create trigger feed_occurrences after insert on stationmaster.occurrences_finished
    referencing new table as new_rows
    for each statement execute function stationmaster.feed_occurrences();

-- Dead letters are told; what was routed is the queue's to tell.
create function stationmaster.feed_dead_letters() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    if not exists (select from new_rows where status = 'DEAD') then
        return null;
    end if;
    insert into stationmaster.event_inbox (at, kind, workspace_id, detail)
    select n.settled_at, 'signal.dead', p.workspace_id,
           jsonb_build_object('signal_id', n.signal_id, 'project', s.project, 'task_queue', s.task_queue, 'name', s.name,
                              'reason', n.reason, 'detail', left(n.detail, 500))
    from new_rows n
    join stationmaster.signals_inbox s on s.id = n.signal_id
    left join stationmaster.projects p on p.name = s.project
    where n.status = 'DEAD'
    order by s.seq;
    return null;
end
$$;
create trigger feed_dead_letters after insert on stationmaster.signals_settled
    referencing new table as new_rows
    for each statement execute function stationmaster.feed_dead_letters();

create function stationmaster.feed_dispatcher_events() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster.event_inbox (at, kind, workspace_id, detail)
    select e.at, 'dispatcher.' || e.event, p.workspace_id,
           jsonb_build_object('dispatcher_id', e.dispatcher_id, 'epoch', e.epoch, 'server_id', e.server_id, 'run_id', e.run_id,
                              'actor', e.actor, 'detail', e.detail)
    from new_rows e
    left join stationmaster.dispatchers d on d.id = e.dispatcher_id
    left join stationmaster.projects p on p.name = d.project
    order by e.id;
    return null;
end
$$;
create trigger feed_dispatcher_events after insert on stationmaster.dispatcher_events
    referencing new table as new_rows
    for each statement execute function stationmaster.feed_dispatcher_events();
