-- Comments on locks. They are what docs/schema.md shows.

comment on table stationmaster_internal.lock_tokens is
'The fencing tokens of named locks: one row for each name that Stationmaster has ever held; rows are never deleted.
Room: locks. Written by: acquisitions.';
comment on column stationmaster_internal.lock_tokens.token is
    'Grows by one with every acquisition of ours, whoever else held the lock between two of them';
comment on column stationmaster_internal.lock_tokens.holder is 'The locked_by of that acquisition: no two are ever the same';
