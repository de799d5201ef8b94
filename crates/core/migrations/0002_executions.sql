-- The queue of executions.
--
-- One item lives in four tables, each shaped for what is done to it there:
--
--   queue_items          what was asked for; written once, never changed while the item is hot
--   queue_pending        narrow; one row while the item waits, deleted when it is admitted
--   executions_active    narrow; one row while the execution holds a slot (STARTING, RUNNING), deleted when it ends
--   executions_finished  append-only; how it ended
--
-- The first execution of an item has the item's own id, so that one index finds both; only what follows a retry has an id of its
-- own and needs to be found by its item.
--
-- Tables that fill and empty all day keep their pages (vacuum_truncate = off). A table that vacuum has cut down to nothing looks
-- so small to the planner that it prefers to read all of it, and such a plan, once cached, outlives the emptiness. Cutting also
-- takes a lock that every claim would wait for.

-- The order of arrival. Hints have their numbers from it too, so that an enqueue draws one number and not two.
create sequence stationmaster_internal.queue_order;
-- Until when, in milliseconds since 1970, nobody needs to ring. A sequence, because its value is read without a statement, outside every
-- snapshot: an enqueue reads it to learn whether it has to look for somebody.
create sequence stationmaster_internal.queue_watched;

-- What may be in a column is not said here but asked by those who enqueue (stationmaster_internal.fits): PostgreSQL prepares the
-- conditions of a table anew in every statement, and those of domains nearly so, which is a twentieth of what an enqueue costs.
create table stationmaster_internal.queue_items (
    id                             uuid primary key default stationmaster.new_id(),
    seq                            bigint not null default nextval('stationmaster_internal.queue_order'),
    workspace_id                   uuid not null,
    workflow_definition_id         uuid not null,
    workflow_definition_version_id uuid,
    input                          jsonb not null default '{}',
    priority                       integer not null default 0,
    run_at                         timestamptz,
    idempotency_key                text,
    traceparent                    text,
    correlation_id                 text,
    enqueued_by                    text not null default session_user,
    created_at                     timestamptz not null default now()
);
create unique index queue_items_idempotency on stationmaster_internal.queue_items (workspace_id, idempotency_key)
    where idempotency_key is not null;

-- Lists. Ids grow with time, so within a workspace these indexes grow at their ends; the partial ones hold only what went
-- wrong, and cost the ordinary way nothing. Their condition is written so that only statements which say it in the same
-- words use them: to the planner a partial index looks empty after a good day, and it would take it for everything.
create index queue_items_by_workspace on stationmaster_internal.queue_items (workspace_id, id);
create index queue_items_at on stationmaster_internal.queue_items using brin (created_at) with (autosummarize = on);

-- The door for whoever brings several items in one statement. What is inserted here lies in queue_items, its only partition, and is
-- accepted by a trigger of the whole statement (accept_items). A trigger of a statement belongs to the table that the statement names: the
-- function that enqueues one item names queue_items, does by itself what the trigger does, and is a quarter faster for it. A column of items
-- is added here, and so to both.
create table stationmaster_internal.queue_door (like stationmaster_internal.queue_items including defaults)
    partition by list (workspace_id);
create unique index queue_door_idempotency on stationmaster_internal.queue_door (workspace_id, idempotency_key)
    where idempotency_key is not null;
alter table stationmaster_internal.queue_door attach partition stationmaster_internal.queue_items default;

create table stationmaster_internal.queue_pending (
    item_id                        uuid primary key,
    seq                            bigint not null,
    rank                           bigint not null,
    workspace_id                   uuid not null,
    workflow_definition_id         uuid not null,
    workflow_definition_version_id uuid not null,
    stage                          text collate "C" not null default 'ready',
    run_at                         timestamptz,
    waits_for                      text,
    execution_id                   uuid,
    attempts                       integer not null default 0,
    recoveries                     integer not null default 0,
    last_error                     text,
    unseen                         boolean not null default false
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1,
        vacuum_truncate = off);
-- PostgreSQL prepares the condition of a partial index anew in every statement that inserts, and three that call a function (text equals
-- text) cost a sixth of the whole insert. So the index of the line has none, and the others ask only whether something is there.
create index queue_pending_in_line on stationmaster_internal.queue_pending (stage, workspace_id, rank, seq);
create index queue_pending_later on stationmaster_internal.queue_pending (run_at) where waits_for is not null;
-- An item that came alone is its own hint: one entry here costs a fifth of a row in queue_hints.
create index queue_pending_unseen on stationmaster_internal.queue_pending (seq) where unseen;
create index queue_pending_by_execution on stationmaster_internal.queue_pending (execution_id) where execution_id is not null;

-- Leases are not indexed: recovery reads this table, which holds what runs and no more, at most every second, while every
-- execution would pay for the index twice, because the update that settles a start changes the lease.
create table stationmaster_internal.executions_active (
    execution_id                   uuid primary key,
    item_id                        uuid not null,
    seq                            bigint not null,
    rank                           bigint not null,
    workspace_id                   uuid not null,
    workflow_definition_id         uuid not null,
    workflow_definition_version_id uuid not null,
    state                          text not null check (state in ('STARTING', 'RUNNING')),
    holder                         uuid not null,
    token                          bigint not null,
    lease_until                    timestamptz,
    engine                         text not null,
    engine_id                      integer not null,
    run_id                         text,
    attempts                       integer not null,
    recoveries                     integer not null,
    claimed_at                     timestamptz not null,
    dispatched_at                  timestamptz,
    cancel_requested_at            timestamptz,
    missing_since                  timestamptz,
    reset_after                    timestamptz
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index executions_active_again on stationmaster_internal.executions_active (item_id) where execution_id <> item_id;

create table stationmaster_internal.executions_finished (
    execution_id                   uuid primary key,
    item_id                        uuid not null,
    workspace_id                   uuid not null,
    workflow_definition_id         uuid not null,
    workflow_definition_version_id uuid,
    item_status                    text not null check (item_status in ('DISPATCHED', 'FAILED', 'CANCELLED')),
    status                         text check (status in ('COMPLETED', 'FAILED', 'CANCELLED', 'TERMINATED', 'TIMED_OUT')),
    reason                         text,
    engine                         text,
    run_id                         text,
    attempts                       integer not null,
    recoveries                     integer not null,
    holder                         uuid,
    claimed_at                     timestamptz,
    dispatched_at                  timestamptz,
    finished_at                    timestamptz not null,
    closed_at                      timestamptz,
    finished_by                    text not null,
    last_error                     text,
    error                          jsonb,
    output                         jsonb,
    superseded_at                  timestamptz,
    output_omitted                 jsonb
);
create index executions_finished_again on stationmaster_internal.executions_finished (item_id) where execution_id <> item_id;
create index executions_finished_at on stationmaster_internal.executions_finished using brin (finished_at)
    with (pages_per_range = 16, autosummarize = on);
create index executions_finished_by_workspace on stationmaster_internal.executions_finished (workspace_id, execution_id);
create index executions_finished_badly on stationmaster_internal.executions_finished (execution_id)
    where coalesce(status, '') <> 'COMPLETED';
create index executions_finished_items_badly on stationmaster_internal.executions_finished (item_id)
    where coalesce(status, '') <> 'COMPLETED';

create table stationmaster_internal.workspace_capacity (
    workspace_id   uuid primary key,
    max_concurrent integer not null,
    weight         double precision not null,
    active         integer not null default 0 check (active >= 0),
    paused         boolean not null default false,
    gone           boolean not null default false,
    ready          boolean not null default false,
    virtual_time   double precision not null default 0,
    head_rank      bigint,
    head_seq       bigint,
    eligible       boolean generated always as (ready and not paused and not gone and active < max_concurrent) stored
) with (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index workspace_capacity_eligible on stationmaster_internal.workspace_capacity (virtual_time, workspace_id) where eligible;
create index workspace_capacity_gone on stationmaster_internal.workspace_capacity (workspace_id) where gone;

create table stationmaster_internal.queue_hints (
    id           bigint primary key default nextval('stationmaster_internal.queue_order'),
    workspace_id uuid not null,
    rank         bigint not null,
    seq          bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
        vacuum_truncate = off);

-- The tokens of all claims, of executions and of occurrences.
create sequence stationmaster_internal.claim_token;

create table stationmaster_internal.queue_events (
    id           bigint generated always as identity primary key,
    item_id      uuid not null,
    execution_id uuid,
    workspace_id uuid not null,
    at           timestamptz not null default clock_timestamp(),
    event        text not null,
    actor        text not null,
    detail       text
);
create index queue_events_by_item on stationmaster_internal.queue_events (item_id, id);
create index queue_events_at on stationmaster_internal.queue_events using brin (at) with (autosummarize = on);

create table stationmaster_internal.cancel_requests (
    execution_id uuid primary key,
    actor        text not null,
    reason       text,
    requested_at timestamptz not null default now(),
    kind         text not null default 'cancel' check (kind in ('cancel', 'terminate', 'complete')),
    end_status   text check (end_status in ('COMPLETED', 'FAILED', 'CANCELLED', 'TERMINATED', 'TIMED_OUT')),
    output       text,
    error        text,
    check ((kind = 'complete') = (end_status is not null))
);

create table stationmaster_internal.stray_runs (
    run_id        text primary key,
    execution_id  uuid not null,
    workspace_id  uuid not null,
    engine_id     integer not null,
    started_at    timestamptz,
    found_at      timestamptz not null default now(),
    end_wished_at timestamptz,
    end_wished_by text,
    end_reason    text,
    check ((end_wished_at is null) = (end_wished_by is null))
);

create table stationmaster_internal.embedded_runs (
    execution_id uuid primary key,
    token        bigint not null,
    position     integer not null default 0,
    wake_at      timestamptz,
    outputs      jsonb not null default '{}',
    deadline_at  timestamptz
) with (fillfactor = 70);
