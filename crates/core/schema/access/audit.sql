-- Who acts, and the lines that changes leave in the audit.

-- Who acts: whom the transaction names, or else the account.
create or replace function stationmaster_internal.actor() returns text language sql stable as $$
    select coalesce(nullif(current_setting('stationmaster.actor', true), ''), session_user::text)
$$;

-- Every change to the catalogue, to triggers, to targets, to views and to tokens leaves a line in the audit, whoever makes it and by
-- whatever way. The arguments are the noun and the columns that are no change by themselves, or must not be told. Triggers have the
-- workspace of their project.
create or replace function stationmaster_internal.audit_change() returns trigger language plpgsql security definer
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
    values (stationmaster_internal.actor(),
            tg_argv[0] || case tg_op when 'INSERT' then '.create' when 'DELETE' then '.delete' else '.change' end,
            workspace, subject, changed);
    return null;
end
$$;
create or replace trigger audit_change after insert or update or delete on stationmaster.workspaces
    for each row execute function stationmaster_internal.audit_change('workspace', 'id', 'created_at', 'updated_at');
create or replace trigger audit_change after insert or update or delete on stationmaster.plans
    for each row execute function stationmaster_internal.audit_change('plan');
create or replace trigger audit_change after insert or update or delete on stationmaster.workflow_definitions
    for each row execute function stationmaster_internal.audit_change('workflow', 'id', 'created_at', 'updated_at', 'current_version_id');
create or replace trigger audit_change after insert or update or delete on stationmaster_internal.tokens
    for each row execute function stationmaster_internal.audit_change('token', 'id', 'hash', 'created_at', 'last_used_at');
create or replace trigger audit_change after insert or update or delete on stationmaster_internal.views
    for each row execute function stationmaster_internal.audit_change('view', 'id', 'created_at', 'made_by');
create or replace trigger audit_change after insert or update or delete on stationmaster.triggers
    for each row execute function stationmaster_internal.audit_change('trigger', 'project', 'task_queue', 'name', 'created_at', 'updated_at');
create or replace trigger audit_change after insert or update or delete on stationmaster_internal.wake_keys
    for each row execute function stationmaster_internal.audit_change('target', 'target');

create or replace function stationmaster_internal.audit_version() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster.audit (actor, action, workspace_id, subject, detail)
    select stationmaster_internal.actor(), 'workflow.version', d.workspace_id, d.id::text, jsonb_build_object('version', new.version)
    from stationmaster.workflow_definitions d where d.id = new.workflow_definition_id;
    return null;
end
$$;
create or replace trigger audit_version after insert on stationmaster.workflow_definition_versions
    for each row execute function stationmaster_internal.audit_version();

-- A token that was revoked or changed must be forgotten by every server at once.
create or replace function stationmaster_internal.tell_access() returns trigger language plpgsql as $$
begin
    perform pg_notify('stationmaster', 'access');
    return null;
end
$$;
create or replace trigger tell_access after delete or update of revoked_at, expires_at, role, workspaces on stationmaster_internal.tokens
    for each statement execute function stationmaster_internal.tell_access();
