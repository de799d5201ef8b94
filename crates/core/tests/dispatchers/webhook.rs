//! Incident tooling hears of what happens to dispatchers, signed and in order.

use std::sync::{Arc, Mutex};

use stationmaster_core::dispatchers::Webhook;
use stationmaster_core::wake::signature::{Secret, sign};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::common::{NOOP, Testbed, eventually};
use crate::support::{Dispatch, Server};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Takes posts; refuses the first.
async fn receiver() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let taken = Arc::<Mutex<Vec<String>>>::default();
    let posts = Arc::clone(&taken);
    tokio::spawn(async move {
        let mut refused = false;
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = Vec::new();
            let mut some = [0; 4096];
            // A request is whole when its body is as long as its head says.
            loop {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if let Some((head, body)) = text.split_once("\r\n\r\n") {
                    let length = head
                        .to_lowercase()
                        .split("content-length: ")
                        .nth(1)
                        .and_then(|rest| rest.split("\r\n").next()?.trim().parse::<usize>().ok());
                    if body.len() >= length.unwrap_or(0) {
                        break;
                    }
                }
                match stream.read(&mut some).await {
                    Ok(count @ 1..) => bytes.extend_from_slice(&some[..count]),
                    _ => break,
                }
            }
            let answer = if refused { "204 No Content" } else { "503 Later" };
            if refused {
                posts.lock().unwrap().push(String::from_utf8(bytes).unwrap());
            }
            refused = true;
            let _ = stream
                .write_all(
                    format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").as_bytes(),
                )
                .await;
        }
    });
    (format!("http://{address}/incidents"), taken)
}

fn header<'a>(post: &'a str, name: &str) -> &'a str {
    let line = post
        .lines()
        .find(|line| line.to_lowercase().starts_with(&format!("{name}:")));
    line.unwrap().split_once(':').unwrap().1.trim()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_posted_signed_and_again_until_they_are_taken() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let (url, posts) = receiver().await;
    let secret = Secret::parse(SECRET).unwrap();
    let webhook = Some(Webhook {
        url,
        secret: Some(secret.clone()),
    });
    let server = Server::with(
        &testbed,
        Dispatch {
            webhook,
            ..Dispatch::default()
        },
    )
    .await;
    eventually("the event was posted", async || !posts.lock().unwrap().is_empty()).await;
    let post = posts.lock().unwrap()[0].clone();
    let body = post.split_once("\r\n\r\n").unwrap().1;
    let event: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        (event["event"].as_str(), event["epoch"].as_i64()),
        (Some("fresh"), Some(1))
    );
    let (id, timestamp) = (header(&post, "webhook-id"), header(&post, "webhook-timestamp"));
    assert_eq!(
        header(&post, "webhook-signature"),
        sign(
            std::slice::from_ref(&secret),
            id,
            timestamp.parse().unwrap(),
            body.as_bytes()
        )
    );
    eventually("it is told once", async || {
        testbed
            .number("select count(*) from stationmaster.dispatcher_events where told_at is null")
            .await
            == 0
    })
    .await;
    assert_eq!(posts.lock().unwrap().len(), 1);
    server.stop().await;
}
