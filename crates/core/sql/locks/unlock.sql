-- Ends a lock that is held under this token: now, or when it has been held for as long as it must be. A lock that ran out
-- or that somebody else has taken since is not touched; no row is ever deleted. Called by `Locks::unlock`.
-- Locks the lock's row. Index: both primary keys. $1 name, $2 token.
update {table} l
set lock_until = greatest(timezone('utc', clock_timestamp()), l.locked_at + t.at_least)
from stationmaster_internal.lock_tokens t
where l.name = $1 and t.name = $1 and t.token = $2 and l.locked_by = t.holder
  and l.lock_until > timezone('utc', clock_timestamp())
returning timezone('utc', l.lock_until) as until, l.lock_until > timezone('utc', clock_timestamp()) as kept,
          extract(epoch from timezone('utc', clock_timestamp()) - l.locked_at)::double precision as held_for
