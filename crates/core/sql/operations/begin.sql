-- Puts an operation on record, unless whoever asks has too many that are not over. Called by the API. Locks nothing.
-- Index: operations_open. $1 kind, $2 request, $3 workspaces (null: all), $4 as of, $5 how many were counted, $6 there are more, $7 who,
-- $8 how many of theirs may be open.
insert into stationmaster_internal.operations (kind, request, workspaces, as_of, total, more, created_by)
select $1, $2, $3, $4, $5, $6, $7
where (select count(*) from stationmaster_internal.operations where ended_at is null and created_by = $7) < $8
returning id
