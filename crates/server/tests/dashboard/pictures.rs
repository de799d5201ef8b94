//! Pictures of the main pages, for the documents: made by `cargo xtask pictures`, of a server with a lively example.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::browser::Browser;
use crate::support::Launch;

/// Name, path, theme, width, height.
const PICTURES: [(&str, &str, &str, u32, u32); 8] = [
    ("overview-light", "/?since=15m", "light", 1280, 1000),
    ("overview-dark", "/?since=15m", "dark", 1280, 1000),
    ("overview-phone", "/?since=15m", "light", 390, 844),
    ("failures", "/failures", "light", 1280, 640),
    ("queue", "/queue", "dark", 1280, 640),
    ("workspace", "/workspaces/initech?since=15m", "light", 1280, 900),
    ("alarms", "/alarms", "light", 1280, 640),
    ("workflow", "/workflows/initech.nightly-report", "dark", 1280, 800),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "writes into the documents: cargo xtask pictures"]
async fn pictures_of_the_main_pages_are_made() {
    let folder = PathBuf::from(crate::support::setting("STATIONMASTER_PICTURES"));
    std::fs::create_dir_all(&folder).unwrap();
    let data = tempfile::tempdir().unwrap();
    let server = Launch::dev(&["--data-dir", data.path().join("data").to_str().unwrap()])
        .with(
            "DEV__POSTGRES_BIN",
            &crate::support::setting("STATIONMASTER_TEST_POSTGRES_BIN"),
        )
        .start_ready()
        .await;
    // Long enough for the charts to have a shape.
    tokio::time::sleep(Duration::from_secs(200)).await;
    let browser = Browser::start();
    let tab = browser
        .tab(&format!("http://{}", server.address().unwrap()))
        .await;
    for (name, path, theme, width, height) in PICTURES {
        tab.appear(theme, width, height).await;
        tab.open(path).await;
        tab.until(
            "times are told",
            "!document.querySelector('time')?.textContent.includes('UTC')",
        )
        .await;
        tab.look("document.querySelector('main > .banner')?.remove()")
            .await;
        let picture = tab.picture().await;
        assert!(picture.len() < 150_000, "{name}: {} bytes", picture.len());
        std::fs::write(folder.join(format!("{name}.png")), picture).unwrap();
    }
    println!("{}", json!(folder));
}
