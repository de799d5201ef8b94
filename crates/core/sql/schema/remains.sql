-- What is there although our bookkeeping is not: tables of before the first release, or the public half of what was dropped.
-- Called by `Database::check_schema` when it finds no bookkeeping. Locks nothing; asks the catalogue only.
select to_regclass('stationmaster._sqlx_migrations') is not null as before_release,
       to_regclass('stationmaster.workspaces') is not null as public
