-- Events after a position, oldest first. Called for those who listen. Locks nothing. Index: events_pkey.
-- $1 after this position, $2 up to this one, $3 only of these workspaces (null: all), $4 how many.
select position, at, kind, workspace_id, detail
from stationmaster.event_feed
where last > $1 and position > $1 and position <= $2 and ($3::uuid[] is null or workspace_id = any ($3))
order by last, position
limit $4
