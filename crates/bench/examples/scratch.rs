//! Scratch.
use std::time::Duration;
use stationmaster_core::db::Database;
use stationmaster_bench::{fixture::*, measure, run::*, bare};
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let a: Vec<String> = std::env::args().collect();
    let url = &a[1];
    let workspaces: usize = a[2].parse()?; let limit: i32 = a[3].parse()?; let items: usize = a[4].parse()?; let ms: u64 = a[5].parse()?; let servers: usize = a[6].parse()?;
    let database = Database::new(url, 8)?;
    database.migrate().await?;
    wipe(&database).await?;
    let load = Load { limits: vec![limit; workspaces], work: Duration::from_millis(ms), items, by_limit: true };
    make_workspaces(&database, &load).await?;
    let t = load_items(&database, &load, |_| {}).await?;
    println!("enqueue {:.0}/s", items as f64 / t.as_secs_f64());
    sqlx::query("vacuum analyze").execute(database.pool()).await?;
    let settings = stationmaster_core::executions::Settings::default();
    let began = std::time::Instant::now();
    let stations = start_servers(url, servers, &settings, &Where::Embedded).await?;
    wait_for(&database, "select count(*) from stationmaster.executions_finished", items, |_| {}).await?;
    println!("took {:?} = {:.0}/s", began.elapsed(), items as f64 / began.elapsed().as_secs_f64());
    stop_servers(stations).await;
    println!("{:#?}", measure::outcome(&database).await?);
    if ms == 0 { println!("bare {:.0}/s", bare::cycles_per_second(url, items, workspaces, limit, 500, 4).await?); }
    Ok(())
}
