-- The locks there are, those that are held first; the token only when the holder is one of ours. Called by `Locks::list`.
-- Locks nothing. The table has a row per name, so it is read whole. $1 only this name, or null, $2 how many.
select l.name, l.locked_by as by, l.lock_until > timezone('utc', clock_timestamp()) as held,
       case when l.locked_at between '0001-01-01' and '9999-01-01' then timezone('utc', l.locked_at) end as since,
       case when l.lock_until between '0001-01-01' and '9999-01-01' then timezone('utc', l.lock_until) end as until,
       t.token
from {table} l
left join stationmaster_internal.lock_tokens t on t.name = l.name and t.holder = l.locked_by
where $1::text is null or l.name = $1
order by held desc, l.name
limit $2
