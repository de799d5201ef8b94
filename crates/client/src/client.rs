//! The client: an address, a token, and what a call is made with. How one call is made stands in `call`, what the calls are
//! in `nouns`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue, IF_MATCH};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use crate::call::{Call, Safety};
use crate::error::{Error, Result};
use crate::retry::Retries;
use crate::transport::{Request, Response, Transport};

/// How long one try may take unless it is said otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Who we say that we are.
const USER_AGENT: &str = concat!("stationmaster-client/", env!("CARGO_PKG_VERSION"));

/// The address of a Stationmaster in the same process, which nobody resolves.
const IN_PROCESS: &str = "http://in-process.invalid";

/// Speaks to a Stationmaster. Cheap to copy.
#[derive(Clone)]
pub struct Client {
    pub(crate) transport: Transport,
    pub(crate) base: Url,
    pub(crate) token: Option<HeaderValue>,
    pub(crate) timeout: Duration,
    pub(crate) retries: Retries,
    /// What changes say that they expect.
    pub(crate) expects: Option<HeaderValue>,
    /// Where the tag of the last answer is noted.
    pub(crate) seen: Option<Arc<Mutex<Option<String>>>>,
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
    retries: Option<Retries>,
    user_agent: Option<String>,
    authority: Option<Vec<u8>>,
}

impl ClientBuilder {
    /// The token to come in with.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// How long one try of a call may take; streams of events may take for ever. How long all tries may take together is
    /// told by [`Retries::deadline`].
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How often what may safely be repeated is repeated; [`Retries::none`] for never.
    #[must_use]
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retries = Some(retries);
        self
    }

    /// Who calls, for the logs of whoever is in between; `stationmaster-client` and its version when left out.
    #[must_use]
    pub fn user_agent(mut self, user_agent: impl Into<String>) -> Self {
        self.user_agent = Some(user_agent.into());
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
        let base = base(address)?;
        let http = self.network()?;
        self.over(Transport::Network(http), base)
    }

    /// A client whose requests this service answers, in the same process and without a socket: the router of a Stationmaster
    /// that is embedded, or a test's own. The service bounds the time of its answers itself; everything else is as over the
    /// network, retries too.
    ///
    /// ```
    /// # use futures::{StreamExt as _, stream};
    /// # use stationmaster_client::{Client, Response};
    /// # async fn example() -> stationmaster_client::Result<()> {
    /// let client = Client::builder().in_process(|_request| async {
    ///     Response::new(stream::iter([Ok(r#"{"items": []}"#.into())]).boxed())
    /// })?;
    /// assert!(client.plans().await?.is_empty());
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub fn in_process<A>(self, service: impl Fn(Request) -> A + Send + Sync + 'static) -> Result<Client>
    where
        A: Future<Output = Response> + Send + 'static,
    {
        let base = base(IN_PROCESS)?;
        self.over(Transport::in_process(service), base)
    }

    fn over(self, transport: Transport, base: Url) -> Result<Client> {
        Ok(Client {
            transport,
            base,
            token: self.token.as_deref().map(bearer).transpose()?,
            timeout: self.timeout.unwrap_or(TIMEOUT),
            retries: self.retries.unwrap_or_default(),
            expects: None,
            seen: None,
        })
    }

    fn network(&self) -> Result<reqwest::Client> {
        let provider = rustls::crypto::ring::default_provider();
        // Somebody else may have chosen one before; whichever is there serves.
        let _ = provider.install_default();
        let http = || {
            reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                // What is repeated, and when, is told by our own rules alone.
                .retry(reqwest::retry::never())
                .connect_timeout(CONNECT_TIMEOUT)
                .user_agent(self.user_agent.as_deref().unwrap_or(USER_AGENT))
        };
        let authority = self.authority.as_deref().map(reqwest::Certificate::from_pem);
        let authority = authority
            .transpose()
            .map_err(|_| Error::Settings("the authority is no certificate in PEM".to_owned()))?;
        let known = http().tls_certs_merge(authority.clone()).build();
        // A machine that knows no authorities trusts the one that was named, and otherwise nobody.
        known
            .or_else(|_| http().tls_certs_only(authority).build())
            .map_err(|error| Error::Settings(format!("the client cannot be made: {error}")))
    }
}

fn base(address: &str) -> Result<Url> {
    let wrong = |error: &dyn std::fmt::Display| Error::Settings(format!("{address} is no address: {error}"));
    let base: Url = address.parse().map_err(|error| wrong(&error))?;
    if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
        return Err(wrong(&"it must begin with http:// or https://"));
    }
    Ok(base)
}

fn bearer(token: &str) -> Result<HeaderValue> {
    let value = HeaderValue::try_from(format!("Bearer {token}"));
    let mut value = value.map_err(|_| Error::Settings("the token is not one of ours".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

impl Client {
    /// A client to be made.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Where the server is.
    #[must_use]
    pub fn address(&self) -> &Url {
        &self.base
    }

    /// The same client, whose changes (`PUT`, `PATCH`, `DELETE`) are made only while what they change is still what was seen: a
    /// tag from [`Client::with_tag`], or `*` for whatever is there. Otherwise they fail with [`Error::Precondition`].
    pub fn only_if(&self, tag: &str) -> Result<Self> {
        let expects =
            HeaderValue::try_from(tag).map_err(|_| Error::Settings(format!("{tag:?} is no tag")))?;
        Ok(Self {
            expects: Some(expects),
            ..self.clone()
        })
    }

    /// What a call answers, and the tag of it, if it has one.
    ///
    /// ```no_run
    /// # async fn example(client: stationmaster_client::Client, id: uuid::Uuid) -> stationmaster_client::Result<()> {
    /// let (workspace, tag) = client.with_tag(async |client| client.workspace(id).await).await?;
    /// if let Some(tag) = tag {
    ///     // Fails when somebody has changed it since.
    ///     client.only_if(&tag)?.delete_workspace(workspace.id).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn with_tag<T>(
        &self,
        call: impl AsyncFnOnce(Self) -> Result<T>,
    ) -> Result<(T, Option<String>)> {
        let seen = Arc::new(Mutex::new(None));
        let noting = Self {
            seen: Some(Arc::clone(&seen)),
            ..self.clone()
        };
        let answer = call(noting).await?;
        let tag = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok((answer, tag))
    }

    /// A call under `/v1`. Reading, and writing what a repeat would only write again, may be repeated.
    pub(crate) fn call(&self, method: Method, path: &[&str]) -> Call<'_> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        let safety = if method == Method::POST {
            Safety::Once
        } else {
            Safety::Repeatable
        };
        let changes = matches!(method, Method::PUT | Method::PATCH | Method::DELETE);
        let expects = self.expects.as_ref().filter(|_| changes);
        let call = Call {
            client: self,
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
            safety,
        };
        call.only_if(IF_MATCH, expects.and_then(|tag| tag.to_str().ok()))
    }

    /// Notes the tag of an answer, if somebody wants to know it.
    pub(crate) fn note(&self, tag: Option<&HeaderValue>) {
        if let Some(seen) = &self.seen {
            let tag = tag.and_then(|tag| tag.to_str().ok()).map(ToOwned::to_owned);
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = tag;
        }
    }

    /// A look at what lies beside `/v1`, once.
    pub(crate) fn get_beside(&self, path: &[&str]) -> Call<'_> {
        let mut call = self.get(&[]);
        call.url = self.base.clone();
        if let Ok(mut segments) = call.url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        call.safety = Safety::Once;
        call
    }

    pub(crate) fn get(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::GET, path)
    }

    /// A POST that the server carries out once for its key: so it may be repeated.
    pub(crate) fn post(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::POST, path).once_for(None)
    }

    /// Reads what matches.
    pub(crate) async fn read<T: DeserializeOwned>(&self, path: &[&str], query: &impl Serialize) -> Result<T> {
        self.get(path).query(query).send().await
    }

    /// Asks for something to be done, once for this call.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, path: &[&str], body: &impl Serialize) -> Result<T> {
        self.ask_once(path, None, body).await
    }

    /// The same, once for this key.
    pub(crate) async fn ask_once<T: DeserializeOwned>(
        &self,
        path: &[&str],
        key: Option<&str>,
        body: &impl Serialize,
    ) -> Result<T> {
        let call = self.post(path).once_for(key);
        call.json(body).send().await
    }

    /// Changes something; with a tag, only if it is still what was seen.
    pub(crate) async fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        change: &impl Serialize,
        if_match: Option<&str>,
    ) -> Result<T> {
        let call = self.call(method, path).only_if(IF_MATCH, if_match);
        call.json(change).send().await
    }

    /// Removes something.
    pub(crate) async fn remove(&self, path: &[&str]) -> Result<()> {
        self.call(Method::DELETE, path).send_for_nothing().await
    }
}
