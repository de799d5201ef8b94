//! How a request reaches Stationmaster: over the network, or in the same process, without a socket. Everything above is the same
//! for both: a client tells them apart no more than its callers do.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};

use crate::error::Result;

/// What is sent.
pub type Request = http::Request<Bytes>;
/// What comes back. The body comes in parts, so that events can be heard as they happen.
pub type Response = http::Response<BoxStream<'static, std::result::Result<Bytes, BoxError>>>;
/// Why a body was cut off.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Answers requests in this process. It bounds their time itself.
type Service = dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync;

#[derive(Clone)]
pub(crate) enum Transport {
    Network(reqwest::Client),
    InProcess(Arc<Service>),
}

impl Transport {
    pub(crate) fn in_process<A>(service: impl Fn(Request) -> A + Send + Sync + 'static) -> Self
    where
        A: Future<Output = Response> + Send + 'static,
    {
        Self::InProcess(Arc::new(move |request| service(request).boxed()))
    }

    /// Sends a request once. The time bounds the whole answer.
    pub(crate) async fn send(
        &self,
        request: Request,
        timeout: Option<std::time::Duration>,
    ) -> Result<reqwest::Response> {
        match self {
            Self::Network(http) => {
                let mut request = reqwest::Request::try_from(request)?;
                *request.timeout_mut() = timeout;
                Ok(http.execute(request).await?)
            }
            Self::InProcess(service) => {
                let response = service(request).await;
                Ok(response
                    .map(|body| reqwest::Body::wrap_stream(body.boxed()))
                    .into())
            }
        }
    }
}
