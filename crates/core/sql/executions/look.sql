-- One look without a write: is there anything for a claim, and when is the next item due? Called by the claim loop
-- before it opens a transaction, so that an empty queue costs a read and nothing else. Locks nothing. Answers also which transactions were
-- open meanwhile: all before `open_from` were over, and none had a number from `open_to` on.
-- Index: queue_hints_pkey, queue_pending_unseen, workspace_capacity_eligible, queue_pending_later. $1 the virtual time to look from.
select (select id from stationmaster_internal.queue_hints order by id limit 1) is not null
           or (select seq from stationmaster_internal.queue_pending where unseen order by seq limit 1) is not null as hinted,
       (select eligible from stationmaster_internal.workspace_capacity
        where eligible and virtual_time >= $1 order by virtual_time, workspace_id limit 1) is not null as eligible,
       (select extract(epoch from min(run_at) - clock_timestamp())::double precision
        from stationmaster_internal.queue_pending where stage = 'later' and waits_for is not null) as next_due_in,
       pg_snapshot_xmin(pg_current_snapshot())::text::bigint as open_from,
       pg_snapshot_xmax(pg_current_snapshot())::text::bigint as open_to
