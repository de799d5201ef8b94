-- Forgets signals that were settled longer ago than the retention time. Dead letters are kept as long. Called by housekeeping
-- of signals, a small batch at a time. Locks only rows that nobody works on. Index: signals_settled_at (brin).
-- $1 retention in seconds, $2 how many.
with old as materialized (
    select signal_key
    from stationmaster_internal.signals_settled
    where settled_at < now() - make_interval(secs => $1)
    order by signal_key
    limit $2
    for update skip locked
), removed as (
    delete from stationmaster_internal.signals_settled s
    where s.signal_key = any (array(select signal_key from old))
    returning s.signal_key
), forgotten as (
    delete from stationmaster_internal.signals_inbox i
    where i.key = any (array(select signal_key from old))
)
select count(*)
from removed
