-- Named locks. The table that ShedLock applications share lies outside our schemas, where the search path finds it; its name is a
-- setting. Beside it, here, what ShedLock does not know: the fencing token of each name.

create table stationmaster_internal.lock_tokens (
    name     text primary key,
    token    bigint not null,
    holder   text not null,
    at_least interval not null
) with (fillfactor = 50);
