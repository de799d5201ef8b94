-- The queue of executions.
--
-- One item lives in four tables, each shaped for what is done to it there:
--
--   queue_items          what was asked for; written once, never changed while the item is hot
--   queue_pending        narrow; one row while the item waits, deleted when it is admitted
--   executions_active    narrow; one row while the execution holds a slot (STARTING, RUNNING), deleted when it ends
--   executions_finished  append-only; how it ended
--
-- The public relations workflow_execution_queue and workflow_executions are views over them.

create table stationmaster.queue_items (
    id                             uuid primary key default stationmaster.new_id(),
    seq                            bigint generated always as identity,
    workspace_id                   uuid not null,
    workflow_definition_id         uuid not null,
    workflow_definition_version_id uuid,
    input                          jsonb not null default '{}',
    priority                       integer not null default 0,
    run_at                         timestamptz,
    idempotency_key                text check (idempotency_key <> '' and length(idempotency_key) <= 256),
    traceparent                    text check (length(traceparent) <= 256),
    correlation_id                 text check (length(correlation_id) <= 256),
    enqueued_by                    text not null default session_user,
    created_at                     timestamptz not null default now(),
    -- The size of the JSON text without its blanks.
    constraint input_is_at_most_256_kib check (
        octet_length(input::text) <= 262144
        or octet_length(replace(replace(input::text, ', ', ','), '": ', '":')) <= 262144)
);
create unique index queue_items_idempotency on stationmaster.queue_items (workspace_id, idempotency_key)
    where idempotency_key is not null;

comment on column stationmaster.queue_items.seq is 'the order of arrival: age order within one priority';

-- lane: 'r' ready to be claimed, 'l' later (at run_at), 'p' parked because its definition is paused
create table stationmaster.queue_pending (
    item_id                        uuid primary key,
    seq                            bigint not null,
    rank                           bigint not null,
    workspace_id                   uuid not null,
    workflow_definition_id         uuid not null,
    workflow_definition_version_id uuid not null,
    lane                           "char" not null default 'r' check (lane in ('r', 'l', 'p')),
    run_at                         timestamptz,
    waits_for                      text,
    execution_id                   uuid,
    attempts                       integer not null default 0,
    recoveries                     integer not null default 0,
    last_error                     text
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1);
create index queue_pending_ready on stationmaster.queue_pending (workspace_id, rank, seq) where lane = 'r';
create index queue_pending_later on stationmaster.queue_pending (run_at) where lane = 'l';
create index queue_pending_by_execution on stationmaster.queue_pending (execution_id) where execution_id is not null;
create index queue_pending_parked on stationmaster.queue_pending (workflow_definition_id) where lane = 'p';

comment on column stationmaster.queue_pending.rank is 'minus the priority, so that one ascending index gives priority, then age';
comment on column stationmaster.queue_pending.waits_for is 'for later items: schedule, backoff, recovery';
comment on column stationmaster.queue_pending.execution_id is 'set once a first try has been made: the same in every try';

create table stationmaster.executions_active (
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
    run_id                         text,
    attempts                       integer not null,
    recoveries                     integer not null,
    claimed_at                     timestamptz not null,
    dispatched_at                  timestamptz,
    cancel_requested_at            timestamptz,
    missing_since                  timestamptz
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index executions_active_by_item on stationmaster.executions_active (item_id);
create index executions_active_lease on stationmaster.executions_active (lease_until) where lease_until is not null;

comment on column stationmaster.executions_active.lease_until is 'of the claim; null once the start is settled';
comment on column stationmaster.executions_active.missing_since is 'when the reconciler first found that the engine does not know this run';

create table stationmaster.executions_finished (
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
    finished_by                    text not null,
    last_error                     text,
    error                          jsonb,
    output                         jsonb,
    superseded_at                  timestamptz
);
create index executions_finished_by_item on stationmaster.executions_finished (item_id);
create index executions_finished_at on stationmaster.executions_finished using brin (finished_at)
    with (pages_per_range = 16, autosummarize = on);

comment on column stationmaster.executions_finished.status is 'null: the item ended without ever having an execution';
comment on column stationmaster.executions_finished.superseded_at is 'a retry gave the item another execution';

-- One narrow row per workspace: the capacity that every admission locks first.
create table stationmaster.workspace_capacity (
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
    filled         bigint not null default 0,
    eligible       boolean generated always as (ready and not paused and not gone and active < max_concurrent) stored
) with (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index workspace_capacity_eligible on stationmaster.workspace_capacity (virtual_time, workspace_id) where eligible;
create index workspace_capacity_gone on stationmaster.workspace_capacity (workspace_id) where gone;

comment on table stationmaster.workspace_capacity is
    'internal; ready may be true with nothing pending (a hint), never false with something pending and no hint row';
comment on column stationmaster.workspace_capacity.head_rank is
    'with head_seq: no ready item lies before it, so a claim need not walk over what earlier claims left dead; null: from the top';
comment on column stationmaster.workspace_capacity.filled is 'how often a claim left it full with more to do';

-- A hint says "this workspace has ready items from this position on". It is a row, so it becomes visible exactly when
-- the items do, however long the enqueuing transaction lasts; a claimer turns it into workspace_capacity.ready.
create table stationmaster.queue_hints (
    id           bigint generated always as identity primary key,
    workspace_id uuid not null,
    rank         bigint not null,
    seq          bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

create sequence stationmaster.claim_token;

-- One row that busy servers keep fresh: until when some server looks again every few milliseconds anyway, so that
-- nobody needs to ring; and how far virtual time has come, so that whoever enters begins there.
create table stationmaster.attention (
    one          boolean primary key default true check (one),
    until        timestamptz not null default '-infinity',
    virtual_time double precision not null default 0
) with (fillfactor = 20);
insert into stationmaster.attention default values;

-- Keeps workspace_capacity beside workspaces and plans.
create function stationmaster.follow_workspace() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        update stationmaster.workspace_capacity set gone = true where workspace_id = old.id;
        return null;
    end if;
    insert into stationmaster.workspace_capacity as c (workspace_id, max_concurrent, weight, paused, virtual_time)
    select new.id, coalesce(new.max_concurrent, p.max_concurrent), p.weight, new.paused, a.virtual_time
    from stationmaster.plans p, stationmaster.attention a where p.name = new.plan
    on conflict (workspace_id) do update
        set max_concurrent = excluded.max_concurrent, weight = excluded.weight, paused = excluded.paused, gone = false,
            -- Whoever comes back begins where the others stand: time spent away earns nothing.
            virtual_time = case when c.eligible then c.virtual_time
                                else greatest(c.virtual_time, excluded.virtual_time) end;
    perform pg_notify('stationmaster', 'queue');
    return null;
end
$$;
create trigger follow_workspace after insert or delete or update of plan, max_concurrent, paused on stationmaster.workspaces
    for each row execute function stationmaster.follow_workspace();

create function stationmaster.follow_plan() returns trigger language plpgsql as $$
begin
    perform from stationmaster.workspace_capacity c
    where c.workspace_id in (select id from stationmaster.workspaces where plan = new.name)
    order by c.workspace_id for update;
    update stationmaster.workspace_capacity c
    set max_concurrent = coalesce(w.max_concurrent, new.max_concurrent), weight = new.weight
    from stationmaster.workspaces w where w.plan = new.name and c.workspace_id = w.id;
    perform pg_notify('stationmaster', 'queue');
    return null;
end
$$;
create trigger follow_plan after update of max_concurrent, weight on stationmaster.plans
    for each row execute function stationmaster.follow_plan();

-- A resumed definition takes its parked items back into the queue.
create function stationmaster.unpark() returns trigger language plpgsql as $$
begin
    with unparked as (
        update stationmaster.queue_pending set lane = 'r' where workflow_definition_id = new.id and lane = 'p'
        returning workspace_id, rank, seq
    )
    insert into stationmaster.queue_hints (workspace_id, rank, seq)
    select distinct on (workspace_id) workspace_id, rank, seq from unparked order by workspace_id, rank, seq;
    perform pg_notify('stationmaster', 'queue');
    return null;
end
$$;
create trigger unpark after update of paused on stationmaster.workflow_definitions
    for each row when (old.paused and not new.paused) execute function stationmaster.unpark();

-- Every way in ends here: what was inserted is looked at, becomes pending, and leaves one hint for each workspace.
create function stationmaster.accept_items() returns trigger language plpgsql as $$
declare
    bad record;
begin
    select i.workspace_id, i.workflow_definition_id, w.id as workspace, d.id as definition
    into bad
    from new_items i
    left join stationmaster.workspaces w on w.id = i.workspace_id
    left join stationmaster.workflow_definitions d on d.id = i.workflow_definition_id and d.workspace_id = i.workspace_id
    where w.id is null or d.id is null or i.workflow_definition_version_id is null
    limit 1;
    if found then
        if bad.workspace is null then
            raise exception 'there is no workspace %', bad.workspace_id using errcode = 'foreign_key_violation',
                hint = 'Create it first: insert into stationmaster.workspaces, or "stationmaster workspaces create".';
        elsif bad.definition is null then
            raise exception 'workspace % has no workflow definition %', bad.workspace_id, bad.workflow_definition_id
                using errcode = 'foreign_key_violation';
        else
            raise exception 'workflow definition % has no published version', bad.workflow_definition_id
                using errcode = 'foreign_key_violation',
                hint = 'Insert a version first, or set published_version to one that exists.';
        end if;
    end if;

    insert into stationmaster.queue_pending
        (item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, lane, run_at, waits_for)
    select id, seq, -priority::bigint, workspace_id, workflow_definition_id, workflow_definition_version_id,
           case when run_at > now() then 'l' else 'r' end::"char",
           case when run_at > now() then run_at end,
           case when run_at > now() then 'schedule' end
    from new_items;

    insert into stationmaster.queue_hints (workspace_id, rank, seq)
    select distinct on (workspace_id) workspace_id, -priority::bigint, seq
    from new_items where run_at is null or run_at <= now()
    order by workspace_id, priority desc, seq;

    -- A server must learn of a time that comes before its next poll; ready items ring by their hints.
    if exists (select from new_items where run_at > now() and run_at < now() + interval '10 seconds') then
        perform pg_notify('stationmaster', 'queue');
    end if;
    return null;
end
$$;

-- Wakes the servers when a hint is committed. NOTIFY takes a lock of the whole instance at commit, so it is sent only
-- when nobody is attentive: under load it is not sent at all. Deferred, so that it is decided at the moment of the
-- commit, however long the enqueuing transaction was open. A ring that is lost costs the poll interval, never an item.
create function stationmaster.ring() returns trigger language plpgsql as $$
begin
    if not exists (select from stationmaster.attention where until > clock_timestamp()) then
        perform pg_notify('stationmaster', 'queue');
    end if;
    return null;
end
$$;
create constraint trigger ring after insert on stationmaster.queue_hints
    deferrable initially deferred
    for each row execute function stationmaster.ring();

create trigger accept_items after insert on stationmaster.queue_items
    referencing new table as new_items
    for each statement execute function stationmaster.accept_items();
