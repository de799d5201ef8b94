//! TLS for real, with each of those that a server speaks to and on its own listener: who is trusted works; who is not is refused with the
//! reason and what to set; and certificates are replaced on disk without a restart.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use sqlx::{AssertSqlSafe, PgPool};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::postgres::{Cluster, cluster};
use crate::support::authority::{Authority, Manner, Pair, TlsFront, roots, text};
use crate::support::{
    DevServer, ENDLESS, Launch, Process, Redis, SHORT, Temporal, TestDatabase, eventually, free_port,
};

const HERE: &str = "127.0.0.1";

/// What a server says that does not start.
async fn refusal(launch: &Launch) -> (Option<i32>, String) {
    let mut process = launch.start();
    let (status, _) = process.ended().await;
    (status.code(), process.log())
}

/// Is not ready, for this reason.
async fn until_it_says(server: &Process, words: &[&str]) {
    eventually(&format!("readiness says {words:?}"), async || {
        let (status, body) = server.readiness().await;
        status == 503 && words.iter().all(|words| body.contains(words))
    })
    .await;
}

async fn until_ready(server: &Process) {
    eventually("the server is ready", async || server.readiness().await.0 == 200).await;
}

// PostgreSQL

/// A PostgreSQL that speaks TLS, or refuses to.
struct Encrypted {
    _cluster: Cluster,
    database: TestDatabase,
}

impl Encrypted {
    async fn new(shows: &Pair) -> Self {
        let (cluster, database) = cluster().await;
        let encrypted = Self {
            _cluster: cluster,
            database,
        };
        encrypted.shows(shows).await;
        encrypted
    }

    async fn run(&self, statement: &str) {
        run(&self.database.pool, statement).await;
    }

    /// The server writes the file itself: it must be its own, and nobody else's to read.
    async fn write(&self, from: &Path, name: &str) {
        let text = std::fs::read_to_string(from).unwrap();
        let line = format!(
            "copy (select unnest(string_to_array(trim($pem${text}$pem$), e'\n'))) to program 'umask 077; cat > {name}'"
        );
        self.run(&line).await;
    }

    async fn shows(&self, pair: &Pair) {
        self.write(&pair.certificate, "server.crt").await;
        self.write(&pair.key, "server.key").await;
        self.run("alter system set ssl = on").await;
        self.reload().await;
    }

    /// From now on it wants to know who comes, by a certificate of this authority.
    async fn asks_for(&self, authority: &Authority) {
        self.write(&authority.file, "clients.crt").await;
        self.run("alter system set ssl_ca_file = 'clients.crt'").await;
        let rules = "copy (select unnest(array[
                         'hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca',
                         'hostnossl all all 127.0.0.1/32 scram-sha-256'])) to program 'cat > pg_hba.conf'";
        self.run(rules).await;
        self.reload().await;
    }

    async fn reload(&self) {
        self.run("select pg_reload_conf()").await;
        // It is the postmaster that reads; a moment later it has.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    /// Ends the connections of servers, so that they make new ones.
    async fn disconnect(&self) {
        self.run(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'stationmaster'",
        )
        .await;
    }

    fn launch(&self, parameters: &str) -> Launch {
        let url = self
            .database
            .url
            .replace("sslmode=disable", &format!("sslmode={parameters}"));
        Launch::on(&self.database).with("DATABASE_URL", &url)
    }

    /// Connections of servers that are encrypted, and those that are not.
    async fn connections(&self) -> (i64, i64) {
        let query = "select count(*) filter (where s.ssl), count(*) filter (where not s.ssl)
                     from pg_stat_ssl s join pg_stat_activity a using (pid) where a.application_name = 'stationmaster'";
        sqlx::query_as(query)
            .fetch_one(&self.database.pool)
            .await
            .unwrap()
    }
}

async fn run(pool: &PgPool, statement: &str) {
    sqlx::query(AssertSqlSafe(statement.to_owned()))
        .execute(pool)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_whose_certificate_is_trusted_is_used_and_any_other_stops_the_start_with_the_reason() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let postgres = Encrypted::new(&authority.sign(HERE)).await;
    let workflow = postgres.database.workflow(2, SHORT).await;
    let trusting = |mode: &str, authority: &Authority| {
        postgres.launch(&format!("{mode}&sslrootcert={}", text(&authority.file)))
    };
    let server = trusting("verify-full", &authority).start_ready().await;
    postgres.database.enqueue(workflow, 5).await;
    postgres.database.until_count("COMPLETED", 5).await;
    let (encrypted, plain) = postgres.connections().await;
    assert!(encrypted >= 4 && plain == 0, "{encrypted} encrypted, {plain} not");
    drop(server);

    let (code, log) = refusal(&trusting("verify-full", &stranger)).await;
    assert_eq!(code, Some(5), "{log}");
    assert!(
        log.contains("not trusted here") && log.contains("sslrootcert=PATH"),
        "{log}"
    );

    postgres.shows(&authority.sign_expired(HERE)).await;
    let (code, log) = refusal(&trusting("verify-full", &authority)).await;
    assert_eq!(code, Some(5), "{log}");
    assert!(log.contains("the certificate of PostgreSQL has expired"), "{log}");

    postgres.shows(&authority.sign("elsewhere.test")).await;
    let (code, log) = refusal(&trusting("verify-full", &authority)).await;
    assert_eq!(code, Some(5), "{log}");
    assert!(
        log.contains("another host name") && log.contains("sslmode=verify-ca"),
        "{log}"
    );
    drop(trusting("verify-ca", &authority).start_ready().await);

    let (code, log) = refusal(&postgres.launch("verify-full&sslrootcert=/nowhere/authority.pem")).await;
    assert_eq!(code, Some(2), "{log}");
    assert!(
        log.contains("/nowhere/authority.pem") && log.contains("sslrootcert"),
        "{log}"
    );

    postgres.run("alter system set ssl = off").await;
    postgres.reload().await;
    let (code, log) = refusal(&postgres.launch("require")).await;
    assert_eq!(code, Some(5), "{log}");
    assert!(log.contains("does not support TLS"), "{log}");
    postgres.database.pool.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_database_gets_another_authority_readiness_says_so_and_the_new_file_is_enough() {
    let (old, new) = (Authority::new(), Authority::new());
    let postgres = Encrypted::new(&old.sign(HERE)).await;
    let workflow = postgres.database.workflow(2, SHORT).await;
    let launch = postgres.launch(&format!("verify-full&sslrootcert={}", text(&old.file)));
    let mut server = launch.start_ready().await;
    postgres.shows(&new.sign(HERE)).await;
    postgres.disconnect().await;
    until_it_says(&server, &["not trusted here", "sslrootcert"]).await;
    std::fs::copy(&new.file, &old.file).unwrap();
    until_ready(&server).await;
    postgres.database.enqueue(workflow, 3).await;
    postgres.database.until_count("COMPLETED", 3).await;
    server.assert_alive();
    drop(server);
    postgres.database.pool.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_asks_who_comes_is_shown_our_certificate_and_the_one_that_replaced_it() {
    let (authority, clients, stranger) = (Authority::new(), Authority::new(), Authority::new());
    let postgres = Encrypted::new(&authority.sign(HERE)).await;
    postgres.asks_for(&clients).await;
    let trusted = format!("verify-full&sslrootcert={}", text(&authority.file));
    let showing = |pair: &Pair| {
        let (certificate, key) = (text(&pair.certificate), text(&pair.key));
        postgres.launch(&format!("{trusted}&sslcert={certificate}&sslkey={key}"))
    };
    let ours = clients.sign("stationmaster.test");
    let mut server = showing(&ours).start_ready().await;

    let (code, log) = refusal(&postgres.launch(&trusted)).await;
    assert_eq!(code, Some(5), "{log}");
    assert!(log.contains("valid client certificate"), "{log}");
    let (code, log) = refusal(&showing(&stranger.sign("stationmaster.test"))).await;
    assert_eq!(code, Some(5), "{log}");
    assert!(
        log.contains("does not take our certificate") && log.contains("sslcert=PATH"),
        "{log}"
    );

    // Another authority signs clients from now on, and ours was signed again.
    postgres.asks_for(&stranger).await;
    postgres.disconnect().await;
    until_it_says(&server, &["does not take our certificate"]).await;
    stranger.sign("stationmaster.test").replace(&ours);
    until_ready(&server).await;
    server.assert_alive();
    drop(server);
    postgres.database.pool.close().await;
}

// Redis

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_spoken_to_in_private_when_it_is_trusted_and_said_to_be_missing_with_the_reason_when_not() {
    let (authority, stranger, clients) = (Authority::new(), Authority::new(), Authority::new());
    let database = TestDatabase::new().await;
    let workflow = database.workflow(2, SHORT).await;
    let port = free_port();
    let shows = |pair: &Pair| Redis::with_tls(port, pair, Some(&clients.file));
    let ours = clients.sign("stationmaster.test");
    let launch = Launch::on(&database)
        .with("HEARTBEATS", "redis")
        .with("REDIS_URL", &format!("rediss://{HERE}:{port}/0"))
        .with("REDIS_TLS_CERT_FILE", text(&ours.certificate))
        .with("REDIS_TLS_KEY_FILE", text(&ours.key))
        .with("REDIS_TLS_CA_FILE", text(&authority.file));
    let redis = shows(&authority.sign(HERE));
    let mut server = launch.start_ready().await;
    drop(redis);

    let redis = shows(&authority.sign_expired(HERE));
    until_it_says(&server, &["the certificate of Redis has expired"]).await;
    drop(redis);
    let redis = shows(&authority.sign("elsewhere.test"));
    until_it_says(&server, &["another host name", "redis_url"]).await;
    // What needs no heartbeats goes on.
    database.enqueue(workflow, 5).await;
    database.until_count("COMPLETED", 5).await;
    drop(redis);
    let redis = shows(&stranger.sign(HERE));
    until_it_says(&server, &["not trusted here", "redis_tls_ca_file"]).await;
    std::fs::copy(&stranger.file, &authority.file).unwrap();
    until_ready(&server).await;
    drop(redis);

    let redis = Redis::with_tls(port, &stranger.sign(HERE), Some(&stranger.file));
    until_it_says(&server, &["does not take our certificate", "redis_tls_cert_file"]).await;
    stranger.sign("stationmaster.test").replace(&ours);
    until_ready(&server).await;
    server.assert_alive();
    drop(redis);

    let (code, log) = refusal(&launch.with("REDIS_TLS_CA_FILE", "/nowhere/authority.pem")).await;
    assert_ne!(code, Some(0));
    assert!(log.contains("/nowhere/authority.pem"), "{log}");
}

// Temporal

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporal_behind_tls_is_used_when_it_is_trusted_and_away_with_the_reason_when_not() {
    let (authority, stranger, clients) = (Authority::new(), Authority::new(), Authority::new());
    let database = TestDatabase::new().await;
    let workflow = database.workflow(100, ENDLESS).await;
    let (dev_server, temporal) = own_temporal().await;
    let manner = |shows: Pair| Manner {
        shows,
        asks_for: Some(clients.file.clone()),
    };
    let front = TlsFront::before(&temporal.address, manner(authority.sign(HERE))).await;
    let ours = clients.sign("stationmaster.test");
    let launch = Launch::on(&database)
        .temporal(&front.address, &temporal.namespace)
        .with("TEMPORAL__TLS_CA_FILE", text(&authority.file))
        .with("TEMPORAL__TLS_CERT_FILE", text(&ours.certificate))
        .with("TEMPORAL__TLS_KEY_FILE", text(&ours.key));
    let mut server = launch.start_ready().await;
    database.enqueue(workflow, 2).await;
    database.until_count("RUNNING", 2).await;

    front.change(manner(authority.sign_expired(HERE)));
    until_it_says(&server, &["the certificate of Temporal has expired"]).await;
    database.enqueue(workflow, 2).await;
    front.change(manner(authority.sign("elsewhere.test")));
    until_it_says(&server, &["another host name", "temporal.tls_server_name"]).await;
    front.change(manner(stranger.sign(HERE)));
    until_it_says(&server, &["not trusted here", "temporal.tls_ca_file"]).await;
    std::fs::copy(&stranger.file, &authority.file).unwrap();
    database.until_count("RUNNING", 4).await;
    until_ready(&server).await;

    front.change(Manner {
        shows: stranger.sign(HERE),
        asks_for: Some(stranger.file.clone()),
    });
    until_it_says(
        &server,
        &["does not take our certificate", "temporal.tls_cert_file"],
    )
    .await;
    database.enqueue(workflow, 2).await;
    stranger.sign("stationmaster.test").replace(&ours);
    database.until_count("RUNNING", 6).await;
    until_ready(&server).await;
    assert_eq!(database.attempts().await, 0, "nothing was spent on certificates");
    server.assert_alive();
    drop(dev_server);
}

async fn own_temporal() -> (DevServer, Temporal) {
    let start = || DevServer::start(free_port(), None);
    let dev_server = tokio::task::spawn_blocking(start).await.unwrap();
    let temporal = Temporal::of(&dev_server).await;
    (dev_server, temporal)
}

// Our own listener

/// The certificate that whoever connects now is shown; `None`: it is not trusted, or the handshake fails.
async fn shown(port: &str, authority: &Authority) -> Option<CertificateDer<'static>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(&authority.file))
        .with_no_client_auth();
    let stream = TcpStream::connect(format!("{HERE}:{port}")).await.unwrap();
    let name = ServerName::try_from(HERE).unwrap();
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .ok()?;
    let chain = stream.get_ref().1.peer_certificates()?;
    Some(chain.first()?.clone().into_owned())
}

fn certificate(pair: &Pair) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(&pair.certificate).unwrap()
}

/// Where a server listens that speaks TLS.
async fn port_of(server: &Process) -> String {
    let mut port = String::new();
    eventually("it listens", async || {
        let log = server.log();
        let rest = log.split("https://127.0.0.1:").nth(1).unwrap_or_default();
        port = rest.chars().take_while(char::is_ascii_digit).collect();
        !port.is_empty()
    })
    .await;
    port
}

/// How a command ends that asks a server at this address, and what it says.
fn asked(url: &str, authority: &Authority) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_stationmaster"))
        .args(["plans", "list", "--url", url, "--ca-file", text(&authority.file)])
        .env_clear()
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_trusts_a_server_by_its_authority_and_says_of_any_other_what_is_wrong() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let database = TestDatabase::new().await;
    let files = authority.sign(HERE);
    let server = Launch::on(&database)
        .with("HTTP__OPEN", "true")
        .with("HTTP__TLS_CERT", text(&files.certificate))
        .with("HTTP__TLS_KEY", text(&files.key))
        .start();
    let port = port_of(&server).await;
    let url = format!("https://{HERE}:{port}");
    let (code, said) = asked(&url, &authority);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = asked(&url, &stranger);
    assert_eq!(code, Some(5), "{said}");
    assert!(
        said.contains("not trusted here") && said.contains("--ca-file"),
        "{said}"
    );
    let (code, said) = asked(&format!("https://localhost:{port}"), &authority);
    assert_eq!(code, Some(5), "{said}");
    assert!(
        said.contains("another host name") && said.contains("--url"),
        "{said}"
    );
    authority.sign_expired(HERE).replace(&files);
    eventually("the one that has expired is shown", async || {
        let (code, said) = asked(&url, &authority);
        code == Some(5) && said.contains("the certificate of the server has expired")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_replaced_on_disk_is_shown_to_new_connections_and_a_broken_one_changes_nothing() {
    let authority = Authority::new();
    let database = TestDatabase::new().await;
    let (files, first, second) = (authority.sign(HERE), authority.sign(HERE), authority.sign(HERE));
    first.replace(&files);
    let server = Launch::on(&database)
        .with("HTTP__OPEN", "true")
        .with("HTTP__TLS_CERT", text(&files.certificate))
        .with("HTTP__TLS_KEY", text(&files.key))
        .start();
    let port = port_of(&server).await;
    assert_eq!(shown(&port, &authority).await, Some(certificate(&first)));

    second.replace(&files);
    let took = eventually("the new one is shown", async || {
        shown(&port, &authority).await == Some(certificate(&second))
    })
    .await;
    println!("the new certificate was shown after {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    eventually("the log tells of it", async || {
        server.said("The certificate was replaced") == 1
    })
    .await;

    // A certificate without its key, then nothing at all.
    std::fs::copy(&first.certificate, &files.certificate).unwrap();
    eventually("it says that they do not belong together", async || {
        server.said("do not belong together") == 1
    })
    .await;
    assert_eq!(shown(&port, &authority).await, Some(certificate(&second)));
    std::fs::remove_file(&files.key).unwrap();
    eventually("it says that there is no key", async || {
        server.said("cannot be read (setting http.tls_key)") == 1
    })
    .await;
    assert_eq!(shown(&port, &authority).await, Some(certificate(&second)));

    first.replace(&files);
    eventually("the one that fits is shown", async || {
        shown(&port, &authority).await == Some(certificate(&first))
    })
    .await;
}
