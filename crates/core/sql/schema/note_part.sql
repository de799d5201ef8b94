-- Notes that a part of schema/ has been applied. Called in the transaction that applies it. Locks its row.
-- Index: schema_parts_pkey. $1 name, $2 checksum, $3 version of the program.
insert into stationmaster_internal.schema_parts as p (name, checksum, program)
values ($1, $2, $3)
on conflict (name) do update set checksum = excluded.checksum, program = excluded.program, applied_at = now()
