//! Programs that only a release needs: found, or built by cargo and Go into `target/tools`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{Desk, depends};
use crate::repository::{self, Repository};

/// A program that cargo builds.
struct CargoTool {
    name: &'static str,
    version: &'static str,
}

const DENY: CargoTool = CargoTool {
    name: "cargo-deny",
    version: "^0.19",
};

impl CargoTool {
    fn folder(repository: &Repository) -> PathBuf {
        repository.target.join("tools/cargo")
    }

    /// Where it is, if it is.
    fn find(&self, repository: &Repository) -> Option<PathBuf> {
        let own = Self::folder(repository).join("bin").join(self.name);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let elsewhere = std::env::split_paths(&path).map(|folder| folder.join(self.name));
        std::iter::once(own)
            .chain(elsewhere)
            .find(|place| place.is_file())
    }

    fn provide(&self, repository: &Repository) -> Result<PathBuf> {
        if let Some(place) = self.find(repository) {
            return Ok(place);
        }
        let mut install = repository.cargo();
        install
            .args([
                "install",
                "--locked",
                self.name,
                "--version",
                self.version,
                "--root",
            ])
            .arg(Self::folder(repository));
        super::carry_out(&mut install)?;
        self.find(repository)
            .with_context(|| format!("{} was installed and is not there", self.name))
    }
}

/// A program that Go builds.
pub(super) fn go(repository: &Repository, name: &str, module: &str) -> Result<PathBuf> {
    let folder = repository.target.join("tools/go");
    let place = folder.join(name);
    if !place.is_file() {
        let mut install = Command::new("go");
        install.args(["install", module]).env("GOBIN", &folder);
        super::carry_out(&mut install).with_context(|| format!("{name} is built by Go"))?;
    }
    Ok(place)
}

/// A program of a Python package, in an environment of its own.
pub(super) fn python(repository: &Repository, name: &str, package: &str) -> Result<PathBuf> {
    Ok(environment(repository, name, package)?.join(name))
}

/// Where the programs of an environment are in which a Python package is.
pub(super) fn environment(repository: &Repository, name: &str, package: &str) -> Result<PathBuf> {
    let folder = repository.target.join("tools").join(name);
    // Written last: what was broken off is made again.
    let whole = folder.join("installed");
    if fs::read_to_string(&whole).ok().as_deref() != Some(package) {
        super::carry_out(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let mut install = Command::new(folder.join("bin/pip"));
        install.args(["install", "--quiet", "--disable-pip-version-check", package]);
        super::carry_out(&mut install)?;
        fs::write(whole, package)?;
    }
    Ok(folder.join("bin"))
}

/// Holds the dependencies to `deny.toml`. The list of advisories has to be fetched: where it cannot be, that is said, and the rest is held.
pub(super) fn deny(desk: &Desk<'_>) -> Result<String> {
    let own = depends::check(desk.repository)?;
    if desk.release.offline {
        let more = deny_where_it_is(desk.repository)?;
        let words = more.unwrap_or("LEFT OUT: advisories, as cargo-deny is not on this machine");
        return Ok(format!("{own}. {words}"));
    }
    let program = DENY.provide(desk.repository)?;
    let rest = check(desk.repository, &program, &["bans", "licenses", "sources"])?;
    if !rest {
        bail!("see above");
    }
    Ok(if check(desk.repository, &program, &["advisories"])? {
        "licences, sources, duplicates and advisories are as they should be".to_owned()
    } else if desk.release.dry_run {
        "licences, sources and duplicates are as they should be. LEFT OUT: advisories, see above".to_owned()
    } else {
        bail!("there are advisories, or they could not be had: see above")
    })
}

/// The same without the advisories, for a check that must not depend on the network; `None` where the program is not.
pub(super) fn deny_where_it_is(repository: &Repository) -> Result<Option<&'static str>> {
    let Some(program) = DENY.find(repository) else {
        return Ok(None);
    };
    if check(repository, &program, &["bans", "licenses", "sources"])? {
        Ok(Some("licences, sources and duplicates are as they should be"))
    } else {
        bail!("see above")
    }
}

fn check(repository: &Repository, program: &PathBuf, what: &[&str]) -> Result<bool> {
    let mut command = Command::new(program);
    command
        .current_dir(&repository.root)
        .args(["--log-level=error", "check", "--hide-inclusion-graph"])
        .args(what);
    Ok(repository::run(&mut command)?.success())
}
