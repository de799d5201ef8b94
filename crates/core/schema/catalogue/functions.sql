-- The rules of the catalogue: graphs that can run, versions that never change, and what an enqueue resolves to.

-- Refuses a graph that cannot run, whoever inserts it.
create or replace function stationmaster_internal.check_graph(graph jsonb) returns void language plpgsql immutable as $$
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

-- Do all servers that are there have the embedded engine? Nobody knows while there is none.
create or replace function stationmaster_internal.runs_embedded_only() returns boolean language sql stable security definer
set search_path = pg_catalog as $$
    select coalesce(bool_and(engine = 'embedded'), false)
    from stationmaster_internal.servers
    where lease_until > now()
$$;

-- Refuses nodes that the embedded engine does not run: what engine::embedded::nodes says, for whoever inserts by SQL.
create or replace function stationmaster_internal.check_nodes(graph jsonb) returns void language plpgsql immutable as $$
declare
    node jsonb;
    kind text;
    wrong text;
begin
    for node in select value from jsonb_array_elements(graph->'nodes') loop
        kind := coalesce(node->>'type', 'noop');
        wrong := case
            when kind not in ('noop', 'wait', 'http', 'fail')
                then format('the embedded engine does not run nodes of type "%s"; it runs noop, wait, http, fail', kind)
            when kind = 'wait' and node ? 'seconds' then
                case when jsonb_typeof(node->'seconds') = 'number'
                     then case when (node->>'seconds')::numeric not between 0 and 3155760000
                               then 'seconds is a number from 0 to a hundred years' end
                     else 'seconds is a number from 0 to a hundred years' end
            when kind = 'http' and (jsonb_typeof(node->'url') is distinct from 'string' or node->>'url' !~* '^https?://')
                then 'an http node needs a url that begins with http:// or https://'
            when kind = 'http' and node ? 'method' and jsonb_typeof(node->'method') <> 'string' then 'method is a string'
            when kind = 'fail' and node ? 'message' and jsonb_typeof(node->'message') <> 'string' then 'message is a string'
        end;
        if wrong is not null then
            raise exception 'node "%": %', node->>'id', wrong
                using errcode = 'check_violation', hint = 'Other types need servers with the engine temporal: see docs/guides/embedded-engine.md';
        end if;
    end loop;
end
$$;

-- Numbers a version when the insert left the number out, and looks at its graph.
create or replace function stationmaster_internal.prepare_version() returns trigger language plpgsql as $$
begin
    if new.version is null then
        perform from stationmaster.workflow_definitions where id = new.workflow_definition_id for no key update;
        select coalesce(max(version), 0) + 1 into new.version
        from stationmaster.workflow_definition_versions where workflow_definition_id = new.workflow_definition_id;
    end if;
    perform stationmaster_internal.check_graph(new.workflow);
    if stationmaster_internal.runs_embedded_only() then
        perform stationmaster_internal.check_nodes(new.workflow);
    end if;
    return new;
end
$$;
create or replace trigger prepare_version before insert on stationmaster.workflow_definition_versions
    for each row execute function stationmaster_internal.prepare_version();

create or replace function stationmaster_internal.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'a version is immutable: insert a new one' using errcode = 'check_violation';
end
$$;
create or replace trigger versions_are_immutable before update on stationmaster.workflow_definition_versions
    for each row execute function stationmaster_internal.refuse_change();

-- Keeps current_version_id: the published version, or the newest.
create or replace function stationmaster_internal.resolve_version(definition uuid, published integer) returns uuid language sql stable as $$
    select id from stationmaster.workflow_definition_versions
    where workflow_definition_id = definition and (published is null or version = published)
    order by version desc limit 1
$$;

create or replace function stationmaster_internal.follow_versions() returns trigger language plpgsql as $$
begin
    update stationmaster.workflow_definitions d
    set current_version_id = stationmaster_internal.resolve_version(d.id, d.published_version)
    where d.id = new.workflow_definition_id;
    return null;
end
$$;
create or replace trigger follow_versions after insert on stationmaster.workflow_definition_versions
    for each row execute function stationmaster_internal.follow_versions();

create or replace function stationmaster_internal.follow_publication() returns trigger language plpgsql as $$
begin
    new.current_version_id := stationmaster_internal.resolve_version(new.id, new.published_version);
    new.updated_at := now();
    return new;
end
$$;
create or replace trigger follow_publication before insert or update of published_version on stationmaster.workflow_definitions
    for each row execute function stationmaster_internal.follow_publication();
