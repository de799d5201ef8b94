-- The feed of events: triggers that tell of what is written elsewhere, and the view that shows it.

-- What is inserted into queue_events goes to the inbox, as "queue.<its column event>". What is said of many items in the same words, as by a
-- bulk operation, is one row for all of them: a row for each was a quarter of what such an operation cost.
create or replace function stationmaster_internal.feed_queue_events() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster_internal.event_inbox (at, kind, detail, items, executions, workspaces)
    select min(at), 'queue.' || event, jsonb_build_object('actor', actor, 'detail', detail),
           array_agg(item_id order by id), array_agg(execution_id order by id), array_agg(workspace_id order by id)
    from new_rows
    -- The steps before are told when they are taken, by the family of executions.
    where event not in ('claimed', 'dispatched')
    group by event, actor, detail
    order by min(id);
    return null;
end
$$;
create or replace trigger feed_queue_events after insert on stationmaster_internal.queue_events
    referencing new table as new_rows
    for each statement execute function stationmaster_internal.feed_queue_events();

create or replace function stationmaster_internal.feed_audit() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster_internal.event_inbox (at, kind, workspace_id, detail)
    select at, 'audit.' || action, workspace_id, jsonb_build_object('actor', actor, 'subject', subject, 'detail', detail)
    from new_rows order by id;
    return null;
end
$$;
create or replace trigger feed_audit after insert on stationmaster.audit
    referencing new table as new_rows
    for each statement execute function stationmaster_internal.feed_audit();

-- What is done to an alarm is audited and told. What an application sets by SQL, in its own name and perhaps by the thousand,
-- is on record with the alarm itself.
create or replace function stationmaster_internal.feed_alarm_events() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    if not exists (select from new_rows where event <> 'set' or actor <> session_user) then
        return null;
    end if;
    insert into stationmaster.audit (actor, action, workspace_id, subject, detail)
    select e.actor, 'alarm.' || replace(e.event, ' ', '_'), d.workspace_id, e.alarm_id::text,
           jsonb_strip_nulls(jsonb_build_object('detail', e.detail))
    from new_rows e
    left join stationmaster_internal.alarm_definitions d on d.id = e.alarm_id
    where e.event <> 'set' or e.actor <> session_user
    order by e.id;
    insert into stationmaster_internal.event_inbox (at, kind, workspace_id, detail)
    select e.at, 'alarm.' || replace(e.event, ' ', '_'), d.workspace_id,
           jsonb_build_object('alarm_id', e.alarm_id, 'actor', e.actor, 'detail', e.detail)
    from new_rows e
    left join stationmaster_internal.alarm_definitions d on d.id = e.alarm_id
    where e.event <> 'set' or e.actor <> session_user
    order by e.id;
    return null;
end
$$;
create or replace trigger feed_alarm_events after insert on stationmaster_internal.alarm_events
    referencing new table as new_rows
    for each statement execute function stationmaster_internal.feed_alarm_events();

-- Every occurrence that fired or failed is told; what was skipped or coalesced can be read.
create or replace function stationmaster_internal.feed_occurrences() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster_internal.event_inbox (at, kind, workspace_id, detail)
    select o.finished_at, 'alarm.' || o.status, d.workspace_id,
           jsonb_strip_nulls(jsonb_build_object('alarm_id', o.alarm_id, 'scheduled_for', o.scheduled_for, 'origin', o.origin,
                                                'attempts', o.attempts, 'reason', o.reason, 'error', left(o.last_error, 500)))
    from new_rows o
    join stationmaster_internal.alarm_definitions d on d.id = o.alarm_id
    where o.status in ('fired', 'failed')
    order by o.finished_at;
    return null;
end
$$;
create or replace trigger feed_occurrences after insert on stationmaster_internal.occurrences_finished
    referencing new table as new_rows
    for each statement execute function stationmaster_internal.feed_occurrences();

-- Dead letters are told; what was routed is the queue's to tell.
create or replace function stationmaster_internal.feed_dead_letters() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    if not exists (select from new_rows where status = 'DEAD') then
        return null;
    end if;
    insert into stationmaster_internal.event_inbox (at, kind, workspace_id, detail)
    select n.settled_at, 'signal.dead', p.workspace_id,
           jsonb_build_object('signal_id', s.id, 'project', s.project, 'task_queue', s.task_queue, 'name', s.name,
                              'reason', n.reason, 'detail', left(n.detail, 500))
    from new_rows n
    join stationmaster_internal.signals_inbox s on s.key = n.signal_key
    left join stationmaster.projects p on p.name = s.project
    where n.status = 'DEAD'
    order by s.seq;
    return null;
end
$$;
create or replace trigger feed_dead_letters after insert on stationmaster_internal.signals_settled
    referencing new table as new_rows
    for each statement execute function stationmaster_internal.feed_dead_letters();

create or replace function stationmaster_internal.feed_dispatcher_events() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster_internal.event_inbox (at, kind, workspace_id, detail)
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
create or replace trigger feed_dispatcher_events after insert on stationmaster.dispatcher_events
    referencing new table as new_rows
    for each statement execute function stationmaster_internal.feed_dispatcher_events();

create or replace function stationmaster_internal.feed_enqueued() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster_internal.event_inbox (kind, items, workspaces)
    select 'execution.enqueued', array_agg(id), array_agg(workspace_id)
    from new_items
    having count(*) > 0;
    return null;
end
$$;

create or replace function stationmaster_internal.feed_claimed() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster_internal.event_inbox (kind, items, executions, workspaces)
    select 'execution.claimed', array_agg(item_id), array_agg(execution_id), array_agg(workspace_id)
    from new_rows
    having count(*) > 0;
    return null;
end
$$;

-- Of all that changes an active row, a settlement is what gives it the time of its dispatch.
create or replace function stationmaster_internal.feed_dispatched() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster_internal.event_inbox (kind, items, executions, workspaces)
    select 'execution.dispatched', array_agg(item_id), array_agg(execution_id), array_agg(workspace_id)
    from new_rows
    where dispatched_at >= statement_timestamp()
    having count(*) > 0;
    return null;
end
$$;

create or replace function stationmaster_internal.feed_ended() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    -- An end that came before the settlement of its start is told after it all the same.
    insert into stationmaster_internal.event_inbox (kind, items, executions, workspaces)
    select 'execution.dispatched', array_agg(item_id), array_agg(execution_id), array_agg(workspace_id)
    from new_rows
    where dispatched_at >= statement_timestamp()
    having count(*) > 0;
    insert into stationmaster_internal.event_inbox (kind, items, executions, workspaces)
    select 'execution.' || lower(coalesce(status, item_status)), array_agg(item_id),
           array_agg(case when status is not null then execution_id end), array_agg(workspace_id)
    from new_rows
    group by lower(coalesce(status, item_status));
    return null;
end
$$;

-- Begins to tell of steps, or ends it. It costs the statements that take the steps a few microseconds for each, whether somebody
-- listens or not, so it begins only when somebody asks for it. Answers what holds now.
create or replace function stationmaster.tell_steps(wanted boolean) returns boolean language plpgsql as $$
begin
    drop trigger if exists feed_enqueued on stationmaster_internal.queue_items;
    drop trigger if exists feed_enqueued on stationmaster_internal.queue_door;
    drop trigger if exists feed_claimed on stationmaster_internal.executions_active;
    drop trigger if exists feed_dispatched on stationmaster_internal.executions_active;
    drop trigger if exists feed_ended on stationmaster_internal.executions_finished;
    if wanted then
        create trigger feed_enqueued after insert on stationmaster_internal.queue_items
            referencing new table as new_items
            for each statement execute function stationmaster_internal.feed_enqueued();
        create trigger feed_enqueued after insert on stationmaster_internal.queue_door
            referencing new table as new_items
            for each statement execute function stationmaster_internal.feed_enqueued();
        create trigger feed_claimed after insert on stationmaster_internal.executions_active
            referencing new table as new_rows
            for each statement execute function stationmaster_internal.feed_claimed();
        create trigger feed_dispatched after update on stationmaster_internal.executions_active
            referencing new table as new_rows
            for each statement execute function stationmaster_internal.feed_dispatched();
        create trigger feed_ended after insert on stationmaster_internal.executions_finished
            referencing new table as new_rows
            for each statement execute function stationmaster_internal.feed_ended();
    end if;
    return wanted;
end
$$;

-- Events one by one. It asks with its owner's eyes and shows what its caller may see: a row of steps holds those of several
-- workspaces, so a policy on the table could only show all of it or nothing. No security barrier: pages must follow the index.
create or replace view stationmaster.event_feed as
select e.position as last, s.position, e.at, e.kind, s.workspace_id, s.detail
from stationmaster_internal.events e
cross join lateral (
    select e.position, e.workspace_id, e.detail
    where e.items is null
    union all
    select e.position - cardinality(e.items) + u.place, u.workspace_id,
           e.detail || case when e.detail = '{}' then jsonb_strip_nulls(u.who) else u.who end
    from (select t.workspace_id, t.place, jsonb_build_object('item_id', t.item_id, 'execution_id', t.execution_id) as who
          from unnest(e.items, e.executions, e.workspaces) with ordinality as t (item_id, execution_id, workspace_id, place)) u
    where e.items is not null
) s
where (select stationmaster_internal.sees_all()) or s.workspace_id = any ((select stationmaster_internal.workspaces_in_scope())::uuid[]);
