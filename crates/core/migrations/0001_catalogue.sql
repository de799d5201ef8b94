-- What runs, and for whom: plans, workspaces, workflow definitions and their immutable versions.
--
-- Migrations hold what has data. What has none (functions, triggers, views, policies, grants, comments) lies in schema/, and is
-- applied again whenever it has changed. The two functions that tables themselves are made with, new_id and dispatcher_id, are
-- made here: what they gave is stored.
--
-- The schema stationmaster is for everybody; stationmaster_internal is ours, and may change with every release.


-- The parts of schema/ that have been applied to this database, and by which version of the program: an older one leaves them alone.
create table stationmaster_internal.schema_parts (
    name       text primary key,
    checksum   bytea not null check (octet_length(checksum) = 32),
    program    integer[] not null,
    applied_at timestamptz not null default now()
);

-- A UUID of version 7 (RFC 9562): milliseconds, then chance. Ids that grow with time keep the b-trees that hold them
-- dense. One plain expression, so that PostgreSQL inlines it into every insert.
create function stationmaster.new_id() returns uuid language sql volatile parallel safe as $$
    select (lpad(to_hex((date_part('epoch', clock_timestamp()) * 1000)::bigint), 12, '0')
            || '7' || substr(gen_random_uuid()::text, 16))::uuid
$$;

create table stationmaster.plans (
    name           text primary key check (name <> ''),
    max_concurrent integer not null check (max_concurrent >= 0),
    weight         double precision not null default 1 check (weight >= 0.000001 and weight <= 1000000)
);

-- Plans are told apart by more than the case of their letters.
create unique index plans_by_name on stationmaster.plans (lower(name));

insert into stationmaster.plans (name, max_concurrent, weight)
values ('FREE', 1, 1), ('PRO', 5, 2), ('ENTERPRISE', 20, 4);

-- Names are slugs, and no id looks like one. What is given becomes one by trigger (schema/catalogue/names.sql).
create table stationmaster.workspaces (
    id             uuid primary key default stationmaster.new_id(),
    name           text not null,
    plan           text not null default 'FREE' references stationmaster.plans (name) on update cascade,
    max_concurrent integer check (max_concurrent >= 0),
    paused         boolean not null default false,
    created_at     timestamptz not null default now(),
    updated_at     timestamptz not null default now(),
    constraint the_name_is_a_slug check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'
           and name !~ '^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$')
);

create unique index workspaces_by_name on stationmaster.workspaces (name);

create table stationmaster.workflow_definitions (
    id                 uuid primary key default stationmaster.new_id(),
    workspace_id       uuid not null references stationmaster.workspaces (id) on delete cascade,
    name               text not null,
    task_queue         text check (task_queue <> ''),
    workflow_type      text check (workflow_type <> ''),
    max_attempts       integer check (max_attempts >= 1),
    published_version  integer,
    current_version_id uuid,
    paused             boolean not null default false,
    created_at         timestamptz not null default now(),
    updated_at         timestamptz not null default now(),
    run_timeout        interval check (run_timeout between interval '1 second' and interval '10 years'),
    constraint the_name_is_a_slug check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'
           and name !~ '^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$')
);
create unique index workflow_definitions_by_name on stationmaster.workflow_definitions (name, workspace_id);
create index workflow_definitions_by_workspace on stationmaster.workflow_definitions (workspace_id);
create index workflow_definitions_paused on stationmaster.workflow_definitions (id) where paused;

create table stationmaster.workflow_definition_versions (
    id                     uuid primary key default stationmaster.new_id(),
    workflow_definition_id uuid not null references stationmaster.workflow_definitions (id) on delete cascade,
    version                integer not null check (version >= 1),
    workflow               jsonb not null,
    created_at             timestamptz not null default now(),
    unique (workflow_definition_id, version)
);
