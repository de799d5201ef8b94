-- Compares an engine with the one on record under its name; the first one that is met is put on record. Called when a server
-- meets its engine, after the server has registered: whoever changes engines locks the same row and then looks for servers.
-- No row: somebody else has put one on record just now; ask again. Locks the current row (shared). Index: engines_current.
-- $1 name, $2 identity, $3 place, $4 who.
with known as materialized (
    select id, identity, place
    from stationmaster_internal.engines
    where name = $1 and retired_at is null
    for share
), made as (
    insert into stationmaster_internal.engines (name, identity, place, recorded_by)
    select $1, $2, $3, $4
    where not exists (select from known)
    on conflict (name) where retired_at is null do nothing
    returning id, identity, place
)
select id, identity = $2 as same, place
from (select * from known union all select * from made) met
