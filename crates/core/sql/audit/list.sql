-- The lines of a page of the audit, from its candidates, for people. Locks nothing. Index: audit_pkey.
-- $1 candidates, $2 actor: as it is on record, or the name of a token or a server; $3 action, $4 subject (null: any), $5 how many.
select id, at, actor,
       stationmaster_internal.server_behind(actor) as server,
       action, workspace_id, (select w.name from stationmaster.workspaces w where w.id = workspace_id) as workspace, subject, detail
from stationmaster.audit
where id = any ($1)
  and ($2::text is null or actor = $2 or starts_with(actor, 'token:' || $2 || ':')
       or actor in (select n.id::text from stationmaster_internal.server_names n where n.name = $2))
  and ($3::text is null or action = $3)
  and ($4::text is null or subject = $4)
order by id desc
limit $5
