//! How things look, told once when the program starts: to whom we write does not change while it runs.

use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;

/// How tables and times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Looks {
    /// Everything there is: whole ids, whole texts, every column.
    pub(crate) wide: bool,
    /// Columns of the terminal; none: it is not a terminal, and nothing is left out.
    pub(crate) room: Option<usize>,
    /// How times are told.
    pub(crate) times: Times,
}

/// How times are told to people. Programs that ask for JSON get RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// How long ago, or how long until.
    Relative,
    /// Exactly, as clocks show it here.
    Local,
    /// Exactly, in UTC.
    Utc,
}

/// A file or another program gets the same whenever it asks.
const STABLE: Looks = Looks {
    wide: false,
    room: None,
    times: Times::Utc,
};

static LOOKS: OnceLock<Looks> = OnceLock::new();

impl Looks {
    /// As people asked for it, and as their terminal allows.
    pub(crate) fn new(wide: bool, times: Option<Times>) -> Self {
        let terminal = io::stdout().is_terminal();
        let room = || {
            ratatui::crossterm::terminal::size()
                .ok()
                .filter(|(width, _)| *width > 0)
        };
        let usual = if terminal { Times::Relative } else { STABLE.times };
        Self {
            wide,
            room: terminal.then(room).flatten().map(|(width, _)| width.into()),
            times: times.unwrap_or(usual),
        }
    }

    /// From now on.
    pub(crate) fn keep(self) {
        // Whoever is second looks the same: it is told once, before anything is shown.
        let _ = LOOKS.set(self);
    }
}

/// How things look.
pub(crate) fn looks() -> Looks {
    LOOKS.get().copied().unwrap_or(STABLE)
}
