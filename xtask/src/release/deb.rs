//! The Debian package: made by `dpkg-deb` of what is handed out, installed into a root of its own, looked at, and removed.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::dist;
use crate::repository::{self, Repository};

/// How a file begins that is made anew for each package.
const MADE: &str = "made/";
/// What upgrades leave alone.
const SETTINGS: &str = "etc/stationmaster/stationmaster.toml";
/// Where files come from, where they go, and who may run them. Pages for `man` come besides.
const FILES: [(&str, &str, u32); 8] = [
    ("made/stationmaster", "usr/bin/stationmaster", 0o755),
    (
        "ops/systemd/stationmaster.service",
        "usr/lib/systemd/system/stationmaster.service",
        0o644,
    ),
    ("ops/debian/stationmaster.toml", SETTINGS, 0o644),
    (
        "made/completions/stationmaster.bash",
        "usr/share/bash-completion/completions/stationmaster",
        0o644,
    ),
    (
        "made/completions/_stationmaster",
        "usr/share/zsh/vendor-completions/_stationmaster",
        0o644,
    ),
    (
        "made/completions/stationmaster.fish",
        "usr/share/fish/vendor_completions.d/stationmaster.fish",
        0o644,
    ),
    (
        "ops/prometheus/alerts.yml",
        "usr/share/stationmaster/prometheus/alerts.yml",
        0o644,
    ),
    (
        "ops/grafana/stationmaster.json",
        "usr/share/stationmaster/grafana/stationmaster.json",
        0o644,
    ),
];
const MAN: &str = "usr/share/man/man1";
const DOCUMENTS: &str = "usr/share/doc/stationmaster";
const PAGE: &str = "usr/share/man/man1/stationmaster.1.gz";

/// How much it is worth to make a package small.
#[derive(Clone, Copy)]
pub(super) enum Size {
    Small,
    /// It is only tried.
    Whatever,
}

/// Makes the package of what was laid out in a folder.
pub(super) fn make(
    repository: &Repository,
    made: &Path,
    package: &Path,
    version: &str,
    size: Size,
) -> Result<()> {
    let tree = repository.target.join("debian-tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    let from = |place: &str| match place.strip_prefix(MADE) {
        Some(rest) => made.join(rest),
        None => repository.root.join(place),
    };
    for (place, goes, mode) in FILES {
        put(&from(place), &tree.join(goes), mode)?;
    }
    put(&from("LICENSE"), &tree.join(DOCUMENTS).join("copyright"), 0o644)?;
    for file in ["docs/metrics.md", "docs/logs.md"] {
        put(&from(file), &tree.join(DOCUMENTS).join(file), 0o644)?;
    }
    // Where the alerts lead.
    for page in fs::read_dir(from("docs/runbooks"))? {
        let page = page?.path();
        let goes = tree
            .join(DOCUMENTS)
            .join("docs/runbooks")
            .join(page.file_name().unwrap_or_default());
        put(&page, &goes, 0o644)?;
    }
    let mut compress = Command::new("gzip");
    compress
        .current_dir(&tree)
        .args(["--best", "--no-name", "--recursive", MAN]);
    for page in fs::read_dir(made.join("man"))? {
        let page = page?.path();
        let goes = tree.join(MAN).join(page.file_name().unwrap_or_default());
        put(&page, &goes, 0o644)?;
    }
    super::carry_out(&mut compress)?;
    let control = tree.join("DEBIAN");
    fs::create_dir_all(&control)?;
    fs::write(control.join("control"), about(version, &from(FILES[0].0))?)?;
    fs::write(control.join("conffiles"), format!("/{SETTINGS}\n"))?;
    let mut build = Command::new("dpkg-deb");
    if matches!(size, Size::Whatever) {
        build.arg("-Znone");
    }
    build
        .args(["--root-owner-group", "--build"])
        .arg(&tree)
        .arg(package);
    super::carry_out(&mut build)?;
    fs::remove_dir_all(&tree)?;
    Ok(())
}

fn put(from: &Path, to: &Path, mode: u32) -> Result<()> {
    fs::create_dir_all(to.parent().context("it goes nowhere")?)?;
    fs::copy(from, to).with_context(|| format!("{} cannot be had", from.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn about(version: &str, binary: &Path) -> Result<String> {
    let machine = repository::printed(Command::new("dpkg").arg("--print-architecture"))?;
    let symbols = repository::printed(Command::new("objdump").arg("--dynamic-syms").arg(binary))?;
    let mut about = String::new();
    for (field, value) in [
        ("Package", "stationmaster".to_owned()),
        ("Version", version.to_owned()),
        ("Architecture", machine),
        ("Maintainer", "The makers of Stationmaster".to_owned()),
        ("Section", "net".to_owned()),
        ("Priority", "optional".to_owned()),
        ("Depends", format!("libc6 (>= {}), libgcc-s1, ca-certificates", newest_glibc(&symbols))),
        ("Recommends", "postgresql-client".to_owned()),
        (
            "Description",
            "durable dispatch on PostgreSQL and Temporal\n Queue items wait in PostgreSQL and are started on Temporal, never more at once than a plan\n \
             allows; alarms fire in time; signals are routed once."
                .to_owned(),
        ),
    ] {
        // Writing into a String does not fail.
        let _ = writeln!(about, "{field}: {value}");
    }
    Ok(about)
}

/// The newest version of the C library that the binary asks for, by its symbols.
fn newest_glibc(symbols: &str) -> String {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest
            .find(|c: char| c != '.' && !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let numbers = rest[..end].split('.').map(|number| number.parse::<u32>().ok());
        numbers.collect::<Option<Vec<u32>>>()
    });
    let newest = versions.max().unwrap_or_else(|| vec![2, 31]);
    newest.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

/// Makes a package of what the tests have built, installs it, asks it, and takes it away: all but the making small.
pub(super) fn rehearse(repository: &Repository) -> Result<String> {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        return Ok("LEFT OUT: dpkg-deb is not on this machine".to_owned());
    }
    let built = repository.target.join("debug/stationmaster");
    let folder = repository.target.join("rehearsal");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    dist::lay_out(&built, &folder)?;
    let (package, version) = (folder.join("stationmaster.deb"), env!("CARGO_PKG_VERSION"));
    make(repository, &folder, &package, version, Size::Whatever)?;
    let told = try_out(repository, &package, version)?;
    fs::remove_dir_all(&folder)?;
    Ok(told)
}

/// Installs it where it disturbs nobody, asks the program, and takes it away again.
pub(super) fn try_out(repository: &Repository, package: &Path, version: &str) -> Result<String> {
    if !nix::unistd::geteuid().is_root() {
        return Ok("made. LEFT OUT: only root may install it somewhere".to_owned());
    }
    let root = repository.target.join("debian-root");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(root.join("var/lib/dpkg").join(folder))?;
    }
    fs::write(root.join("var/lib/dpkg/status"), "")?;
    let dpkg = |arguments: &[&str]| {
        let mut command = Command::new("dpkg");
        command
            .arg(format!("--root={}", root.display()))
            // What it depends on is in the root of the machine, not in this one.
            .arg("--force-depends")
            .args(arguments);
        super::carry_out(&mut command)
    };
    let place = package.to_str().context("the name of the package is no text")?;
    dpkg(&["--install", place])?;
    for file in FILES.iter().map(|(_, goes, _)| *goes).chain([PAGE]) {
        let file = root.join(file);
        let length = file
            .metadata()
            .with_context(|| format!("{} was not installed", file.display()))?;
        if length.len() == 0 {
            bail!("{} is empty", file.display());
        }
    }
    let told = repository::printed(Command::new(root.join(FILES[0].1)).arg("--version"))?;
    if !told.contains(version) {
        bail!("what was installed says that it is {told:?}");
    }
    let pages = fs::read_dir(root.join(MAN))?.count();
    dpkg(&["--purge", "stationmaster"])?;
    let left = left_over(&root)?;
    if !left.is_empty() {
        bail!("these were left: {left:?}");
    }
    fs::remove_dir_all(&root)?;
    Ok(format!(
        "installed with {pages} pages for man, and removed without a trace"
    ))
}

/// Files that are there after the package is gone, apart from the books of dpkg.
fn left_over(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut left, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path == root.join("var/lib/dpkg") || path == root.join("var/log") {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else {
                left.push(path);
            }
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::newest_glibc;

    #[test]
    fn the_newest_version_of_the_library_is_found_by_its_numbers() {
        let symbols = "(GLIBC_2.2.5) write\n(GLIBC_2.34) thread\n(GLIBC_2.9) poll\n(GLIBC_PRIVATE) none\n";
        assert_eq!(newest_glibc(symbols), "2.34");
        assert_eq!(newest_glibc(""), "2.31");
    }
}
