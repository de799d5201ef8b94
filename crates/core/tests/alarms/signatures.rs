//! Signatures, judged by the public crate `standardwebhooks`; rotation; and no secret in any log.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use standardwebhooks::Webhook;
use stationmaster_core::alarms::keys;
use stationmaster_core::wake::signature::Secret;
use tracing_subscriber::fmt::MakeWriter;

use crate::bed::Bed;
use crate::common::receiver::{Received, Reply};
use crate::common::{Server, eventually};

fn accepts(secret: &Secret, wake: &Received) -> bool {
    Webhook::new(&secret.reveal()).unwrap().verify(&wake.body, &wake.headers).is_ok()
}

async fn signing(bed: &Bed, secret: &Secret) -> Server {
    let mut settings = bed.settings();
    settings.signing_secret = Some(secret.clone());
    bed.server_with(settings).await
}

async fn one(bed: &Bed, path: &str) -> Received {
    bed.now(path).await;
    bed.wakes(path, 1).await.remove(0)
}

#[tokio::test]
async fn every_try_is_signed_anew_under_the_same_id() {
    let bed = Bed::new().await;
    let secret = Secret::random();
    bed.receiver.next("/twice", [Reply::status(500)]);
    let server = signing(&bed, &secret).await;
    let id = bed.now("/twice").await;
    bed.next_try(id, 1).await;
    let wakes = bed.wakes("/twice", 2).await;
    assert_eq!(wakes[0].id(), wakes[1].id());
    assert!(wakes.iter().all(|wake| accepts(&secret, wake)));
    let mut forged = wakes[0].clone();
    forged.body[2] ^= 1;
    assert!(!accepts(&secret, &forged) && !accepts(&Secret::random(), &wakes[0]), "the judge can say no");
    server.stop().await;
}

#[tokio::test]
async fn while_the_signing_secret_changes_both_verify() {
    let bed = Bed::new().await;
    let (old, new) = (Secret::random(), Secret::random());
    let mut settings = bed.settings();
    settings.signing_secret = Some(new.clone());
    settings.previous_secret = Some(old.clone());
    let server = bed.server_with(settings).await;
    let wake = one(&bed, "/both").await;
    assert!(accepts(&old, &wake) && accepts(&new, &wake));
    server.stop().await;
}

#[tokio::test]
async fn a_target_may_have_a_secret_of_its_own_which_is_rotated_with_an_overlap() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let master = Secret::random();
    let url = bed.receiver.url("/own").parse().unwrap();
    let first = keys::create(database, &master, &url).await.unwrap();
    assert!(matches!(keys::create(database, &master, &url).await, Err(keys::Error::Exists(_))));
    let server = signing(&bed, &master).await;
    let wake = one(&bed, "/own").await;
    assert!(accepts(&first.secret, &wake) && !accepts(&master, &wake));
    server.stop().await;

    let second = keys::rotate(database, &master, &url, Duration::from_hours(1)).await.unwrap();
    let server = signing(&bed, &master).await;
    let wake = one(&bed, "/rotated").await;
    assert!(accepts(&first.secret, &wake) && accepts(&second.secret, &wake));
    server.stop().await;

    bed.testbed.run("update stationmaster.wake_keys set previous_until = now()").await;
    let server = signing(&bed, &master).await;
    let wake = one(&bed, "/after").await;
    assert!(!accepts(&first.secret, &wake) && accepts(&second.secret, &wake));
    let listed = keys::list(database).await.unwrap();
    assert_eq!((listed.len(), listed[0].generation), (1, 2));
    let other = "http://other.example/".parse().unwrap();
    assert!(matches!(keys::rotate(database, &master, &other, Duration::ZERO).await, Err(keys::Error::NotFound(_))));
    server.stop().await;
}

#[tokio::test]
async fn without_a_secret_there_is_no_signature() {
    let bed = Bed::new().await;
    let server = bed.server().await;
    let wake = one(&bed, "/plain").await;
    assert_eq!(wake.header("webhook-signature"), "");
    assert!(!wake.header("webhook-timestamp").is_empty());
    server.stop().await;
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// On one thread, so that the log of this test is the log of all its tasks.
#[tokio::test(flavor = "current_thread")]
async fn no_log_line_holds_a_secret_or_a_payload() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    let _heard = tracing::subscriber::set_default(subscriber);
    let bed = Bed::new().await;
    let (old, new) = (Secret::random(), Secret::random());
    bed.receiver.next("/said", [Reply::status(500)]);
    let mut settings = bed.settings();
    settings.signing_secret = Some(new.clone());
    settings.previous_secret = Some(old.clone());
    println!("{settings:?}");
    let shown = format!("{settings:?}");
    let server = bed.server_with(settings).await;
    let mut request = bed.request(stationmaster_core::alarms::set::When::In(Duration::ZERO), "/said");
    request.payload = Some(crate::common::raw(r#"{"card": "4111-payload"}"#));
    request.message = Some("message-for-nobody-else".to_owned());
    let id = bed.set(request).await;
    bed.next_try(id, 1).await;
    bed.until(id, "fired").await;
    eventually("the log says so", async || {
        String::from_utf8_lossy(&log.0.lock().unwrap()).contains("Alarm fired")
    })
    .await;
    server.stop().await;
    let said = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned() + &shown;
    for secret in [&old, &new] {
        let text = secret.reveal();
        assert!(!said.contains(&text) && !said.contains(text.trim_start_matches("whsec_")), "a secret was said");
    }
    // What was bound to statements is the database driver's own matter at its finest level, which nobody switches on.
    let ours = said.lines().filter(|line| line.contains("stationmaster_core"));
    for line in ours {
        assert!(!line.contains("4111-payload") && !line.contains("message-for-nobody-else"), "{line}");
    }
}
