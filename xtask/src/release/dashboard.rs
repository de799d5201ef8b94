//! The dashboard, read by Grafana's own types. Whether its queries return anything is asked of a real Prometheus by the tests.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Desk, tools};
use crate::repository;

const FILE: &str = "ops/grafana/stationmaster.json";
const TYPES: &str = "grafana-foundation-sdk==1769699998!10.1.0";
const READ: &str = include_str!("dashboard.py");

pub(super) fn check(desk: &Desk<'_>) -> Result<String> {
    if desk.release.offline {
        return Ok("LEFT OUT: Grafana's types come from the network".to_owned());
    }
    let file = desk.repository.root.join(FILE);
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    let panels = dashboard["panels"].as_array().context("it has no panels")?.len();
    let python = tools::environment(desk.repository, "grafana-types", TYPES)?;
    let mut read = Command::new(python.join("python"));
    read.args(["-c", READ]).arg(&file);
    if !repository::run(&mut read)?.success() {
        bail!("Grafana's types do not know all of it: see above");
    }
    Ok(format!("{panels} panels, as Grafana's own types have them"))
}
