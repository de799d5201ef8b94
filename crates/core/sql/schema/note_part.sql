-- Notes that a part of schema/ has been applied. Called in the transaction that applies it. Locks its row.
-- Index: schema_parts_pkey. $1 name, $2 checksum.
insert into stationmaster_internal.schema_parts as p (name, checksum)
values ($1, $2)
on conflict (name) do update set checksum = excluded.checksum, applied_at = now()
