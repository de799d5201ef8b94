-- What requests may do to alarms, signals and triggers behind the second wall; changes to triggers and to the secrets of targets in
-- the audit; and the steps of executions in the feed of events.

-- Signals, triggers and replays are written in the requests' own transactions. The policies of these tables hold for what is
-- written as for what is seen.
do $$
begin
    if exists (select from pg_roles where rolname = 'stationmaster_api') then
        grant insert on stationmaster.signals_inbox, stationmaster.signals_pending, stationmaster.dispatchers,
            stationmaster.projects to stationmaster_api;
        grant update, delete on stationmaster.signals_settled to stationmaster_api;
        grant insert, update, delete on stationmaster.triggers to stationmaster_api;
        grant select on stationmaster.dispatcher_attention to stationmaster_api;
    end if;
end
$$;

-- A project gets its workspace only from those who see all: one tenant must not take the name under which another's signals
-- already wait.
create policy made_by_all on stationmaster.projects as restrictive for insert
    with check ((select stationmaster.sees_all()));

-- As before, but a project that is there is not inserted again: whoever may not make one may still give it triggers.
create or replace function stationmaster.accept_trigger() returns trigger language plpgsql as $$
declare
    wanted uuid;
    kept uuid;
begin
    select workspace_id into wanted from stationmaster.workflow_definitions where id = new.workflow_definition_id;
    if wanted is null then
        raise exception 'there is no workflow definition %', new.workflow_definition_id using errcode = 'foreign_key_violation';
    end if;
    select workspace_id into kept from stationmaster.projects where name = new.project;
    if kept is null then
        insert into stationmaster.projects (name, workspace_id) values (new.project, wanted) on conflict (name) do nothing;
        select workspace_id into kept from stationmaster.projects where name = new.project;
    end if;
    if kept is distinct from wanted then
        raise exception 'the project "%" belongs to workspace %, and the workflow definition to another', new.project, kept
            using errcode = 'check_violation';
    end if;
    if new.task_queue <> '' then
        insert into stationmaster.dispatchers (id, project, task_queue)
        values (stationmaster.dispatcher_id(new.project, new.task_queue), new.project, new.task_queue)
        on conflict do nothing;
    end if;
    new.updated_at := now();
    return new;
end
$$;

-- As before, and it knows triggers, which have the workspace of their project, and targets.
create or replace function stationmaster.audit_change() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
declare
    before jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) - tg_argv[1:] else '{}' end;
    after jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) - tg_argv[1:] else '{}' end;
    row_now jsonb := case when tg_op = 'DELETE' then to_jsonb(old) else to_jsonb(new) end;
    workspace uuid;
    subject text;
    changed jsonb;
begin
    if before = after then
        return null;
    end if;
    select coalesce(jsonb_object_agg(key, case tg_op
               when 'INSERT' then after -> key
               when 'DELETE' then before -> key
               else jsonb_build_object('from', before -> key, 'to', after -> key) end), '{}')
    into changed
    from (select jsonb_object_keys(before || after) as key) keys
    where before -> key is distinct from after -> key;
    if tg_argv[0] = 'trigger' then
        -- Of a workspace that is being deleted, the one or the other may be gone already.
        workspace := coalesce(
            (select p.workspace_id from stationmaster.projects p where p.name = row_now ->> 'project'),
            (select d.workspace_id from stationmaster.workflow_definitions d
             where d.id = (row_now ->> 'workflow_definition_id')::uuid));
        subject := concat_ws('/', row_now ->> 'project', nullif(row_now ->> 'task_queue', ''), row_now ->> 'name');
    else
        workspace := case tg_argv[0] when 'workspace' then (row_now ->> 'id')::uuid
                                     else (row_now ->> 'workspace_id')::uuid end;
        subject := coalesce(row_now ->> 'id', row_now ->> 'name', row_now ->> 'target');
    end if;
    insert into stationmaster.audit (actor, action, workspace_id, subject, detail)
    values (stationmaster.actor(),
            tg_argv[0] || case tg_op when 'INSERT' then '.create' when 'DELETE' then '.delete' else '.change' end,
            workspace, subject, changed);
    return null;
end
$$;
create trigger audit_change after insert or update or delete on stationmaster.triggers
    for each row execute function stationmaster.audit_change('trigger', 'project', 'task_queue', 'name', 'created_at', 'updated_at');
create trigger audit_change after insert or update or delete on stationmaster.wake_keys
    for each row execute function stationmaster.audit_change('target', 'target');

-- As before, and the line of the audit is for the workspace of the dispatcher's project.
create or replace function stationmaster.tell_of_dispatcher(
    dispatcher_id text, event text, epoch bigint, server_id uuid, run_id text, actor text, detail jsonb default '{}'
) returns bigint language sql volatile as $$
    insert into stationmaster.audit (actor, action, workspace_id, subject, detail)
    values (actor, 'dispatcher.' || event,
            (select p.workspace_id from stationmaster.dispatchers d join stationmaster.projects p on p.name = d.project
             where d.id = tell_of_dispatcher.dispatcher_id),
            dispatcher_id, detail || jsonb_strip_nulls(jsonb_build_object('epoch', epoch, 'server_id', server_id, 'run_id', run_id)));
    select pg_notify('stationmaster', 'dispatchers');
    insert into stationmaster.dispatcher_events (dispatcher_id, event, epoch, server_id, run_id, actor, detail)
    values (dispatcher_id, event, epoch, server_id, run_id, actor, detail)
    returning id;
$$;

-- The ordinary steps of executions (enqueued, claimed, dispatched, ended) are events, too. They come by the thousand, so what one
-- statement does is one row, with an array for each column, and takes as many positions as it has steps; the last of them is its
-- position. The view event_feed tells them apart again.
alter table stationmaster.event_inbox add column items uuid[], add column executions uuid[], add column workspaces uuid[];
alter table stationmaster.events add column items uuid[], add column executions uuid[], add column workspaces uuid[];
-- Ids do not compress; trying to costs more than the bytes.
alter table stationmaster.event_inbox alter column items set storage external, alter column executions set storage external,
    alter column workspaces set storage external;
alter table stationmaster.events alter column items set storage external, alter column executions set storage external,
    alter column workspaces set storage external;

comment on column stationmaster.events.items is 'of a row of steps: their items, one for each; null: the row is one event';

create function stationmaster.feed_enqueued() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster.event_inbox (kind, items, workspaces)
    select 'execution.enqueued', array_agg(id), array_agg(workspace_id)
    from new_items
    having count(*) > 0;
    return null;
end
$$;

create function stationmaster.feed_claimed() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster.event_inbox (kind, items, executions, workspaces)
    select 'execution.claimed', array_agg(item_id), array_agg(execution_id), array_agg(workspace_id)
    from new_rows
    having count(*) > 0;
    return null;
end
$$;

-- Of all that changes an active row, a settlement is what gives it the time of its dispatch.
create function stationmaster.feed_dispatched() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster.event_inbox (kind, items, executions, workspaces)
    select 'execution.dispatched', array_agg(item_id), array_agg(execution_id), array_agg(workspace_id)
    from new_rows
    where dispatched_at >= statement_timestamp()
    having count(*) > 0;
    return null;
end
$$;

create function stationmaster.feed_ended() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    -- An end that came before the settlement of its start is told after it all the same.
    insert into stationmaster.event_inbox (kind, items, executions, workspaces)
    select 'execution.dispatched', array_agg(item_id), array_agg(execution_id), array_agg(workspace_id)
    from new_rows
    where dispatched_at >= statement_timestamp()
    having count(*) > 0;
    insert into stationmaster.event_inbox (kind, items, executions, workspaces)
    select 'execution.' || lower(coalesce(status, item_status)), array_agg(item_id),
           array_agg(case when status is not null then execution_id end), array_agg(workspace_id)
    from new_rows
    group by lower(coalesce(status, item_status));
    return null;
end
$$;

-- Begins to tell of steps, or ends it. It costs the statements that take the steps a few microseconds for each, whether somebody
-- listens or not, so it begins only when somebody asks for it. Answers what holds now.
create function stationmaster.tell_steps(wanted boolean) returns boolean language plpgsql as $$
begin
    drop trigger if exists feed_enqueued on stationmaster.queue_items;
    drop trigger if exists feed_claimed on stationmaster.executions_active;
    drop trigger if exists feed_dispatched on stationmaster.executions_active;
    drop trigger if exists feed_ended on stationmaster.executions_finished;
    if wanted then
        create trigger feed_enqueued after insert on stationmaster.queue_items
            referencing new table as new_items
            for each statement execute function stationmaster.feed_enqueued();
        create trigger feed_claimed after insert on stationmaster.executions_active
            referencing new table as new_rows
            for each statement execute function stationmaster.feed_claimed();
        create trigger feed_dispatched after update on stationmaster.executions_active
            referencing new table as new_rows
            for each statement execute function stationmaster.feed_dispatched();
        create trigger feed_ended after insert on stationmaster.executions_finished
            referencing new table as new_rows
            for each statement execute function stationmaster.feed_ended();
    end if;
    return wanted;
end
$$;

-- Events one by one. It asks with its owner's eyes and shows what its caller may see: a row of steps holds those of several
-- workspaces, so a policy on the table could only show all of it or nothing. No security barrier: pages must follow the index.
create view stationmaster.event_feed as
select e.position as last, s.position, e.at, e.kind, s.workspace_id, s.detail
from stationmaster.events e
cross join lateral (
    select e.position, e.workspace_id, e.detail
    where e.items is null
    union all
    select e.position - cardinality(e.items) + u.place, u.workspace_id,
           jsonb_strip_nulls(jsonb_build_object('item_id', u.item_id, 'execution_id', u.execution_id))
    from unnest(e.items, e.executions, e.workspaces) with ordinality as u (item_id, execution_id, workspace_id, place)
    where e.items is not null
) s
where (select stationmaster.sees_all()) or s.workspace_id = any ((select stationmaster.workspaces_in_scope())::uuid[]);

do $$
begin
    if exists (select from pg_roles where rolname = 'stationmaster_api') then
        grant select on stationmaster.event_feed to stationmaster_api;
    end if;
end
$$;
