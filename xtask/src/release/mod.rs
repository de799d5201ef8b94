//! `cargo xtask release VERSION`: everything that is handed out for a version, made and tried in one go: binary, tarball, Debian package, list
//! of parts (SBOM), checksums, notes. It tags and uploads nothing. With `--dry-run` it is made of whatever lies in the tree.

mod container;
mod dashboard;
mod deb;
mod depends;
mod kubernetes;
mod notes;
mod sbom;
mod tools;
mod unit;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::repository::{self, Repository, words};
use crate::{dist, tidy};

/// What was asked for.
#[derive(Debug, PartialEq)]
struct Release {
    version: String,
    /// Of a tree with changes, and of what the changelog calls unreleased.
    dry_run: bool,
    /// With what is on the machine; what is missing is left out, and that is said.
    offline: bool,
    profile: String,
}

impl Release {
    fn read(arguments: &[String]) -> Result<Self> {
        let mut release = Self {
            version: String::new(),
            dry_run: false,
            offline: false,
            profile: "dist".to_owned(),
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--dry-run" => release.dry_run = true,
                "--offline" => release.offline = true,
                "--profile" => {
                    arguments
                        .next()
                        .context("--profile needs a name")?
                        .clone_into(&mut release.profile);
                }
                version if release.version.is_empty() && !version.starts_with('-') => {
                    version.clone_into(&mut release.version);
                }
                _ => bail!("cargo xtask release VERSION [--dry-run [--offline]] [--profile NAME]"),
            }
        }
        if release.version.is_empty() || release.offline && !release.dry_run {
            bail!("cargo xtask release VERSION [--dry-run [--offline]] [--profile NAME]");
        }
        Ok(release)
    }
}

/// Where everything of a version is put.
struct Desk<'a> {
    repository: &'a Repository,
    release: Release,
    out: PathBuf,
}

/// A step: its name and what it does; answers what is to be told of it.
type Step = (&'static str, fn(&Desk<'_>) -> Result<String>);

const STEPS: [Step; 11] = [
    ("the tree and its words", in_order),
    ("the house rules", house_rules),
    ("what it depends on", tools::deny),
    ("the binary", build),
    ("its parts", list_parts),
    ("the unit", |desk| unit::check(desk.repository)),
    ("Kubernetes", |desk| kubernetes::check(desk.repository)),
    ("the container", container::check),
    ("the dashboard", dashboard::check),
    ("the Debian package", debian),
    ("the tarball, checksums and notes", pack),
];

/// Makes it all; stops at the first thing that is not as it should be.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<ExitCode> {
    let release = Release::read(arguments)?;
    let out = repository.target.join("releases").join(&release.version);
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(&out)?;
    let desk = Desk {
        repository,
        release,
        out,
    };
    let mut told = Vec::new();
    for (name, step) in STEPS {
        eprintln!("\n== {name}");
        let began = Instant::now();
        let words = step(&desk).with_context(|| format!("{name} is not as it should be"))?;
        told.push(format!(
            "{name:<34}{:>7.1} s  {words}",
            began.elapsed().as_secs_f64()
        ));
    }
    println!("\n{}\n\n{}", told.join("\n"), desk.out.display());
    if desk.release.dry_run {
        println!("This was a dry run: nothing of it is to be handed out.");
    } else {
        println!(
            "Next: git tag -s v{0}, and hand the folder out.",
            desk.release.version
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// What `cargo xtask check` asks of packages: what costs next to nothing.
pub(crate) fn check(repository: &Repository) -> Result<ExitCode> {
    eprintln!("  the unit: {}", unit::check(repository)?);
    eprintln!("  what it depends on: {}", depends::check(repository)?);
    if let Some(words) = tools::deny_where_it_is(repository)? {
        eprintln!("  cargo deny: {words}");
    }
    eprintln!("  its parts: {} crates", sbom::of(repository)?.crates);
    Ok(ExitCode::SUCCESS)
}

/// What `cargo xtask check` does with the binary that the tests have built: a Debian package, installed and removed.
pub(crate) fn rehearse(repository: &Repository) -> Result<ExitCode> {
    eprintln!("  the Debian package: {}", deb::rehearse(repository)?);
    Ok(ExitCode::SUCCESS)
}

fn git(repository: &Repository, arguments: &[&str]) -> Result<String> {
    repository::printed(Command::new("git").current_dir(&repository.root).args(arguments))
}

/// The tree holds what is committed, and says that it is this version.
fn in_order(desk: &Desk<'_>) -> Result<String> {
    let version = &desk.release.version;
    let manifest = fs::read_to_string(desk.repository.root.join("Cargo.toml"))?;
    if !manifest.contains(&format!("\nversion = \"{version}\"\n")) {
        bail!("Cargo.toml does not say version = \"{version}\"");
    }
    let changelog = fs::read_to_string(desk.repository.root.join("CHANGELOG.md"))?;
    let section = notes::section(&changelog, version);
    let unreleased = notes::section(&changelog, "Unreleased").filter(|_| desk.release.dry_run);
    if section.or(unreleased).is_none() {
        bail!("CHANGELOG.md has no section \"## {version}\"");
    }
    let dump = format!("crates/core/tests/dumps/{version}.sql");
    if !desk.release.dry_run && !desk.repository.root.join(&dump).is_file() {
        bail!("{dump} is missing: cargo xtask upgrade --keep {version}");
    }
    let changed = git(desk.repository, &["status", "--porcelain"])?;
    let commit = git(desk.repository, &["rev-parse", "--short=12", "HEAD"])?;
    if changed.is_empty() {
        return Ok(format!("commit {commit}"));
    }
    let files = changed.lines().count();
    if !desk.release.dry_run {
        bail!("{files} files are not committed:\n{changed}");
    }
    Ok(format!(
        "commit {commit} and {files} files that are not committed"
    ))
}

fn house_rules(desk: &Desk<'_>) -> Result<String> {
    if tidy::run(desk.repository)? == ExitCode::SUCCESS {
        Ok("kept".to_owned())
    } else {
        bail!("see above")
    }
}

fn build(desk: &Desk<'_>) -> Result<String> {
    let arguments = ["--profile".to_owned(), desk.release.profile.clone()];
    if dist::run(desk.repository, &arguments)? != ExitCode::SUCCESS {
        bail!("it could not be built");
    }
    let told = repository::printed(Command::new(desk.binary()).arg("--version"))?;
    let first = told.lines().next().unwrap_or_default();
    if !first.contains(&desk.release.version) {
        bail!("it says that it is {first:?}");
    }
    Ok(told.lines().collect::<Vec<_>>().join(", "))
}

impl Desk<'_> {
    fn handed_out(&self) -> PathBuf {
        self.repository.target.join("handed-out")
    }

    fn binary(&self) -> PathBuf {
        self.handed_out().join("stationmaster")
    }

    /// How files of this version begin.
    fn named(&self, ending: &str) -> PathBuf {
        self.out
            .join(format!("stationmaster-{}{ending}", self.release.version))
    }
}

fn list_parts(desk: &Desk<'_>) -> Result<String> {
    let parts = sbom::of(desk.repository)?;
    let file = desk.named(".cdx.json");
    fs::write(&file, &parts.text)?;
    Ok(format!("{} crates in {}", parts.crates, name(&file)))
}

fn debian(desk: &Desk<'_>) -> Result<String> {
    let package = desk.named(".deb");
    let (made, version) = (desk.handed_out(), &desk.release.version);
    deb::make(desk.repository, &made, &package, version, deb::Size::Small)?;
    deb::try_out(desk.repository, &package, &desk.release.version)
}

/// What the tarball holds beside the binary, its pages and completions.
const BESIDE: [&str; 5] = ["LICENSE", "README.md", "CHANGELOG.md", "docs", "ops"];

fn pack(desk: &Desk<'_>) -> Result<String> {
    let machine = format!("-{}-linux.tar.gz", std::env::consts::ARCH);
    let tarball = desk.named(&machine);
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--owner=0", "--group=0", "--sort=name"])
        .arg("--file")
        .arg(&tarball)
        .arg(format!(
            "--transform=s,^,stationmaster-{}/,",
            desk.release.version
        ))
        .arg("--directory")
        .arg(desk.handed_out())
        .args(["stationmaster", "man", "completions"])
        .arg("--directory")
        .arg(&desk.repository.root)
        .args(BESIDE);
    carry_out(&mut tar)?;
    fs::copy(
        desk.handed_out().join("stationmaster.debug"),
        desk.named(".debug"),
    )?;
    let mut files: Vec<String> = fs::read_dir(&desk.out)?
        .map(|entry| Ok(name(&entry?.path())))
        .collect::<Result<_>>()?;
    files.sort();
    let sums = repository::printed(Command::new("sha256sum").current_dir(&desk.out).args(&files))?;
    fs::write(desk.out.join("SHA256SUMS"), format!("{sums}\n"))?;
    let changelog = fs::read_to_string(desk.repository.root.join("CHANGELOG.md"))?;
    let told = repository::printed(Command::new(desk.binary()).arg("--version"))?;
    let notes = notes::write(&changelog, &desk.release.version, &told, &sums);
    fs::write(desk.out.join("NOTES.md"), notes)?;
    Ok(format!("{} files, SHA256SUMS, NOTES.md", files.len()))
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Runs a command that must succeed.
fn carry_out(command: &mut Command) -> Result<()> {
    let status = repository::run(command)?;
    if !status.success() {
        bail!("`{}` failed: {status}", words(command));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Release> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Release::read(&arguments)
    }

    #[test]
    fn a_release_has_a_version_and_may_be_tried() {
        let release = read(&["1.2.3", "--dry-run", "--profile", "trial"]).unwrap();
        let asked = Release {
            version: "1.2.3".to_owned(),
            dry_run: true,
            offline: false,
            profile: "trial".to_owned(),
        };
        assert_eq!(release, asked);
        assert!(read(&[]).is_err());
        assert!(read(&["--dry-run"]).is_err());
        assert!(
            read(&["1.2.3", "--offline"]).is_err(),
            "nothing is left out of a release"
        );
        assert!(read(&["1.2.3", "--offline", "--dry-run"]).unwrap().offline);
        assert!(read(&["1.2.3", "1.2.4"]).is_err());
    }
}
