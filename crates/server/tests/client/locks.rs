//! Locks by HTTP: the same rules as everywhere, and every hold in the audit.

use std::time::Duration;

use stationmaster_client::wire::{AuditQuery, LockRequest};
use stationmaster_client::{Client, Error, Extended, Locked, Unlocked, wire};
use stationmaster_core::access::Role;

use crate::scene::{ENDLESS, Scene};

const MINUTE: Duration = Duration::from_mins(1);

fn request(at_most: f64, at_least: f64) -> LockRequest {
    LockRequest {
        at_most,
        at_least,
        owner: Some("a test".to_owned()),
    }
}

async fn acquired(client: &Client, name: &str, at_least: f64) -> wire::Acquired {
    match client.acquire_lock(name, &request(60.0, at_least)).await.unwrap() {
        Locked::Acquired(lock) => lock,
        Locked::Taken(taken) => panic!("{taken:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_held_extended_and_given_back_under_its_token() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let lock = acquired(&client, "night shift", 0.0).await;
    assert!(lock.holder.starts_with("a test#"), "{lock:?}");
    let taken = client
        .acquire_lock("night shift", &request(60.0, 0.0))
        .await
        .unwrap();
    let Locked::Taken(taken) = taken else {
        panic!("two at once")
    };
    assert_eq!(
        (taken.by.as_ref(), taken.until),
        (Some(&lock.holder), Some(lock.until))
    );
    let until = match client
        .extend_lock("night shift", lock.token, MINUTE * 10)
        .await
        .unwrap()
    {
        Extended::Until(until) => until,
        Extended::Lost => panic!("it is held"),
    };
    assert!(until > lock.until);
    assert_eq!(
        client
            .extend_lock("night shift", lock.token + 1, MINUTE)
            .await
            .unwrap(),
        Extended::Lost
    );
    assert_eq!(
        client.unlock("night shift", lock.token + 1).await.unwrap(),
        Unlocked::NotHeld
    );
    assert!(client.lock("night shift").await.unwrap().held);
    assert_eq!(
        client.unlock("night shift", lock.token).await.unwrap(),
        Unlocked::Free
    );
    assert_eq!(
        client.unlock("night shift", lock.token).await.unwrap(),
        Unlocked::NotHeld
    );
    let next = acquired(&client, "night shift", 60.0).await;
    assert!(next.token > lock.token);
    assert!(matches!(
        client.unlock("night shift", next.token).await.unwrap(),
        Unlocked::FreeAt(_)
    ));
    let lines = client.audit(&AuditQuery::default()).await.unwrap().items;
    let actions: Vec<&str> = lines.iter().rev().map(|line| line.action.as_str()).collect();
    assert!(
        actions.ends_with(&["lock.acquire", "lock.unlock", "lock.acquire", "lock.unlock"]),
        "{actions:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_freed_by_hand_only_from_the_holder_who_was_seen() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let lock = acquired(&client, "bridge", 0.0).await;
    let other = client.release_lock("bridge", "somebody else").await.unwrap_err();
    assert!(matches!(other, Error::Conflict(_)), "{other:?}");
    assert!(
        client
            .release_lock("bridge", &lock.holder)
            .await
            .unwrap()
            .released
    );
    assert!(
        !client
            .release_lock("bridge", &lock.holder)
            .await
            .unwrap()
            .released
    );
    assert_eq!(
        client.extend_lock("bridge", lock.token, MINUTE).await.unwrap(),
        Extended::Lost
    );
    let nothing = client.release_lock("nothing", "nobody").await.unwrap_err();
    assert!(matches!(nothing, Error::NotFound(_)), "{nothing:?}");
    let held: Vec<(String, bool)> = client
        .locks()
        .await
        .unwrap()
        .into_iter()
        .map(|lock| (lock.name, lock.held))
        .collect();
    assert_eq!(held, [("bridge".to_owned(), false)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terms_that_cannot_be_kept_and_tokens_of_one_workspace_are_refused() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    for terms in [
        request(0.0, 0.0),
        request(1.0, 2.0),
        request(-1.0, 0.0),
        request(1e300, 0.0),
    ] {
        let refused = client.acquire_lock("a", &terms).await.unwrap_err();
        assert!(matches!(refused, Error::Invalid(_)), "{terms:?}: {refused:?}");
    }
    let refused = client.acquire_lock(&"x".repeat(65), &request(1.0, 0.0)).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let tenant = scene.tenant(1, ENDLESS).await;
    let token = scene.token(Role::Admin, Some(tenant.workspace)).await;
    let refused = scene.client(&token).acquire_lock("a", &request(1.0, 0.0)).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
}
