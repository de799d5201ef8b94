//! Signatures, judged by the public crate `standardwebhooks`, also while secrets change.

use std::time::Duration;

use standardwebhooks::Webhook;
use stationmaster_core::alarms::keys;
use stationmaster_core::wake::signature::Secret;
use stationmaster_core::wake::targets::Recipient;
use stationmaster_wire::NewAlarm;

use crate::bed::{Bed, once_in};
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

/// The receiver, as a target that alarms name.
fn named(bed: &Bed) -> Recipient {
    bed.receiver.url("").parse().unwrap()
}

async fn one(bed: &Bed, path: &str) -> Received {
    bed.now(path).await;
    bed.wakes(path, 1).await.remove(0)
}

#[tokio::test]
async fn every_try_is_signed_anew_under_the_same_id() {
    let bed = Bed::new().await;
    let master = Secret::random();
    let secret = keys::first(&master, &named(&bed));
    bed.receiver.next("/twice", [Reply::status(500)]);
    let server = signing(&bed, &master).await;
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
    let derived = |master: &Secret| keys::first(master, &named(&bed));
    assert!(accepts(&derived(&old), &wake) && accepts(&derived(&new), &wake));
    assert!(
        !accepts(&old, &wake) && !accepts(&new, &wake),
        "the signing secret itself signs nothing"
    );
    server.stop().await;
}

#[tokio::test]
async fn every_target_has_a_secret_of_its_own_which_is_rotated_with_an_overlap() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let master = Secret::random();
    let target = named(&bed);
    let first = keys::show(database, &master, &target).await.unwrap();
    assert_eq!(first.generation, 1);
    let server = signing(&bed, &master).await;
    let wake = one(&bed, "/own").await;
    assert!(accepts(&first.secret, &wake) && !accepts(&master, &wake));
    server.stop().await;

    let second = keys::rotate(database, &master, &target, Duration::from_hours(1))
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
    let present = keys::show(database, &master, &target).await.unwrap();
    assert_eq!((present.generation, present.secret), (2, second.secret));
    server.stop().await;
}

/// Somebody aims an alarm at a host of theirs, and another at the router's very URL, in the name of another workspace; nothing that
/// comes of it is believed by the router.
#[tokio::test]
async fn no_wake_that_names_its_target_is_believed_by_the_router() {
    let bed = Bed::new().await;
    let master = Secret::random();
    let victim = bed.testbed.workspace(1).await;
    let router = keys::first(&master, &Recipient::router());
    let server = signing(&bed, &master).await;
    let forged = |url: String| NewAlarm {
        target_url: Some(url),
        user_id: Some(victim.to_string()),
        ..bed.plain(once_in(Duration::ZERO))
    };
    bed.set(forged(bed.receiver.url("/mine"))).await;
    bed.set(forged(bed.receiver.url("/internal/wake"))).await;
    let replayed = bed.wakes("/mine", 1).await.remove(0);
    let aimed = bed.wakes("/internal/wake", 1).await.remove(0);
    for wake in [&replayed, &aimed] {
        assert!(!accepts(&router, wake) && !accepts(&master, wake));
        assert_eq!(wake.json()["workspace_id"], bed.workspace.to_string());
        assert_eq!(wake.json()["user_id"], victim.to_string());
    }
    bed.set(bed.plain(once_in(Duration::ZERO))).await;
    let own = bed.wakes("/internal/wake", 2).await.remove(1);
    assert!(accepts(&router, &own), "the judge can say yes");
    assert!(!accepts(&keys::first(&master, &named(&bed)), &own));
    assert_eq!(own.json()["workspace_id"], bed.workspace.to_string());
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
