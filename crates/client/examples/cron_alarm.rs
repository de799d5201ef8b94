//! Look at when an expression fires, set an alarm by it, and learn that its first wake was accepted.
//!
//! `STATIONMASTER_URL=http://127.0.0.1:7373 STATIONMASTER_TOKEN=smt_… cargo run --example cron_alarm -- WORKSPACE '0 9 * * MON-FRI' Europe/Zurich`
//!
//! The wake goes to the server's router (the setting `alarms.router_url`); the example `receive_wakes` is one.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use stationmaster_client::Client;
use stationmaster_client::wire::{
    Alarm, NewAlarm, NextQuery, Occurrence, OccurrenceQuery, OccurrenceStatus, Upcoming,
};
use uuid::Uuid;

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::var("STATIONMASTER_URL").unwrap_or_else(|_| "http://127.0.0.1:7373".to_owned());
    let mut builder = Client::builder().timeout(Duration::from_secs(10));
    if let Ok(token) = std::env::var("STATIONMASTER_TOKEN") {
        builder = builder.token(token);
    }
    let client = builder.build(&url)?;
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("WORKSPACE EXPRESSION ZONE");
    let (workspace, expression, zone) = (next()?.parse().context("an id")?, next()?, next()?);
    for fire in preview(&client, &expression, &zone).await? {
        println!("{} {}", fire.local, fire.note.unwrap_or_default());
    }
    let alarm = set(&client, workspace, &expression, &zone).await?;
    println!("Alarm {}: {}", alarm.id, alarm.description.unwrap_or_default());
    let first = first_fire(&client, alarm.id).await?;
    println!("Accepted at {:?} with {:?}", first.fired_at, first.answer_status);
    Ok(())
}

/// The next fires, with a note at each that a change of the clocks moves or doubles. Nothing is set.
pub(crate) async fn preview(client: &Client, expression: &str, zone: &str) -> Result<Vec<Upcoming>> {
    let query = NextQuery {
        expr: expression.to_owned(),
        zone: Some(zone.to_owned()),
        ..NextQuery::default()
    };
    Ok(client.next_fires(&query).await?.items)
}

/// Sets the alarm. However often a program does this, at each of its starts for instance, there is one: it has a key.
pub(crate) async fn set(client: &Client, workspace: Uuid, expression: &str, zone: &str) -> Result<Alarm> {
    let request = NewAlarm {
        workspace_id: workspace,
        label: "stand-up".to_owned(),
        cron_expr: Some(expression.to_owned()),
        timezone: Some(zone.to_owned()),
        message: Some("Time for the stand-up".to_owned()),
        idempotency_key: Some("stand-up".to_owned()),
        ..NewAlarm::default()
    };
    Ok(client.set_alarm(&request).await?.alarm)
}

/// Waits for the first occurrence whose wake was accepted.
pub(crate) async fn first_fire(client: &Client, alarm: Uuid) -> Result<Occurrence> {
    let fired = OccurrenceQuery {
        status: Some(OccurrenceStatus::Fired),
        ..OccurrenceQuery::default()
    };
    loop {
        if let Some(first) = client.occurrences(alarm, &fired).await?.items.pop() {
            return Ok(first);
        }
        let alarm = client.alarm(alarm).await?.alarm;
        if let (true, Some(error)) = (alarm.failed_in_a_row > 0, alarm.last_error) {
            bail!("its wakes are not accepted: {error}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
