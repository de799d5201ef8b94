//! `stationmaster dev` with a PostgreSQL of its own.

use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sqlx::{Connection as _, PgConnection};

use crate::support::{Launch, Process, eventually, setting};

fn launch(folder: &Path) -> Launch {
    Launch::dev(&["--data-dir", folder.to_str().unwrap()])
        .with("DEV__POSTGRES_BIN", &setting("STATIONMASTER_TEST_POSTGRES_BIN"))
}

/// The address of its database, from what it prints.
fn database_url(process: &Process) -> String {
    let log = process.log();
    let line = log
        .lines()
        .find(|line| line.trim_start().starts_with("database "))
        .expect("it names its database");
    line.split_whitespace().nth(1).unwrap().to_owned()
}

async fn completed(url: &str) -> i64 {
    let Ok(mut connection) = PgConnection::connect(url).await else {
        return 0;
    };
    let query = "select count(*) from stationmaster.workflow_executions where status = 'COMPLETED'";
    let count = sqlx::query_scalar(query)
        .fetch_one(&mut connection)
        .await
        .unwrap_or_default();
    let _ = connection.close().await;
    count
}

/// The process id of the folder's PostgreSQL, as PostgreSQL itself writes it down.
fn postmaster(folder: &Path) -> Option<i32> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            if entry.file_name() == "postmaster.pid" {
                return std::fs::read_to_string(entry.path())
                    .ok()?
                    .lines()
                    .next()?
                    .trim()
                    .parse()
                    .ok();
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    None
}

fn exists(pid: i32) -> bool {
    kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dev_completes_examples_keeps_its_data_and_leaves_no_postgresql_behind_even_when_killed() {
    // Not every account may enter the folders of the one that builds; the system's are open.
    let parent = tempfile::Builder::new()
        .prefix("stationmaster-dev-")
        .tempdir()
        .unwrap();
    let folder = parent.path().join("data");
    open_to_all(parent.path());

    let mut dev = launch(&folder).start_ready().await;
    let url = database_url(&dev);
    eventually("an example completes", async || completed(&url).await > 0).await;
    eventually("both alarms have fired at its own receiver", async || {
        dev.said("a cron alarm fires") > 0 && dev.said("an alarm fires for once") > 0
    })
    .await;
    assert_eq!(dev.said("not ours"), 0, "{}", dev.log());
    eventually("a signal is routed, and shown", async || {
        dev.said("signal order.paid -> dispatcher-example-default -> execution ") > 0
    })
    .await;
    // Whoever tries it out has a receiver on this machine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let set = format!("http://{}/v1/alarms", dev.address().unwrap());
    let near =
        serde_json::json!({ "workspace_id": "acme", "delay": 3600, "target_url": "http://localhost:9/wake" });
    let answer = reqwest::Client::new().post(set).json(&near).send().await.unwrap();
    assert_eq!(answer.status(), 201);
    let before = completed(&url).await;
    let postgres = postmaster(&folder).expect("PostgreSQL runs");
    dev.signal(Signal::SIGTERM);
    let (status, took) = dev.ended().await;
    println!("dev left in {took:?}");
    assert_eq!(status.code(), Some(0), "{}", dev.log());
    assert!(!exists(postgres), "its PostgreSQL has gone with it");

    let mut dev = launch(&folder).start_ready().await;
    let url = database_url(&dev);
    assert!(completed(&url).await >= before, "the data has stayed");
    let postgres = postmaster(&folder).expect("PostgreSQL runs");
    dev.kill();
    let took = eventually("PostgreSQL is gone", async || !exists(postgres)).await;
    println!("PostgreSQL was gone {took:?} after dev was killed");
    assert!(took < Duration::from_secs(20), "{took:?}");

    let dev = launch(&folder).start_ready().await;
    let url = database_url(&dev);
    let before = completed(&url).await;
    eventually("examples go on", async || completed(&url).await > before).await;
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}
