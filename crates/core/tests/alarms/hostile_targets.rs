//! Requests forged through us: no hostile URL reaches a listener that it should not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stationmaster_core::alarms::Settings;
use stationmaster_core::alarms::set::{Error, set};
use stationmaster_wire::NewAlarm;
use tokio::net::TcpListener;

use crate::bed::{Bed, once_in};
use crate::common::eventually;
use crate::common::receiver::Reply;

/// Counts whoever connects, on both loopback addresses of one port.
async fn trap() -> (u16, Arc<AtomicUsize>) {
    let caught = Arc::new(AtomicUsize::new(0));
    let v4 = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = v4.local_addr().unwrap().port();
    let mut sockets = vec![v4];
    // A machine without IPv6 has no such door.
    sockets.extend(TcpListener::bind(("::1", port)).await.ok());
    for socket in sockets {
        let caught = Arc::clone(&caught);
        tokio::spawn(async move {
            while socket.accept().await.is_ok() {
                caught.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    (port, caught)
}

/// Ways to write addresses that are not public.
fn hosts() -> Vec<String> {
    let mut hosts: Vec<String> = [
        // Loopback in every spelling.
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "0177.1",
        "00000177.0.0.1",
        "127.000.000.001",
        "127.0.0.0x1",
        "0x7F.0x0.0x0.0x1",
        "127.255.255.254",
        "127.0.0.2",
        "127.127.127.127",
        "%31%32%37.0.0.1",
        "127%2e0%2e0%2e1",
        "１２７.０.０.１",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "localhost",
        "LOCALHOST",
        "LocalHost",
        "localhost.",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "loc%61lhost",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[0000::0001]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[::ffff:127.0.0.2]",
        "[::127.0.0.1]",
        "[::7f00:1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[2002:7f00:0001::1]",
        "[2001:0:7f00:1::]",
        "[::]",
        "[0::0]",
        "[::ffff:0:0]",
        "[::ffff:0.0.0.0]",
        // Nowhere, and everywhere.
        "0",
        "0.0.0.0",
        "0.0.0.1",
        "0x0",
        "00",
        "000000000000",
        "255.255.255.255",
        "4294967295",
        "0xffffffff",
        // Metadata services.
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "0251.0376.0251.0376",
        "169.254.43518",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[fd00:ec2::254]",
        "169.254.170.2",
        "[fe80::a9fe:a9fe]",
        // Link local, multicast, site local, unique local, documentation, benchmarks.
        "[fe80::1]",
        "[febf::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[ff0e::1]",
        "[fc00::1]",
        "[fdff::1]",
        "[2001:db8::1]",
        "[3fff::1]",
        "[100::1]",
        "[2001:2::1]",
        "[2001:10::1]",
        "[5f00::1]",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "192.0.0.1",
        "192.0.0.170",
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "192.88.99.1",
        "198.18.0.1",
        "198.19.255.255",
        "100.64.0.1",
        "100.127.255.254",
        "100.100.100.200",
    ]
    .map(str::to_owned)
    .into();
    // Private networks, plain and inside IPv6.
    for private in [
        "10.0.0.1",
        "10.255.255.254",
        "172.16.0.1",
        "172.31.255.254",
        "192.168.0.1",
        "192.168.255.254",
        "127.0.0.53",
        "169.254.1.1",
    ] {
        let [a, b, c, d]: [u32; 4] = private
            .split('.')
            .map(|part| part.parse().unwrap())
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        let number = (a << 24) | (b << 16) | (c << 8) | d;
        hosts.extend([
            private.to_owned(),
            number.to_string(),
            format!("{number:#x}"),
            format!("{number:#o}").replace("0o", "0"),
            format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
            format!("{a}.{b}.{}", (c << 8) | d),
            format!("{a}.{}", (b << 16) | (c << 8) | d),
            format!("[::ffff:{private}]"),
            format!("[::{private}]"),
            format!("[64:ff9b::{private}]"),
            format!("[2002:{:x}:{:x}::1]", number >> 16, number & 0xffff),
        ]);
    }
    hosts
}

#[tokio::test]
async fn two_hundred_hostile_targets_reach_no_listener() {
    let bed = Bed::new().await;
    let (port, caught) = trap().await;
    let mut urls: Vec<String> = hosts()
        .iter()
        .map(|host| format!("http://{host}:{port}/"))
        .collect();
    // What looks like a friend and is none, and other schemes' ways in.
    for tricky in [
        "http://example.com@127.0.0.1:{port}/",
        "http://127.0.0.1:{port}#@example.com/",
        "http://127.0.0.1:{port}?@example.com/",
        "http:\\\\127.0.0.1:{port}\\",
        "http:/127.0.0.1:{port}/",
        "http:127.0.0.1:{port}/",
        "http:///127.0.0.1:{port}/",
        "https://127.0.0.1:{port}/",
        "https://localhost:{port}/",
        "HTTP://127.0.0.1:{port}/",
        "http://localhost:{port}/%0d%0aHost:%20x",
        "file:///etc/passwd",
        "gopher://127.0.0.1:{port}/_x",
        "ftp://127.0.0.1:{port}/",
        "unix:///tmp/socket",
        "data:text/plain,x",
        "http://[::1%25lo]:{port}/",
        "http://[::1]:{port}/",
        "http://user:word@localhost:{port}/",
        "http://127.0.0.1:{port}/../x",
        "\thttp://127.0.0.1:{port}/",
        "http://\t127.0.0.1:{port}/",
        "http://127.0.0.1\t:{port}/",
        "http://127.0.0.1:{port}",
        "//127.0.0.1:{port}/",
        "javascript:alert(1)",
        "jar:http://127.0.0.1:{port}/!/",
        "http://127.0.0.1:{port}:80/",
    ] {
        urls.push(tricky.replace("{port}", &port.to_string()));
    }
    assert!(urls.len() >= 200, "{}", urls.len());
    let server = bed.server_with(Settings::default()).await;
    let (mut refused, mut ids) = (0, Vec::new());
    for url in &urls {
        let request = NewAlarm {
            target_url: Some(url.clone()),
            max_failures: Some(1),
            ..bed.plain(once_in(Duration::ZERO))
        };
        match set(&bed.testbed.database, &request, "tester").await {
            Ok(answer) => ids.push((url, answer.alarm())),
            Err(Error::Invalid(_)) => refused += 1,
            Err(error) => panic!("{url}: {error:?}"),
        }
    }
    let mut forbidden = 0;
    for (url, id) in &ids {
        eventually(&format!("{url} fails"), async || {
            bed.status(*id).await == "failed"
        })
        .await;
        let occurrence = &bed.occurrences(*id).await[0];
        if occurrence.reason.as_deref() == Some("forbidden") {
            forbidden += 1;
            assert_eq!(occurrence.attempts, 0, "what was not sent is no try");
        } else {
            println!("{url}: {:?}", occurrence.last_error);
        }
    }
    println!(
        "{} URLs: {refused} refused when set, {forbidden} forbidden",
        urls.len()
    );
    assert_eq!(caught.load(Ordering::SeqCst), 0, "a listener was reached");
    assert!(
        refused + forbidden >= urls.len() - 5,
        "the others have no address at all"
    );
    server.stop().await;
}

/// The trap works: whoever is allowed falls into it.
#[tokio::test]
async fn an_operator_may_allow_what_is_not_public() {
    let bed = Bed::new().await;
    for allowed in ["127.0.0.1", "127.0.0.0/8", "localhost"] {
        let (port, caught) = trap().await;
        let host = if allowed == "localhost" {
            "localhost"
        } else {
            "127.0.0.1"
        };
        let settings = Settings {
            allow_targets: vec![allowed.parse().unwrap()],
            delivery_timeout: Duration::from_secs(1),
            ..Settings::default()
        };
        let server = bed.server_with(settings).await;
        let request = NewAlarm {
            target_url: Some(format!("http://{host}:{port}/")),
            max_failures: Some(1),
            ..bed.plain(once_in(Duration::ZERO))
        };
        bed.set(request).await;
        eventually("the trap is sprung", async || caught.load(Ordering::SeqCst) > 0).await;
        server.stop().await;
    }
}

/// The router stands inside the house, and so does what else listens at its host and port.
#[tokio::test]
async fn the_router_is_trusted_where_no_target_is_named_and_nowhere_else() {
    let bed = Bed::new().await;
    let settings = Settings {
        allow_targets: Vec::new(),
        ..bed.settings()
    };
    let server = bed.server_with(settings).await;
    for path in ["/internal/wake", "/admin/delete", ""] {
        let mut request = bed.request(once_in(Duration::ZERO), path);
        request.max_failures = Some(1);
        let id = bed.set(request).await;
        bed.until(id, "failed").await;
        assert_eq!(bed.occurrences(id).await[0].reason.as_deref(), Some("forbidden"));
    }
    assert_eq!(bed.receiver.arrived(), 0);
    let unnamed = bed.set(bed.plain(once_in(Duration::ZERO))).await;
    bed.until(unnamed, "fired").await;
    assert_eq!(bed.receiver.at("/internal/wake").len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_redirect_into_the_house_is_not_followed() {
    let bed = Bed::new().await;
    let (port, caught) = trap().await;
    let redirect = Reply {
        headers: vec![("location", format!("http://127.0.0.1:{port}/"))],
        ..Reply::status(307)
    };
    bed.receiver.always("/away", redirect);
    let server = bed.server().await;
    let mut request = bed.request(once_in(Duration::ZERO), "/away");
    request.max_failures = Some(1);
    let id = bed.set(request).await;
    bed.until(id, "failed").await;
    assert_eq!(bed.occurrences(id).await[0].reason.as_deref(), Some("redirected"));
    assert_eq!(caught.load(Ordering::SeqCst), 0);
    server.stop().await;
}
