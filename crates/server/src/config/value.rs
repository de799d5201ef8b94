//! Where a value came from, and what of it may be shown.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// Who said it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "source", content = "name", rename_all = "lowercase")]
pub(crate) enum Origin {
    /// Nobody: the table's default.
    Default,
    /// The configuration file.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
    /// A flag of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// What somebody gave for a setting, not read yet.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) text: Text,
    pub(super) origin: Origin,
}

/// The words of a value, or the file that holds them.
#[derive(Debug, Clone)]
pub(super) enum Text {
    Here(String),
    InFile(PathBuf),
}

/// A value of the effective configuration, secrets hidden.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Effective {
    /// The setting.
    pub(crate) key: &'static str,
    /// Its value as it was written; none: not set.
    pub(crate) value: Option<String>,
    /// Who said it.
    pub(crate) origin: Origin,
}
