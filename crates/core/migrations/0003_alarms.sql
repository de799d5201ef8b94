-- Alarms: schedules, and the occurrences that come of them.
--
-- One alarm lives in two tables, one occurrence in one of two, each shaped for what is done to it there:
--
--   alarm_definitions     what was asked for; changed only by people
--   alarm_standings       narrow; one row per alarm: how it stands, and the next nominal instant of its series
--   occurrences_open      narrow; one row from the moment an occurrence is due until it is settled
--   occurrences_finished  append-only; how it ended
--   occurrence_ranges     the same for long rows of missed ones
--
-- The row of alarm_standings is what everybody who moves a series locks first: a claim (skipping what others hold), a
-- settlement (the same), and people.

create table stationmaster_internal.alarm_definitions (
    id              uuid primary key default stationmaster.new_id(),
    workspace_id    uuid not null,
    label           text not null default '',
    name            text,
    kind            text not null check (kind in ('once', 'cron')),
    fire_at         timestamptz,
    civil_at        timestamp,
    cron_expr       text,
    timezone        text,
    dst             text not null default 'vixie',
    misfire         text not null default 'coalesce',
    catch_up        integer not null default 10,
    misfire_window  interval,
    overlap         text not null default 'allow',
    jitter          interval not null default '0',
    start_at        timestamptz,
    end_at          timestamptz,
    target_url      text,
    user_id         text,
    conversation_id text,
    message         text,
    payload         json,
    max_failures    integer,
    pause_after     integer,
    idempotency_key text,
    request         text not null default '',
    traceparent     text,
    set_by          text not null default session_user,
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    constraint the_label_has_at_most_200_characters check (length(label) <= 200),
    constraint the_name_is_a_slug check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'
        and name !~ '^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$'),
    constraint a_cron_alarm_has_an_expression_and_a_time_zone
        check (kind <> 'cron' or (cron_expr is not null and timezone is not null and fire_at is null and civil_at is null)),
    constraint an_alarm_for_once_has_an_instant_or_a_civil_time_with_its_zone
        check (kind <> 'once' or (cron_expr is null and (civil_at is not null or fire_at is not null)
                                  and (civil_at is null or timezone is not null))),
    constraint the_expression_has_at_most_200_characters check (length(cron_expr) <= 200),
    constraint the_time_zone_has_at_most_64_characters check (length(timezone) <= 64),
    constraint dst_is_vixie_skip_or_both check (dst in ('vixie', 'skip', 'both')),
    constraint misfire_is_coalesce_catch_up_or_skip check (misfire in ('coalesce', 'catch_up', 'skip')),
    constraint catch_up_is_a_number_from_1_to_1000 check (catch_up between 1 and 1000),
    constraint the_misfire_window_is_positive check (misfire_window > interval '0'),
    constraint overlap_is_allow_queue_or_skip check (overlap in ('allow', 'queue', 'skip')),
    constraint jitter_is_between_nothing_and_a_day check (jitter between interval '0' and interval '1 day'),
    constraint the_end_comes_after_the_start check (end_at > start_at),
    constraint times_lie_in_the_years_1_to_9999
        check (fire_at between '0001-01-01 00:00Z' and '9999-12-30 00:00Z' and civil_at between '0001-01-01' and '9999-12-30'
               and start_at between '0001-01-01 00:00Z' and '9999-12-30 00:00Z' and end_at between '0001-01-01 00:00Z' and '9999-12-30 00:00Z'),
    constraint the_target_is_an_http_url_without_credentials
        check (target_url ~* '^https?://[^/?#@[:space:]]+([/?#]|$)' and length(target_url) <= 2000),
    constraint user_id_has_at_most_256_characters check (length(user_id) <= 256),
    constraint conversation_id_has_at_most_256_characters check (length(conversation_id) <= 256),
    constraint the_message_is_at_most_64_kib check (octet_length(message) <= 65536),
    constraint the_payload_is_at_most_256_kib check (octet_length(payload::text) <= 262144),
    constraint max_failures_is_a_number_from_1_to_100 check (max_failures between 1 and 100),
    constraint pause_after_is_a_number_from_1_to_1000 check (pause_after between 1 and 1000),
    constraint the_idempotency_key_has_1_to_256_characters check (length(idempotency_key) between 1 and 256),
    constraint the_trace_context_is_one_of_the_w3c
        check (traceparent ~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$')
);
create unique index alarm_definitions_by_name on stationmaster_internal.alarm_definitions (name, workspace_id) where name is not null;
create unique index alarm_definitions_idempotency on stationmaster_internal.alarm_definitions (workspace_id, idempotency_key)
    where idempotency_key is not null;

-- Partial, though it leaves nothing out: only a statement that names workspaces may use it. A plan made before the table was
-- analysed must not mistake it for a way to one alarm.
create index alarm_definitions_by_workspace on stationmaster_internal.alarm_definitions (workspace_id, id) where workspace_id is not null;

create table stationmaster_internal.alarm_standings (
    alarm_id        uuid primary key,
    status          text not null default 'active' check (status in ('active', 'paused', 'fired', 'cancelled', 'failed')),
    next_fire_at    timestamptz,
    next_due_at     timestamptz,
    follows_at      timestamptz,
    held            boolean not null default false,
    free_at         timestamptz,
    note            text,
    failure_count   integer not null default 0,
    failed_in_a_row integer not null default 0,
    last_error      text,
    last_fired_at   timestamptz,
    ended_at        timestamptz
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index alarm_standings_due on stationmaster_internal.alarm_standings (next_due_at) where next_due_at is not null and not held;
create index alarm_standings_failing on stationmaster_internal.alarm_standings (alarm_id) where failed_in_a_row > 0;
create index alarm_standings_stopped on stationmaster_internal.alarm_standings (status, alarm_id) where status in ('paused', 'failed');
create index alarm_standings_ended on stationmaster_internal.alarm_standings (ended_at) where ended_at is not null;

create table stationmaster_internal.alarm_unplanned (
    alarm_id uuid primary key,
    reason   text not null
);

create table stationmaster_internal.occurrences_open (
    alarm_id      uuid not null,
    scheduled_for timestamptz not null,
    origin        text not null default 'schedule' check (origin in ('schedule', 'manual', 'backfill')),
    due_at        timestamptz not null,
    ready_at      timestamptz not null,
    attempts      integer not null default 0,
    recoveries    integer not null default 0,
    holder        uuid,
    token         bigint,
    claimed_at    timestamptz,
    last_error    text,
    note          text,
    primary key (alarm_id, scheduled_for)
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 500);
create index occurrences_open_ready on stationmaster_internal.occurrences_open (ready_at);
create index occurrences_open_held on stationmaster_internal.occurrences_open (holder) where holder is not null;

create table stationmaster_internal.occurrences_finished (
    alarm_id      uuid not null,
    scheduled_for timestamptz not null,
    origin        text not null,
    status        text not null check (status in ('fired', 'failed', 'skipped', 'coalesced', 'cancelled')),
    reason        text,
    attempts      integer not null default 0,
    recoveries    integer not null default 0,
    due_at        timestamptz not null,
    fired_at      timestamptz,
    finished_at   timestamptz not null default clock_timestamp(),
    last_error    text,
    answer_status integer,
    answer        text,
    note          text,
    primary key (alarm_id, scheduled_for)
);
create index occurrences_finished_at on stationmaster_internal.occurrences_finished using brin (finished_at)
    with (pages_per_range = 16, autosummarize = on);

create table stationmaster_internal.occurrence_ranges (
    id            bigint generated always as identity primary key,
    alarm_id      uuid not null,
    scheduled_for timestamptz not null,
    until         timestamptz not null,
    covers        bigint,
    status        text not null check (status in ('skipped', 'coalesced')),
    reason        text not null,
    finished_at   timestamptz not null default clock_timestamp()
);
create index occurrence_ranges_by_alarm on stationmaster_internal.occurrence_ranges (alarm_id, scheduled_for);

create table stationmaster_internal.occurrence_tries (
    id            bigint generated always as identity primary key,
    alarm_id      uuid not null,
    scheduled_for timestamptz not null,
    attempt       integer not null,
    at            timestamptz not null default clock_timestamp(),
    class         text not null,
    answer_status integer,
    answer        text,
    error         text
);
create index occurrence_tries_by_occurrence on stationmaster_internal.occurrence_tries (alarm_id, scheduled_for, id);
create index occurrence_tries_at on stationmaster_internal.occurrence_tries using brin (at) with (autosummarize = on);

create table stationmaster_internal.alarm_events (
    id       bigint generated always as identity primary key,
    alarm_id uuid not null,
    at       timestamptz not null default clock_timestamp(),
    event    text not null,
    actor    text not null,
    detail   text
);
create index alarm_events_by_alarm on stationmaster_internal.alarm_events (alarm_id, id);

create table stationmaster_internal.wake_keys (
    target         text primary key,
    generation     integer not null default 1,
    rotated_at     timestamptz not null default now(),
    previous_until timestamptz
);

create table stationmaster_internal.zone_data (
    one     boolean primary key default true check (one),
    version text not null
);
