-- What applications call inside their own transactions: send.

-- Sends a signal inside the caller's transaction. The same id with the same signal is acknowledged again; with another one it
-- is an error.
create or replace function stationmaster.send_signal(
    project text,
    name text,
    payload jsonb default '{}',
    task_queue text default 'default',
    id text default null,
    correlation_id text default null,
    traceparent text default null,
    sent_by text default null
) returns text language plpgsql as $$
#variable_conflict use_column
declare
    sent text;
begin
    if not stationmaster_internal.is_trace(send_signal.traceparent) then
        perform stationmaster_internal.refuse_trace(send_signal.traceparent);
    end if;
    insert into stationmaster_internal.signals_inbox (id, project, task_queue, name, payload, correlation_id, traceparent, sent_by)
    values (coalesce(send_signal.id, stationmaster.new_id()::text), send_signal.project,
            coalesce(send_signal.task_queue, 'default'), send_signal.name, coalesce(send_signal.payload, '{}'),
            send_signal.correlation_id, send_signal.traceparent, coalesce(send_signal.sent_by, session_user))
    on conflict (key) do nothing
    returning id into sent;
    if sent is not null then
        return sent;
    end if;
    select id into sent from stationmaster_internal.signals_inbox
    where key = stationmaster_internal.signal_key(send_signal.id, send_signal.project) and task_queue = coalesce(send_signal.task_queue, 'default')
      and name = send_signal.name and payload = coalesce(send_signal.payload, '{}')
      and correlation_id is not distinct from send_signal.correlation_id;
    if sent is null then
        raise exception 'the id "%" was used for another signal', send_signal.id using errcode = 'unique_violation';
    end if;
    return sent;
end
$$;
