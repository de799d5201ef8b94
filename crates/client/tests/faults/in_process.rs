//! A client whose requests are answered in the same process: as over the network, without one.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde_json::json;
use stationmaster_client::wire::{Enqueue, EventQuery, LockRequest};
use stationmaster_client::{Asked, BoxError, Client, KeptLock, Request, Response, Retries, Told, Unlocked};
use uuid::Uuid;

use crate::script::problem;

/// A client, and the requests that it made. `answer` is told how many came before.
fn client(answer: impl Fn(usize, &Request) -> Response + Send + Sync + 'static) -> (Client, Requests) {
    let requests = Requests::default();
    let made = requests.clone();
    let retries = Retries {
        base: Duration::from_millis(1),
        ..Retries::default()
    };
    let client = Client::builder().retries(retries).in_process(move |request| {
        let mut made = made.0.lock().unwrap();
        let response = answer(made.len(), &request);
        made.push(request);
        async move { response }
    });
    (client.unwrap(), requests)
}

#[derive(Clone, Default)]
struct Requests(Arc<Mutex<Vec<Request>>>);

impl Requests {
    fn header(&self, name: &str) -> Vec<String> {
        let requests = self.0.lock().unwrap();
        let value = |request: &Request| request.headers()[name].to_str().unwrap().to_owned();
        requests.iter().map(value).collect()
    }
}

fn say(status: u16, body: String) -> Response {
    stream(status, stream::iter([Ok(body.into())]).boxed())
}

fn stream(status: u16, body: BoxStream<'static, Result<bytes::Bytes, BoxError>>) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status.try_into().unwrap();
    response
}

#[tokio::test]
async fn a_request_is_repeated_under_its_key_as_over_the_network() {
    let (client, requests) = client(|before, request| {
        assert_eq!(request.uri().path(), "/v1/executions");
        let asked: Enqueue = serde_json::from_slice(request.body()).unwrap();
        assert_eq!(asked.priority, 7);
        match before {
            0 => say(503, problem(503, "unavailable")),
            _ => say(
                202,
                json!({ "id": Uuid::now_v7(), "duplicate": false }).to_string(),
            ),
        }
    });
    let request = Enqueue {
        priority: 7,
        ..Enqueue::new(Uuid::now_v7(), Uuid::now_v7())
    };
    client.enqueue(&request).await.unwrap();
    let keys = requests.header("idempotency-key");
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
}

#[tokio::test]
async fn events_are_heard_as_they_happen() {
    let hello = "event: hello\ndata: {\"position\": 4}\n\n";
    let (client, _) = client(move |_, _| {
        // What follows never comes: whoever waited for the end would hear nothing.
        let first = stream::iter([Ok(hello.into())]);
        stream(200, first.chain(stream::pending()).boxed())
    });
    let mut events = client.events(&EventQuery::default(), None).await.unwrap();
    let told = events.next().await.unwrap();
    assert!(matches!(told, Some(Told::Hello(_))), "{told:?}");
}

/// A lock for this long, whose extensions are answered like this.
async fn kept(at_most: Duration, extended: impl Fn() -> Response + Send + Sync + 'static) -> KeptLock {
    let (client, _) = client(move |_, request| match request.uri().path() {
        "/v1/locks/night" if request.method() == "POST" => say(
            201,
            json!({ "name": "night", "token": 7, "holder": "me#1", "until": "2026-03-01T12:00:00Z" })
                .to_string(),
        ),
        "/v1/locks/night" => say(404, problem(404, "not-found")),
        "/v1/locks/night/extend" => extended(),
        other => panic!("{other}"),
    });
    let request = LockRequest {
        at_most: at_most.as_secs_f64(),
        at_least: 0.0,
        owner: None,
    };
    match client.keep_lock("night", &request).await.unwrap() {
        Asked::Held(kept) => *kept,
        Asked::Taken(taken) => panic!("{taken:?}"),
    }
}

#[tokio::test]
async fn a_lock_whose_extension_is_refused_is_lost_at_once() {
    let kept = kept(Duration::from_secs(3), || say(409, problem(409, "lock-lost"))).await;
    assert!(kept.is_held());
    assert_eq!(kept.lock().token, 7);
    let reason = kept.lost().await;
    assert!(reason.contains("released by hand"), "{reason}");
    assert!(!kept.is_held());
    assert_eq!(kept.give_back().await.unwrap(), Unlocked::NotHeld);
}

#[tokio::test]
async fn a_lock_that_cannot_be_extended_is_lost_before_its_time_is_over_for_others() {
    let (began, at_most) = (Instant::now(), Duration::from_millis(600));
    let kept = kept(at_most, || say(500, problem(500, "internal"))).await;
    let reason = kept.lost().await;
    assert!(
        reason.contains("could not be extended in time: the words"),
        "{reason}"
    );
    assert!(began.elapsed() >= at_most);
    assert!(!kept.is_held());
}
