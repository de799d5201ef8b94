//! What is handed out: the binary without anything that only debuggers read, and beside it a file with all of that. Debuggers
//! and profilers find the file by its name, which the binary carries.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::repository::{self, Repository, words};

const HOW: &str = "objcopy belongs to binutils (Debian and Ubuntu: apt-get install binutils)";

/// Builds with the profile that is named, or `dist`.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let (profile, folder) = match arguments {
        [] => ("dist", "dist"),
        [flag, profile] if flag == "--profile" => {
            let folder = if profile == "dev" { "debug" } else { profile };
            (profile.as_str(), folder)
        }
        _ => bail!("cargo xtask dist [--profile NAME]"),
    };
    let arguments = ["build", "--package", "stationmaster", "--profile", profile];
    carry_out(repository.cargo().args(arguments))?;
    let built = repository.target.join(folder).join("stationmaster");
    let out = repository.target.join("handed-out");
    std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let (binary, symbols) = (out.join("stationmaster"), out.join("stationmaster.debug"));
    objcopy(&["--only-keep-debug"], &built, &symbols)?;
    objcopy(&["--strip-all"], &built, &binary)?;
    // The name of the other file is written into the binary, so it is made where that lies.
    let mut link = Command::new("objcopy");
    link.current_dir(&out)
        .args(["--add-gnu-debuglink=stationmaster.debug", "stationmaster"]);
    carry_out(&mut link)?;
    for file in [&binary, &symbols] {
        let megabytes = file.metadata()?.len() / 1_000_000;
        println!("{} ({megabytes} MB)", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn objcopy(options: &[&str], from: &Path, to: &Path) -> Result<()> {
    carry_out(Command::new("objcopy").args(options).arg(from).arg(to))
}

fn carry_out(command: &mut Command) -> Result<()> {
    let status = repository::run(command).context(HOW)?;
    if !status.success() {
        bail!("`{}` failed: {status}", words(command));
    }
    Ok(())
}
