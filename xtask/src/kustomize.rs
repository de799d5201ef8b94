//! Renders what goes to Kubernetes: a kustomize that is there or that Go builds, or a kubectl that knows enough of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::components::{KUSTOMIZE_SETTING, find_program, in_path};
use crate::repository::{Repository, run};

/// What Go builds.
const MODULE: &str = "sigs.k8s.io/kustomize/kustomize/v5@v5.4.3";

pub(crate) fn find(repository: &Repository) -> Result<Option<PathBuf>> {
    let own = repository.target.join("tools/go/kustomize");
    let found = find_program(KUSTOMIZE_SETTING, "kustomize")?;
    let found = found.or_else(|| Some(own).filter(|program| program.is_file()));
    // One that is old knows less of kustomize than our files need.
    let renders = |kubectl: &PathBuf| {
        let rendered = rendering(kubectl).current_dir(&repository.root).output();
        rendered.is_ok_and(|output| output.status.success())
    };
    Ok(found.or_else(|| in_path("kubectl").filter(renders)))
}

/// Prints what goes to Kubernetes, by a kustomize or a kubectl, in the root of the repository.
pub(crate) fn rendering(program: &Path) -> Command {
    let verb = if program.ends_with("kubectl") {
        "kustomize"
    } else {
        "build"
    };
    let mut command = Command::new(program);
    command.args([verb, "ops/kubernetes"]);
    command
}

pub(crate) fn install(repository: &Repository) -> Result<()> {
    let mut install = Command::new("go");
    install
        .args(["install", MODULE])
        .env("GOBIN", repository.target.join("tools/go"));
    if !run(install.stdin(Stdio::null()))?.success() {
        bail!("Go could not build {MODULE}");
    }
    Ok(())
}
