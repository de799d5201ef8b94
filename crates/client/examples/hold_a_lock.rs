//! Hold a named lock while something is done, and say its token with every write.
//!
//! `STATIONMASTER_URL=http://127.0.0.1:7373 STATIONMASTER_TOKEN=smt_… cargo run --example hold_a_lock -- NAME`

use std::time::Duration;

use anyhow::{Context as _, Result};
use stationmaster_client::wire::LockRequest;
use stationmaster_client::{Asked, Client, Unlocked};

/// How long the lock holds should this process be lost.
const AT_MOST: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::var("STATIONMASTER_URL").unwrap_or_else(|_| "http://127.0.0.1:7373".to_owned());
    let mut builder = Client::builder();
    if let Ok(token) = std::env::var("STATIONMASTER_TOKEN") {
        builder = builder.token(token);
    }
    let name = std::env::args().nth(1).context("the name of the lock")?;
    let done = run(&builder.build(&url)?, &name, async |token| {
        println!("At work under token {token}");
        tokio::time::sleep(Duration::from_secs(2)).await;
    })
    .await?;
    println!(
        "{}",
        if done {
            "Done."
        } else {
            "Somebody else has the lock."
        }
    );
    Ok(())
}

/// Does the work while the lock is held; `false` when somebody else has it. Work whose lock is lost is dropped.
pub(crate) async fn run(client: &Client, name: &str, work: impl AsyncFnOnce(i64)) -> Result<bool> {
    let request = LockRequest {
        at_most: AT_MOST.as_secs_f64(),
        at_least: 0.0,
        owner: Some("the example".to_owned()),
    };
    let kept = match client.keep_lock(name, &request).await? {
        Asked::Held(kept) => kept,
        Asked::Taken(_) => return Ok(false),
    };
    tokio::select! {
        () = work(kept.lock().token) => {}
        reason = kept.lost() => anyhow::bail!("the lock was lost: {reason}"),
    }
    // It may have been lost unnoticed while the work was done.
    match kept.give_back().await? {
        Unlocked::NotHeld => anyhow::bail!("the lock was lost"),
        Unlocked::Free | Unlocked::FreeAt(_) => Ok(true),
    }
}
