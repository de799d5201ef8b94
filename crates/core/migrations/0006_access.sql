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

-- Addresses of lists that people keep. The owner is a token by its name, so that another secret under the same name finds them again.
create table stationmaster_internal.views (
    id         uuid primary key default stationmaster.new_id(),
    owner      text not null check (owner <> ''),
    name       text not null check (length(name) between 1 and 100),
    path       text not null check (path like '/%' and length(path) <= 2000),
    shared     boolean not null default false,
    made_by    text not null,
    created_at timestamptz not null default now()
);
create unique index views_by_owner on stationmaster_internal.views (owner, name);
create index views_shared on stationmaster_internal.views (name) where shared;
