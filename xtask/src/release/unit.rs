//! The unit of systemd: read by its own tools. It is verified with a program that is there, and may expose no more than it does.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::repository::{self, Repository};

const UNIT: &str = "ops/systemd/stationmaster.service";
const PROGRAM: &str = "/usr/bin/stationmaster";
/// The most exposure, in tenths, by the measure of `systemd-analyze security`.
const EXPOSURE: &str = "--threshold=15";

pub(super) fn check(repository: &Repository) -> Result<String> {
    if Command::new("systemd-analyze")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        return Ok("LEFT OUT: systemd-analyze is not on this machine".to_owned());
    }
    let unit = fs::read_to_string(repository.root.join(UNIT))?;
    if !unit.contains(PROGRAM) {
        bail!("{UNIT} does not start {PROGRAM}");
    }
    // The program need not be installed here: any that is there stands in its place.
    let folder = repository.target.join("unit");
    fs::create_dir_all(&folder)?;
    let copy = folder.join("stationmaster.service");
    let own = std::env::current_exe().context("this program does not know where it is")?;
    fs::write(&copy, unit.replace(PROGRAM, &own.display().to_string()))?;
    let verified = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&copy)
        .output()?;
    let said = String::from_utf8_lossy(&verified.stderr);
    if !verified.status.success() || !said.trim().is_empty() {
        bail!("systemd-analyze verify: {said}");
    }
    let mut security = Command::new("systemd-analyze");
    security
        .args(["security", "--offline=true", "--no-pager", EXPOSURE])
        .arg(&copy);
    let told = repository::printed(&mut security).context("it exposes more than it should")?;
    let level = told
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches('→')
        .trim();
    Ok(format!("verified. {level}"))
}
