//! What can go wrong on the way to a running server, in words for the person who started it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::account::Unreachable;
use crate::binaries::Version;

/// A private server could not be started. Every message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another process runs a server on the same folder.
    #[error(
        "the data folder {} is in use by {holder}. Stop that one, or choose another folder for this one",
        folder.display()
    )]
    InUse {
        /// The contested folder.
        folder: PathBuf,
        /// Who has it, as far as known.
        holder: String,
    },

    /// The folder holds something that is not ours.
    #[error(
        "{} holds other things ({found}) and no cluster of ours. Choose an empty folder or one that does not exist yet",
        folder.display()
    )]
    ForeignFolder {
        /// The folder in question.
        folder: PathBuf,
        /// The name of one of these things.
        found: String,
    },

    /// The data was written by another major version.
    #[error(
        "the data in {} was written by PostgreSQL {theirs}, but the server found is {ours} ({}). \
         Either install PostgreSQL {theirs} (Debian, Ubuntu: apt-get install postgresql-{theirs}; \
         Fedora: dnf install postgresql{theirs}-server; macOS: brew install postgresql@{theirs}), \
         or move the folder away to begin with an empty database: mv {} {}.{theirs}",
        folder.display(), bin_dir.display(), folder.display(), folder.display()
    )]
    OtherVersion {
        /// Where the data is.
        folder: PathBuf,
        /// The major version that wrote it.
        theirs: String,
        /// The version at hand.
        ours: Version,
        /// Where the version at hand is.
        bin_dir: PathBuf,
    },

    /// We are root, and the account lent to the server cannot get to the folder.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),

    /// The port that was asked for belongs to another program.
    #[error(
        "port {port} on 127.0.0.1 is taken by another program. Choose another port, or none to take a free one"
    )]
    PortTaken {
        /// The port that was asked for.
        port: u16,
    },

    /// A server that nobody owns any more holds the data and does not end.
    #[error(
        "an earlier PostgreSQL (process {pid}) still runs on {} and did not end within {} seconds after it was told \
         to. End it (kill -QUIT {pid}) and try again",
        folder.display(), waited.as_secs()
    )]
    PredecessorRuns {
        /// The folder it holds.
        folder: PathBuf,
        /// Its process.
        pid: i32,
        /// How long we waited.
        waited: Duration,
    },

    /// `initdb` failed.
    #[error("initdb could not make a cluster in {}:\n{output}", folder.display())]
    Initialise {
        /// Where the cluster was to be.
        folder: PathBuf,
        /// Its last lines.
        output: String,
    },

    /// The server ended instead of accepting connections.
    #[error("PostgreSQL ended while it started ({status}). Its last words:\n{log}")]
    Ended {
        /// Its exit status.
        status: String,
        /// The last lines of its log.
        log: String,
    },

    /// The server runs and does not get ready.
    #[error("PostgreSQL was not ready after {} seconds. Its last words:\n{log}", waited.as_secs())]
    NotReady {
        /// How long we waited.
        waited: Duration,
        /// The last lines of its log.
        log: String,
    },

    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    System {
        /// What was tried, as a verb.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Makes an error of the operating system say what was tried and on what.
pub(crate) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StartError {
    move |source| StartError::System {
        action,
        path: path.to_path_buf(),
        source,
    }
}
