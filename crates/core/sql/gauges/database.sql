-- How the database itself stands, as far as our role may see: age of the oldest transaction that keeps vacuum from cleaning up, transactions
-- since it began, sessions that wait for a lock, position of the write-ahead log, sessions of the whole server and how many there may be of those
-- who are not superusers. Called when metrics are asked for. Locks nothing.
-- A session that has written and rests in its transaction holds no snapshot, but vacuum waits for it all the same: its own number counts.
with holders as (
    select greatest(age(backend_xid), age(backend_xmin)) as age, extract(epoch from clock_timestamp() - xact_start)::double precision as seconds
    from pg_stat_activity
    where (backend_xid is not null or backend_xmin is not null) and pid <> pg_backend_pid()
    union all
    select age(transaction), extract(epoch from clock_timestamp() - prepared)::double precision from pg_prepared_xacts
    union all
    select greatest(age(xmin), age(catalog_xmin)), null from pg_replication_slots where xmin is not null or catalog_xmin is not null
)
select coalesce((select max(seconds) from holders), 0)::double precision as oldest,
       coalesce((select max(age) from holders), 0)::double precision as horizon,
       (select count(*) from pg_stat_activity where wait_event_type = 'Lock')::double precision as lock_waits,
       case when pg_is_in_recovery() then 'NaN'::double precision
            else pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::double precision end as wal,
       (select count(*) from pg_stat_activity where backend_type = 'client backend')::double precision as sessions,
       (current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer)::double precision as most_sessions
