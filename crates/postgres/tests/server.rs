//! The life of a private server on a real `PostgreSQL`: data stays, mistakes are refused with advice, nothing is open.

mod common;

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, SystemTime};

use common::{binaries, durable, exists, fresh, query};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use stationmaster_postgres::{Afterwards, Binaries, Server, Settings, Shutdown, StartError};

#[test]
fn data_and_password_survive_a_stop_and_a_start() {
    let kept = Settings {
        afterwards: Afterwards::Keep,
        ..durable()
    };
    let server = Server::start(&binaries(), &kept).unwrap();
    let password = |url: String| url.split('@').next().unwrap().to_owned();
    let first = password(server.url("postgres"));
    query(
        &server.url("postgres"),
        "create table kept as select 42 as number",
    )
    .unwrap();
    server.stop();

    let removed = Settings {
        afterwards: Afterwards::Remove,
        ..kept
    };
    let server = Server::start(&binaries(), &removed).unwrap();

    assert_eq!(
        query(&server.url("postgres"), "select number from kept").unwrap(),
        "42"
    );
    assert_eq!(password(server.url("postgres")), first);
}

#[test]
fn a_restart_keeps_data_and_address_in_both_ways() {
    let mut server = Server::start(&binaries(), &fresh()).unwrap();
    let url = server.url("postgres");
    query(&url, "create table kept (number int)").unwrap();
    for (number, how) in [(1, Shutdown::Fast), (2, Shutdown::Immediate)] {
        query(&url, &format!("insert into kept values ({number})")).unwrap();
        let before = server.pid();
        server.restart(how).unwrap();
        assert_ne!(server.pid(), before);
        assert_eq!(
            query(&url, "select count(*) from kept").unwrap(),
            number.to_string()
        );
    }
}

#[test]
fn a_halted_server_is_away_until_it_resumes() {
    let mut server = Server::start(&binaries(), &fresh()).unwrap();
    let url = server.url("postgres");
    server.halt(Shutdown::Immediate);
    assert!(!server.is_running());
    assert_eq!(server.pid(), None);
    query(&url, "select 1").unwrap_err();
    server.resume().unwrap();
    assert_eq!(query(&url, "select 1").unwrap(), "1");
}

#[test]
fn a_killed_server_recovers_at_the_next_start() {
    let mut server = Server::start(&binaries(), &durable()).unwrap();
    let url = server.url("postgres");
    query(&url, "create table kept as select 42 as number").unwrap();
    kill(
        Pid::from_raw(i32::try_from(server.pid().unwrap()).unwrap()),
        Signal::SIGKILL,
    )
    .unwrap();
    common::wait_until("the server is gone", || query(&url, "select 1").is_err());
    server.resume().unwrap();
    assert_eq!(query(&url, "select number from kept").unwrap(), "42");
}

#[test]
fn a_stale_file_that_names_a_living_stranger_does_not_matter() {
    let kept = Settings {
        afterwards: Afterwards::Keep,
        ..fresh()
    };
    let server = Server::start(&binaries(), &kept).unwrap();
    let cluster = server.folder().join("cluster");
    server.stop();
    // After a reboot the number of the dead server can belong to anybody: here to us.
    let stale = format!("{}\n{}\n1700000000\n", std::process::id(), cluster.display());
    fs::write(cluster.join("postmaster.pid"), stale).unwrap();
    let server = Server::start(
        &binaries(),
        &Settings {
            afterwards: Afterwards::Remove,
            ..kept
        },
    )
    .unwrap();
    assert_eq!(query(&server.url("postgres"), "select 1").unwrap(), "1");
}

#[test]
fn data_of_another_major_version_is_refused_with_advice() {
    let settings = fresh();
    let server = Server::start(
        &binaries(),
        &Settings {
            afterwards: Afterwards::Keep,
            ..settings.clone()
        },
    )
    .unwrap();
    server.stop();
    fs::write(settings.folder.join("cluster/PG_VERSION"), "9\n").unwrap();
    let refused = Server::start(&binaries(), &settings).unwrap_err().to_string();
    for part in [
        "written by PostgreSQL 9",
        "install PostgreSQL 9",
        "mv ",
        &settings.folder.to_string_lossy(),
    ] {
        assert!(refused.contains(part), "{part:?} is not in: {refused}");
    }
    fs::remove_dir_all(&settings.folder).unwrap();
}

#[test]
fn a_folder_with_other_things_in_it_is_left_alone() {
    let settings = fresh();
    fs::create_dir_all(&settings.folder).unwrap();
    fs::write(settings.folder.join("thesis.txt"), "years of work").unwrap();
    let refused = Server::start(&binaries(), &settings).unwrap_err();
    assert!(matches!(refused, StartError::ForeignFolder { .. }), "{refused:?}");
    assert!(refused.to_string().contains("thesis.txt"), "{refused}");
    assert_eq!(fs::read_dir(&settings.folder).unwrap().count(), 1);
    fs::remove_dir_all(&settings.folder).unwrap();
}

#[test]
fn missing_programs_are_named_with_the_package_that_has_them() {
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let message = Binaries::find(Some(empty)).unwrap_err().to_string();
    let place = format!("{}: holds no `postgres`", empty.display());
    for part in [
        "apt-get install postgresql",
        "dnf install postgresql-server",
        "brew install postgresql@17",
        &place,
    ] {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

#[test]
fn a_hint_may_be_the_directory_of_the_programs_or_the_prefix_above() {
    let found = binaries();
    assert_eq!(Binaries::find(Some(&found.bin_dir)).unwrap(), found);
    assert_eq!(Binaries::find(found.bin_dir.parent()).unwrap(), found);
}

#[test]
fn a_port_that_is_taken_is_reported_when_it_was_asked_for() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let settings = Settings {
        port: Some(port),
        ..fresh()
    };
    let refused = Server::start(&binaries(), &settings).unwrap_err();
    assert!(
        matches!(refused, StartError::PortTaken { port: refused } if refused == port),
        "{refused:?}"
    );
    fs::remove_dir_all(&settings.folder).unwrap();
}

#[test]
fn no_parameter_opens_the_server_to_the_network_and_no_client_gets_in_without_the_password() {
    let extra = vec![
        ("listen_addresses".to_owned(), "*".to_owned()),
        ("work_mem".to_owned(), "7MB".to_owned()),
    ];
    let server = Server::start(&binaries(), &Settings { extra, ..fresh() }).unwrap();
    let url = server.url("postgres");
    let show = |name: &str| query(&url, &format!("show {name}")).unwrap();
    assert_eq!(
        (show("listen_addresses").as_str(), show("work_mem").as_str()),
        ("127.0.0.1", "7MB")
    );
    assert_eq!(
        (show("timezone").as_str(), show("server_encoding").as_str()),
        ("UTC", "UTF8")
    );

    let (before, after) = url.split_once('@').unwrap();
    let wrong = format!("{}0000@{after}", &before[..before.len() - 4]);
    let refused = query(&wrong, "select 1").unwrap_err();
    assert!(refused.contains("password authentication failed"), "{refused}");
}

#[test]
fn the_socket_serves_where_its_path_is_short_enough() {
    let parent = std::env::temp_dir();
    let server = Server::start(&binaries(), &Settings::throw_away(&parent)).unwrap();
    let url = server.socket_url("postgres").expect("the path is short");
    assert_eq!(query(&url, "select inet_server_addr() is null").unwrap(), "t");

    let long = parent.join(format!(
        "stationmaster-{}-{}",
        std::process::id(),
        "long".repeat(25)
    ));
    let server = Server::start(
        &binaries(),
        &Settings {
            folder: long,
            ..Settings::throw_away(&parent)
        },
    )
    .unwrap();
    assert_eq!(server.socket_url("postgres"), None);
    assert_eq!(query(&server.url("postgres"), "select 1").unwrap(), "1");
}

#[test]
fn a_failed_start_quotes_what_the_server_said() {
    let extra = vec![("shared_buffers".to_owned(), "plenty".to_owned())];
    let settings = Settings { extra, ..fresh() };
    let message = Server::start(&binaries(), &settings).unwrap_err().to_string();
    assert!(
        message.contains("invalid value for parameter \"shared_buffers\": \"plenty\""),
        "{message}"
    );
    assert!(message.contains("server.log"), "{message}");
    fs::remove_dir_all(&settings.folder).unwrap();
}

#[test]
fn a_throw_away_server_leaves_nothing_and_clears_up_after_others() {
    // The build directory may lie where the server's account cannot enter.
    let parent = std::env::temp_dir().join(format!("stationmaster-leftovers-{}", std::process::id()));
    let [abandoned, half_deleted, recent] =
        ["0", "1", "2"].map(|name| parent.join(format!("stationmaster-postgres-0-{name}")));
    for folder in [&abandoned, &half_deleted, &recent] {
        fs::create_dir_all(folder).unwrap();
    }
    let long_ago = SystemTime::now() - Duration::from_mins(10);
    File::create(abandoned.join("stationmaster.lock"))
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    File::open(&half_deleted).unwrap().set_modified(long_ago).unwrap();
    File::create(recent.join("stationmaster.lock")).unwrap();

    let settings = Settings {
        folder: parent.join("mine"),
        ..Settings::throw_away(&parent)
    };
    assert_eq!(
        [&abandoned, &half_deleted, &recent].map(|folder| folder.exists()),
        [false, false, true]
    );
    let server = Server::start(&binaries(), &settings).unwrap();
    let pid = i32::try_from(server.pid().unwrap()).unwrap();
    drop(server);
    assert!(!exists(pid) && !settings.folder.exists());
    fs::remove_dir_all(&parent).unwrap();
}

/// Only root has this trouble: everybody else runs the server as themselves.
#[test]
fn root_is_told_which_directory_the_server_cannot_enter() {
    if !Uid::effective().is_root() {
        return;
    }
    let closed = std::env::temp_dir().join(format!("stationmaster-closed-{}", std::process::id()));
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let settings = Settings::durable(closed.join("data"));
    let message = Server::start(&binaries(), &settings).unwrap_err().to_string();
    assert!(
        message.contains(&format!("may not enter {}.", closed.display())),
        "{message}"
    );
    assert!(message.contains("chmod o+x"), "{message}");
    assert!(
        !Settings::throw_away(&closed).folder.starts_with(&closed),
        "a throw-away server goes elsewhere"
    );
    fs::remove_dir_all(&closed).unwrap();
}
