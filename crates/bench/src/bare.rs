//! The ceiling: the same work as bare SQL, by hand-written statements over tables of their own, without limits of a
//! product around it. Claim, execution row, settle, finish; in batches, over a few connections, with durable commits.

use std::time::{Duration, Instant};

use anyhow::Result;
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

const SCHEMA: &[&str] = &[
    "drop schema if exists bare cascade",
    "create schema bare",
    "create table bare.items (id uuid primary key, workspace_id uuid not null, input jsonb not null, created_at timestamptz not null default now())",
    "create table bare.pending (item_id uuid primary key, seq bigint generated always as identity, workspace_id uuid not null, rank bigint not null default 0)",
    "create index on bare.pending (workspace_id, rank, seq)",
    "create table bare.active (execution_id uuid primary key, item_id uuid not null, workspace_id uuid not null, token bigint not null,
                              state text not null, lease_until timestamptz, claimed_at timestamptz not null)",
    "create index on bare.active (item_id)",
    "create table bare.finished (execution_id uuid primary key, item_id uuid not null, workspace_id uuid not null, status text not null,
                                claimed_at timestamptz not null, finished_at timestamptz not null)",
    "create index on bare.finished (item_id)",
    "create table bare.capacity (workspace_id uuid primary key, max_concurrent integer not null, active integer not null default 0) with (fillfactor = 40)",
    "create sequence bare.token",
];

const LOCK: &str = "select workspace_id, max_concurrent - active from bare.capacity
                    where active < max_concurrent order by workspace_id limit $1 for update skip locked";

const CLAIM: &str = "
    with picked as materialized (
        select p.item_id, p.workspace_id from unnest($1::uuid[], $2::integer[]) r (workspace_id, take)
        cross join lateral (select p.item_id, p.workspace_id from bare.pending p where p.workspace_id = r.workspace_id
                            order by p.rank, p.seq limit r.take for update skip locked) p
    ), taken as (
        delete from bare.pending where item_id = any (array(select item_id from picked))
    ), counted as (
        update bare.capacity c set active = c.active + n.n
        from (select workspace_id, count(*) n from picked group by 1) n where c.workspace_id = n.workspace_id
    )
    insert into bare.active (execution_id, item_id, workspace_id, token, state, lease_until, claimed_at)
    select ($3::uuid[])[row_number() over ()], item_id, workspace_id, nextval('bare.token'), 'STARTING', now() + interval '30 s', now()
    from picked returning execution_id, item_id";

const LOAD: &str = "select id, input::text from bare.items where id = any ($1)";

const FINISH: &str = "
    with locked as materialized (
        select workspace_id from bare.capacity
        where workspace_id = any (array(select workspace_id from bare.active where execution_id = any ($1)))
        order by workspace_id for update
    ), ended as (
        delete from bare.active where execution_id = any ($1) and (select count(*) from locked) > 0 returning *
    ), counted as (
        update bare.capacity c set active = c.active - n.n
        from (select workspace_id, count(*) n from ended group by 1) n where c.workspace_id = n.workspace_id
    )
    insert into bare.finished select execution_id, item_id, workspace_id, 'COMPLETED', claimed_at, now() from ended";

/// Full cycles per second by bare SQL.
pub async fn cycles_per_second(
    url: &str,
    items: usize,
    workspaces: usize,
    limit: i32,
    batch: usize,
    connections: usize,
) -> Result<f64> {
    let mut connection = PgConnection::connect(url).await?;
    for statement in SCHEMA {
        sqlx::query(*statement).execute(&mut connection).await?;
    }
    let ids: Vec<Uuid> = (0..workspaces).map(|_| Uuid::now_v7()).collect();
    sqlx::query("insert into bare.capacity (workspace_id, max_concurrent) select unnest($1::uuid[]), $2")
        .bind(&ids)
        .bind(limit)
        .execute(&mut connection)
        .await?;
    sqlx::query(
        "with new as (
             insert into bare.items (id, workspace_id, input)
             select stationmaster.new_id(), ($1::uuid[])[1 + n % $2], jsonb_build_object('n', n) from generate_series(0, $3::bigint - 1) n
             returning id, workspace_id)
         insert into bare.pending (item_id, workspace_id) select id, workspace_id from new",
    )
    .bind(&ids)
    .bind(i32::try_from(workspaces)?)
    .bind(i64::try_from(items)?)
    .execute(&mut connection)
    .await?;
    for statement in ["vacuum analyze", "checkpoint"] {
        sqlx::query(statement).execute(&mut connection).await?;
    }
    let began = Instant::now();
    let workers = (0..connections).map(|_| tokio::spawn(work(url.to_owned(), batch)));
    let mut done = 0;
    for worker in futures::future::join_all(workers).await {
        done += worker??;
    }
    anyhow::ensure!(done == items, "the bare loop did {done} of {items}");
    #[expect(clippy::cast_precision_loss, reason = "a count of rows")]
    let per_second = items as f64 / began.elapsed().as_secs_f64();
    sqlx::query("drop schema bare cascade")
        .execute(&mut connection)
        .await?;
    Ok(per_second)
}

async fn work(url: String, batch: usize) -> Result<usize> {
    let mut connection = PgConnection::connect(&url).await?;
    let mut done = 0;
    let mut idle = 0;
    loop {
        let mut transaction = connection.begin().await?;
        let rooms: Vec<(Uuid, i32)> = sqlx::query_as(LOCK)
            .bind(i64::try_from(batch)?)
            .fetch_all(&mut *transaction)
            .await?;
        let share = i32::try_from(batch.div_ceil(rooms.len().max(1)))?;
        let (workspaces, takes): (Vec<Uuid>, Vec<i32>) =
            rooms.into_iter().map(|(id, free)| (id, free.min(share))).unzip();
        let fresh: Vec<Uuid> = (0..batch * 2).map(|_| Uuid::now_v7()).collect();
        let claimed: Vec<(Uuid, Uuid)> = sqlx::query_as(CLAIM)
            .bind(workspaces)
            .bind(takes)
            .bind(fresh)
            .fetch_all(&mut *transaction)
            .await?;
        transaction.commit().await?;
        if claimed.is_empty() {
            idle += 1;
            if idle > 20 {
                return Ok(done);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        }
        idle = 0;
        let (executions, items): (Vec<Uuid>, Vec<Uuid>) = claimed.into_iter().unzip();
        let inputs: Vec<(Uuid, String)> = sqlx::query_as(LOAD)
            .bind(items)
            .fetch_all(&mut connection)
            .await?;
        sqlx::query(FINISH)
            .bind(&executions)
            .execute(&mut connection)
            .await?;
        done += inputs.len();
    }
}
