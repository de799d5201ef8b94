//! Finds the server's programs on this machine. First stage: knows nothing of folders that hold data, apart from the
//! version somebody wants to open.

use std::collections::BTreeSet;
use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest major version whose SQL the product speaks.
pub const OLDEST_MAJOR: u32 = 15;

/// The programs a directory must hold to be of use.
const NEEDED: [&str; 2] = ["postgres", "initdb"];

/// Where package managers put the programs; one `*` stands for any part of one name.
const USUAL_PLACES: [&str; 8] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/libexec/postgresql*",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
    "/usr/local/pgsql/bin",
];

/// A version of `PostgreSQL`, such as 17.4. Clusters can be opened by the same major version only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number; it decides the format of the files.
    pub major: u32,
    /// The second number; zero for pre-releases.
    pub minor: u32,
}

impl Version {
    /// Reads the line that `postgres --version` prints.
    fn parse(line: &str) -> Option<Self> {
        let number = line
            .split_whitespace()
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        // A pre-release is called 19beta1 or 19devel: what follows the leading digits is no minor version.
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
        let major = digits(number);
        let minor = number[major.len()..]
            .strip_prefix('.')
            .map(digits)
            .unwrap_or_default();
        Some(Self {
            major: major.parse().ok()?,
            minor: minor.parse().unwrap_or(0),
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

/// A directory with the server's programs, and their version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The directory that holds `postgres`, `initdb` and their siblings.
    pub bin_dir: PathBuf,
    /// What `postgres --version` in it says.
    pub version: Version,
}

/// No usable server was found. The message lists every place and what was wrong there, and says what to install.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "found no PostgreSQL server of version {OLDEST_MAJOR} or newer. Looked at:\n{looked_at}\n\
     Install one and try again:\n  \
     Debian, Ubuntu: apt-get install postgresql\n  \
     Fedora:         dnf install postgresql-server\n  \
     macOS:          brew install postgresql@17\n\
     or name the directory that holds its `postgres` and `initdb` programs in the setting for it"
)]
pub struct NotFound {
    /// One line per place.
    looked_at: String,
}

impl Binaries {
    /// Finds the newest server.
    ///
    /// A hint (a setting of the user) is the directory of the programs or the prefix above it. It is binding: when it
    /// does not hold a usable server, nothing else is tried, since a server other than the one named would surprise.
    pub fn find(hint: Option<&Path>) -> Result<Self, NotFound> {
        Self::find_among(&places(hint), None)
    }

    /// Finds the server for a folder: of the major version that made the folder's cluster if it is installed, so that
    /// an upgrade of the system's packages does not shut out existing data, otherwise the newest.
    pub fn find_for(hint: Option<&Path>, folder: &Path) -> Result<Self, NotFound> {
        Self::find_among(&places(hint), crate::folder::major_version(folder))
    }

    /// The path of one of the programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin_dir.join(name)
    }

    fn find_among(places: &[PathBuf], wanted_major: Option<u32>) -> Result<Self, NotFound> {
        let mut looked_at = Vec::new();
        let mut usable = Vec::new();
        for place in places {
            match Self::inspect(place) {
                Ok(binaries) => usable.push(binaries),
                Err(reason) => looked_at.push(format!("  {}: {reason}", place.display())),
            }
        }
        usable
            .into_iter()
            .rev() // of two with the same version `max_by_key` takes the last; the first place should win
            .max_by_key(|binaries| (Some(binaries.version.major) == wanted_major, binaries.version))
            .ok_or_else(|| NotFound {
                looked_at: looked_at.join("\n"),
            })
    }

    fn inspect(place: &Path) -> Result<Self, String> {
        let bin_dir = if place.join("bin").is_dir() {
            place.join("bin")
        } else {
            place.to_path_buf()
        };
        if !bin_dir.is_dir() {
            return Err("no such directory".to_owned());
        }
        for program in NEEDED {
            if !bin_dir.join(program).is_file() {
                return Err(format!("holds no `{program}`"));
            }
        }
        let output = Command::new(bin_dir.join("postgres"))
            .arg("--version")
            .output()
            .map_err(|error| format!("`postgres --version` does not run: {error}"))?;
        let line = String::from_utf8_lossy(&output.stdout);
        let version = Version::parse(&line).ok_or_else(|| {
            format!(
                "`postgres --version` says {:?}, which names no version",
                line.trim()
            )
        })?;
        if version.major < OLDEST_MAJOR {
            return Err(format!("has version {version}, too old"));
        }
        Ok(Self { bin_dir, version })
    }
}

/// All places worth a look, without repetition, in the order of preference among equal versions.
fn places(hint: Option<&Path>) -> Vec<PathBuf> {
    if let Some(hint) = hint {
        return vec![hint.to_path_buf()];
    }
    let mut seen = BTreeSet::new();
    let mut places = on_search_path();
    places.extend(told_by_pg_config());
    places.extend(USUAL_PLACES.iter().flat_map(|pattern| expand(pattern)));
    places.retain(|place| seen.insert(place.clone()));
    places
}

/// Directories of the search path that hold one of the programs. Links are followed, because a link to `postgres` in
/// `/usr/local/bin` has no `initdb` and no libraries beside it.
fn on_search_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .flat_map(|directory| NEEDED.map(|program| directory.join(program)))
        .filter_map(|program| fs::canonicalize(program).ok())
        .filter_map(|program| program.parent().map(Path::to_path_buf))
        .collect()
}

fn told_by_pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    let line = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(line.trim())).filter(|place| place.is_absolute())
}

/// Expands a pattern with one `*`. A place that does not exist is kept as the pattern, so that the message of
/// [`NotFound`] can say that it was looked at.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![PathBuf::from(pattern)];
    };
    let (parent, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let names = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name());
    let found: Vec<PathBuf> = names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.starts_with(prefix))
        .map(|name| PathBuf::from(format!("{parent}/{name}{after}")))
        .collect();
    if found.is_empty() {
        vec![PathBuf::from(pattern)]
    } else {
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_releases_and_pre_releases_are_understood() {
        let parsed = |line| Version::parse(line).map(|version| version.to_string());
        assert_eq!(
            parsed("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)").as_deref(),
            Some("15.14")
        );
        assert_eq!(parsed("postgres (PostgreSQL) 19devel").as_deref(), Some("19.0"));
        assert_eq!(parsed("postgres (PostgreSQL) 18beta1").as_deref(), Some("18.0"));
        assert_eq!(parsed("something else"), None);
    }

    #[test]
    fn usual_places_that_do_not_exist_stay_in_the_list() {
        assert_eq!(
            expand("/no-such-place-*/bin"),
            [PathBuf::from("/no-such-place-*/bin")]
        );
    }
}
