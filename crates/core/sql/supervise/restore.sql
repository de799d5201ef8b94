-- Makes dispatchers anew for which signals wait and of which there is no row: they were sent in a transaction that was open while their
-- dispatcher was removed. Called by the supervisor. Index: signals_pending_by_dispatcher, read from one dispatcher to the next,
-- signals_inbox_pkey, dispatchers_pkey. Answers them.
with recursive waited as (
    (select dispatcher_id from stationmaster_internal.signals_pending order by dispatcher_id limit 1)
    union all
    select (select p.dispatcher_id from stationmaster_internal.signals_pending p
            where p.dispatcher_id > w.dispatcher_id order by p.dispatcher_id limit 1)
    from waited w
    where w.dispatcher_id is not null
)
insert into stationmaster.dispatchers (id, project, task_queue)
select w.dispatcher_id, s.project, s.task_queue
from waited w
cross join lateral (select i.project, i.task_queue
                    from stationmaster_internal.signals_pending p
                    join stationmaster_internal.signals_inbox i on i.key = p.signal_key
                    where p.dispatcher_id = w.dispatcher_id
                    limit 1) s
where not exists (select from stationmaster.dispatchers d where d.id = w.dispatcher_id)
order by w.dispatcher_id
on conflict (id) do nothing
returning id
