//! What a service manager hears: a socket of the test's own stands where systemd's would.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{Launch, TestDatabase, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_manager_hears_that_a_server_is_ready_lives_and_stops() {
    let database = TestDatabase::new().await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("notify");
    let socket = UnixDatagram::bind(&place).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    let launch = Launch::on(&database)
        .beside("NOTIFY_SOCKET", place.to_str().unwrap())
        .beside("WATCHDOG_USEC", "200000");
    let mut server = launch.start();
    let mut heard: Vec<String> = Vec::new();
    let mut listen = |words: &str, times: usize| {
        let mut message = [0; 1000];
        while let Ok(length) = socket.recv(&mut message) {
            heard.push(String::from_utf8(message[..length].to_vec()).unwrap());
        }
        heard.iter().filter(|message| message.starts_with(words)).count() >= times
    };
    eventually("it is ready", async || listen("READY=1\n", 1)).await;
    let address = server.address().expect("it says so only when it listens");
    eventually("it lives, and says so again and again", async || {
        listen("WATCHDOG=1", 3)
    })
    .await;
    server.signal(Signal::SIGTERM);
    eventually("it stops, and says so", async || listen("STOPPING=1\n", 1)).await;
    assert!(server.ended().await.0.success());
    assert!(heard[0].contains(&address), "{heard:?}");
    assert!(
        heard.iter().all(|message| !message.contains("READY=0")),
        "{heard:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_all_the_same_when_nobody_listens_where_its_manager_should() {
    let database = TestDatabase::new().await;
    let launch = Launch::on(&database).beside("NOTIFY_SOCKET", "/nowhere/notify");
    let server = launch.start_ready().await;
    eventually("it says so", async || {
        server.said("The service manager cannot be told") > 0
    })
    .await;
}
