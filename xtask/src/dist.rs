//! What is handed out: the binary without anything that only debuggers read, and beside it a file with all of that. Debuggers
//! and profilers find the file by its name, which the binary carries. And what packages hold besides: pages for `man`, completions of shells.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::repository::{self, Repository, words};

const HOW: &str = "objcopy belongs to binutils (Debian and Ubuntu: apt-get install binutils)";

/// Shells, and the files in which they look for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "stationmaster.bash"),
    ("zsh", "_stationmaster"),
    ("fish", "stationmaster.fish"),
];

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
    let commit = repository::printed(Command::new("git").current_dir(&repository.root).args([
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
    ]));
    let commit = commit.unwrap_or_else(|_| "unknown".to_owned());
    carry_out(
        repository
            .cargo()
            .args(arguments)
            .env("STATIONMASTER_COMMIT", commit),
    )?;
    let built = repository.target.join(folder).join("stationmaster");
    let out = repository.target.join("handed-out");
    std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let (binary, symbols) = (out.join("stationmaster"), out.join("stationmaster.debug"));
    objcopy(&["--only-keep-debug"], &built, &symbols)?;
    lay_out(&built, &out)?;
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

/// Puts what packages hold into a folder: the binary without what only debuggers read, its pages and completions.
pub(crate) fn lay_out(built: &Path, out: &Path) -> Result<()> {
    let (binary, completions) = (out.join("stationmaster"), out.join("completions"));
    std::fs::create_dir_all(&completions)?;
    objcopy(&["--strip-all"], built, &binary)?;
    carry_out(Command::new(&binary).arg("man").arg("--out").arg(out.join("man")))?;
    for (shell, file) in COMPLETIONS {
        let text = repository::printed(Command::new(&binary).args(["completions", shell]))?;
        std::fs::write(completions.join(file), text)?;
    }
    Ok(())
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
