-- Keeps a view under a name, or puts another address under a name that its owner has; nothing when the owner has as many as may be.
-- Called by the API. Locks its own row. Index: views_by_owner. $1 owner, $2 name, $3 path, $4 for all, $5 by whom, $6 how many may be.
insert into stationmaster_internal.views as v (owner, name, path, shared, made_by)
select $1, $2, $3, $4, $5
where (select count(*) from stationmaster_internal.views where owner = $1 and name <> $2) < $6
on conflict (owner, name) do update set path = excluded.path, shared = excluded.shared, made_by = excluded.made_by
returning v.id, v.name, v.path, v.shared, true as own, v.made_by, v.created_at
