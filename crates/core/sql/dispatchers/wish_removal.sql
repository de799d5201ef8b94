-- Wishes that a dispatcher be removed for which nothing waits: its owner does that, and one that has none is taken for it. Called by people.
-- Locks the row. Index: dispatchers_pkey, signals_pending_by_dispatcher. $1 dispatcher, $2 who.
-- Answers whose it is; nothing when there is none, or signals wait for it.
update stationmaster.dispatchers d
set removal_wished_at = coalesce(removal_wished_at, now()), removal_wished_by = coalesce(removal_wished_by, $2)
where id = $1 and not exists (select from stationmaster_internal.signals_pending p where p.dispatcher_id = d.id)
returning (select p.workspace_id from stationmaster.projects p where p.name = d.project) as workspace_id
