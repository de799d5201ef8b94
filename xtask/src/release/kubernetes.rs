//! What goes to Kubernetes: rendered by kustomize, and held against the schemas of Kubernetes.

use std::fs;
use std::process::Command;

use anyhow::{Result, bail};

use super::tools;
use crate::repository::{self, Repository};

const FOLDER: &str = "ops/kubernetes";
const KUSTOMIZE: &str = "sigs.k8s.io/kustomize/kustomize/v5@v5.4.3";
/// It brings the schemas along.
const SCHEMAS: &str = "kubernetes-validate==1.29.1";
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
    if Command::new("go").arg("version").output().is_err() {
        return Ok("LEFT OUT: Go, which builds kustomize, is not on this machine".to_owned());
    }
    let kustomize = tools::go(repository, "kustomize", KUSTOMIZE)?;
    let rendered = repository::printed(
        Command::new(kustomize)
            .current_dir(&repository.root)
            .args(["build", FOLDER]),
    )?;
    let missing: Vec<&str> = KINDS
        .into_iter()
        .filter(|kind| !rendered.lines().any(|line| line == format!("kind: {kind}")))
        .collect();
    if !missing.is_empty() {
        bail!("nothing of the kind {missing:?} comes out");
    }
    let file = repository.target.join("kubernetes.yml");
    fs::write(&file, &rendered)?;
    let validate = tools::python(repository, "kubernetes-validate", SCHEMAS)?;
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
