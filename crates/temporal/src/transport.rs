//! A connection to Temporal that is made once.
//!
//! The library's channel connects again by itself whenever it has to, and whoever uses it does not hear of it: behind the same address
//! somebody else may answer by then. This one never does. When it has ended, whatever is asked on it fails with [`has_ended`], and
//! was not sent. So what was proven of a connection is true of it for as long as it lasts.
//!
//! It goes by the library's options, and says what the library would say: who asks, by which key, and that it is still there.

use std::error::Error;

use hyper_util::client::legacy::connect::HttpConnector;
use temporalio_client::tonic::codegen::InterceptedService;
use temporalio_client::tonic::codegen::http::Uri;
use temporalio_client::tonic::metadata::{AsciiMetadataValue, MetadataValue};
use temporalio_client::tonic::service::Interceptor;
use temporalio_client::tonic::transport::{self, Certificate, Channel, ClientTlsConfig, Endpoint};
use temporalio_client::tonic::{Code, Request, Status};
use temporalio_client::{ConnectionOptions, TlsOptions};
use temporalio_common::protos::temporal::api::workflowservice::v1::GetSystemInfoRequest;
use temporalio_common::protos::temporal::api::workflowservice::v1::workflow_service_client::WorkflowServiceClient;
use tower::ServiceExt as _;

use crate::link::chain;

/// The largest answer that is taken, as by the library.
const LARGEST: usize = 128 * 1024 * 1024;

/// How Temporal is asked.
pub(crate) type Service = WorkflowServiceClient<InterceptedService<Channel, Introduction>>;

/// See the module.
#[derive(Clone)]
pub(crate) struct Connection(Service);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// It could not be made.
    #[error(transparent)]
    Transport(#[from] transport::Error),
    /// It was made, and the first thing said on it was not answered.
    #[error(transparent)]
    Greeting(Box<Status>),
}

/// The one connection has ended, and there is no second.
#[derive(Debug, thiserror::Error)]
#[error("the connection has ended")]
struct Ended;

/// Was nothing sent, because the connection had ended before?
pub(crate) fn has_ended(status: &Status) -> bool {
    chain(status.source()).any(<dyn Error>::is::<Ended>)
}

impl Connection {
    /// Connects and says hello: who is refused for its certificate hears of it only then.
    pub(crate) async fn open(options: &ConnectionOptions) -> Result<Self, ConnectError> {
        let mut only = Some(plain());
        let connector = tower::service_fn(move |address: Uri| {
            let only = only.take();
            async move {
                let connector = only.ok_or(Ended)?;
                let connected = connector.oneshot(address).await?;
                Ok::<_, Box<dyn Error + Send + Sync>>(connected)
            }
        });
        let channel = endpoint(options)?.connect_with_connector(connector).await?;
        let introduction = Introduction::of(options);
        let service = WorkflowServiceClient::with_interceptor(channel, introduction);
        let connection = Self(service.max_decoding_message_size(LARGEST));
        connection.greet().await?;
        Ok(connection)
    }

    pub(crate) fn service(&self) -> Service {
        self.0.clone()
    }

    async fn greet(&self) -> Result<(), ConnectError> {
        let hello = Request::new(GetSystemInfoRequest {});
        match self.service().get_system_info(hello).await {
            // A Temporal that does not know this question is there as well.
            Err(status) if status.code() != Code::Unimplemented || status.source().is_some() => {
                Err(ConnectError::Greeting(Box::new(status)))
            }
            _ => Ok(()),
        }
    }
}

/// The way that the library's channel goes too: by every address of the host, the faster family first.
fn plain() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector
}

fn endpoint(options: &ConnectionOptions) -> Result<Endpoint, transport::Error> {
    let mut endpoint = Endpoint::from_shared(options.target.to_string())?;
    if let Some(alive) = &options.keep_alive {
        endpoint = endpoint
            .keep_alive_while_idle(true)
            .http2_keep_alive_interval(alive.interval)
            .keep_alive_timeout(alive.timeout);
    }
    match &options.tls_options {
        Some(tls) => secured(endpoint, tls),
        None => Ok(endpoint),
    }
}

fn secured(mut endpoint: Endpoint, options: &TlsOptions) -> Result<Endpoint, transport::Error> {
    let mut tls = ClientTlsConfig::new();
    tls = match &options.server_root_ca_cert {
        Some(authority) => tls.ca_certificate(Certificate::from_pem(authority)),
        None => tls.with_native_roots(),
    };
    if let Some(name) = &options.domain {
        tls = tls.domain_name(name);
        // Whom the certificate is for is also whom the requests are for. What is no name of a host is refused by the handshake.
        if let Ok(origin) = format!("https://{name}").parse() {
            endpoint = endpoint.origin(origin);
        }
    }
    if let Some(client) = &options.client_tls_options {
        let identity = transport::Identity::from_pem(&client.client_cert, &client.client_private_key);
        tls = tls.identity(identity);
    }
    endpoint.tls_config(tls)
}

/// Says with every request who asks, and by which key.
#[derive(Clone)]
pub(crate) struct Introduction {
    key: Option<AsciiMetadataValue>,
}

impl Introduction {
    fn of(options: &ConnectionOptions) -> Self {
        let key = options.api_key.as_ref();
        Self {
            key: key.and_then(|key| format!("Bearer {key}").parse().ok()),
        }
    }
}

impl Interceptor for Introduction {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        metadata.insert("client-name", MetadataValue::from_static("stationmaster"));
        metadata.insert(
            "client-version",
            MetadataValue::from_static(env!("CARGO_PKG_VERSION")),
        );
        if let Some(key) = &self.key {
            metadata.insert("authorization", key.clone());
        }
        Ok(request)
    }
}
