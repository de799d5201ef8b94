-- Makes the role that requests run as, where it is missing, lets whoever migrates act as it, and gives it its rights where it has none: no dump of a
-- database holds it. Who may not make it goes on without; servers say so. Called by `Database::migrate`. Locks the role, and only to change it.
do $$
begin
    begin
        if not exists (select from pg_roles where rolname = 'stationmaster_api') then
            create role stationmaster_api nologin nosuperuser nobypassrls;
        end if;
    exception
        when duplicate_object or unique_violation or insufficient_privilege then
            null;
    end;
    begin
        if exists (select from pg_roles where rolname = 'stationmaster_api') then
            if not pg_has_role(current_user, 'stationmaster_api', 'member') then
                execute format('grant stationmaster_api to %I', current_user);
            end if;
            if not has_table_privilege('stationmaster_api', 'stationmaster.workspaces', 'select') then
                perform stationmaster.grant_api();
            end if;
        end if;
    exception
        when insufficient_privilege then
            null;
    end;
end
$$
