//! What becomes of the server when its owner is killed. The owner is this test binary, run once more.

mod common;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use common::{binaries, durable, exists, fresh, query, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid};
use stationmaster_postgres::{Afterwards, Server, Settings, StartError};

/// Tells the owner which folder to hold.
const FOLDER_TO_HOLD: &str = "STATIONMASTER_TEST_FOLDER_TO_HOLD";

/// Not a test: the owner that the tests kill.
#[test]
#[ignore = "started by the other tests of this file, as a process of its own"]
#[expect(
    clippy::zombie_processes,
    reason = "this process is killed before it could wait for anybody"
)]
fn holds_a_server_until_killed() {
    let Some(folder) = env::var_os(FOLDER_TO_HOLD) else {
        return;
    };
    let server = Server::start(&binaries(), &Settings::durable(folder)).unwrap();
    // Outlives its parent, and would keep the watchdog's pipe open if it had inherited it.
    let bystander = Command::new("sleep")
        .arg("300")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    println!(
        "holding {} {} {}",
        server.pid().unwrap(),
        bystander.id(),
        server.url("postgres")
    );
    loop {
        thread::park();
    }
}

#[test]
fn a_killed_owner_takes_the_server_along_and_nothing_committed_is_lost() {
    let settings = durable();
    let mut owner = Owner::start(&settings.folder);
    query(
        &owner.url,
        "create table kept as select generate_series(1, 1000) as number",
    )
    .unwrap();

    owner.kill();

    assert!(
        exists(owner.bystander),
        "the bystander outlives the owner, as it should for this test"
    );
    wait_until("the server ends without its owner", || !exists(owner.server));
    kill(Pid::from_raw(owner.bystander), Signal::SIGKILL).unwrap();
    let server = Server::start(&binaries(), &settings).unwrap();
    assert_eq!(
        query(&server.url("postgres"), "select count(*) from kept").unwrap(),
        "1000"
    );
}

#[test]
fn the_next_owner_waits_out_a_server_that_is_still_ending() {
    let settings = Settings {
        afterwards: Afterwards::Keep,
        ..durable()
    };
    for round in 1..=3 {
        let mut owner = Owner::start(&settings.folder);
        query(&owner.url, "create table if not exists kept (round int)").unwrap();
        query(&owner.url, &format!("insert into kept values ({round})")).unwrap();
        kill(Pid::from_raw(owner.bystander), Signal::SIGKILL).unwrap();
        owner.kill();
        // At once: the server has not even been told yet.
        let server = Server::start(&binaries(), &settings).unwrap();
        wait_until("the first server is gone", || !exists(owner.server));
        assert_eq!(
            query(&server.url("postgres"), "select max(round) from kept").unwrap(),
            round.to_string()
        );
    }
    fs::remove_dir_all(&settings.folder).unwrap();
}

#[test]
fn a_second_owner_is_refused_and_told_who_the_first_is() {
    let settings = durable();
    let mut owner = Owner::start(&settings.folder);

    let refused = Server::start(&binaries(), &settings).unwrap_err();

    assert!(matches!(refused, StartError::InUse { .. }), "{refused:?}");
    let expected = format!("in use by process {}.", owner.process.id());
    assert!(refused.to_string().contains(&expected), "{refused}");
    kill(Pid::from_raw(owner.bystander), Signal::SIGKILL).unwrap();
    owner.kill();
    drop(Server::start(&binaries(), &settings).unwrap());
}

#[test]
fn a_terminal_interrupt_does_not_reach_the_server() {
    let server = Server::start(&binaries(), &fresh()).unwrap();
    let pid = Pid::from_raw(i32::try_from(server.pid().unwrap()).unwrap());
    // A terminal sends it to the group in the foreground, which is the owner's.
    assert_ne!(getpgid(Some(pid)).unwrap(), getpgid(None).unwrap());
}

/// A server without owner and without watchdog is the worst that can be left behind.
#[cfg(target_os = "linux")]
#[test]
fn a_server_that_nothing_watches_any_more_is_ended_by_the_next_owner() {
    let settings = durable();
    let mut owner = Owner::start(&settings.folder);
    query(&owner.url, "create table kept as select 7 as number").unwrap();
    kill(watchdog_of(owner.process.id()), Signal::SIGKILL).unwrap();
    kill(Pid::from_raw(owner.bystander), Signal::SIGKILL).unwrap();
    owner.kill();
    assert!(exists(owner.server), "nobody told the server to end");

    let server = Server::start(&binaries(), &settings).unwrap();

    wait_until("the first server is gone", || !exists(owner.server));
    assert_eq!(
        query(&server.url("postgres"), "select number from kept").unwrap(),
        "7"
    );
}

#[cfg(target_os = "linux")]
fn watchdog_of(owner: u32) -> Pid {
    let processes = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let found = pids.find(|pid| {
        let read = |file| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        read("status").contains(&format!("PPid:\t{owner}\n")) && read("cmdline").contains("read -r server")
    });
    Pid::from_raw(found.expect("the owner has a watchdog"))
}

/// Another process that owns a server, with what it said about it.
struct Owner {
    process: Child,
    server: i32,
    bystander: i32,
    url: String,
}

impl Owner {
    /// Runs this test binary again, as the owner of a server on the folder.
    fn start(folder: &Path) -> Self {
        let mut process = Command::new(env::current_exe().expect("we know where we are"))
            .args([
                "--ignored",
                "--exact",
                "holds_a_server_until_killed",
                "--nocapture",
            ])
            .env(FOLDER_TO_HOLD, folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test binary runs once more");
        let lines = BufReader::new(process.stdout.take().expect("its output is a pipe")).lines();
        let said = lines
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("holding ")?.1.to_owned()));
        let said = said.expect("the owner says what it holds");
        let [server, bystander, url] = said.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{said:?}")
        };
        let number = |word: &str| word.parse().expect("a process id");
        Self {
            process,
            server: number(server),
            bystander: number(bystander),
            url: url.to_owned(),
        }
    }

    /// Kills the owner in the way that cannot be caught.
    fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it is our child");
    }
}
