//! Traces leave by OTLP: a collector, as far as the protocol goes, stands in the test and keeps what arrives.

use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::support::{Alarms, ENDLESS, Launch, Temporal, TestDatabase, eventually};

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Takes spans by the protocol's own service.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let spans = request
            .into_inner()
            .resource_spans
            .into_iter()
            .flat_map(|resource| resource.scope_spans)
            .flat_map(|scope| scope.spans);
        self.0.lock().unwrap().extend(spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    fn start() -> (Self, String) {
        let collector = Self::default();
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = incoming.local_addr().unwrap();
        let service = TraceServiceServer::new(collector.clone());
        tokio::spawn(
            tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(incoming),
        );
        (collector, format!("http://{address}"))
    }

    fn named(&self, name: &str) -> Vec<Span> {
        let spans = self.0.lock().unwrap();
        spans.iter().filter(|span| span.name == name).cloned().collect()
    }
}

/// What this span is below of.
fn parent<'a>(spans: &'a [Span], span: &Span) -> Option<&'a Span> {
    let same = |other: &&Span| other.span_id == span.parent_span_id && other.trace_id == span.trace_id;
    spans.iter().find(same)
}

/// The names from this span up to its root, which must be one.
fn lineage(spans: &[Span], span: &Span) -> Vec<String> {
    let mut names = vec![span.name.clone()];
    let mut at = span;
    while let Some(above) = parent(spans, at) {
        names.push(above.name.clone());
        at = above;
    }
    assert!(
        at.parent_span_id.is_empty(),
        "{names:?}: its parent was never sent"
    );
    names
}

fn root<'a>(spans: &'a [Span], span: &'a Span) -> &'a Span {
    parent(spans, span).map_or(span, |above| root(spans, above))
}

fn hex(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.concat()
}

/// As a header names it.
fn traceparent(trace_id: &[u8], span_id: &[u8]) -> String {
    format!("00-{}-{}-01", hex(trace_id), hex(span_id))
}

/// What a span is linked to, as headers name it.
fn links(span: &Span) -> Vec<String> {
    let links = span.links.iter();
    links
        .map(|link| traceparent(&link.trace_id, &link.span_id))
        .collect()
}

fn one<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let mut named = spans.iter().filter(|span| span.name == name);
    let first = named.next().unwrap_or_else(|| panic!("no span {name}"));
    assert!(named.next().is_none(), "more than one {name}");
    first
}

/// One item is dispatched and the server stopped, so that all spans are sent; what was sent, and the log.
async fn dispatched(settings: &[(&str, &str)]) -> (Vec<Span>, String) {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let (collector, endpoint) = Collector::start();
    let launch = Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .with("TRACES__OTLP_ENDPOINT", &endpoint);
    let with = |launch: Launch, (name, value): &(&str, &str)| launch.with(name, value);
    let mut server = settings.iter().fold(launch, with).start_ready().await;
    let workflow = database.workflow(1, ENDLESS).await;
    database.enqueue_traced(workflow, TRACEPARENT).await;
    database.until_count("RUNNING", 1).await;
    server.signal(nix::sys::signal::Signal::SIGTERM);
    server.ended().await;
    let arrived = |name: &&str| !collector.named(name).is_empty();
    eventually("the steps have arrived", async || {
        let names = [
            "temporal:start_workflow",
            "step:mark_dispatched",
            "flow:queue_processing",
        ];
        names.iter().all(&arrived)
    })
    .await;
    let spans = collector.0.lock().unwrap().clone();
    (spans, server.log())
}

/// The tree of one dispatch, whichever mode it was made in.
fn assert_is_one_tree(spans: &[Span]) {
    let start = one(spans, "temporal:start_workflow");
    let above = [
        "temporal:start_workflow",
        "step:dispatch_temporal",
        "step:process_item",
        "flow:queue_processing",
    ];
    assert_eq!(lineage(spans, start), above);
    let flow = root(spans, start);
    let of_the_round = |name: &str| {
        let named = spans.iter().filter(|span| span.name == name);
        let mut here = named.filter(|span| root(spans, span).span_id == flow.span_id);
        here.next().unwrap_or_else(|| panic!("no {name} in the round"))
    };
    for (name, above) in [
        (
            "step:check_capacity",
            &["step:check_capacity", "step:claim_batch", "flow:queue_processing"][..],
        ),
        (
            "step:mark_dispatched",
            &["step:mark_dispatched", "flow:queue_processing"],
        ),
    ] {
        assert_eq!(lineage(spans, of_the_round(name)), above);
    }
    for span in spans {
        // Nothing is left without a round, and no round is below anything.
        let names = lineage(spans, span);
        let roots = [
            "flow:queue_processing",
            "flow:alarm_dispatch",
            "flow:supervise",
            "request",
        ];
        assert!(roots.contains(&names[names.len() - 1].as_str()), "{names:?}");
    }
    let marked = of_the_round("step:mark_dispatched");
    assert!(
        flow.end_time_unix_nano >= marked.end_time_unix_nano,
        "a round lasts until it is settled"
    );
    let item = one(spans, "step:process_item");
    assert_eq!(links(item), [TRACEPARENT]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatch_is_one_tree_linked_to_whoever_asked_and_its_lines_name_it() {
    let (spans, log) = dispatched(&[]).await;
    assert_is_one_tree(&spans);
    let item = one(&spans, "step:process_item");
    let (trace, span) = (hex(&item.trace_id), hex(&item.span_id));
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let said: Vec<serde_json::Value> = lines.collect();
    let line = said
        .iter()
        .find(|line| line["message"] == "Dispatching queue item");
    let line = line.unwrap();
    assert_eq!(
        (line["trace_id"].as_str(), line["span_id"].as_str()),
        (Some(trace.as_str()), Some(span.as_str())),
        "{line}"
    );
    let line = said.iter().find(|line| line["message"] == "Dispatched execution");
    assert_eq!(line.unwrap()["trace_id"].as_str(), Some(trace.as_str()));
    let ready = said.iter().find(|line| line["address"].is_string()).unwrap();
    assert!(ready["trace_id"].is_null(), "it belongs to none: {ready}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_the_exclusive_mode_a_dispatch_is_the_same_tree() {
    let settings = [
        ("EXECUTIONS__EXCLUSIVE", "true"),
        ("EXECUTIONS__BATCH_SIZE", "5"),
        ("EXECUTIONS__CLAIM_LEASE", "5m"),
        ("EXECUTIONS__POLL_INTERVAL", "100ms"),
        ("EXECUTIONS__EXCLUSIVE_AT_LEAST", "1ms"),
        ("LOG__FORMAT", "pretty"),
    ];
    let (spans, log) = dispatched(&settings).await;
    assert_is_one_tree(&spans);
    let item = one(&spans, "step:process_item");
    let (trace, span) = (hex(&item.trace_id), hex(&item.span_id));
    let line = log.lines().find(|line| line.contains("Dispatching queue item"));
    let named = format!(" trace_id={trace} span_id={span}");
    assert!(line.unwrap().ends_with(&named), "{line:?} {named}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wakes_and_webhooks_belong_to_a_round_are_linked_to_what_caused_them_and_carry_its_trace() {
    let alarms = Alarms::new().await;
    let (collector, endpoint) = Collector::start();
    let launch = alarms
        .launch()
        .with("TRACES__OTLP_ENDPOINT", &endpoint)
        .with("DISPATCHERS__WEBHOOK_URL", &alarms.receiver.url("/events"))
        .with("HTTP__OPEN", "true")
        // What is left behind is for whoever reconciles by hand.
        .with("DISPATCHERS__OBSERVE_ONLY", "true")
        .with("DISPATCHERS__SECOND_LOOK", "100ms");
    let mut server = launch.start_ready().await;
    let asked = format!("delay => '0', traceparent => '{TRACEPARENT}'");
    alarms.set("/asked", &asked).await;
    alarms.now("/own").await;
    alarms
        .run("insert into stationmaster.signals (project, name) values ('shop', 'paid')")
        .await;
    alarms
        .run(
            "insert into stationmaster.dispatchers (id, project, task_queue, owner, epoch, engine, taken_at, lease_until, resting_since)
             values (stationmaster.dispatcher_id('mill', 'default'), 'mill', 'default', gen_random_uuid(), 1, 'embedded',
                     now() - interval '2 hours', now() - interval '1 hour', now())",
        )
        .await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = format!("http://{}/v1/dispatchers/reconcile", server.address().unwrap());
    let reconcile = reqwest::Client::new()
        .post(url)
        .header("traceparent", TRACEPARENT);
    assert!(reconcile.send().await.unwrap().status().is_success());
    let came = |path: &str| alarms.receiver.at(path).pop();
    let told = |what: &str| {
        let named = format!("\"event\":\"{what}\"");
        let mut events = alarms.receiver.at("/events").into_iter();
        events.find(|event| String::from_utf8_lossy(&event.body).contains(&named))
    };
    eventually("all have come", async || {
        let events = ["fresh", "released"].iter().all(|what| told(what).is_some());
        events && ["/asked", "/own"].iter().all(|path| came(path).is_some())
    })
    .await;
    server.signal(nix::sys::signal::Signal::SIGTERM);
    server.ended().await;
    eventually("the spans have arrived", async || {
        collector.named("wake:post").len() == 2
            && collector.named("webhook:post").len() >= 2
            && !collector.named("flow:tell_of_dispatchers").is_empty()
            && !collector.named("step:settle_alarms").is_empty()
            && collector
                .named("request")
                .iter()
                .any(|span| !span.links.is_empty())
    })
    .await;
    let spans = collector.0.lock().unwrap().clone();
    let above = ["wake:post", "step:fire_alarm", "flow:alarm_dispatch"];
    let wakes: Vec<&Span> = spans.iter().filter(|span| span.name == "wake:post").collect();
    for wake in &wakes {
        assert_eq!(lineage(&spans, wake), above);
    }
    let named_by = |span: &Span| traceparent(&span.trace_id, &span.span_id);
    let own = came("/own").unwrap();
    let wake = wakes
        .iter()
        .find(|wake| named_by(wake) == own.header("traceparent"));
    let wake = wake.expect("a wake that nobody traces goes on with our own trace");
    assert!(parent(&spans, wake).unwrap().links.is_empty());
    assert_eq!(came("/asked").unwrap().header("traceparent"), TRACEPARENT);
    let fired = spans.iter().filter(|span| span.name == "step:fire_alarm");
    let linked: Vec<String> = fired.flat_map(links).collect();
    assert_eq!(linked, [TRACEPARENT]);
    for settled in spans.iter().filter(|span| span.name == "step:settle_alarms") {
        assert_eq!(
            lineage(&spans, settled),
            ["step:settle_alarms", "flow:alarm_dispatch"]
        );
    }
    let taken = one(&spans, "flow:take_dispatchers");
    assert_eq!(told("fresh").unwrap().header("traceparent"), named_by(taken));
    assert_eq!(told("released").unwrap().header("traceparent"), TRACEPARENT);
    let posts = spans.iter().filter(|span| span.name == "webhook:post");
    let linked = posts.map(|post| {
        assert_eq!(
            lineage(&spans, post),
            ["webhook:post", "flow:tell_of_dispatchers"]
        );
        links(post)
    });
    let linked: Vec<Vec<String>> = linked.collect();
    for expected in [named_by(taken), TRACEPARENT.to_owned()] {
        assert!(linked.contains(&vec![expected]), "{linked:?}");
    }
    let asked = |span: &&Span| span.name == "request" && !span.links.is_empty();
    let requests: Vec<&Span> = spans.iter().filter(asked).collect();
    assert_eq!(requests.len(), 1);
    assert_eq!(links(requests[0]), [TRACEPARENT]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_of_a_caller_who_is_traced_has_its_span_with_a_link() {
    // Enough of them that one in a hundred could not hide.
    const REQUESTS: usize = 500;
    let database = TestDatabase::new().await;
    let (collector, endpoint) = Collector::start();
    let launch = Launch::on(&database)
        .with("TRACES__OTLP_ENDPOINT", &endpoint)
        .with("HTTP__RATE_LIMIT", "100000")
        .with("HTTP__OPEN", "true");
    let mut server = launch.start_ready().await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = format!("http://{}/v1/workspaces", server.address().unwrap());
    for _ in 0..REQUESTS {
        // Each on a connection of its own, so that they come to all threads of the server, between statements of everybody else.
        let list = reqwest::Client::new()
            .get(&url)
            .header("traceparent", TRACEPARENT);
        assert!(list.send().await.unwrap().status().is_success());
    }
    server.signal(nix::sys::signal::Signal::SIGTERM);
    server.ended().await;
    let requests = collector.named("request");
    let linked = requests.iter().filter(|span| links(span) == [TRACEPARENT]);
    assert_eq!(linked.count(), REQUESTS, "{}", server.log());
}
