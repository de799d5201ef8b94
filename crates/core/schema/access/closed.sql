-- What is for reading: whoever writes to it is told what to call instead. Views refuse everybody; tables, everybody but the servers.

create or replace function stationmaster_internal.refuse_write() returns trigger language plpgsql as $$
begin
    raise exception '%.% is for reading: %', tg_table_schema, tg_table_name, tg_argv[0]
        using errcode = 'object_not_in_prerequisite_state', hint = 'Everything that can be done is in docs/schema.md, and in stationmaster --help.';
end
$$;

create or replace trigger it_is_for_reading instead of update or delete on stationmaster.workflow_execution_queue
    for each row execute function stationmaster_internal.refuse_write(
        'call stationmaster.cancel_execution(id) to cancel an item; an INSERT, or stationmaster.enqueue(workspace, workflow), adds one');
create or replace trigger it_is_for_reading instead of insert or update or delete on stationmaster.workflow_executions
    for each row execute function stationmaster_internal.refuse_write(
        'call stationmaster.enqueue(workspace, workflow) to start an execution, and stationmaster.cancel_execution(id) to cancel one');
create or replace trigger it_is_for_reading instead of insert or update or delete on stationmaster.execution_history
    for each row execute function stationmaster_internal.refuse_write(
        'history is written by what happens; stationmaster.cancel_execution(id) takes a reason, which is kept in it');
create or replace trigger it_is_for_reading instead of insert or update or delete on stationmaster.alarms
    for each row execute function stationmaster_internal.refuse_write(
        'call stationmaster.set_alarm(...) to set an alarm, and stationmaster.cancel_alarm(id) to cancel one');
create or replace trigger it_is_for_reading instead of insert or update or delete on stationmaster.alarm_occurrences
    for each row execute function stationmaster_internal.refuse_write(
        'occurrences come of alarms; call stationmaster.set_alarm(...) and stationmaster.cancel_alarm(id)');
create or replace trigger it_is_for_reading instead of update or delete on stationmaster.signals
    for each row execute function stationmaster_internal.refuse_write(
        'a signal cannot be changed or taken back; call stationmaster.send_signal(...) to send another');
create or replace trigger it_is_for_reading instead of insert or update or delete on stationmaster.failures
    for each row execute function stationmaster_internal.refuse_write(
        'failures come of what fails; stationmaster.cancel_execution(id) ends what still runs, and the command stationmaster failures retries or sets aside');
create or replace trigger it_is_for_reading instead of insert or update or delete on stationmaster.failure_groups
    for each row execute function stationmaster_internal.refuse_write(
        'failures come of what fails; the command stationmaster failures retries or sets aside a group');
create or replace trigger it_is_for_reading instead of insert or update or delete on stationmaster.operations
    for each row execute function stationmaster_internal.refuse_write(
        'operations are begun by a command with --detach, or by the API with Prefer: respond-async; the command stationmaster operations cancels one');
create or replace trigger it_is_for_reading instead of insert or update or delete on stationmaster.event_feed
    for each row execute function stationmaster_internal.refuse_write(
        'events are told by what happens; stationmaster.tell_steps(true) begins to tell the steps of executions too');

-- Tables that servers write: whoever else was given the right to is told what to use. A server has the rights of the owner, or acts as the role of
-- requests; functions that write for their caller have the owner's rights too.
create or replace function stationmaster_internal.refuse_write_of_others() returns trigger language plpgsql as $$
begin
    if current_user = 'stationmaster_api'
       or pg_has_role(current_user, (select c.relowner from pg_catalog.pg_class c where c.oid = tg_relid), 'member') then
        return null;
    end if;
    raise exception '%.% is for reading: %', tg_table_schema, tg_table_name, tg_argv[0]
        using errcode = 'object_not_in_prerequisite_state', hint = 'Everything that can be done is in docs/schema.md, and in stationmaster --help.';
end
$$;

create or replace trigger it_is_for_reading before update or delete or truncate on stationmaster.dispatchers
    for each statement execute function stationmaster_internal.refuse_write_of_others(
        'servers own dispatchers; stationmaster.send_signal(...) makes one, and the command stationmaster dispatchers reconcile removes what is left behind');
create or replace trigger it_is_for_reading before insert or update or delete or truncate on stationmaster.dispatcher_events
    for each statement execute function stationmaster_internal.refuse_write_of_others(
        'events of dispatchers are told by what happens; the command stationmaster dispatchers show lists them');
create or replace trigger it_is_for_reading before update or delete or truncate on stationmaster.projects
    for each statement execute function stationmaster_internal.refuse_write_of_others(
        'a project belongs to the workspace of its first trigger: insert into stationmaster.triggers, or use the command stationmaster triggers set');
create or replace trigger it_is_for_reading before insert or update or delete or truncate on stationmaster.audit
    for each statement execute function stationmaster_internal.refuse_write_of_others(
        'the audit is written by what is done; the setting http.audit_retention says how long it is kept');
