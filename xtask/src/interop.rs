//! `cargo xtask interop shedlock`: ShedLock's own library and our binary on one table, each against the other.
//!
//! It needs Java, and Maven, which brings the libraries; so it is a command of its own, and `check` says when it leaves it out.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use stationmaster_postgres::{Binaries, Server, Settings};

use crate::components::{JAVA, MAVEN, POSTGRES};
use crate::repository::{self, Repository, code_of, printed};

/// Runs what the argument names.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    match arguments {
        [which] if which == "shedlock" => shedlock(&Meeting::prepare(repository)?),
        _ => bail!("name what to meet: cargo xtask interop shedlock"),
    }
}

/// The step of `check`: only where Java and Maven are already, and never silently left out.
pub(crate) fn check(repository: &Repository) -> Result<ExitCode> {
    let missing: Vec<&str> = [&JAVA, &MAVEN]
        .into_iter()
        .filter(|component| !matches!(component.find(repository), Ok(Some(_))))
        .map(|component| component.name)
        .collect();
    if missing.is_empty() {
        return shedlock(&Meeting::prepare(repository)?);
    }
    eprintln!(
        "LEFT OUT: {} is not on this machine, so ShedLock's own library was not run. \
         `cargo xtask interop shedlock` installs it and runs.",
        missing.join(" and ")
    );
    Ok(ExitCode::SUCCESS)
}

/// Java with its libraries, our binary, and a database with our tables.
struct Meeting {
    java: PathBuf,
    classpath: std::ffi::OsString,
    binary: PathBuf,
    folder: PathBuf,
    /// The database lives as long as this.
    _server: Server,
    url: String,
}

impl Meeting {
    fn prepare(repository: &Repository) -> Result<Self> {
        let java = JAVA.provide(repository)?;
        let maven = MAVEN.provide(repository)?;
        let bin_dir = POSTGRES.provide(repository)?;
        let folder = repository.target.join("interop").join("shedlock");
        std::fs::create_dir_all(&folder)?;
        let classpath = build_java(repository, &maven, &folder)?;
        let binary = build_product(repository)?;
        let binaries = Binaries::find(Some(&bin_dir))?;
        let settings = Settings::throw_away(&repository.target.join("test-env"));
        let server =
            Server::start(&binaries, &settings).context("cannot start a PostgreSQL for the meeting")?;
        let url = server.url("postgres");
        let meeting = Self {
            java,
            classpath,
            binary,
            folder,
            _server: server,
            url,
        };
        meeting.command(&["migrate"])?;
        Ok(meeting)
    }

    /// Runs a command of ours that must succeed; what it printed.
    fn command(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .env("STATIONMASTER_DATABASE_URL", &self.url);
        printed(&mut command)
    }
}

fn shedlock(meeting: &Meeting) -> Result<ExitCode> {
    let mut java = Command::new(&meeting.java);
    java.arg("-cp")
        .arg(&meeting.classpath)
        .arg("stationmaster.interop.Interop")
        .arg(&meeting.binary)
        .arg(&meeting.folder)
        .env("STATIONMASTER_DATABASE_URL", &meeting.url)
        .env("INTEROP_JDBC_URL", jdbc(&meeting.url)?);
    eprintln!("  $ java stationmaster.interop.Interop");
    let status = java.stdin(Stdio::null()).status().context("cannot run java")?;
    Ok(code_of(status))
}

/// Compiles the Java side. Answers its classpath.
fn build_java(repository: &Repository, maven: &Path, folder: &Path) -> Result<std::ffi::OsString> {
    let libraries = folder.join("classpath");
    let mut build = Command::new(maven);
    build
        .current_dir(repository.root.join("interop").join("shedlock"))
        .args(["--quiet", "--batch-mode", "--no-transfer-progress"])
        .arg(format!("-Dbuild.folder={}", folder.display()))
        .args(["compile", "dependency:build-classpath"])
        .arg(format!("-Dmdep.outputFile={}", libraries.display()))
        .stdin(Stdio::null());
    if !repository::run(&mut build)?.success() {
        bail!("Maven could not build interop/shedlock: can it reach a repository with ShedLock's packages?");
    }
    let libraries = std::fs::read_to_string(&libraries)?;
    let mut paths = vec![folder.join("classes")];
    paths.extend(std::env::split_paths(libraries.trim()));
    Ok(std::env::join_paths(paths)?)
}

fn build_product(repository: &Repository) -> Result<PathBuf> {
    let mut build = repository.cargo();
    // As the tests build it: after them, nothing is built anew with other features.
    build.args(["build", "--workspace", "--all-targets"]);
    if !repository::run(&mut build)?.success() {
        bail!("the product does not build");
    }
    Ok(repository.target.join("debug").join("stationmaster"))
}

/// The same database in Java's words: `postgres://user:password@host:port/name?options` becomes a JDBC URL. The options are
/// those of another driver.
fn jdbc(url: &str) -> Result<String> {
    let url = url.split('?').next().unwrap_or(url);
    let rest = url.split_once("://").map(|(_, rest)| rest);
    let parts = rest
        .and_then(|rest| rest.split_once('@'))
        .and_then(|(account, place)| Some((account.split_once(':')?, place)));
    let ((user, password), place) = parts.context("the database has no user and password")?;
    Ok(format!(
        "jdbc:postgresql://{place}?user={user}&password={password}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_has_a_name_in_java() {
        assert_eq!(
            jdbc("postgres://ann:s3cret@127.0.0.1:5432/main?sslmode=disable").unwrap(),
            "jdbc:postgresql://127.0.0.1:5432/main?user=ann&password=s3cret"
        );
        assert!(jdbc("postgres://127.0.0.1/main").is_err());
    }
}
