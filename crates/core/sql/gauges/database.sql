-- How the database itself stands, as far as our role may see: age of the oldest transaction that holds a snapshot, transactions since the
-- oldest snapshot, sessions that wait for a lock, position of the write-ahead log. Called when metrics are asked for. Locks nothing.
with holders as (
    select age(backend_xmin) as age, extract(epoch from clock_timestamp() - xact_start)::double precision as seconds
    from pg_stat_activity
    where backend_xmin is not null and pid <> pg_backend_pid()
    union all
    select age(transaction), extract(epoch from clock_timestamp() - prepared)::double precision from pg_prepared_xacts
    union all
    select greatest(age(xmin), age(catalog_xmin)), null from pg_replication_slots where xmin is not null or catalog_xmin is not null
)
select coalesce((select max(seconds) from holders), 0)::double precision as oldest,
       coalesce((select max(age) from holders), 0)::double precision as horizon,
       (select count(*) from pg_stat_activity where wait_event_type = 'Lock')::double precision as lock_waits,
       case when pg_is_in_recovery() then 'NaN'::double precision
            else pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::double precision end as wal
