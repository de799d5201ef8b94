-- How much waits and for how long, for the gauges. Called when metrics are asked for. Locks nothing. The counts are the planner's
-- where they would be costly to take exactly: hot tables are small, backlogs are estimated.
select (select case when reltuples < 100000 then (select count(*) from stationmaster_internal.queue_pending)::double precision
                    else reltuples::double precision end
        from pg_class where oid = 'stationmaster_internal.queue_pending'::regclass) as pending,
       (select count(*)::double precision from stationmaster_internal.executions_active) as active,
       (select extract(epoch from now() - i.created_at)::double precision
        from stationmaster_internal.queue_pending p join stationmaster_internal.queue_items i on i.id = p.item_id
        order by p.item_id limit 1) as oldest_age
