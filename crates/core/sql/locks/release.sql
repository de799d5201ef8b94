-- Ends a lock on behalf of a person, whoever holds it, provided that it is still the holder the person saw, and writes it
-- into the audit. Its holder learns of it when it tries to extend. Called by `Locks::release`.
-- Locks the lock's row. Index: its primary key. $1 name, $2 the holder that was seen, $3 actor.
with found as materialized (
    select name, locked_by, lock_until, lock_until > timezone('utc', clock_timestamp()) as held
    from {table}
    where name = $1
    for update
), freed as (
    update {table} l
    set lock_until = timezone('utc', clock_timestamp())
    from found f
    where l.name = f.name and f.held and f.locked_by = $2
    returning f.locked_by, f.lock_until
), audited as (
    insert into stationmaster.audit (actor, action, subject, detail)
    select $3, 'lock.release', $1, jsonb_build_object('locked_by', locked_by, 'lock_until', lock_until)
    from freed
)
select locked_by as by, held, exists (select from freed) as released
from found
