-- What happens by itself when something ends badly, is tried again, or is forgotten: its row among the failures comes and goes.

-- A message without what differs from one time to the next: ids, times, addresses in memory and other numbers become #. One expression
-- without groups that remember or look ahead: PostgreSQL reads a message through once for it, and every failure pays for this.
create or replace function stationmaster_internal.fold_message(message text) returns text language sql immutable parallel safe as $$
    select regexp_replace(lower(left(message, 1000)), '[a-f]*[0-9][0-9a-fx]*(?:[.:,tz-]+[0-9a-f]+)*z?', '#', 'g')
$$;

-- The group of a failure: 60 bits of a hash, which people write as 15 hexadecimal digits.
create or replace function stationmaster_internal.failure_group(kind text, workspace_id uuid, subject text, message text) returns bigint
language sql immutable parallel safe as $$
    select ('x0' || left(encode(sha256(convert_to(concat_ws(E'\n', kind, workspace_id, subject, stationmaster_internal.fold_message(message)),
                                                  'UTF8')), 'hex'), 15))::bit(64)::bigint
$$;

create or replace function stationmaster_internal.note_failed_execution() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
declare
    kind text := case new.item_status when 'FAILED' then 'start' else 'execution' end;
    message text := stationmaster_internal.words_of_end(new.last_error, new.error, new.reason, coalesce(new.status, new.item_status));
begin
    insert into stationmaster_internal.failures (kind, workspace_id, group_id, at, message, workflow_definition_id, item_id, execution_id)
    values (kind, new.workspace_id,
            stationmaster_internal.failure_group(kind, new.workspace_id, new.workflow_definition_id::text, message),
            new.finished_at, message, new.workflow_definition_id, new.item_id, new.execution_id)
    on conflict do nothing;
    return null;
end
$$;

create or replace function stationmaster_internal.forget_failed_execution() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    delete from stationmaster_internal.failures where execution_id = old.execution_id;
    return null;
end
$$;

-- What was tried again needs nobody any more. Once for a whole statement: people retry by the thousand, and a delete for each was a
-- seventh of what that cost, and more on a busy machine.
create or replace function stationmaster_internal.forget_superseded_executions() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    delete from stationmaster_internal.failures
    where execution_id = any (array(select n.execution_id from new_rows n where n.superseded_at is not null));
    return null;
end
$$;

-- Conditions of triggers are asked for every row, and cost what ends well next to nothing.
create or replace trigger note_failure after insert on stationmaster_internal.executions_finished
    for each row when (coalesce(new.status, new.item_status) in ('FAILED', 'TERMINATED', 'TIMED_OUT'))
    execute function stationmaster_internal.note_failed_execution();
create or replace trigger forget_superseded_failures after update on stationmaster_internal.executions_finished
    referencing new table as new_rows
    for each statement execute function stationmaster_internal.forget_superseded_executions();
-- An end that another run took the place of, after a reset: what was noted of the first end goes, and the new one is noted. They are
-- called in the order of their names.
create or replace trigger amend_failure_1_forget after update of status on stationmaster_internal.executions_finished
    for each row when (coalesce(old.status, old.item_status) in ('FAILED', 'TERMINATED', 'TIMED_OUT'))
    execute function stationmaster_internal.forget_failed_execution();
create or replace trigger amend_failure_2_note after update of status on stationmaster_internal.executions_finished
    for each row when (coalesce(new.status, new.item_status) in ('FAILED', 'TERMINATED', 'TIMED_OUT'))
    execute function stationmaster_internal.note_failed_execution();
create or replace trigger forget_failure after delete on stationmaster_internal.executions_finished
    for each row when (coalesce(old.status, old.item_status) in ('FAILED', 'TERMINATED', 'TIMED_OUT'))
    execute function stationmaster_internal.forget_failed_execution();

create or replace function stationmaster_internal.note_failed_occurrence() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
declare
    workspace uuid := (select d.workspace_id from stationmaster_internal.alarm_definitions d where d.id = new.alarm_id);
    message text := left(coalesce(nullif(new.last_error, ''), nullif(new.reason, ''), 'failed'), 2000);
begin
    insert into stationmaster_internal.failures (kind, workspace_id, group_id, at, message, alarm_id, scheduled_for)
    values ('occurrence', coalesce(workspace, '00000000-0000-0000-0000-000000000000'),
            stationmaster_internal.failure_group('occurrence', workspace, new.alarm_id::text, message),
            new.finished_at, message, new.alarm_id, new.scheduled_for)
    on conflict do nothing;
    return null;
end
$$;

create or replace function stationmaster_internal.forget_failed_occurrence() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    delete from stationmaster_internal.failures where alarm_id = old.alarm_id and scheduled_for = old.scheduled_for;
    return null;
end
$$;

create or replace trigger note_failure after insert on stationmaster_internal.occurrences_finished
    for each row when (new.status = 'failed') execute function stationmaster_internal.note_failed_occurrence();
create or replace trigger forget_failure after delete on stationmaster_internal.occurrences_finished
    for each row when (old.status = 'failed') execute function stationmaster_internal.forget_failed_occurrence();

create or replace function stationmaster_internal.note_dead_letter() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
declare
    sent record;
    message text := left(concat_ws(': ', nullif(new.reason, ''), nullif(new.detail, '')), 2000);
begin
    select s.id, s.project, s.task_queue, s.name, p.workspace_id into sent
    from stationmaster_internal.signals_inbox s
    left join stationmaster.projects p on p.name = s.project
    where s.key = new.signal_key;
    insert into stationmaster_internal.failures (kind, workspace_id, group_id, at, message, signal_id, signal_key)
    values ('signal', coalesce(sent.workspace_id, '00000000-0000-0000-0000-000000000000'),
            stationmaster_internal.failure_group('signal', sent.workspace_id, concat_ws('/', sent.project, sent.task_queue, sent.name), message),
            new.settled_at, message, sent.id, new.signal_key)
    on conflict do nothing;
    return null;
end
$$;

create or replace function stationmaster_internal.forget_dead_letter() returns trigger language plpgsql security definer
set search_path = pg_catalog as $$
begin
    delete from stationmaster_internal.failures where signal_key = old.signal_key;
    return null;
end
$$;

create or replace trigger note_failure after insert on stationmaster_internal.signals_settled
    for each row when (new.status = 'DEAD') execute function stationmaster_internal.note_dead_letter();
create or replace trigger forget_failure after delete on stationmaster_internal.signals_settled
    for each row when (old.status = 'DEAD') execute function stationmaster_internal.forget_dead_letter();
