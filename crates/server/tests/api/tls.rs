//! The listener with TLS of its own.

use rcgen::{CertificateParams, KeyPair};
use stationmaster_client::{Client, Error};
use stationmaster_core::access::{self, NewToken, Role};
use stationmaster_core::db::Database;
use tempfile::TempDir;

use crate::scene::launch;
use crate::support::{Process, TestDatabase, eventually};

/// A certificate for this machine, and its key, in files.
fn certificate(folder: &TempDir) -> (String, String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let place = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let pem = certificate.pem();
    (
        place("cert.pem", &pem),
        place("key.pem", &key.serialize_pem()),
        pem,
    )
}

async fn port_of(server: &Process) -> String {
    let mut port = None;
    eventually("it listens", async || {
        let log = server.log();
        let rest = log.split("https://127.0.0.1:").nth(1);
        port = rest.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        port.is_some()
    })
    .await;
    port.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_listener_speaks_tls_and_nothing_else_when_it_has_a_certificate() {
    let folder = TempDir::new().unwrap();
    let (certificate, key, pem) = certificate(&folder);
    let database = TestDatabase::new().await;
    let core = Database::new(&database.url, 1).unwrap();
    let new = NewToken {
        name: "first".to_owned(),
        role: Role::Viewer,
        workspaces: None,
        expires_at: None,
    };
    let (_, secret) = access::create(&core, &new, "a test").await.unwrap();
    let server = launch(
        &database,
        &[("HTTP__TLS_CERT", &certificate), ("HTTP__TLS_KEY", &key)],
    )
    .start();
    let port = port_of(&server).await;
    let client = Client::builder()
        .token(secret.expose())
        .authority(pem.into_bytes());
    let client = client.build(&format!("https://127.0.0.1:{port}")).unwrap();
    assert_eq!(client.plans().await.unwrap().len(), 3);
    let stranger = Client::builder()
        .token(secret.expose())
        .build(&format!("https://127.0.0.1:{port}"))
        .unwrap();
    assert!(
        matches!(stranger.plans().await, Err(Error::Transport(_))),
        "the certificate is checked"
    );
    let plain = Client::builder()
        .build(&format!("http://127.0.0.1:{port}"))
        .unwrap();
    assert!(matches!(plain.plans().await, Err(Error::Transport(_))));
}

/// What came of the first try to wake a target, by a server that trusts this certificate.
async fn first_try(target: &str, trusted: &str) -> String {
    let database = TestDatabase::new().await;
    let workspace = database.workspace(1).await;
    let server = launch(&database, &[("ALARMS__ALLOW_TARGETS", "127.0.0.1")])
        .beside("SSL_CERT_FILE", trusted)
        .start_listening()
        .await;
    sqlx::query("select stationmaster.set_alarm($1, target_url => $2, delay => '0')")
        .bind(workspace)
        .bind(target)
        .execute(&database.pool)
        .await
        .unwrap();
    let query = "select coalesce(answer_status::text, error) from stationmaster_internal.occurrence_tries";
    let mut came = None;
    eventually("it was tried", async || {
        came = sqlx::query_scalar(query)
            .fetch_optional(&database.pool)
            .await
            .unwrap();
        came.is_some()
    })
    .await;
    drop(server);
    came.unwrap()
}

/// The target is a listener of our own, which knows no such route and says so: it was reached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_goes_over_tls_to_a_target_whose_certificate_is_trusted_and_to_no_other() {
    let (folder, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (own, key, _) = certificate(&folder);
    let (strange, ..) = certificate(&other);
    let database = TestDatabase::new().await;
    let settings = [
        ("HTTP__TLS_CERT", own.as_str()),
        ("HTTP__TLS_KEY", &key),
        ("HTTP__OPEN", "true"),
    ];
    let listener = launch(&database, &settings).start();
    let target = format!("https://127.0.0.1:{}/nowhere", port_of(&listener).await);
    assert_eq!(first_try(&target, &own).await, "404");
    let refused = first_try(&target, &strange).await;
    assert!(refused.contains("certificate"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_cannot_be_used_stops_the_start_with_its_name() {
    let folder = TempDir::new().unwrap();
    let (certificate, _, _) = certificate(&folder);
    let database = TestDatabase::new().await;
    let mut server = launch(
        &database,
        &[("HTTP__TLS_CERT", &certificate), ("HTTP__TLS_KEY", &certificate)],
    )
    .start();
    let (status, _) = server.ended().await;
    assert!(!status.success());
    assert!(server.log().contains("http.tls_key"), "{}", server.log());
}
