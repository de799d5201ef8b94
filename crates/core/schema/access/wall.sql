-- The second wall: requests run as the role stationmaster_api, which sees only rows of the workspaces that its transaction names.
-- Everybody else is governed by grants.

-- Everybody but the API's role sees everything; the API's role does when its token is for all workspaces.
create or replace function stationmaster_internal.sees_all() returns boolean language sql stable parallel safe as $$
    select current_user <> 'stationmaster_api' or coalesce(current_setting('stationmaster.workspaces', true), '') = '*'
$$;

-- The workspaces that the transaction names.
create or replace function stationmaster_internal.workspaces_in_scope() returns uuid[] language sql stable parallel safe as $$
    select case when coalesce(current_setting('stationmaster.workspaces', true), '') in ('', '*') then '{}'::uuid[]
                else string_to_array(current_setting('stationmaster.workspaces', true), ',')::uuid[] end
$$;

-- Puts a table behind the wall: rows show where the condition holds, for what is written as for what is seen. Rows without a
-- workspace are for whoever sees all.
create or replace function stationmaster_internal.protect(relation regclass, condition text) returns void language plpgsql as $$
begin
    execute format('alter table %s enable row level security', relation);
    execute format('drop policy if exists in_scope on %s', relation);
    execute format('create policy in_scope on %s using ((select stationmaster_internal.sees_all()) or %s)', relation, condition);
end
$$;

-- Every table with a workspace goes by it, every other one by what it belongs to: what belongs to an alarm by its definition, what
-- belongs to a signal by the signal, everything else by its project. A project without a workspace is for whoever sees all.
do $$
declare
    by_workspace text := 'workspace_id = any ((select stationmaster_internal.workspaces_in_scope())::uuid[])';
    relation regclass;
    behind record;
begin
    for relation in
        select c.oid
        from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id' and not a.attisdropped
        where c.relnamespace in ('stationmaster'::regnamespace, 'stationmaster_internal'::regnamespace)
          and c.relkind in ('r', 'p')
        order by c.oid
    loop
        perform stationmaster_internal.protect(relation, by_workspace);
    end loop;
    perform stationmaster_internal.protect('stationmaster.workspaces', 'id = any ((select stationmaster_internal.workspaces_in_scope())::uuid[])');
    -- An operation shows to whoever may see all that it is about.
    perform stationmaster_internal.protect('stationmaster_internal.operations', 'workspaces <@ (select stationmaster_internal.workspaces_in_scope())::uuid[]');
    -- What a server did it did for all of them.
    perform stationmaster_internal.protect('stationmaster_internal.history_servers', 'false');
    -- Whose alarms go to a target is told by those alone: core asks for it in its own name.
    perform stationmaster_internal.protect('stationmaster_internal.target_breakers', 'false');
    for behind in
        select *
        from (values
            ('stationmaster.workflow_definition_versions'::regclass, 'stationmaster.workflow_definitions d', 'd.id = workflow_definition_id'),
            ('stationmaster_internal.cancel_requests', 'stationmaster_internal.executions_active a', 'a.execution_id = cancel_requests.execution_id'),
            ('stationmaster_internal.alarm_standings', 'stationmaster_internal.alarm_definitions d', 'd.id = alarm_id'),
            ('stationmaster_internal.alarm_unplanned', 'stationmaster_internal.alarm_definitions d', 'd.id = alarm_id'),
            ('stationmaster_internal.alarm_events', 'stationmaster_internal.alarm_definitions d', 'd.id = alarm_id'),
            ('stationmaster_internal.occurrences_open', 'stationmaster_internal.alarm_definitions d', 'd.id = alarm_id'),
            ('stationmaster_internal.occurrences_finished', 'stationmaster_internal.alarm_definitions d', 'd.id = alarm_id'),
            ('stationmaster_internal.occurrence_ranges', 'stationmaster_internal.alarm_definitions d', 'd.id = alarm_id'),
            ('stationmaster_internal.occurrence_tries', 'stationmaster_internal.alarm_definitions d', 'd.id = alarm_id'),
            ('stationmaster.triggers', 'stationmaster.projects p', 'p.name = project'),
            ('stationmaster_internal.signals_inbox', 'stationmaster.projects p', 'p.name = project'),
            ('stationmaster.dispatchers', 'stationmaster.projects p', 'p.name = project'),
            ('stationmaster_internal.signals_pending', 'stationmaster_internal.signals_inbox s', 's.key = signal_key'),
            ('stationmaster_internal.signals_settled', 'stationmaster_internal.signals_inbox s', 's.key = signal_key'),
            ('stationmaster_internal.dispatcher_servers', 'stationmaster.dispatchers d', 'd.id = dispatcher_id'),
            ('stationmaster_internal.dispatcher_heartbeats', 'stationmaster.dispatchers d', 'd.id = dispatcher_id'),
            ('stationmaster.dispatcher_events', 'stationmaster.dispatchers d', 'd.id = dispatcher_id')
        ) as b (relation, owner, link)
    loop
        perform stationmaster_internal.protect(behind.relation, format('exists (select from %s where %s)', behind.owner, behind.link));
    end loop;
end
$$;

-- A project gets its workspace only from those who see all: one tenant must not take the name under which another's signals
-- already wait.
drop policy if exists made_by_all on stationmaster.projects;
create policy made_by_all on stationmaster.projects as restrictive for insert
    with check ((select stationmaster_internal.sees_all()));
