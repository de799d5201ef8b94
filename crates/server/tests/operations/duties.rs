//! What one server tells for all: by whoever has the duty, and by nobody else.

use url::Url;

use crate::support::{Door, ENDLESS, Launch, Process, Proxy, Temporal, TestDatabase, eventually, get};

/// Told by the holder of the duty `supervisor`, and by that of the duty `workers`.
const TOLD: [(&str, &str); 3] = [
    ("supervisor", "dispatcher_stale"),
    ("supervisor", "stationmaster_dispatchers_duplicate"),
    ("workers", "stationmaster_task_queues_without_workers"),
];

/// A server, and its name.
type Named = (&'static str, Process);

async fn tells(server: &Process, metric: &str) -> bool {
    let page = get(&server.address().unwrap(), "/metrics").await.unwrap().1;
    page.lines().any(|line| line.starts_with(&format!("{metric} ")))
}

/// Which server has a duty.
async fn holder(database: &TestDatabase, duty: &str) -> Option<String> {
    let query = "select s.name from stationmaster_internal.duties d join stationmaster_internal.servers s on s.id = d.holder
                 where d.name = $1 and s.lease_until > now()";
    let holder = sqlx::query_scalar(query).bind(duty);
    holder.fetch_optional(&database.pool).await.unwrap()
}

/// Waits until each of the metrics is told by the holder of its duty and by no other.
async fn until_told_by_their_holders(what: &str, database: &TestDatabase, servers: &[&Named]) {
    eventually(what, async || {
        for (duty, metric) in TOLD {
            let holder = holder(database, duty).await;
            for (name, server) in servers {
                if tells(server, metric).await != (holder.as_deref() == Some(name)) {
                    return false;
                }
            }
            if holder.is_none() {
                return false;
            }
        }
        true
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_server_tells_for_all_moves_with_its_duty_and_vanishes_elsewhere() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let workflow = database.workflow(1, ENDLESS).await;
    database.enqueue(workflow, 1).await;
    let mut url: Url = database.url.parse().unwrap();
    let proxy = Proxy::before(&format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())).await;
    let (host, port) = proxy.address.split_once(':').unwrap();
    url.set_host(Some(host)).unwrap();
    url.set_port(Some(port.parse().unwrap())).unwrap();
    let launch = |name: &str| {
        Launch::on(&database)
            .temporal(&temporal.address, &temporal.namespace)
            .with("SERVER_NAME", name)
            .with("EXECUTIONS__RECONCILE_INTERVAL", "1s")
            .with("DISPATCHERS__SCAN_INTERVAL", "1s")
    };
    let cut_off = launch("cut-off").with("DATABASE_URL", url.as_str());
    let cut_off: Named = ("cut-off", cut_off.start_ready().await);
    until_told_by_their_holders("the first server tells", &database, &[&cut_off]).await;
    let mut second: Named = ("second", launch("second").start_ready().await);
    until_told_by_their_holders("one of the two tells", &database, &[&cut_off, &second]).await;

    // It lives, and can ask nobody who has the duty.
    proxy.vanish();
    eventually("the duties move", async || {
        for (duty, _) in TOLD {
            if holder(&database, duty).await.as_deref() != Some("second") {
                return false;
            }
        }
        true
    })
    .await;
    until_told_by_their_holders("the holder tells alone", &database, &[&cut_off, &second]).await;

    proxy.door(Door::Open);
    eventually("it is back", async || cut_off.1.readiness().await.0 == 200).await;
    until_told_by_their_holders("it does not tell", &database, &[&cut_off, &second]).await;
    second.1.kill();
    eventually("the duties come back", async || {
        holder(&database, "supervisor").await.as_deref() == Some("cut-off")
            && holder(&database, "workers").await.as_deref() == Some("cut-off")
    })
    .await;
    until_told_by_their_holders("it tells again", &database, &[&cut_off]).await;
}
