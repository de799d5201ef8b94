//! What is wrong with a configuration, told so that the reader can mend it: which setting, from where, what, what to do.

use std::fmt;

use serde::Serialize;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Complaint {
    /// Which setting, or which settings.
    pub(crate) setting: String,
    /// Who said it.
    pub(crate) origin: String,
    /// What is wrong.
    pub(crate) problem: String,
    /// What to do.
    pub(crate) remedy: String,
}

impl Complaint {
    pub(super) fn new(
        setting: impl Into<String>,
        origin: impl fmt::Display,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            setting: setting.into(),
            origin: origin.to_string(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}): {}\n    {}",
            self.setting, self.origin, self.problem, self.remedy
        )
    }
}

/// Everything that is wrong: never empty, and always all of it.
#[derive(Debug, thiserror::Error)]
#[error("the configuration cannot be used: {} of its settings {}", .0.len(), if .0.len() == 1 { "is wrong" } else { "are wrong" })]
pub(crate) struct Complaints(pub(crate) Vec<Complaint>);
