//! The parts of the binary, as `CycloneDX` tells them: every crate that is compiled into it or runs while it is built, with its version, licence and
//! checksum, and which needs which. From what cargo itself says; crates that only tests need are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::depends::licence;
use crate::repository::{self, Repository};

const PROGRAM: &str = "stationmaster";

/// The list.
pub(super) struct Parts {
    pub(super) text: String,
    pub(super) crates: usize,
}

pub(super) fn of(repository: &Repository) -> Result<Parts> {
    let platform = format!("--filter-platform={}-unknown-linux-gnu", std::env::consts::ARCH);
    let metadata = metadata(repository, &[&platform])?;
    let lock = fs::read_to_string(repository.root.join("Cargo.lock"))?;
    list(&metadata, &checksums(&lock))
}

/// What cargo says of the packages of the lock file.
pub(super) fn metadata(repository: &Repository, more: &[&str]) -> Result<Value> {
    let arguments = ["metadata", "--format-version=1", "--locked"];
    let metadata = repository::printed(repository.cargo().args(arguments).args(more))?;
    Ok(serde_json::from_str(&metadata)?)
}

/// Checksums by name and version, from the file in which cargo keeps them.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |entry: &str, name: &str| {
        let line = entry
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} = \"")));
        line.map(|value| value.trim_end_matches('"').to_owned())
    };
    let entries = lock.split("[[package]]").skip(1);
    entries
        .filter_map(|entry| {
            let key = (field(entry, "name")?, field(entry, "version")?);
            Some((key, field(entry, "checksum")?))
        })
        .collect()
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn list(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Result<Parts> {
    let none = Vec::new();
    let packages: BTreeMap<&str, &Value> = metadata["packages"]
        .as_array()
        .unwrap_or(&none)
        .iter()
        .map(|package| (text(package, "id"), package))
        .collect();
    let needs: BTreeMap<&str, Vec<&str>> = metadata["resolve"]["nodes"]
        .as_array()
        .unwrap_or(&none)
        .iter()
        .map(|node| (text(node, "id"), needed_by(node)))
        .collect();
    let program = packages
        .values()
        .find(|package| text(package, "name") == PROGRAM)
        .context("cargo knows no package of that name")?;
    let mut reached = BTreeSet::new();
    let mut open = vec![text(program, "id")];
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            open.extend(needs.get(id).into_iter().flatten());
        }
    }
    let address = |id: &str| packages.get(id).map(|package| purl(package));
    let parts = reached.iter().filter_map(|id| packages.get(id));
    let others = parts.filter(|package| text(package, "name") != PROGRAM);
    let components: Vec<Value> = others.map(|package| component(package, checksums)).collect();
    let dependencies: Vec<Value> = reached
        .iter()
        .map(|id| {
            let on = needs.get(id).into_iter().flatten();
            let on: BTreeSet<String> = on.filter_map(|id| address(id)).collect();
            json!({ "ref": address(id), "dependsOn": on })
        })
        .collect();
    let crates = components.len();
    let untold = components
        .iter()
        .find(|component| component["licenses"].is_null());
    if let Some(untold) = untold {
        bail!("{} tells no licence", text(untold, "purl"));
    }
    let mut own = component(program, checksums);
    own["type"] = json!("application");
    let bom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": own },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(Parts {
        text: serde_json::to_string_pretty(&bom)? + "\n",
        crates,
    })
}

/// What is compiled into it, or runs to build it.
fn needed_by(node: &Value) -> Vec<&str> {
    let is_for_more_than_tests = |dependency: &&Value| {
        let kinds = dependency["dep_kinds"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"))
    };
    let dependencies = node["deps"].as_array().into_iter().flatten();
    dependencies
        .filter(is_for_more_than_tests)
        .map(|dependency| text(dependency, "pkg"))
        .collect()
}

fn purl(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version"))
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": name,
        "version": version,
        "purl": purl(package),
    });
    if let Some(licence) = licence(package) {
        component["licenses"] = json!([{ "expression": licence }]);
    }
    if let Some(sum) = checksums.get(&(name.to_owned(), version.to_owned())) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_holds_what_is_built_in_and_not_what_only_tests_need() {
        let package =
            |name: &str| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0" });
        let needs = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": (["stationmaster", "used", "builds", "deep", "tests", "elsewhere"].map(package)),
            "resolve": { "nodes": [
                { "id": "stationmaster", "deps": [needs("used", Value::Null), needs("builds", json!("build")), needs("tests", json!("dev"))] },
                { "id": "used", "deps": [needs("deep", Value::Null)] },
                { "id": "tests", "deps": [needs("elsewhere", Value::Null)] },
            ] },
        });
        let lock = "[[package]]\nname = \"used\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n";
        let parts = list(&metadata, &checksums(lock)).unwrap();
        let bom: Value = serde_json::from_str(&parts.text).unwrap();
        let names: Vec<&str> = bom["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|component| component["name"].as_str().unwrap())
            .collect();
        assert_eq!((names, parts.crates), (vec!["builds", "deep", "used"], 3));
        let used = &bom["components"][2];
        assert_eq!(used["hashes"][0]["content"], "abc");
        assert_eq!(used["licenses"][0]["expression"], "MIT OR Apache-2.0");
        let mut needs = bom["dependencies"].as_array().unwrap().iter();
        let of_used = needs.find(|one| one["ref"] == "pkg:cargo/used@1.0.0").unwrap();
        assert_eq!(of_used["dependsOn"], json!(["pkg:cargo/deep@1.0.0"]));
        assert_eq!(bom["metadata"]["component"]["type"], "application");
    }
}
