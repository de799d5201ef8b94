//! What goes to Kubernetes: rendered by kustomize, and held against the schemas of Kubernetes.

use std::fs;
use std::process::Command;

use anyhow::{Result, bail};

use crate::components::{KUBERNETES_VALIDATE, KUSTOMIZE};
use crate::kustomize;
use crate::repository::{self, Repository};

/// Of which the schemas are.
const VERSION: &str = "1.29.0";
/// What has to come out, whatever else does.
const KINDS: [&str; 7] = [
    "ConfigMap",
    "Deployment",
    "HorizontalPodAutoscaler",
    "Job",
    "PodDisruptionBudget",
    "Service",
    "ServiceAccount",
];

pub(super) fn check(repository: &Repository) -> Result<String> {
    let is_there = KUSTOMIZE.find(repository)?.is_some();
    if !is_there && Command::new("go").arg("version").output().is_err() {
        return Ok("LEFT OUT: Go, which builds kustomize, is not on this machine".to_owned());
    }
    let program = KUSTOMIZE.provide(repository)?;
    let rendered = repository::printed(kustomize::rendering(&program).current_dir(&repository.root))?;
    let missing: Vec<&str> = KINDS
        .into_iter()
        .filter(|kind| !rendered.lines().any(|line| line == format!("kind: {kind}")))
        .collect();
    if !missing.is_empty() {
        bail!("nothing of the kind {missing:?} comes out");
    }
    let file = repository.target.join("kubernetes.yml");
    fs::write(&file, &rendered)?;
    let validate = KUBERNETES_VALIDATE.provide(repository)?;
    let told = repository::printed(
        Command::new(validate)
            .args(["--strict", "-k", VERSION])
            .arg(&file),
    )?;
    let passed = told.lines().filter(|line| line.contains("passed")).count();
    let things = rendered.lines().filter(|line| line.starts_with("kind: ")).count();
    if passed != things {
        bail!("{passed} of {things} things passed:\n{told}");
    }
    Ok(format!("{things} things, as Kubernetes {VERSION} has them"))
}
