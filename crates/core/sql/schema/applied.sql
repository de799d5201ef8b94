-- What has been applied to this database: migrations and parts, each with its checksum, and whether the public schema is there.
-- Called by `Database::check_schema` and before a migration. Locks nothing; both tables have a few rows.
select array(select version from stationmaster_internal._sqlx_migrations order by version) as versions,
       array(select checksum from stationmaster_internal._sqlx_migrations order by version) as version_checksums,
       array(select name from stationmaster_internal.schema_parts order by name) as parts,
       array(select checksum from stationmaster_internal.schema_parts order by name) as part_checksums,
       coalesce((select max(program) from stationmaster_internal.schema_parts), '{}') as program,
       to_regclass('stationmaster.workspaces') is not null as public
