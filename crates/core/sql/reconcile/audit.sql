-- Writes one line of the audit. Called by whoever acts. Locks nothing.
-- $1 actor, $2 action, $3 workspace, $4 subject, $5 detail.
insert into stationmaster.audit (actor, action, workspace_id, subject, detail)
values ($1, $2, $3, $4, $5::jsonb)
