//! Under which user the server runs. `PostgreSQL` refuses to run as root, so root lends the server another account, and
//! everything in the folder belongs to that account. For any other user this module changes nothing.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::fcntl::OFlag;
use nix::unistd::{Gid, Uid, User};

/// Accounts that root may lend to the server, in the order of preference.
const LENT_ACCOUNTS: [&str; 2] = ["postgres", "nobody"];

/// Variables that reach the server's processes. Everything else stays away from them: `PG…` variables would change what
/// they do, and the rest may be secret.
const KEPT_VARIABLES: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];

/// Passes when every directory named can be entered, otherwise prints the first that cannot.
const ENTERS_ALL: &str =
    r#"for directory; do test -x "$directory" || { printf %s "$directory"; exit 1; }; done"#;

/// The account that the server's processes run as.
#[derive(Debug, Clone)]
pub(crate) enum Account {
    /// The user of this process.
    Own,
    /// We are root; this user is lent to the server.
    Lent { name: String, uid: Uid, gid: Gid },
}

/// The account that the server would run as cannot get to a folder.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "PostgreSQL refuses to run as root, so it runs as the user `{account}`, who may not enter {}. \
     Choose a data folder elsewhere (such as /var/lib/stationmaster), or let others pass through (chmod o+x {}), \
     or start this program as a user other than root",
    blocked.display(), blocked.display()
)]
pub struct Unreachable {
    account: String,
    /// The first directory on the way that the account cannot enter.
    pub blocked: PathBuf,
}

/// How files in a folder are opened: readable by the account alone, and never through a link (see [`Account::own`]).
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
    options
}

/// Whether the server could live in this folder, which need not exist yet. Always so unless we are root.
pub fn reachable(folder: &Path) -> Result<(), Unreachable> {
    let account = Account::for_cluster(&crate::folder::cluster(folder)).unwrap_or(Account::Own);
    account.can_enter(folder)
}

impl Account {
    /// Chooses the account: the owner of an existing cluster, so that root can run what a user made without taking it
    /// away from them, otherwise the first of the accounts that exist for such things.
    pub(crate) fn for_cluster(cluster: &Path) -> io::Result<Self> {
        if !Uid::effective().is_root() {
            return Ok(Self::Own);
        }
        let owner = fs::metadata(cluster)
            .ok()
            .map(|metadata| Uid::from_raw(metadata.uid()));
        let user = match owner.filter(|uid| !uid.is_root()) {
            Some(uid) => User::from_uid(uid)?,
            None => LENT_ACCOUNTS
                .iter()
                .find_map(|name| User::from_name(name).ok().flatten()),
        };
        user.map(|user| Self::Lent { name: user.name, uid: user.uid, gid: user.gid }).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("we are root, PostgreSQL refuses to run as root, and none of the users {LENT_ACCOUNTS:?} exists"),
            )
        })
    }

    /// A command that runs as this account with a clean environment, in a directory it can enter.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("LC_ALL", "C")
            .current_dir(directory)
            .stdin(Stdio::null());
        command.envs(
            KEPT_VARIABLES
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        if let Self::Lent { uid, gid, .. } = self {
            command.uid(uid.as_raw()).gid(gid.as_raw());
        }
        command
    }

    /// Hands a file or directory that we made to the account. Links are not followed: whoever the account belongs to
    /// could have put one there, and must not be given what it points to.
    pub(crate) fn own(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Own => Ok(()),
            Self::Lent { uid, gid, .. } => lchown(path, Some(uid.as_raw()), Some(gid.as_raw())),
        }
    }

    /// Asks the kernel, not the permission bits, whether the account gets to the folder: access lists count too.
    pub(crate) fn can_enter(&self, folder: &Path) -> Result<(), Unreachable> {
        let Self::Lent { name, .. } = self else {
            return Ok(());
        };
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        let mut way: Vec<&Path> = absolute
            .ancestors()
            .filter(|directory| directory.exists())
            .collect();
        way.reverse();
        let output = self
            .command("sh", Path::new("/"))
            .args(["-c", ENTERS_ALL, "sh"])
            .args(way)
            .output();
        match output {
            Ok(output) if !output.status.success() => Err(Unreachable {
                account: name.clone(),
                blocked: PathBuf::from(String::from_utf8_lossy(&output.stdout).into_owned()),
            }),
            // Without a shell the question stays open; the server's own start will tell.
            _ => Ok(()),
        }
    }
}
