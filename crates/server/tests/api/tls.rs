//! The listener with TLS of its own.

use rcgen::{CertificateParams, KeyPair};
use stationmaster_client::{Client, Error};
use stationmaster_core::access::{self, NewToken, Role};
use stationmaster_core::db::Database;
use stationmaster_core::session::Scope;
use tempfile::TempDir;

use crate::scene::launch;
use crate::support::{TestDatabase, eventually};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_listener_speaks_tls_and_nothing_else_when_it_has_a_certificate() {
    let folder = TempDir::new().unwrap();
    let (certificate, key, pem) = certificate(&folder);
    let database = TestDatabase::new().await;
    let core = Database::new(&database.url, 1).unwrap();
    let new = NewToken {
        name: "first".to_owned(),
        role: Role::Viewer,
        scope: Scope::All,
        expires_at: None,
    };
    let (_, secret) = access::create(&core, &new, "a test").await.unwrap();
    let server = launch(
        &database,
        &[("HTTP__TLS_CERT", &certificate), ("HTTP__TLS_KEY", &key)],
    )
    .start();
    let mut address = None;
    eventually("it listens", async || {
        let log = server.log();
        let found = log
            .split("https://127.0.0.1:")
            .nth(1)
            .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        address = found;
        address.is_some()
    })
    .await;
    let port = address.unwrap();
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
