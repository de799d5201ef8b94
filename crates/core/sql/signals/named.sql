-- Where signals with this id stand in the order of arrival: one in a project, and several only when projects share the id.
-- Called for people. Locks nothing. Index: signals_inbox_pkey, of which the ids are the beginning.
-- $1 id, $2 project (null: any), $3 only of projects of these workspaces (null: any).
select s.seq, s.key, s.project
from stationmaster_internal.signals_inbox s
where s.key >= $1 || chr(31) and s.key < $1 || chr(32) and s.id = $1
  and ($2::text is null or s.project = $2)
  and ($3::uuid[] is null or s.project in (select p.name from stationmaster.projects p where p.workspace_id = any ($3)))
order by s.seq
limit 2
