//! A replica of a private server: a copy that follows it, and can take its place. For tests of a failover.

use std::fs;

use crate::binaries::Binaries;
use crate::error::{StartError, at};
use crate::folder::{Folder, ROLE};
use crate::log::last_lines;
use crate::server::Server;
use crate::settings::Settings;

impl Server {
    /// Copies this server into a folder of its own and starts the copy as a replica, which follows this one over the network and
    /// takes no writes. Name and password are the same.
    pub fn replica(&self, binaries: &Binaries, settings: &Settings) -> Result<Self, StartError> {
        let folder = Folder::open(&settings.folder)?;
        folder.keep_password(&self.password()?)?;
        let program = binaries.program("pg_basebackup");
        let output = folder
            .account
            .command(&program, &folder.path)
            .env("PGPASSWORD", self.password()?)
            .args(["--host", "127.0.0.1", "--username", ROLE, "--no-password"])
            .args(["--port", &self.port().to_string()])
            .args([
                "--write-recovery-conf",
                "--wal-method",
                "stream",
                "--checkpoint",
                "fast",
            ])
            .arg("--no-sync")
            .arg("--pgdata")
            .arg(folder.cluster())
            .output()
            .map_err(at("run", &program))?;
        if !output.status.success() {
            return Err(StartError::Initialise {
                folder: folder.path.clone(),
                output: last_lines(&String::from_utf8_lossy(&output.stderr)),
            });
        }
        drop(folder);
        Self::start(binaries, settings)
    }

    /// Lets a replica take writes: from now on it goes its own way. Returns when it does.
    pub fn promote(&self, binaries: &Binaries) -> Result<(), StartError> {
        let program = binaries.program("pg_ctl");
        let output = self
            .command(&program)
            .args(["promote", "--wait", "--pgdata"])
            .arg(crate::folder::cluster(self.folder()))
            .output()
            .map_err(at("run", &program))?;
        if output.status.success() {
            return Ok(());
        }
        Err(StartError::Initialise {
            folder: self.folder().to_path_buf(),
            output: last_lines(&String::from_utf8_lossy(&output.stderr)),
        })
    }

    fn password(&self) -> Result<String, StartError> {
        let path = self.folder().join("password");
        fs::read_to_string(&path).map_err(at("read the password in", &path))
    }
}
