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

use crate::support::{ENDLESS, Launch, Temporal, TestDatabase, eventually};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatch_is_traced_step_by_step_and_linked_to_the_trace_of_whoever_asked() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let (collector, endpoint) = Collector::start();
    let launch = Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .with("TRACES__OTLP_ENDPOINT", &endpoint);
    let mut server = launch.start_ready().await;
    let workflow = database.workflow(1, ENDLESS).await;
    database.enqueue_traced(workflow, TRACEPARENT).await;
    database.until_count("RUNNING", 1).await;
    // What has not been sent yet is sent at the end.
    server.signal(nix::sys::signal::Signal::SIGTERM);
    server.ended().await;
    eventually("the steps have arrived", async || {
        ["step:claim_batch", "step:check_capacity", "step:mark_dispatched"]
            .iter()
            .all(|name| !collector.named(name).is_empty())
            && collector.named("temporal:start_workflow").len() == 1
    })
    .await;
    let one = |name: &str| {
        collector
            .named(name)
            .pop()
            .unwrap_or_else(|| panic!("no span {name}"))
    };
    let (start, dispatch, item) = (
        one("temporal:start_workflow"),
        one("step:dispatch_temporal"),
        one("step:process_item"),
    );
    assert_eq!(start.parent_span_id, dispatch.span_id);
    assert_eq!(dispatch.parent_span_id, item.span_id);
    let flows = collector.named("flow:queue_processing");
    let flow = flows.iter().find(|flow| flow.span_id == item.parent_span_id);
    assert!(flow.is_some(), "the item belongs to the round that claimed it");
    let flow = flow.unwrap();
    assert!(flow.parent_span_id.is_empty(), "a round is a root");
    // Rounds that find nothing claim too; one of them found this item.
    let claims = collector.named("step:claim_batch");
    let claim = claims.iter().find(|claim| claim.parent_span_id == flow.span_id);
    let claim = claim.expect("the claim belongs to its round");
    let checks = collector.named("step:check_capacity");
    assert!(
        checks.iter().any(|check| check.parent_span_id == claim.span_id),
        "the look at the capacity belongs to the claim"
    );
    for span in [&start, &dispatch, &item, claim] {
        assert_eq!(
            span.trace_id, flow.trace_id,
            "{} is of the round's trace",
            span.name
        );
    }
    let [link] = &item.links[..] else {
        panic!("one link is expected: {:?}", item.links);
    };
    let trace = u128::from_be_bytes(link.trace_id[..].try_into().unwrap());
    let span = u64::from_be_bytes(link.span_id[..].try_into().unwrap());
    assert_eq!(format!("00-{trace:032x}-{span:016x}-01"), TRACEPARENT);
}
