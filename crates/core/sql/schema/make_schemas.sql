-- Makes our two schemas where they are missing; an administrator may have made them for an account that may not. Called by
-- `Database::migrate`, under the lock of migrations. Locks nothing that exists.
do $$
begin
    if to_regnamespace('stationmaster') is null then
        create schema stationmaster;
    end if;
    if to_regnamespace('stationmaster_internal') is null then
        create schema stationmaster_internal;
    end if;
end
$$
