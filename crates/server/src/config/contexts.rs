//! Named servers: where each is and the token to come in with, in a file of the user that nobody else may read.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::failure::Refusal;

/// What the file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The one in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    /// By name.
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Stored>,
}

/// A server, as it is kept.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    /// Where it is.
    pub(crate) url: String,
    /// What to come in with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// Who signed its certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stored")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Contexts {
    /// Where they are kept.
    pub(crate) fn path() -> Result<PathBuf> {
        let home = std::env::home_dir().map(|home| home.join(".config"));
        let folder = std::env::var_os("XDG_CONFIG_HOME")
            .filter(|folder| !folder.is_empty())
            .map(PathBuf::from)
            .or(home);
        let folder = folder.ok_or_else(|| {
            Refusal::usage(
                "there is no folder to keep contexts in",
                "Set HOME or XDG_CONFIG_HOME",
            )
        })?;
        Ok(folder.join("stationmaster/contexts.toml"))
    }

    /// What is kept; nothing when there is no file.
    pub(crate) fn load() -> Result<Self> {
        Self::load_from(&Self::path()?)
    }

    /// Keeps these from now on.
    pub(crate) fn save(&self) -> Result<()> {
        self.save_to(&Self::path()?)
    }

    fn load_from(path: &Path) -> Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unusable(path, &error).into()),
        };
        // The parser's own words only: the line itself may hold a token.
        toml::from_str(&text).map_err(|error| unusable(path, &error.message()).into())
    }

    /// Beside the old file first, then in its place, so that a crash leaves one of the two.
    fn save_to(&self, path: &Path) -> Result<()> {
        let folder = path.parent().context("the file of contexts lies in a folder")?;
        let write = || -> std::io::Result<()> {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let new = path.with_extension("toml.new");
            let mut file = File::options()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&new)?;
            // It may have been there before, with other rights.
            file.set_permissions(Permissions::from_mode(0o600))?;
            let text = toml::to_string(self).map_err(std::io::Error::other)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, path)
        };
        write().map_err(|error| unusable(path, &error).into())
    }
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> Refusal {
    let message = format!("the contexts in {} cannot be used: {error}", path.display());
    Refusal::usage(message, "Mend the file or its rights, or remove it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_kept_where_nobody_else_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/contexts.toml");
        assert_eq!(Contexts::load_from(&path).unwrap(), Contexts::default());
        let stored = Stored {
            url: "http://here".to_owned(),
            token: Some("smt_secret".to_owned()),
            ca_file: None,
        };
        let contexts = Contexts {
            current: Some("here".to_owned()),
            contexts: [("here".to_owned(), stored)].into(),
        };
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path.with_extension("toml.new"), "left behind").unwrap();
        std::fs::set_permissions(path.with_extension("toml.new"), Permissions::from_mode(0o644)).unwrap();
        contexts.save_to(&path).unwrap();
        assert_eq!(Contexts::load_from(&path).unwrap(), contexts);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!format!("{contexts:?}").contains("secret"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_said_without_its_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contexts.toml");
        std::fs::write(&path, "token = smt_secret").unwrap();
        let error = format!("{:#}", Contexts::load_from(&path).unwrap_err());
        assert!(
            error.contains("contexts.toml") && !error.contains("secret"),
            "{error}"
        );
    }
}
