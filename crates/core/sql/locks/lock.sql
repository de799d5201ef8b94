-- Takes a lock that nobody holds, and its next fencing token; or answers who holds it. Called by `Locks::lock`.
-- Locks the lock's row and then its token's row, so tokens grow in the order of acquisitions. Index: both primary keys.
-- The time is clock_timestamp(), not that of the statement's start: PostgreSQL looks at the row only after it has locked
-- it, which may have taken a while, and then the moment itself decides. ShedLock's CURRENT_TIMESTAMP is never later than
-- that, so it can only be stricter: neither side takes what the other still holds.
-- $1 name, $2 holder, $3 at most, in seconds, $4 at least, in seconds.
with taken as (
    insert into {table} as l (name, lock_until, locked_at, locked_by)
    values ($1, timezone('utc', clock_timestamp()) + make_interval(secs => $3), timezone('utc', clock_timestamp()), $2)
    on conflict (name) do update
        set lock_until = timezone('utc', clock_timestamp()) + make_interval(secs => $3),
            locked_at = timezone('utc', clock_timestamp()),
            locked_by = excluded.locked_by
        where l.lock_until <= timezone('utc', clock_timestamp())
    returning l.name, l.locked_by, l.lock_until
), fenced as (
    insert into stationmaster_internal.lock_tokens as t (name, token, holder, at_least)
    select name, 1, locked_by, make_interval(secs => $4) from taken
    on conflict (name) do update
        set token = t.token + 1, holder = excluded.holder, at_least = excluded.at_least
    returning t.token
)
select f.token, t.locked_by as by, timezone('utc', t.lock_until) as until, false as from_the_future
from taken t, fenced f
union all
select null, l.locked_by, case when l.lock_until between '0001-01-01' and '9999-01-01' then timezone('utc', l.lock_until) end,
       l.locked_at > timezone('utc', clock_timestamp()) + interval '1 minute'
from {table} l
where l.name = $1 and not exists (select from taken)
