//! How one call is made, and made again. A call says itself whether a repeat could do anything twice; what cannot be told
//! apart from a first try that did its work is repeated only when it could not.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Uri;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;
use uuid::Uuid;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::transport::Request;
use crate::wire::Problem;

/// Names a request, so that a repeat is answered and not done again.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How a request is rather answered.
pub(crate) const PREFER: HeaderName = HeaderName::from_static("prefer");

/// What a repeat could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Safety {
    /// Nothing that the first try did not do.
    Repeatable,
    /// It could do it twice: only what never arrived is sent again.
    Once,
}

/// One call, being made.
pub(crate) struct Call<'a> {
    pub(crate) client: &'a Client,
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Result<Bytes>>,
    pub(crate) safety: Safety,
}

impl Call<'_> {
    pub(crate) fn query(mut self, query: &impl Serialize) -> Self {
        // Queries are flat and hold only words and numbers, so each field is a pair.
        if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(query) {
            let mut pairs = self.url.query_pairs_mut();
            for (name, value) in fields {
                match value {
                    serde_json::Value::String(text) => pairs.append_pair(&name, &text),
                    other => pairs.append_pair(&name, &other.to_string()),
                };
            }
        }
        // Without a pair the question mark would stay behind.
        if self.url.query() == Some("") {
            self.url.set_query(None);
        }
        self
    }

    pub(crate) fn json(mut self, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body)
            .map(Bytes::from)
            .map_err(|error| Error::Answer(error.to_string()));
        self.headers
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.body = Some(body);
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: Option<&str>) -> Self {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            self.headers.insert(name, value);
        }
        self
    }

    /// A change under a condition: a repeat would find its own change in the way.
    pub(crate) fn only_if(mut self, name: HeaderName, tag: Option<&str>) -> Self {
        if tag.is_some() {
            self.safety = Safety::Once;
        }
        self.header(name, tag)
    }

    /// To be carried out once under this key, or under a new one.
    pub(crate) fn once_for(mut self, key: Option<&str>) -> Self {
        let made = Uuid::now_v7().to_string();
        self.safety = Safety::Repeatable;
        self.header(IDEMPOTENCY_KEY, Some(key.unwrap_or(&made)))
    }

    /// The server keeps no answers here: whatever may have arrived is not sent again.
    pub(crate) fn unkept(mut self) -> Self {
        self.headers.remove(IDEMPOTENCY_KEY);
        self.safety = Safety::Once;
        self
    }

    /// The body itself says that a repeat is the same request.
    pub(crate) fn named_by_its_body(mut self) -> Self {
        self.headers.remove(IDEMPOTENCY_KEY);
        self.safety = Safety::Repeatable;
        self
    }

    /// Makes the call and reads its answer.
    pub(crate) async fn send<T: DeserializeOwned>(self) -> Result<T> {
        let body = self.answer().await?;
        serde_json::from_slice(&body).map_err(|error| Error::Answer(error.to_string()))
    }

    /// Makes the call; its answer has nothing to read.
    pub(crate) async fn send_for_nothing(self) -> Result<()> {
        self.answer().await.map(drop)
    }

    /// The body of the answer, after as many tries as it takes and as there may be.
    async fn answer(self) -> Result<Bytes> {
        let (began, mut tried) = (Instant::now(), 0);
        loop {
            let answer = self.once().await;
            tried += 1;
            let error = match answer {
                Ok(body) => return Ok(body),
                // An earlier try may have arrived, and done it.
                Err(Error::NotFound(_)) if self.method == Method::DELETE && tried > 1 => {
                    return Ok(Bytes::new());
                }
                Err(error) => error,
            };
            let again = match self.safety {
                Safety::Repeatable => error.may_pass(),
                Safety::Once => error.never_arrived(),
            };
            let dice = rand::random();
            let wait = self
                .client
                .retries
                .wait(tried, began.elapsed(), error.retry_after(), dice);
            match wait {
                Some(wait) if again => tokio::time::sleep(wait).await,
                _ => return Err(error),
            }
        }
    }

    async fn once(&self) -> Result<Bytes> {
        let response = self.respond(Some(self.client.timeout)).await?;
        Ok(response.bytes().await?)
    }

    /// Makes the call once; a refusal is an error.
    pub(crate) async fn respond(&self, timeout: Option<Duration>) -> Result<Response> {
        let body = match &self.body {
            Some(Ok(body)) => body.clone(),
            Some(Err(error)) => return Err(Error::Answer(error.to_string())),
            None => Bytes::new(),
        };
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri(&self.url)?;
        request.headers_mut().extend(self.headers.clone());
        if let Some(token) = &self.client.token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        let response = self.client.transport.send(request, timeout).await?;
        if response.status().is_success() {
            self.client.note(response.headers().get(ETAG));
            return Ok(response);
        }
        Err(refusal(response).await)
    }
}

fn uri(url: &Url) -> Result<Uri> {
    url.as_str()
        .parse()
        .map_err(|error| Error::Settings(format!("the address cannot be used: {error}")))
}

async fn refusal(response: Response) -> Error {
    let status = response.status();
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .map(Duration::from_secs);
    match response.bytes().await {
        Ok(body) => match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Error::of(problem, retry_after),
            Err(_) => Error::of(foreign(status), retry_after),
        },
        Err(error) => error.into(),
    }
}

/// An answer of somebody in between, who does not speak our language.
fn foreign(status: StatusCode) -> Problem {
    Problem {
        kind: "about:blank".to_owned(),
        title: status.canonical_reason().unwrap_or("refused").to_owned(),
        status: status.as_u16(),
        detail: Some(format!("the answer was {status}, and not one of Stationmaster's")),
        request_id: None,
        errors: Vec::new(),
        taken: None,
    }
}
