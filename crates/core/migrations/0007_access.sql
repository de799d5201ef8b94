-- Who may come in by HTTP and what they see: tokens, a second wall of row-level security, the audit of every change to the
-- catalogue, the feed of events, answers kept for repeated requests, and the indexes that keep lists fast.

-- Bearer tokens. The secret itself is never stored: only its SHA-256, and a few characters to tell tokens apart.
create table stationmaster.tokens (
    id           uuid primary key default stationmaster.new_id(),
    name         text not null check (name <> '' and length(name) <= 100),
    hash         bytea not null unique check (octet_length(hash) = 32),
    hint         text not null,
    role         text not null check (role in ('viewer', 'operator', 'admin')),
    workspaces   uuid[] check (cardinality(workspaces) between 1 and 1000),
    created_at   timestamptz not null default now(),
    created_by   text not null default session_user,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    revoked_by   text,
    last_used_at timestamptz
);
create unique index tokens_by_name on stationmaster.tokens (name) where revoked_at is null;

comment on column stationmaster.tokens.workspaces is 'null: all workspaces';
comment on column stationmaster.tokens.last_used_at is 'written at most once a minute';

-- Answers to requests that carried an idempotency key, so that a repeat is answered and not done again.
create table stationmaster.api_answers (
    token_id   uuid not null,
    key        text not null check (key <> '' and length(key) <= 256),
    request    bytea not null,
    status     integer,
    body       bytea,
    kind       text,
    created_at timestamptz not null default now(),
    primary key (token_id, key)
);
create index api_answers_at on stationmaster.api_answers (created_at);

comment on column stationmaster.api_answers.request is 'SHA-256 of method, path and body';
comment on column stationmaster.api_answers.status is 'null: the first request is still under way';

-- Events for whoever listens. Writers put rows into the inbox inside their own transactions; a reader moves what has been
-- committed into events and numbers it under the lock of one row. So a number is given after the commit, in an order in
-- which everybody sees it: whoever has read up to a number has missed nothing below it, however late a transaction ends.
create table stationmaster.event_inbox (
    id           bigint generated always as identity primary key,
    at           timestamptz not null default clock_timestamp(),
    kind         text not null,
    workspace_id uuid,
    detail       jsonb not null default '{}'
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

create table stationmaster.events (
    position     bigint primary key,
    at           timestamptz not null,
    kind         text not null,
    workspace_id uuid,
    detail       jsonb not null
);
create index events_at on stationmaster.events using brin (at) with (autosummarize = on);

create table stationmaster.event_sequence (
    one      boolean primary key default true check (one),
    position bigint not null default 0
) with (fillfactor = 20);
insert into stationmaster.event_sequence default values;

-- A table whose rows are events: what is inserted into it goes to the inbox, as "<family>.<its column event>".
create function stationmaster.feed_queue_events() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster.event_inbox (at, kind, workspace_id, detail)
    select at, 'queue.' || event, workspace_id,
           jsonb_build_object('item_id', item_id, 'execution_id', execution_id, 'actor', actor, 'detail', detail)
    from new_rows order by id;
    return null;
end
$$;
create trigger feed_queue_events after insert on stationmaster.queue_events
    referencing new table as new_rows
    for each statement execute function stationmaster.feed_queue_events();

create function stationmaster.feed_audit() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster.event_inbox (at, kind, workspace_id, detail)
    select at, 'audit.' || action, workspace_id, jsonb_build_object('actor', actor, 'subject', subject, 'detail', detail)
    from new_rows order by id;
    return null;
end
$$;
create trigger feed_audit after insert on stationmaster.audit
    referencing new table as new_rows
    for each statement execute function stationmaster.feed_audit();

-- Who acts: whom the transaction names, or else the account.
create function stationmaster.actor() returns text language sql stable as $$
    select coalesce(nullif(current_setting('stationmaster.actor', true), ''), session_user::text)
$$;

-- Every change to the catalogue and to the tokens leaves a line in the audit, whoever makes it and by whatever way. The
-- arguments are the noun and the columns that are no change by themselves, or must not be told.
create function stationmaster.audit_change() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
declare
    before jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) - tg_argv[1:] else '{}' end;
    after jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) - tg_argv[1:] else '{}' end;
    row_now jsonb := case when tg_op = 'DELETE' then to_jsonb(old) else to_jsonb(new) end;
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
    insert into stationmaster.audit (actor, action, workspace_id, subject, detail)
    values (stationmaster.actor(),
            tg_argv[0] || case tg_op when 'INSERT' then '.create' when 'DELETE' then '.delete' else '.change' end,
            case tg_argv[0] when 'workspace' then (row_now ->> 'id')::uuid else (row_now ->> 'workspace_id')::uuid end,
            coalesce(row_now ->> 'id', row_now ->> 'name'), changed);
    return null;
end
$$;
create trigger audit_change after insert or update or delete on stationmaster.workspaces
    for each row execute function stationmaster.audit_change('workspace', 'id', 'created_at', 'updated_at');
create trigger audit_change after insert or update or delete on stationmaster.plans
    for each row execute function stationmaster.audit_change('plan');
create trigger audit_change after insert or update or delete on stationmaster.workflow_definitions
    for each row execute function stationmaster.audit_change('workflow', 'id', 'created_at', 'updated_at', 'current_version_id');
create trigger audit_change after insert or update or delete on stationmaster.tokens
    for each row execute function stationmaster.audit_change('token', 'id', 'hash', 'created_at', 'last_used_at');

create function stationmaster.audit_version() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    insert into stationmaster.audit (actor, action, workspace_id, subject, detail)
    select stationmaster.actor(), 'workflow.version', d.workspace_id, d.id::text, jsonb_build_object('version', new.version)
    from stationmaster.workflow_definitions d where d.id = new.workflow_definition_id;
    return null;
end
$$;
create trigger audit_version after insert on stationmaster.workflow_definition_versions
    for each row execute function stationmaster.audit_version();

-- A token that was revoked or changed must be forgotten by every server at once.
create function stationmaster.tell_access() returns trigger language plpgsql as $$
begin
    perform pg_notify('stationmaster', 'access');
    return null;
end
$$;
create trigger tell_access after delete or update of revoked_at, expires_at, role, workspaces on stationmaster.tokens
    for each statement execute function stationmaster.tell_access();

-- The second wall. Requests run as the role stationmaster_api, which sees only rows of the workspaces that its transaction
-- names; everybody else is governed by grants, as before. Where the role cannot be made, the servers say so.
do $$
begin
    if not exists (select from pg_roles where rolname = 'stationmaster_api') then
        create role stationmaster_api nologin nosuperuser nobypassrls;
    end if;
exception
    when duplicate_object or unique_violation then
        null;
    when insufficient_privilege then
        raise warning 'the role stationmaster_api could not be made: row-level security will not stand behind the API';
end
$$;
do $$
begin
    if exists (select from pg_roles where rolname = 'stationmaster_api')
       and not pg_has_role(current_user, 'stationmaster_api', 'member') then
        execute format('grant stationmaster_api to %I', current_user);
    end if;
exception
    when insufficient_privilege then
        raise warning '% may not act as stationmaster_api: row-level security will not stand behind the API', current_user;
end
$$;

-- Everybody but the API's role sees everything; the API's role does when its token is for all workspaces.
create function stationmaster.sees_all() returns boolean language sql stable parallel safe as $$
    select current_user <> 'stationmaster_api' or coalesce(current_setting('stationmaster.workspaces', true), '') = '*'
$$;
-- The workspaces that the transaction names.
create function stationmaster.workspaces_in_scope() returns uuid[] language sql stable parallel safe as $$
    select case when coalesce(current_setting('stationmaster.workspaces', true), '') in ('', '*') then '{}'::uuid[]
                else string_to_array(current_setting('stationmaster.workspaces', true), ',')::uuid[] end
$$;

-- Puts a table behind the wall. column_name holds the workspace; rows without one are for whoever sees all.
create function stationmaster.protect(relation regclass, column_name name default 'workspace_id') returns void
language plpgsql as $$
begin
    execute format('alter table %s enable row level security', relation);
    execute format('create policy in_scope on %s using ((select stationmaster.sees_all()) '
                   'or %I = any ((select stationmaster.workspaces_in_scope())::uuid[]))', relation, column_name);
    if exists (select from pg_roles where rolname = 'stationmaster_api') then
        execute format('grant select, insert, update, delete on %s to stationmaster_api', relation);
    end if;
end
$$;

-- Every table that has a workspace, and every view: a view must ask with its caller's eyes.
do $$
declare
    relation regclass;
begin
    for relation in
        select c.oid from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attname = 'workspace_id' and not a.attisdropped
        where c.relnamespace = 'stationmaster'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        order by c.oid
    loop
        perform stationmaster.protect(relation);
    end loop;
    for relation in
        select c.oid from pg_class c
        where c.relnamespace = 'stationmaster'::regnamespace and c.relkind = 'v' order by c.oid
    loop
        execute format('alter view %s set (security_invoker = true)', relation);
    end loop;
    perform stationmaster.protect('stationmaster.workspaces', 'id');
end
$$;

-- Tables without a workspace of their own: by what they belong to.
alter table stationmaster.workflow_definition_versions enable row level security;
create policy in_scope on stationmaster.workflow_definition_versions
    using ((select stationmaster.sees_all())
           or exists (select from stationmaster.workflow_definitions d where d.id = workflow_definition_id));
alter table stationmaster.cancel_requests enable row level security;
create policy in_scope on stationmaster.cancel_requests
    using ((select stationmaster.sees_all())
           or exists (select from stationmaster.executions_active a where a.execution_id = cancel_requests.execution_id));

do $$
begin
    if exists (select from pg_roles where rolname = 'stationmaster_api') then
        grant usage on schema stationmaster to stationmaster_api;
        grant select, insert, update, delete on stationmaster.plans, stationmaster.workflow_definition_versions,
            stationmaster.cancel_requests to stationmaster_api;
        grant select on stationmaster.servers, stationmaster.duties, stationmaster.attention, stationmaster.event_sequence,
            stationmaster.workflow_execution_queue, stationmaster.workflow_executions, stationmaster.execution_history
            to stationmaster_api;
        revoke insert, update, delete on stationmaster.audit, stationmaster.events, stationmaster.event_inbox,
            stationmaster.queue_events from stationmaster_api;
        grant insert on stationmaster.audit, stationmaster.queue_events to stationmaster_api;
    end if;
end
$$;

-- Lists. Ids grow with time, so within a workspace these indexes grow at their ends; the partial ones hold only what went
-- wrong, and cost the ordinary way nothing. Their condition is written so that only statements which say it in the same
-- words use them: to the planner a partial index looks empty after a good day, and it would take it for everything.
create index queue_items_by_workspace on stationmaster.queue_items (workspace_id, id);
create index queue_items_at on stationmaster.queue_items using brin (created_at) with (autosummarize = on);
create index executions_finished_by_workspace on stationmaster.executions_finished (workspace_id, execution_id);
create index executions_finished_badly on stationmaster.executions_finished (execution_id)
    where coalesce(status, '') <> 'COMPLETED';
create index executions_finished_items_badly on stationmaster.executions_finished (item_id)
    where coalesce(status, '') <> 'COMPLETED';
create index audit_by_workspace on stationmaster.audit (workspace_id, id);
