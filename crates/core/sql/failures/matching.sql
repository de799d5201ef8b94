-- Failures that need a person and match, oldest first, a page at a time, for those who retry them or set them aside and for their preview.
-- Locks nothing. Planned anew for each filter. Index: failures_by_group with a group, else failures_pkey.
-- $1 workspaces (null: all), $2 group, $3 kind, $4 definition, $5 ended before (null: any), $6 behind this one, $7 how many, $8 ended at or after (null: any).
select f.id, f.kind, f.item_id, f.alarm_id, f.scheduled_for, f.signal_id, f.signal_key
from stationmaster_internal.failures f
where f.set_aside_at is null and ($1::uuid[] is null or f.workspace_id = any ($1)) and ($2::bigint is null or f.group_id = $2)
  and ($3::text is null or f.kind = $3) and ($4::uuid is null or f.workflow_definition_id = $4)
  and ($5::timestamptz is null or f.at < $5) and ($8::timestamptz is null or f.at >= $8) and f.id > $6
order by f.id
limit $7
