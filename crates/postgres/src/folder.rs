//! The folder of one server: what lies where in it, and how the cluster in it comes to be. It does not start servers.
//!
//! ```text
//! <folder>/
//!   stationmaster.lock   held while a server runs; names the owner's process
//!   password             of the only role, readable by the account alone
//!   server.log           what the server says
//!   socket/              the unix socket, where the path is short enough for one
//!   cluster/             PostgreSQL's own directory; appears complete or not at all
//! ```

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::account::{Account, private_file};
use crate::binaries::Binaries;
use crate::error::{StartError, at};
use crate::lock::Lock;
use crate::log::last_lines;
use crate::settings::Durability;

/// The role that owns everything in the cluster.
pub(crate) const ROLE: &str = "stationmaster";

const LOCK: &str = "stationmaster.lock";

/// Bytes of chance in the password; it is written in hexadecimal, so it needs no quoting anywhere.
const PASSWORD_BYTES: usize = 24;

/// A folder that is ours to use, since we hold its lock.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) account: Account,
    _lock: Lock,
}

/// Where the cluster of a folder is.
pub(crate) fn cluster(folder: &Path) -> PathBuf {
    folder.join("cluster")
}

/// Where the lock of a folder is.
pub(crate) fn lock(folder: &Path) -> PathBuf {
    folder.join(LOCK)
}

/// The major version that made the cluster of a folder, when there is one.
pub(crate) fn major_version(folder: &Path) -> Option<u32> {
    fs::read_to_string(cluster(folder).join("PG_VERSION"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

impl Folder {
    /// Makes the folder if need be and takes its lock.
    pub(crate) fn open(path: &Path) -> Result<Self, StartError> {
        let path = std::path::absolute(path).map_err(at("find", path))?;
        let account =
            Account::for_cluster(&cluster(&path)).map_err(at("find a user to run PostgreSQL in", &path))?;
        account.can_enter(&path)?;
        make(&path, &account)?;
        // One name for one folder: whether an earlier server is ours is told by the path on its command line.
        let path = fs::canonicalize(&path).map_err(at("resolve", &path))?;
        refuse_foreign(&path)?;
        let lock = Lock::take(&lock(&path), &path)?;
        let folder = Self {
            path,
            account,
            _lock: lock,
        };
        folder.hand_over(&folder.path.join(LOCK))?;
        Ok(folder)
    }

    pub(crate) fn cluster(&self) -> PathBuf {
        cluster(&self.path)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join("socket")
    }

    /// The password of the role.
    pub(crate) fn password(&self) -> Result<String, StartError> {
        let path = self.path.join("password");
        fs::read_to_string(&path).map_err(at("read the password in", &path))
    }

    /// Writes down the password of the role.
    pub(crate) fn keep_password(&self, password: &str) -> Result<(), StartError> {
        let path = self.path.join("password");
        write_password(&path, password).map_err(at("write a password to", &path))?;
        self.hand_over(&path)
    }

    /// Sees to it that there is a cluster that these binaries can open.
    pub(crate) fn prepare(&self, binaries: &Binaries, durability: Durability) -> Result<(), StartError> {
        let cluster = self.cluster();
        if !cluster.exists() {
            return self.initialise(binaries, durability);
        }
        let version_file = cluster.join("PG_VERSION");
        let theirs = fs::read_to_string(&version_file).map_err(at("read", &version_file))?;
        if theirs.trim() == binaries.version.major.to_string() {
            return Ok(());
        }
        Err(StartError::OtherVersion {
            folder: self.path.clone(),
            theirs: theirs.trim().to_owned(),
            ours: binaries.version,
            bin_dir: binaries.bin_dir.clone(),
        })
    }

    /// Empties the directory of the socket when no server runs: the lock file of a socket names a process, and when that number belongs to
    /// somebody else by now, the server would refuse to start.
    pub(crate) fn renew_socket_directory(&self) -> Result<(), StartError> {
        let socket = self.socket();
        remove(&socket)?;
        DirBuilder::new()
            .mode(0o700)
            .create(&socket)
            .map_err(at("make", &socket))?;
        self.hand_over(&socket)
    }

    /// Makes the cluster under another name and renames it when it is complete, so that a half-made one is never used.
    fn initialise(&self, binaries: &Binaries, durability: Durability) -> Result<(), StartError> {
        tracing::info!(folder = %self.path.display(), version = %binaries.version, "making a new PostgreSQL cluster");
        let password = self.path.join("password");
        self.keep_password(&make_password().map_err(at("make a password for", &password))?)?;

        let unfinished = self.path.join("cluster.unfinished");
        remove(&unfinished)?;
        DirBuilder::new()
            .mode(0o700)
            .create(&unfinished)
            .map_err(at("make", &unfinished))?;
        self.hand_over(&unfinished)?;

        let program = binaries.program("initdb");
        let mut command = self.account.command(&program, &self.path);
        command.args([
            "--username",
            ROLE,
            "--auth",
            "scram-sha-256",
            "--encoding",
            "UTF8",
            "--locale",
            "C",
        ]);
        command
            .args(["--data-checksums", "--no-instructions", "--pwfile"])
            .arg(&password);
        if durability == Durability::Fast {
            command.arg("--no-sync");
        }
        let output = command
            .arg("--pgdata")
            .arg(&unfinished)
            .output()
            .map_err(at("run", &program))?;
        if !output.status.success() {
            let output = [output.stdout, output.stderr].concat();
            let output = last_lines(&String::from_utf8_lossy(&output));
            return Err(StartError::Initialise {
                folder: self.path.clone(),
                output,
            });
        }
        let cluster = self.cluster();
        fs::rename(&unfinished, &cluster).map_err(at("put a cluster at", &cluster))?;
        File::open(&self.path)
            .and_then(|folder| folder.sync_all())
            .map_err(at("flush", &self.path))
    }

    fn hand_over(&self, path: &Path) -> Result<(), StartError> {
        self.account.own(path).map_err(at("change the owner of", path))
    }
}

/// Makes the folder. One that exists already keeps its owner and its permissions.
fn make(path: &Path, account: &Account) -> Result<(), StartError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(at("make", parent))?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => account.own(path).map_err(at("change the owner of", path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(at("make", path)(error)),
    }
}

/// A folder with things in it and without our lock file was not made by us: somebody mistyped a path.
fn refuse_foreign(path: &Path) -> Result<(), StartError> {
    let mut entries = fs::read_dir(path).map_err(at("read", path))?;
    match entries.next() {
        Some(Ok(entry)) if !path.join(LOCK).exists() => Err(StartError::ForeignFolder {
            folder: path.to_path_buf(),
            found: entry.file_name().to_string_lossy().into_owned(),
        }),
        _ => Ok(()),
    }
}

fn remove(directory: &Path) -> Result<(), StartError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at("remove", directory)(error)),
        _ => Ok(()),
    }
}

fn make_password() -> io::Result<String> {
    let mut chance = [0; PASSWORD_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut chance)?;
    Ok(chance
        .iter()
        .fold(String::new(), |password, byte| format!("{password}{byte:02x}")))
}

fn write_password(path: &Path, password: &str) -> io::Result<()> {
    let mut file = private_file()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    file.write_all(password.as_bytes())?;
    file.sync_all()
}
