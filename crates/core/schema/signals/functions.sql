-- What happens by itself when a signal is sent or a trigger is set, and how events of dispatchers are told.

-- Writes one event, and the same into the audit, for the workspace of the dispatcher's project. Called inside the statements
-- that do the thing, with the trace in which it was done.
create or replace function stationmaster_internal.tell_of_dispatcher(
    dispatcher_id text, event text, epoch bigint, server_id uuid, run_id text, actor text, detail jsonb default '{}',
    traceparent text default null
) returns bigint language sql volatile as $$
    insert into stationmaster.audit (actor, action, workspace_id, subject, detail)
    values (actor, 'dispatcher.' || event,
            (select p.workspace_id from stationmaster.dispatchers d join stationmaster.projects p on p.name = d.project
             where d.id = tell_of_dispatcher.dispatcher_id),
            dispatcher_id, detail || jsonb_strip_nulls(jsonb_build_object('epoch', epoch, 'server_id', server_id, 'run_id', run_id)));
    select pg_notify('stationmaster', 'dispatchers');
    insert into stationmaster.dispatcher_events (dispatcher_id, event, epoch, server_id, run_id, actor, detail, traceparent)
    values (dispatcher_id, event, epoch, server_id, run_id, actor, detail, traceparent)
    returning id;
$$;

-- The id of the item that a signal becomes: a UUID of version 7 like every other, of when the signal came, and of its key instead of chance. So
-- it is fixed from the moment at which the signal is committed, and whoever routes it again, on tables that were restored from a backup, means
-- the run that the engine knows already.
create or replace function stationmaster_internal.item_of_signal(key text, received_at timestamptz) returns uuid
language sql stable strict parallel safe as $$
    select (lpad(to_hex((date_part('epoch', received_at) * 1000)::bigint), 12, '0')
            || '7' || substr(md5(key), 1, 3) || '8' || substr(md5(key), 4, 15))::uuid
$$;

-- The first trigger gives a project its workspace; every other one has to be of the same. A project that is there is not inserted
-- again: whoever may not make one may still give it triggers.
create or replace function stationmaster_internal.accept_trigger() returns trigger language plpgsql as $$
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
create or replace trigger accept_trigger before insert or update on stationmaster.triggers
    for each row execute function stationmaster_internal.accept_trigger();

-- Every way to a new dispatcher ends here: a project has so many of them, and projects that nobody made a trigger for have so many
-- together, so that neither a loop over names nor a mistyped one fills the table. Counted without a lock: a few more at once may pass.
create or replace function stationmaster_internal.bound_dispatchers() returns trigger language plpgsql as $$
declare
    most integer;
    made bigint;
begin
    if exists (select from stationmaster.dispatchers where id = new.id) then
        return new;
    end if;
    select max_task_queues into most from stationmaster.projects where name = new.project;
    if most is not null then
        select count(*) into made from stationmaster.dispatchers where project = new.project;
    else
        most := 1000;
        select count(*) into made
        from stationmaster.dispatchers d
        where not exists (select from stationmaster.projects p where p.name = d.project);
    end if;
    if made >= most then
        raise exception 'no dispatcher for the project "%" and the task queue "%": there are % already, and no more than % may be', new.project,
            new.task_queue, made, most using errcode = 'SM001';
    end if;
    -- Of one that was removed, a former owner may still be about; what is made anew must not look like his.
    new.epoch := greatest(new.epoch, (select epoch from stationmaster_internal.dispatcher_floor));
    return new;
end
$$;
create or replace trigger bound_dispatchers before insert on stationmaster.dispatchers
    for each row execute function stationmaster_internal.bound_dispatchers();

-- Every way in ends here: what was sent becomes pending, its dispatcher exists, and somebody is told unless a dispatcher
-- looks anyway. NOTIFY takes a lock of the whole instance at commit, so a busy inbox sends none. A ring that is lost costs the
-- poll interval, never a signal.
create or replace function stationmaster_internal.accept_signals() returns trigger language plpgsql as $$
begin
    insert into stationmaster_internal.signals_pending (signal_key, seq, dispatcher_id, received_at)
    select key, seq, dispatcher_id, received_at from new_signals;

    insert into stationmaster.dispatchers (id, project, task_queue)
    select distinct on (n.dispatcher_id) n.dispatcher_id, n.project, n.task_queue
    from new_signals n
    where not exists (select from stationmaster.dispatchers d where d.id = n.dispatcher_id)
    order by n.dispatcher_id
    on conflict do nothing;

    if exists (select from new_signals n
               where not exists (select from stationmaster_internal.attention a
                                 where a.lane = n.dispatcher_id and a.until > clock_timestamp())) then
        perform pg_notify('stationmaster', 'signals');
    end if;
    return null;
end
$$;
create or replace trigger accept_signals after insert on stationmaster_internal.signals_inbox
    referencing new table as new_signals
    for each statement execute function stationmaster_internal.accept_signals();
