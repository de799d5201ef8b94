-- Which minutes are to be counted next: those that ended at least five seconds ago and are not counted yet, so many of them at a time and
-- at most a day back; whether the last of them is the newest there is; and in how many seconds there is something new. Called by the
-- duty that counts. Locks nothing, reads no table. $1 up to where it is counted (null: nothing yet), $2 how many minutes.
with ends as (
    select date_trunc('minute', now() - interval '5 seconds') as newest
), begins as (
    select newest, greatest(coalesce($1, newest - interval '1 hour'), newest - interval '1 day') as since
    from ends
)
select since, least(newest, since + make_interval(mins => $2)) as until, newest <= since + make_interval(mins => $2) as is_newest,
       extract(epoch from newest + interval '65 seconds' - now())::double precision as rest
from begins
