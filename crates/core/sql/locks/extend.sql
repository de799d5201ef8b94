-- Lengthens a lock that is still held under this token; one that ran out is not lengthened, even when nobody took it.
-- Called by `Locks::extend`, which the keep-alive calls. Locks the lock's row. Index: both primary keys.
-- $1 name, $2 token, $3 at most from now, in seconds.
update {table} l
set lock_until = timezone('utc', clock_timestamp()) + make_interval(secs => $3)
from stationmaster_internal.lock_tokens t
where l.name = $1 and t.name = $1 and t.token = $2 and l.locked_by = t.holder
  and l.lock_until > timezone('utc', clock_timestamp())
returning timezone('utc', l.lock_until) as until
