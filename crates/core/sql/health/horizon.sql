-- Who keeps vacuum from cleaning up behind everybody: the oldest snapshot that is still held, or the oldest transaction that has
-- written and is not over, of a session, a prepared transaction or a replication slot. Called by `health::horizon`. Locks nothing.
-- Only the first word of a query is told: the rest may hold what is nobody's business.
with holders as (
    select 'session' as kind, pid::text as name, coalesce(application_name, '') as application, coalesce(state, 'unknown') as state,
           greatest(age(backend_xid), age(backend_xmin)) as age, extract(epoch from now() - xact_start)::double precision as seconds,
           lower(substring(ltrim(query) from '^[a-zA-Z]+')) as doing
    from pg_stat_activity
    where (backend_xid is not null or backend_xmin is not null) and pid <> pg_backend_pid()
    union all
    select 'prepared transaction', gid, '', 'prepared', age(transaction),
           extract(epoch from now() - prepared)::double precision, null
    from pg_prepared_xacts
    union all
    select 'replication slot', slot_name, '', case when active then 'active' else 'inactive' end,
           greatest(age(xmin), age(catalog_xmin)), null, null
    from pg_replication_slots
    where xmin is not null or catalog_xmin is not null
)
select kind, name, application, state, age, seconds, doing
from holders
order by age desc nulls last, seconds desc nulls last
limit 1
