-- Operations: what is done to everything that matches, by the servers, while nobody waits for it.
--
-- A row holds what was asked for, bound to the moment of its look, and how far it has come; one server at a time works on them (duty operations),
-- a call after the other, and each call writes down where the next one goes on. So another server goes on where one was killed.

create table stationmaster_internal.operations (
    id         uuid primary key default stationmaster.new_id(),
    kind       text not null check (kind in ('cancel_queue', 'retry_queue', 'prioritise_queue', 'retry_failures', 'set_failures_aside',
                                             'cancel_failures', 'replay_signals')),
    request    jsonb not null,
    -- Those that it is about, within the scope of whoever asked; null: all, also those that come later.
    workspaces uuid[],
    status     text not null default 'PENDING' check (status in ('PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    as_of      timestamptz not null,
    total      bigint not null,
    more       boolean not null,
    done       bigint not null default 0,
    -- Calls so far: a call that does not know the last one changes nothing here.
    step       bigint not null default 0,
    walk       integer not null default 1,
    walked     bigint not null default 0,
    next       text,
    created_at timestamptz not null default clock_timestamp(),
    created_by text not null,
    started_at timestamptz,
    moved_at   timestamptz not null default '-infinity',
    server_id  uuid,
    ended_at   timestamptz,
    ended_by   text,
    error      text,
    check ((ended_at is null) = (status in ('PENDING', 'RUNNING')))
) with (fillfactor = 50);
create index operations_open on stationmaster_internal.operations (moved_at, id) where ended_at is null;
create index operations_ended on stationmaster_internal.operations (ended_at) where ended_at is not null;
