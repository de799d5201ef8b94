//! Times in the metrics name a trace that took as long, and the collector of traces has it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::scene::request;
use crate::support::{Launch, SHORT, TestDatabase, eventually};

/// Keeps the ids of the traces that it is sent.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<BTreeSet<String>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans.into_iter();
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        let ids = scopes.flat_map(|scope| scope.spans).map(|span| {
            let id = u128::from_be_bytes(span.trace_id[..].try_into().unwrap());
            format!("{id:032x}")
        });
        self.0.lock().unwrap().extend(ids);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_name_a_trace_that_the_collector_has_and_only_in_openmetrics() {
    let collector = Collector::default();
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let endpoint = format!("http://{}", incoming.local_addr().unwrap());
    let service = TraceServiceServer::new(collector.clone());
    let serving = tonic::transport::Server::builder().add_service(service);
    tokio::spawn(serving.serve_with_incoming(incoming));
    let database = TestDatabase::new().await;
    let server = Launch::on(&database)
        .with("TRACES__OTLP_ENDPOINT", &endpoint)
        .start_ready()
        .await;
    let workflow = database.workflow(5, SHORT).await;
    database.enqueue(workflow, 3).await;
    database.until_count("COMPLETED", 3).await;
    let address = server.address().unwrap();
    for metric in [
        "stationmaster_enqueue_to_dispatch_seconds",
        "stationmaster_engine_start_duration_seconds",
    ] {
        let accept = [("accept", "application/openmetrics-text;version=1.0.0")];
        let (_, _, open) = request(&address, "GET", "/metrics", "", &accept).await;
        let exemplars: Vec<&str> = open
            .lines()
            .filter(|line| line.starts_with(&format!("{metric}_bucket")))
            .filter_map(|line| Some(line.split_once("# {trace_id=\"")?.1.split_once('"')?.0))
            .collect();
        assert!(!exemplars.is_empty(), "{metric}: {open}");
        eventually("the collector has the traces that are named", async || {
            let known = collector.0.lock().unwrap();
            exemplars.iter().all(|id| known.contains(*id))
        })
        .await;
    }
    let (_, _, plain) = request(&address, "GET", "/metrics", "", &[]).await;
    assert!(!plain.contains("trace_id"), "{plain}");
}
