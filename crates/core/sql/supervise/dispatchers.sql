-- Every dispatcher as the supervisor sees it: who owns it, under which epoch, and for how long nobody has. Locks nothing.
-- The table has a row per dispatcher, so it is read whole. Called by the supervisor. $1 the engines whose runs end with their server.
select id, project, task_queue, owner, epoch, (engine = any ($1)) is not true as runs_outlive,
       (lease_until > now() and handed_over_at is null) is true as owned,
       resting_since is not null as resting,
       case when lease_until > now() and handed_over_at is null or taken_at is null then 0
            else greatest(extract(epoch from now() - least(lease_until, coalesce(handed_over_at, lease_until))), 0)
       end::double precision as vacant_for
from stationmaster.dispatchers
order by id
limit 10000
