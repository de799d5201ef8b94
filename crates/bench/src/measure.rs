//! What happened, read exactly from the rows of a finished run.

use anyhow::Result;
use serde::Serialize;
use stationmaster_core::db::Database;
use stationmaster_core::observe::Metrics;

/// Percentiles in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Percentiles {
    /// Half are below.
    pub p50: f64,
    /// 99 of 100 are below.
    pub p99: f64,
    /// None is above.
    pub max: f64,
}

/// What a run showed.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Executions that ended.
    pub executions: i64,
    /// From the first claim to the last end, in seconds.
    pub seconds: f64,
    /// Ends per second.
    pub per_second: f64,
    /// The most that any workspace had active at once above its limit, at any instant.
    pub overshoot: i64,
    /// Slots in use while there was work, of all slots.
    pub slot_use: f64,
    /// From enqueued to started, in milliseconds; says something only when the queue was empty before.
    pub wait: Percentiles,
    /// What a claim took, in milliseconds, to the next higher bound of the servers' own histogram.
    pub claim: Percentiles,
    /// Items that were started more than once.
    pub doubles: i64,
    /// Dead rows in the hot tables afterwards.
    pub dead_rows: i64,
}

/// At each claim the count goes up, at each end it goes down; the highest count minus the limit is the overshoot.
const OVERSHOOT: &str = "
    with changes as (
        select workspace_id, claimed_at as at, 1 as by from stationmaster_internal.executions_finished
        union all
        select workspace_id, finished_at, -1 from stationmaster_internal.executions_finished
    ), counts as (
        select workspace_id, sum(by) over (partition by workspace_id order by at, by rows unbounded preceding) as active
        from changes
    )
    select greatest(max(c.active - w.max_concurrent), 0)::bigint
    from (select workspace_id, max(active) as active from counts group by workspace_id) c
    join stationmaster_internal.workspace_capacity w using (workspace_id)";

/// Slot seconds in use over slot seconds there were, while a workspace still had items waiting: from its first claim to
/// its last.
const SLOT_USE: &str = "
    with spans as (
        select workspace_id, min(claimed_at) as first, max(claimed_at) as last
        from stationmaster_internal.executions_finished group by workspace_id
    ), used as (
        select f.workspace_id,
               sum(extract(epoch from least(f.finished_at, s.last) - f.claimed_at)) as seconds
        from stationmaster_internal.executions_finished f join spans s using (workspace_id)
        where f.claimed_at < s.last group by f.workspace_id
    )
    select coalesce((sum(u.seconds) / nullif(sum(extract(epoch from s.last - s.first) * w.max_concurrent), 0)), 0)::double precision
    from used u join spans s using (workspace_id) join stationmaster_internal.workspace_capacity w using (workspace_id)";

/// Reads what a run showed.
pub async fn outcome(database: &Database, metrics: &Metrics) -> Result<Outcome> {
    let pool = &database.pool();
    let (executions, seconds): (i64, f64) = sqlx::query_as(
        "select count(*), coalesce(extract(epoch from max(finished_at) - min(claimed_at)), 0)::double precision
         from stationmaster_internal.executions_finished",
    )
    .fetch_one(pool)
    .await?;
    let overshoot = sqlx::query_scalar(OVERSHOOT).fetch_one(pool).await?;
    let slot_use = sqlx::query_scalar(SLOT_USE).fetch_one(pool).await?;
    let (p50, p99, max): (f64, f64, f64) = sqlx::query_as(
        "select coalesce(percentile_cont(0.5) within group (order by w), 0), coalesce(percentile_cont(0.99) within group (order by w), 0),
                coalesce(max(w), 0)
         from (select (extract(epoch from f.dispatched_at - i.created_at) * 1000)::double precision as w
               from stationmaster_internal.executions_finished f join stationmaster_internal.queue_items i on i.id = f.item_id) waits",
    )
    .fetch_one(pool)
    .await?;
    let doubles = sqlx::query_scalar(
        "select coalesce(sum(n - 1), 0)::bigint from (select count(*) as n from stationmaster_internal.executions_finished
         group by item_id having count(*) > 1) d",
    )
    .fetch_one(pool)
    .await?;
    let dead_rows = sqlx::query_scalar(
        "select coalesce(sum(n_dead_tup), 0)::bigint from pg_stat_user_tables
         where schemaname = 'stationmaster_internal' and relname in ('queue_pending', 'executions_active', 'workspace_capacity', 'queue_hints')",
    )
    .fetch_one(pool)
    .await?;
    #[expect(clippy::cast_precision_loss, reason = "a count of rows")]
    let per_second = if seconds > 0.0 {
        executions as f64 / seconds
    } else {
        0.0
    };
    Ok(Outcome {
        executions,
        seconds,
        per_second,
        overshoot,
        slot_use,
        wait: Percentiles { p50, p99, max },
        claim: histogram(&metrics.render(), CLAIM_SECONDS),
        doubles,
        dead_rows,
    })
}

const CLAIM_SECONDS: &str = "stationmaster_claim_duration_seconds";

/// Percentiles from a histogram of seconds in the format of Prometheus.
fn histogram(text: &str, name: &str) -> Percentiles {
    let prefix = format!("{name}_bucket{{le=\"");
    let buckets: Vec<(f64, f64)> = text
        .lines()
        .filter_map(|line| {
            let (bound, count) = line.strip_prefix(&prefix)?.split_once("\"} ")?;
            Some((bound.parse().unwrap_or(f64::INFINITY), count.parse().ok()?))
        })
        .collect();
    let all = buckets.last().map_or(0.0, |(_, count)| *count);
    let at = |share: f64| {
        let reached = buckets.iter().find(|(_, count)| *count >= share * all);
        reached.map_or(0.0, |(bound, _)| bound * 1000.0)
    };
    Percentiles {
        p50: at(0.5),
        p99: at(0.99),
        max: at(1.0),
    }
}

/// Percentiles of measured times.
#[must_use]
pub fn percentiles(times: &mut [f64]) -> Percentiles {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index"
        )]
        let index = (share * (times.len().saturating_sub(1)) as f64).round() as usize;
        times.get(index).copied().unwrap_or_default()
    };
    Percentiles {
        p50: at(0.5),
        p99: at(0.99),
        max: at(1.0),
    }
}
