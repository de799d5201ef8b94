//! `stationmaster man`: the pages for `man`, one a command.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Serialize;

use super::Context;
use crate::cli::tree;

/// Where to write the pages.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder to write them into, such as /usr/local/share/man/man1; made when it is not there
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
}

#[derive(Serialize)]
struct Written {
    folder: PathBuf,
    pages: usize,
}

pub(crate) fn run(args: ManArgs, context: &Context) -> Result<()> {
    let folder = args.out;
    let cannot = || format!("pages cannot be written into {}", folder.display());
    std::fs::create_dir_all(&folder).with_context(cannot)?;
    clap_mangen::generate_to(tree(), &folder).with_context(cannot)?;
    let ours = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("stationmaster");
    let pages = std::fs::read_dir(&folder)
        .with_context(cannot)?
        .filter(|entry| entry.as_ref().is_ok_and(ours))
        .count();
    context.print(&Written { folder, pages }, |written| {
        format!("{} pages are in {}.", written.pages, written.folder.display())
    })
}
