-- Takes dispatchers that nobody owns: their lease ran out, they were handed over, or they rested and signals wait for them now, or they
-- are to be removed and nobody has come to the end of that within seconds. The epoch grows, so every write of a former
-- owner is refused from here on. Called by every server that stands by. Locks the rows, skipping what others are taking.
-- The table has a row per dispatcher, so it is read whole. Index: signals_pending_by_dispatcher.
-- $1 server, $2 lease in seconds, $3 how many, $4 engine, $5 trace.
with vacant as materialized (
    select d.id, d.owner, d.taken_at, d.run_id, d.handed_over_at, d.resting_since,
           case when d.resting_since is not null then now() when d.taken_at is null then d.created_at
                else coalesce(d.handed_over_at, d.lease_until) end as since
    from stationmaster.dispatchers d
    where (d.lease_until > now() and d.handed_over_at is null) is not true
      and (d.resting_since is null or (d.removal_wished_at is not null and d.resting_since < now() - interval '5 seconds')
           or exists (select from stationmaster_internal.signals_pending p where p.dispatcher_id = d.id))
    order by id
    limit $3
    for update skip locked
), taken as (
    update stationmaster.dispatchers d
    set owner = $1, epoch = d.epoch + 1, lease_until = now() + make_interval(secs => $2), handed_over_at = null, resting_since = null,
        engine = $4,
        run_id = null, taken_at = now(), run_started_at = null
    from vacant v
    where d.id = v.id
    returning d.id, d.project, d.task_queue, d.epoch, v.owner as former_owner, v.run_id as former_run,
              case when v.resting_since is not null then 'woken' when v.taken_at is null then 'fresh' when v.handed_over_at is not null then 'handover' else 'takeover' end as kind,
              greatest(extract(epoch from now() - v.since), 0)::double precision as vacant_for
)
select t.id, t.project, t.task_queue, t.epoch, t.former_owner, t.kind, t.vacant_for,
       stationmaster_internal.tell_of_dispatcher(
           t.id, t.kind, t.epoch, $1, null, $1::text,
           jsonb_strip_nulls(jsonb_build_object('former_owner', t.former_owner, 'former_run', t.former_run,
                                                'vacant_for', round(t.vacant_for::numeric, 3))), $5) as event
from taken t
