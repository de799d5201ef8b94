-- Lines of the audit, newest first, for people. Locks nothing. Planned anew for each filter.
-- Index: audit_pkey, audit_by_workspace.
-- $1 workspaces, $2 actor, $3 action, $4 subject (null: any), $5 before this place, $6 how many.
select id, at, actor, action, workspace_id, subject, detail
from stationmaster.audit
where ($1::uuid[] is null or workspace_id = any ($1))
  and ($2::text is null or actor = $2)
  and ($3::text is null or action = $3)
  and ($4::text is null or subject = $4)
  and id < $5
order by id desc
limit $6
