//! The database goes, and servers go.

use std::time::Duration;

use sqlx::AssertSqlSafe;
use tokio::task::JoinSet;
use url::Url;

use crate::runbook::Place;
use crate::support::{Door, ENDLESS, Launch, Process, Proxy, TestDatabase, eventually, free_port, get};
use crate::trial::Watch;

/// A scrape may take two seconds while the database is silent.
const EVERY: Duration = Duration::from_secs(3);

/// A server that comes back where it was.
fn named(launch: &Launch, name: &str, address: &str) -> Launch {
    launch
        .clone()
        .with("SERVER_NAME", name)
        .with("LISTEN", address)
        .with("HTTP__OPEN", "true")
        .with("DISPATCHERS__SCAN_INTERVAL", "1s")
}

/// People who ask for something now and then, not all at the same moment, whether they have had an answer or not: more than ten have to fail.
fn asking(address: &str) -> JoinSet<()> {
    let mut people = JoinSet::new();
    for pause in 1..=20 {
        let address = address.to_owned();
        people.spawn(async move {
            let mut asked = JoinSet::new();
            loop {
                let address = address.clone();
                asked.spawn(async move { get(&address, "/v1/workspaces").await });
                tokio::time::sleep(Duration::from_secs(pause)).await;
            }
        });
    }
    people
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_database_and_a_killed_server_are_noticed() {
    let database = TestDatabase::new().await;
    let mut url: Url = database.url.parse().unwrap();
    let proxy = Proxy::before(&format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())).await;
    let (host, port) = proxy.address.split_once(':').unwrap();
    url.set_host(Some(host)).unwrap();
    url.set_port(Some(port.parse().unwrap())).unwrap();
    let launch = Launch::on(&database).with("DATABASE_URL", url.as_str());
    let addresses = [(); 2].map(|()| format!("127.0.0.1:{}", free_port()));
    let launches = [
        named(&launch, "station-1", &addresses[0]),
        named(&launch, "station-2", &addresses[1]),
    ];
    let mut servers = [launches[0].start_ready().await, launches[1].start_ready().await];
    let watch = Watch::on(&[&addresses[0], &addresses[1]], EVERY).await;

    silence(&watch, &proxy, &addresses[0]).await;
    eventually("both are ready again", async || {
        servers[0].readiness().await.0 == 200 && servers[1].readiness().await.0 == 200
    })
    .await;
    kill(&watch, &database, &launches, &mut servers).await;
}

async fn silence(watch: &Watch, proxy: &Proxy, server: &str) {
    let asking = asking(server);
    let mut trial = watch
        .begin(&[
            "NotReady",
            "NoServer",
            "DatabaseUnknown",
            "SupervisorAbsent",
            "RequestsFail",
        ])
        .await;
    proxy.vanish();
    trial.fire(&Place::at(server)).await;
    proxy.door(Door::Open);
    trial.clear().await;
    drop(asking);
}

async fn kill(watch: &Watch, database: &TestDatabase, launches: &[Launch; 2], servers: &mut [Process; 2]) {
    let workflow = database.workflow(60, ENDLESS).await;
    database.enqueue(workflow, 60).await;
    database.until_count("RUNNING", 60).await;
    let holder = database.rows().await[0].holder.unwrap();
    let name = "select name from stationmaster_internal.servers where id = $1";
    let name: String = sqlx::query_scalar(name)
        .bind(holder)
        .fetch_one(&database.pool)
        .await
        .unwrap();
    let place = usize::from(name == "station-2");

    let mut trial = watch.begin(&["Down", "RecoveryStorm", "ServerLost"]).await;
    servers[place].kill();
    let mut lock = database.pool.begin().await.unwrap();
    let row = format!("select from stationmaster_internal.servers where id = '{holder}' for update");
    sqlx::query(AssertSqlSafe(row)).execute(&mut *lock).await.unwrap();
    let server = servers[1 - place].address().unwrap();
    let others = Place::at(&server);
    trial.fire(&others).await;
    lock.rollback().await.unwrap();
    servers[place] = launches[place].start_ready().await;
    trial.clear().await;
}
