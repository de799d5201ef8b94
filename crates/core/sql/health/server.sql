-- What the database server is and how it is set, for whoever looks after it. Called by `health::server`. Locks nothing.
-- Settings in their own units, as `pg_settings` has them: times in milliseconds, -1 or 0 for none.
select current_setting('server_version') as version,
       current_setting('server_version_num')::integer as version_number,
       pg_is_in_recovery() as read_only,
       (select jsonb_object_agg(name, setting)
        from pg_settings
        where name in ('synchronous_commit', 'fsync', 'full_page_writes', 'autovacuum', 'jit', 'max_connections',
                       'superuser_reserved_connections', 'idle_in_transaction_session_timeout', 'statement_timeout',
                       'max_prepared_transactions', 'server_encoding')) as settings,
       (select count(*) from pg_stat_activity where backend_type = 'client backend') as connections
