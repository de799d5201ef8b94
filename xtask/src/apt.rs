//! Installs packages where there is apt and we may. Other package managers are left to the people who chose them.

use std::process::{Command, Stdio};
use std::sync::Once;

use anyhow::{Result, bail};
use nix::unistd::Uid;

use crate::repository::run;

/// Installs packages without a question.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    static LISTS_ARE_FRESH: Once = Once::new();
    let names = packages.join(" ");
    if !succeeds(Command::new("apt-get").arg("--version")) {
        bail!("this machine has no apt-get, so `{names}` cannot be installed automatically");
    }
    if !Uid::effective().is_root() && !succeeds(Command::new("sudo").args(["-n", "true"])) {
        bail!("only root can install `{names}` (apt-get install {names}), and sudo asks for a password");
    }
    LISTS_ARE_FRESH.call_once(|| {
        // Without fresh lists the packages may still be had from old ones; the installation will tell.
        let _ = run(apt_get().args(["-qq", "update"]));
    });
    if !run(apt_get().args(["-qq", "install", "-y"]).args(packages))?.success() {
        bail!("apt-get could not install `{names}`");
    }
    Ok(())
}

fn apt_get() -> Command {
    let words = ["sudo", "-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"];
    let words = if Uid::effective().is_root() {
        &words[2..]
    } else {
        &words[..]
    };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    command
}

fn succeeds(command: &mut Command) -> bool {
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
