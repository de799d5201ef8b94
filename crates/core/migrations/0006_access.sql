-- Who may come in by HTTP, what was done by whom, and the role that requests run as.

create table stationmaster_internal.tokens (
    id           uuid primary key default stationmaster.new_id(),
    name         text not null check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
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
create unique index tokens_by_name on stationmaster_internal.tokens (name) where revoked_at is null;

create table stationmaster_internal.api_answers (
    token_id   uuid not null,
    key        text not null check (key <> '' and length(key) <= 256),
    request    bytea not null,
    status     integer,
    body       bytea,
    kind       text,
    created_at timestamptz not null default now(),
    primary key (token_id, key)
);
create index api_answers_at on stationmaster_internal.api_answers (created_at);

create table stationmaster.audit (
    id           bigint generated always as identity primary key,
    at           timestamptz not null default clock_timestamp(),
    actor        text not null,
    action       text not null,
    workspace_id uuid,
    subject      text not null,
    detail       jsonb not null default '{}'
);
create index audit_at on stationmaster.audit using brin (at) with (autosummarize = on);
create index audit_by_workspace on stationmaster.audit (workspace_id, id);

-- Requests run as the role stationmaster_api, behind row-level security. Where the role cannot be made, the servers say so; it can be
-- made later (see stationmaster.grant_api).
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
