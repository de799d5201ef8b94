-- What operations leave in the audit and on the feed of events, and how servers hear of a new one.

-- An operation of one workspace is told to whoever may see that; one of several, to whoever sees all.
create or replace function stationmaster_internal.tell_operation() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
declare
    workspace uuid := case when cardinality(new.workspaces) = 1 then new.workspaces[1] end;
    word text := case when tg_op = 'INSERT' then 'begun' when new.ended_at is null then 'moved' else lower(new.status) end;
begin
    if tg_op = 'INSERT' then
        perform pg_notify('stationmaster', 'operations');
    end if;
    if word <> 'moved' then
        insert into stationmaster.audit (actor, action, workspace_id, subject, detail)
        values (coalesce(case when tg_op = 'UPDATE' then new.ended_by end, new.created_by), 'operation.' || word, workspace, new.id::text,
                jsonb_strip_nulls(jsonb_build_object('kind', new.kind, 'request', new.request, 'total', new.total, 'done', new.done,
                                                     'error', new.error)));
    end if;
    insert into stationmaster_internal.event_inbox (kind, workspace_id, detail)
    values ('operation.' || word, workspace,
            jsonb_strip_nulls(jsonb_build_object('operation_id', new.id, 'kind', new.kind, 'status', new.status, 'total', new.total,
                                                 'done', new.done, 'error', new.error)));
    return null;
end
$$;
create or replace trigger tell_operation after insert or update on stationmaster_internal.operations
    for each row execute function stationmaster_internal.tell_operation();
