//! The client: an address, a token, and how one call is made. What the calls are stands in `nouns`.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use crate::error::{Error, Result};
use crate::wire::Problem;

/// How long a call may take unless it is said otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Speaks to a Stationmaster. Cheap to copy.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: Option<HeaderValue>,
    timeout: Duration,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("base", &self.base.as_str())
            .finish_non_exhaustive()
    }
}

/// What a client is made of.
#[derive(Clone, Default)]
pub struct ClientBuilder {
    token: Option<String>,
    timeout: Option<Duration>,
    authority: Option<Vec<u8>>,
}

impl ClientBuilder {
    /// The token to come in with.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// How long a call may take; streams of events may take for ever.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The authority that signed the server's certificate, PEM; besides those that the system trusts.
    #[must_use]
    pub fn authority(mut self, pem: Vec<u8>) -> Self {
        self.authority = Some(pem);
        self
    }

    /// A client for the server at this address, such as `http://127.0.0.1:7373`.
    pub fn build(self, address: &str) -> Result<Client> {
        let wrong =
            |error: &dyn std::fmt::Display| Error::Settings(format!("{address} is no address: {error}"));
        let base: Url = address.parse().map_err(|error| wrong(&error))?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(wrong(&"it must begin with http:// or https://"));
        }
        let token = match self.token {
            None => None,
            Some(token) => {
                let value = HeaderValue::try_from(format!("Bearer {token}"));
                let mut value =
                    value.map_err(|_| Error::Settings("the token is not one of ours".to_owned()))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let provider = rustls::crypto::ring::default_provider();
        // Somebody else may have chosen one before; whichever is there serves.
        let _ = provider.install_default();
        let mut http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        if let Some(pem) = &self.authority {
            let certificate = reqwest::Certificate::from_pem(pem)
                .map_err(|_| Error::Settings("the authority is no certificate in PEM".to_owned()))?;
            http = http.tls_certs_merge([certificate]);
        }
        let http = http
            .build()
            .map_err(|error| Error::Settings(format!("the client cannot be made: {error}")))?;
        Ok(Client {
            http,
            base,
            token,
            timeout: self.timeout.unwrap_or(TIMEOUT),
        })
    }
}

impl Client {
    /// A client to be made.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    pub(crate) fn call(&self, method: Method, path: &[&str]) -> Call<'_> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        Call {
            client: self,
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
        }
    }

    pub(crate) fn get(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::POST, path)
    }
}

/// One call, being made.
pub(crate) struct Call<'a> {
    client: &'a Client,
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Result<Vec<u8>>>,
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
        self
    }

    pub(crate) fn json(mut self, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).map_err(|error| Error::Answer(error.to_string()));
        self.headers.insert(
            reqwest::header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        self.body = Some(body);
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: Option<&str>) -> Self {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            self.headers.insert(name, value);
        }
        self
    }

    /// Makes the call and reads its answer.
    pub(crate) async fn send<T: DeserializeOwned>(self) -> Result<T> {
        let timeout = self.client.timeout;
        let response = self.respond(Some(timeout)).await?;
        let body = response.bytes().await?;
        serde_json::from_slice(&body).map_err(|error| Error::Answer(error.to_string()))
    }

    /// Makes the call; its answer has nothing to read.
    pub(crate) async fn send_for_nothing(self) -> Result<()> {
        let timeout = self.client.timeout;
        self.respond(Some(timeout)).await.map(drop)
    }

    /// Makes the call; a refusal is an error.
    pub(crate) async fn respond(self, timeout: Option<Duration>) -> Result<Response> {
        let mut request = self
            .client
            .http
            .request(self.method, self.url)
            .headers(self.headers);
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        if let Some(token) = &self.client.token {
            request = request.header(reqwest::header::AUTHORIZATION, token.clone());
        }
        if let Some(body) = self.body {
            request = request.body(body?);
        }
        let response = request.send().await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(refusal(response).await)
    }
}

async fn refusal(response: Response) -> Error {
    let status = response.status();
    let retry_after = response
        .headers()
        .get(reqwest::header::RETRY_AFTER)
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
    }
}
