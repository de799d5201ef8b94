-- Names that people can type: how what is given becomes one, and which thing is meant by it.

-- What is given, as a name: lower case, every run of other characters one dash, at most 63 characters. Nothing is left of what
-- holds no letter and no digit. The same rule exists in Rust (names::fold), and a test compares them.
create or replace function stationmaster.slug(name text) returns text language sql immutable strict parallel safe as $$
    select rtrim(left(ltrim(regexp_replace(
               translate(name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') collate "C", '[^a-z0-9_-]+', '-', 'g'),
           '-_'), 63), '-')
$$;

-- Is it an id rather than a name?
create or replace function stationmaster_internal.is_id(name text) returns boolean language sql immutable strict parallel safe as $$
    select name ~* '^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$'
$$;

-- What workspaces are called, in the order of their ids as given; null where one is gone. Index: workspaces_pkey.
create or replace function stationmaster_internal.workspaces_called(ids uuid[]) returns text[] language sql stable as $$
    select array_agg(w.name order by given.place)
    from unnest(ids) with ordinality as given (id, place)
    left join stationmaster.workspaces w on w.id = given.id
$$;

-- The name that is kept of what was given; refused, with words, when nothing is left of it or it looks like an id.
create or replace function stationmaster_internal.given_name(name text) returns text language plpgsql immutable strict parallel safe as $$
declare
    slug text := stationmaster.slug(name);
begin
    if slug = '' then
        raise exception 'the name "%" holds no letter and no digit', name using errcode = 'check_violation',
            hint = 'A name is made of a-z, 0-9, - and _.';
    elsif stationmaster_internal.is_id(slug) then
        raise exception 'the name "%" looks like an id', name using errcode = 'check_violation',
            hint = 'Ids and names are taken in the same places: a name must not be mistaken for one.';
    end if;
    return slug;
end
$$;

-- Names what is written: what is given is folded, what was given none gets one from its id. Who has the name already is told here;
-- the unique indexes decide.
create or replace function stationmaster_internal.name_workspace() returns trigger language plpgsql as $$
declare
    other uuid;
begin
    new.name := coalesce(stationmaster_internal.given_name(new.name), 'workspace-' || right(new.id::text, 12));
    select w.id into other from stationmaster.workspaces w where w.name = new.name and w.id <> new.id;
    if found then
        raise exception 'there is a workspace called "%" already: %', new.name, other
            using errcode = 'unique_violation', constraint = 'workspaces_by_name';
    end if;
    return new;
end
$$;
create or replace trigger name_workspace before insert or update of name on stationmaster.workspaces
    for each row execute function stationmaster_internal.name_workspace();

create or replace function stationmaster_internal.name_definition() returns trigger language plpgsql as $$
declare
    other uuid;
begin
    new.name := coalesce(stationmaster_internal.given_name(new.name), 'workflow-' || right(new.id::text, 12));
    select d.id into other from stationmaster.workflow_definitions d
    where d.name = new.name and d.workspace_id = new.workspace_id and d.id <> new.id;
    if found then
        raise exception 'there is a workflow called "%" already in this workspace: %', new.name, other
            using errcode = 'unique_violation', constraint = 'workflow_definitions_by_name';
    end if;
    return new;
end
$$;
create or replace trigger name_definition before insert or update of name on stationmaster.workflow_definitions
    for each row execute function stationmaster_internal.name_definition();

-- Which workspace is meant, by its name or its id.
create or replace function stationmaster.workspace_id(workspace text) returns uuid language plpgsql stable strict as $$
declare
    found_id uuid;
    wanted text := stationmaster.slug(workspace);
begin
    if stationmaster_internal.is_id(wanted) then
        return wanted::uuid;
    end if;
    select w.id into found_id from stationmaster.workspaces w where w.name = wanted;
    if found_id is null then
        raise exception 'there is no workspace called "%"', workspace using errcode = 'foreign_key_violation',
            hint = 'Make it first: insert into stationmaster.workspaces (name), or "stationmaster workspaces create".';
    end if;
    return found_id;
end
$$;

-- Which workflow of a workspace is meant, by its name or its id.
create or replace function stationmaster.workflow_id(workspace text, workflow text) returns uuid language plpgsql stable strict as $$
declare
    found_id uuid;
    place uuid := stationmaster.workspace_id(workspace);
    wanted text := stationmaster.slug(workflow);
begin
    if stationmaster_internal.is_id(wanted) then
        return wanted::uuid;
    end if;
    select d.id into found_id from stationmaster.workflow_definitions d where d.name = wanted and d.workspace_id = place;
    if found_id is null then
        raise exception 'workspace "%" has no workflow called "%"', workspace, workflow using errcode = 'foreign_key_violation',
            hint = 'Make it first: insert into stationmaster.workflow_definitions (workspace_id, name), or "stationmaster workflows create".';
    end if;
    return found_id;
end
$$;
