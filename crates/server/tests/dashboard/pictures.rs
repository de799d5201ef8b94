//! Pictures of the main pages, for the documents: made by `cargo xtask pictures`, of a server with a lively example.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::browser::Browser;
use crate::support::{Launch, Process};

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

fn folder() -> PathBuf {
    let folder = PathBuf::from(crate::support::setting("STATIONMASTER_PICTURES"));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A server with the example, after a while: long enough for the charts to have a shape.
async fn lively(data: &Path, seconds: u64) -> Process {
    let server = Launch::dev(&["--data-dir", data.join("data").to_str().unwrap()])
        .with(
            "DEV__POSTGRES_BIN",
            &crate::support::setting("STATIONMASTER_TEST_POSTGRES_BIN"),
        )
        .start_ready()
        .await;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "for eyes, into another folder: cargo xtask pictures FOLDER"]
async fn every_page_is_pictured_whole_in_light_dark_and_on_a_phone() {
    let (folder, data) = (folder(), tempfile::tempdir().unwrap());
    let server = lively(data.path(), 130).await;
    let origin = format!("http://{}", server.address().unwrap());
    let client = stationmaster_client::Client::builder().build(&origin).unwrap();
    let browser = Browser::start();
    let tab = browser.tab(&origin).await;
    let pages = crate::crowd::pages(&client).await;
    for path in pages.iter().filter(|path| !path.starts_with("/complete")) {
        tab.open(path).await;
        for (theme, width) in [("light", 1280), ("dark", 1280), ("light", 390)] {
            tab.appear(theme, width, 900).await;
            let height = tab.look("document.documentElement.scrollHeight").await;
            let height = u32::try_from(height.as_u64().unwrap().clamp(400, 2_400)).unwrap();
            tab.appear(theme, width, height).await;
            let name: String = path
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
                .take(40)
                .collect();
            std::fs::write(
                folder.join(format!("{name}-{theme}-{width}.png")),
                tab.picture().await,
            )
            .unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "writes into the documents: cargo xtask pictures"]
async fn pictures_of_the_main_pages_are_made() {
    let (folder, data) = (folder(), tempfile::tempdir().unwrap());
    let server = lively(data.path(), 200).await;
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
