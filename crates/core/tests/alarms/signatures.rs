//! Signatures, judged by the public crate `standardwebhooks`, also while secrets change.

use std::time::Duration;

use standardwebhooks::Webhook;
use stationmaster_core::alarms::keys;
use stationmaster_core::wake::signature::Secret;

use crate::bed::Bed;
use crate::common::Server;
use crate::common::receiver::{Received, Reply};

fn accepts(secret: &Secret, wake: &Received) -> bool {
    Webhook::new(&secret.reveal())
        .unwrap()
        .verify(&wake.body, &wake.headers)
        .is_ok()
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
    assert!(
        !accepts(&secret, &forged) && !accepts(&Secret::random(), &wakes[0]),
        "the judge can say no"
    );
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
    assert!(matches!(
        keys::create(database, &master, &url).await,
        Err(keys::Error::Exists(_))
    ));
    let server = signing(&bed, &master).await;
    let wake = one(&bed, "/own").await;
    assert!(accepts(&first.secret, &wake) && !accepts(&master, &wake));
    server.stop().await;

    let second = keys::rotate(database, &master, &url, Duration::from_hours(1))
        .await
        .unwrap();
    let server = signing(&bed, &master).await;
    let wake = one(&bed, "/rotated").await;
    assert!(accepts(&first.secret, &wake) && accepts(&second.secret, &wake));
    server.stop().await;

    bed.testbed
        .run("update stationmaster_internal.wake_keys set previous_until = now()")
        .await;
    let server = signing(&bed, &master).await;
    let wake = one(&bed, "/after").await;
    assert!(!accepts(&first.secret, &wake) && accepts(&second.secret, &wake));
    let listed = keys::list(database).await.unwrap();
    assert_eq!((listed.len(), listed[0].generation), (1, 2));
    let other = "http://other.example/".parse().unwrap();
    assert!(matches!(
        keys::rotate(database, &master, &other, Duration::ZERO).await,
        Err(keys::Error::NotFound(_))
    ));
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
