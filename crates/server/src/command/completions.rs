//! `stationmaster completions`: what a shell needs to complete our commands.

use std::io::Write as _;

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use crate::cli::tree;

/// For which shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    // Into memory first: the generator panics when its reader goes away.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut tree(), "stationmaster", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}
