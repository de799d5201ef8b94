-- Drops indexes of ours that are not whole: a concurrent one that was broken off stays behind, costs every write and helps nobody. Called
-- by migrations before they make such indexes; nobody else of ours makes one meanwhile. Locks their tables for a moment.
do $$
declare
    broken regclass;
begin
    for broken in
        select i.indexrelid::regclass
        from pg_index i
        join pg_class c on c.oid = i.indexrelid
        where not i.indisvalid and c.relkind = 'i'
          and c.relnamespace in (to_regnamespace('stationmaster'), to_regnamespace('stationmaster_internal'))
    loop
        execute format('drop index %s', broken);
    end loop;
end
$$
