-- Puts an engine on record; the one before it is retired by now. Called by `engine change`. Locks nothing.
-- $1 name, $2 identity, $3 place, $4 who.
insert into stationmaster_internal.engines (name, identity, place, recorded_by)
values ($1, $2, $3, $4)
returning id
