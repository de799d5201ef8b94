//! Where things are, and how programs are run in the repository.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// Prefixes of what `cargo run` sets for this program. Passed on to another cargo they count as changed inputs of build
/// scripts that watch them, and dependencies would be compiled again for every second command.
const VARIABLES_OF_THIS_PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// The checkout that this program belongs to.
#[derive(Debug)]
pub(crate) struct Repository {
    /// The directory with the workspace's manifest.
    pub(crate) root: PathBuf,
    /// Where cargo and we put what can be made again.
    pub(crate) target: PathBuf,
}

impl Repository {
    /// Finds the checkout by the manifest of this program.
    pub(crate) fn here() -> Result<Self> {
        let manifest = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest
            .parent()
            .map(Path::to_path_buf)
            .context("xtask has no directory above it")?;
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        Ok(Self {
            target: std::path::absolute(target)?,
            root,
        })
    }

    /// The cargo that runs us, in the root of the repository.
    pub(crate) fn cargo(&self) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(&self.root);
        let own = |name: &str| {
            VARIABLES_OF_THIS_PACKAGE
                .iter()
                .any(|prefix| name.starts_with(prefix))
        };
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(own)) {
            command.env_remove(name);
        }
        command
    }
}

/// Says what is done and does it.
pub(crate) fn run(command: &mut Command) -> Result<ExitStatus> {
    eprintln!("  $ {}", words(command));
    command
        .status()
        .with_context(|| format!("cannot run `{}`", words(command)))
}

/// Runs a command that must succeed; what it printed.
pub(crate) fn printed(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run `{}`", words(command)))?;
    if !output.status.success() {
        bail!("`{}` failed", words(command));
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The code of a program that ended, to be our own.
pub(crate) fn code_of(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// A command as one would type it.
pub(crate) fn words(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let all = std::iter::once(program).chain(command.get_args());
    all.map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
