-- What runs, and for whom: plans, workspaces, workflow definitions and their immutable versions.

create schema if not exists stationmaster;

-- A UUID of version 7 (RFC 9562): milliseconds, then chance. Ids that grow with time keep the b-trees that hold them
-- dense. One plain expression, so that PostgreSQL inlines it into every insert.
create function stationmaster.new_id() returns uuid language sql volatile parallel safe as $$
    select (lpad(to_hex((date_part('epoch', clock_timestamp()) * 1000)::bigint), 12, '0')
            || '7' || substr(gen_random_uuid()::text, 16))::uuid
$$;

create table stationmaster.plans (
    name           text primary key check (name <> ''),
    max_concurrent integer not null check (max_concurrent >= 0),
    weight         double precision not null default 1 check (weight > 0 and weight < 'infinity')
);

insert into stationmaster.plans (name, max_concurrent, weight)
values ('FREE', 1, 1), ('PRO', 5, 2), ('ENTERPRISE', 20, 4);

create table stationmaster.workspaces (
    id             uuid primary key default stationmaster.new_id(),
    name           text not null check (name <> ''),
    plan           text not null default 'FREE' references stationmaster.plans (name) on update cascade,
    max_concurrent integer check (max_concurrent >= 0),
    paused         boolean not null default false,
    created_at     timestamptz not null default now(),
    updated_at     timestamptz not null default now()
);

create table stationmaster.workflow_definitions (
    id                 uuid primary key default stationmaster.new_id(),
    workspace_id       uuid not null references stationmaster.workspaces (id) on delete cascade,
    name               text not null check (name <> ''),
    task_queue         text check (task_queue <> ''),
    workflow_type      text check (workflow_type <> ''),
    max_attempts       integer check (max_attempts >= 1),
    published_version  integer,
    current_version_id uuid,
    paused             boolean not null default false,
    created_at         timestamptz not null default now(),
    updated_at         timestamptz not null default now()
);
create index workflow_definitions_by_workspace on stationmaster.workflow_definitions (workspace_id);
create index workflow_definitions_paused on stationmaster.workflow_definitions (id) where paused;

comment on column stationmaster.workflow_definitions.task_queue is 'null: the server''s setting';
comment on column stationmaster.workflow_definitions.workflow_type is 'null: the server''s setting';
comment on column stationmaster.workflow_definitions.max_attempts is 'null: the server''s setting';
comment on column stationmaster.workflow_definitions.published_version is 'null: the newest';
comment on column stationmaster.workflow_definitions.current_version_id is
    'kept by triggers: what an enqueue resolves to; null: nothing is published';

create table stationmaster.workflow_definition_versions (
    id                     uuid primary key default stationmaster.new_id(),
    workflow_definition_id uuid not null references stationmaster.workflow_definitions (id) on delete cascade,
    version                integer not null check (version >= 1),
    workflow               jsonb not null,
    created_at             timestamptz not null default now(),
    unique (workflow_definition_id, version)
);

-- Refuses a graph that cannot run, whoever inserts it.
create function stationmaster.check_graph(graph jsonb) returns void language plpgsql immutable as $$
declare
    found text;
    froms text[];
    tos text[];
    before integer;
begin
    if jsonb_typeof(graph) is distinct from 'object' or jsonb_typeof(graph->'nodes') is distinct from 'array'
       or jsonb_typeof(coalesce(graph->'edges', '[]')) <> 'array' then
        raise exception 'the graph is not of the form {"nodes": [{"id": ..., "type": ...}], "edges": [{"from": ..., "to": ...}]}'
            using errcode = 'check_violation';
    end if;
    if jsonb_array_length(graph->'nodes') = 0 then
        raise exception 'the graph has no nodes' using errcode = 'check_violation';
    end if;
    if exists (select from jsonb_array_elements(graph->'nodes') node
               where jsonb_typeof(node->'id') is distinct from 'string' or node->>'id' = '') then
        raise exception 'a node of the graph has no id' using errcode = 'check_violation';
    end if;
    select node->>'id' into found from jsonb_array_elements(graph->'nodes') node
    where jsonb_typeof(coalesce(node->'type', '""')) <> 'string' limit 1;
    if found is not null then
        raise exception 'the type of node "%" is not a string', found using errcode = 'check_violation';
    end if;
    select node->>'id' into found from jsonb_array_elements(graph->'nodes') node
    group by 1 having count(*) > 1 limit 1;
    if found is not null then
        raise exception 'the id "%" is used by two nodes', found using errcode = 'check_violation';
    end if;
    select format('"%s" -> "%s"', edge->>'from', edge->>'to') into found
    from jsonb_array_elements(coalesce(graph->'edges', '[]')) edge
    where not exists (select from jsonb_array_elements(graph->'nodes') node where node->'id' = edge->'from')
       or not exists (select from jsonb_array_elements(graph->'nodes') node where node->'id' = edge->'to')
    limit 1;
    if found is not null then
        raise exception 'the edge % names an unknown node', found using errcode = 'check_violation';
    end if;
    -- Peel off the edges of nodes that wait for nobody, until none are left or everybody waits.
    select array_agg(edge->>'from'), array_agg(edge->>'to') into froms, tos
    from jsonb_array_elements(coalesce(graph->'edges', '[]')) edge;
    while cardinality(tos) > 0 loop
        before := cardinality(tos);
        select array_agg(f), array_agg(t) into froms, tos
        from unnest(froms, tos) edge (f, t) where f in (select unnest(tos));
        if cardinality(tos) = before then
            raise exception 'the nodes % form a cycle or wait for one',
                (select string_agg(distinct t, ', ') from unnest(tos) t) using errcode = 'check_violation';
        end if;
    end loop;
end
$$;

-- Numbers a version when the insert left the number out, and looks at its graph.
create function stationmaster.prepare_version() returns trigger language plpgsql as $$
begin
    if new.version is null then
        perform from stationmaster.workflow_definitions where id = new.workflow_definition_id for no key update;
        select coalesce(max(version), 0) + 1 into new.version
        from stationmaster.workflow_definition_versions where workflow_definition_id = new.workflow_definition_id;
    end if;
    perform stationmaster.check_graph(new.workflow);
    return new;
end
$$;
create trigger prepare_version before insert on stationmaster.workflow_definition_versions
    for each row execute function stationmaster.prepare_version();

create function stationmaster.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'a version is immutable: insert a new one' using errcode = 'check_violation';
end
$$;
create trigger versions_are_immutable before update on stationmaster.workflow_definition_versions
    for each row execute function stationmaster.refuse_change();

-- Keeps current_version_id: the published version, or the newest.
create function stationmaster.resolve_version(definition uuid, published integer) returns uuid language sql stable as $$
    select id from stationmaster.workflow_definition_versions
    where workflow_definition_id = definition and (published is null or version = published)
    order by version desc limit 1
$$;
create function stationmaster.follow_versions() returns trigger language plpgsql as $$
begin
    update stationmaster.workflow_definitions d
    set current_version_id = stationmaster.resolve_version(d.id, d.published_version)
    where d.id = new.workflow_definition_id;
    return null;
end
$$;
create trigger follow_versions after insert on stationmaster.workflow_definition_versions
    for each row execute function stationmaster.follow_versions();
create function stationmaster.follow_publication() returns trigger language plpgsql as $$
begin
    new.current_version_id := stationmaster.resolve_version(new.id, new.published_version);
    new.updated_at := now();
    return new;
end
$$;
create trigger follow_publication before insert or update of published_version on stationmaster.workflow_definitions
    for each row execute function stationmaster.follow_publication();

-- The version that an enqueue resolves to.
create function stationmaster.current_version(definition uuid) returns uuid language sql stable as $$
    select current_version_id from stationmaster.workflow_definitions where id = definition
$$;
