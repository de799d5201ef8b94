//! A terminal: a folder, what was exported in it, and programs that run in it until Ctrl-C.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::{NamedTempFile, TempDir};

use crate::guide::repository;
use crate::support::{eventually, setting};

/// What installations and builds leave behind in the folders of the examples; it is kept from run to run.
const KEPT: [&str; 5] = [".venv", "node_modules", "bin", "target", "__pycache__"];

/// Which packages were installed last.
const STAMP: &str = "installed";

/// A folder that looks like the root of a checkout to whoever follows a guide. What is made in it is gone with it, but for packages.
pub(crate) struct Desk {
    root: TempDir,
    kept: PathBuf,
    exports: String,
}

impl Desk {
    /// With the examples as they are in the repository now, and with the packages of earlier runs.
    pub(crate) fn new() -> Self {
        let root = TempDir::new().unwrap();
        let kept = PathBuf::from(setting("STATIONMASTER_TEST_EXAMPLES"));
        let examples = kept.join("docs/examples");
        std::fs::create_dir_all(&examples).unwrap();
        clear(&examples);
        copy(&repository().join("docs/examples"), &examples);
        std::os::unix::fs::symlink(kept.join("docs"), root.path().join("docs")).unwrap();
        Self {
            root,
            kept,
            exports: String::new(),
        }
    }

    /// Every terminal from here on begins with these lines.
    pub(crate) fn export(&mut self, lines: &str) {
        self.exports.push_str(lines);
        self.exports.push('\n');
    }

    /// Runs a block to its end.
    pub(crate) fn run(&self, block: &str) -> Output {
        self.command(block).output().unwrap()
    }

    /// Runs a block that must succeed; what it printed.
    #[track_caller]
    pub(crate) fn done(&self, block: &str) -> String {
        let output = self.run(block);
        let words = String::from_utf8_lossy(&output.stderr);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{block}\n{printed}\n{words}");
        printed.trim().to_owned()
    }

    /// Installs packages, unless they were installed by the same words from the same list.
    pub(crate) fn install(&self, block: &str, list: &str) {
        let stamp = self.kept.join(list).with_file_name(STAMP);
        let list = std::fs::read_to_string(repository().join(list)).unwrap();
        let wanted = format!("{block}\n{list}");
        if std::fs::read_to_string(&stamp).is_ok_and(|last| last == wanted) {
            return;
        }
        self.done(block);
        std::fs::write(stamp, wanted).unwrap();
    }

    /// Runs a block until it is stopped.
    pub(crate) fn start(&self, block: &str) -> Running {
        let log = NamedTempFile::new().unwrap();
        let output = || Stdio::from(File::options().append(true).open(log.path()).unwrap());
        let mut command = self.command(block);
        let child = command.stdout(output()).stderr(output()).spawn().unwrap();
        Running {
            child,
            log,
            block: block.to_owned(),
        }
    }

    /// Our binary, Temporal's and PostgreSQL's are on the path; nothing of how these tests were started is in the environment.
    fn command(&self, block: &str) -> Command {
        let ours = Path::new(env!("CARGO_BIN_EXE_stationmaster"))
            .parent()
            .unwrap()
            .to_owned();
        let temporal = PathBuf::from(setting("STATIONMASTER_TEST_TEMPORAL_CLI"));
        let postgres = PathBuf::from(setting("STATIONMASTER_TEST_POSTGRES_BIN"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Temporal's program may lie beside a Python of its own, so it comes last.
        let folders = std::iter::once(ours)
            .chain(std::env::split_paths(&path))
            .chain([postgres.clone(), temporal.parent().unwrap().to_owned()]);
        let mut command = Command::new("sh");
        command
            .arg("-c")
            // With a trap the shell stays until what it started has ended.
            .arg(format!("set -e\ntrap : INT\n{}{block}", self.exports))
            .current_dir(self.root.path())
            .stdin(Stdio::null())
            .process_group(0);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let foreign = ["STATIONMASTER_", "TEMPORAL_", "CARGO", "VIRTUAL_ENV"];
            if foreign.iter().any(|prefix| text.starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("STATIONMASTER_DEV__POSTGRES_BIN", postgres)
            .env("npm_config_fund", "false")
            .env("npm_config_audit", "false");
        command
    }
}

/// Takes away what an earlier version of the examples had.
fn clear(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        let keep = KEPT.iter().chain([&STAMP]).any(|kept| name == *kept);
        match entry.file_type().unwrap() {
            _ if keep => {}
            kind if kind.is_dir() => clear(&entry.path()),
            _ => std::fs::remove_file(entry.path()).unwrap(),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        let target = to.join(&name);
        if KEPT.iter().any(|kept| name == *kept) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What runs in a terminal.
pub(crate) struct Running {
    child: Child,
    log: NamedTempFile,
    block: String,
}

impl Running {
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// Waits until it has said this.
    pub(crate) async fn says(&mut self, words: &str) {
        let Self { child, log, block } = self;
        eventually(&format!("{block} says {words:?}"), async || {
            let said = std::fs::read_to_string(log.path()).unwrap();
            if let Some(status) = child.try_wait().unwrap() {
                panic!("{block} ended, {status}:\n{said}");
            }
            said.contains(words)
        })
        .await;
    }

    /// Ctrl-C: everything that runs in the terminal hears of it.
    pub(crate) async fn interrupt(mut self) {
        let _ = killpg(self.group(), Signal::SIGINT);
        let Self { child, block, .. } = &mut self;
        eventually(&format!("{block} ends"), async || {
            child.try_wait().unwrap().is_some()
        })
        .await;
    }

    fn group(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let ended = matches!(self.child.try_wait(), Ok(Some(_)));
        if !ended {
            let _ = killpg(self.group(), Signal::SIGKILL);
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            let log = self.log();
            let skip = log.lines().count().saturating_sub(30);
            let lines: Vec<&str> = log.lines().skip(skip).collect();
            eprintln!("--- the last lines of {}\n{}", self.block, lines.join("\n"));
        }
    }
}
