-- Forgets the oldest lines of the audit, a batch at a time. Called now and then by every server. Locks what it deletes.
-- Index: audit_pkey. $1 retention in seconds, $2 how many.
delete from stationmaster.audit
where id = any (array(select id from (select id, at from stationmaster.audit order by id limit $2) oldest
                      where at < now() - make_interval(secs => $1)))
