//! What the outside has to say about Temporal, and the one place where it is checked.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use temporalio_client::{
    ClientTlsOptions, ConnectionOptions, GrpcCompression, RetryOptions, TlsOptions, Url,
};

const DEFAULT_PORT: u16 = 7233;

/// Where Temporal is and who we are to it.
#[derive(Clone)]
pub struct TemporalConfig {
    /// `host:port`, or a URL with the scheme `http` or `https`. The port is 7233 when none is given.
    pub address: String,
    /// The namespace that the executions run in. It must exist.
    pub namespace: String,
    /// The name under which this process appears in Temporal's histories.
    pub identity: String,
    /// How long any one call may take, connecting included. A start has its own deadline.
    pub rpc_timeout: Duration,
    /// TLS. Without it the connection is plain, unless the address says `https` or there is an API key.
    pub tls: Option<TemporalTls>,
    /// Sent as a bearer token with every call.
    pub api_key: Option<String>,
}

/// How the connection is secured. The files are PEM. They are read for each connection, so that a certificate that was renewed is used
/// by the next one.
#[derive(Debug, Clone, Default)]
pub struct TemporalTls {
    /// The authority that signed the server's certificate; the system's authorities when absent.
    pub ca_certificate: Option<PathBuf>,
    /// The name to expect in the server's certificate, when it is not the host of the address.
    pub server_name: Option<String>,
    /// Who we are, where the server asks for it.
    pub client: Option<ClientIdentity>,
}

/// A client certificate and its key.
#[derive(Debug, Clone)]
pub struct ClientIdentity {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// A configuration that can never work.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Neither `host:port` nor a URL.
    #[error("the address of Temporal, {address:?}, is neither host:port nor a URL: {reason}")]
    Address {
        /// As it was given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A plain address together with settings for TLS.
    #[error(
        "the address of Temporal, {0:?}, says http, but TLS is configured; write https or leave the scheme out"
    )]
    PlainAddressWithTls(String),
    /// Calls need a namespace.
    #[error("the namespace of Temporal is empty; the usual one is called \"default\"")]
    EmptyNamespace,
    /// A certificate or a key is not where it should be.
    #[error("the file {path:?}, for TLS with Temporal, cannot be read: {reason}")]
    File {
        /// Where it should be.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A call that may take no time cannot succeed.
    #[error("the time allowed for a call to Temporal is zero")]
    ZeroTimeout,
}

impl TemporalConfig {
    /// A plain connection to `address`, with the usual namespace and ten seconds for a call.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            namespace: "default".to_owned(),
            identity: "stationmaster".to_owned(),
            rpc_timeout: Duration::from_secs(10),
            tls: None,
            api_key: None,
        }
    }

    /// For calls that are ours to repeat: a request goes out once or not at all.
    pub(crate) fn connection_options(&self) -> Result<ConnectionOptions, ConfigError> {
        self.options(RetryOptions::no_retries())
    }

    /// For a worker, whose polls the library itself repeats.
    pub(crate) fn worker_options(&self) -> Result<ConnectionOptions, ConfigError> {
        self.options(RetryOptions::default())
    }

    fn options(&self, retries: RetryOptions) -> Result<ConnectionOptions, ConfigError> {
        if self.namespace.is_empty() {
            return Err(ConfigError::EmptyNamespace);
        }
        if self.rpc_timeout.is_zero() {
            return Err(ConfigError::ZeroTimeout);
        }
        let target = self.target()?;
        let tls = (target.scheme() == "https").then(|| self.tls.clone().unwrap_or_default().read());
        let tls = tls.transpose()?;
        Ok(ConnectionOptions::new(target)
            .identity(self.identity.as_str())
            .maybe_tls_options(tls)
            .maybe_api_key(self.api_key.clone())
            .retry_options(retries)
            // Dispatches are small, and the server's time is what limits how many it takes.
            .grpc_compression(GrpcCompression::None)
            .build())
    }

    /// Is TLS spoken?
    pub(crate) fn is_encrypted(&self) -> bool {
        self.target().is_ok_and(|target| target.scheme() == "https")
    }

    /// The address as a URL whose scheme says whether TLS is spoken.
    fn target(&self) -> Result<Url, ConfigError> {
        let wrong = |reason: &str| ConfigError::Address {
            address: self.address.clone(),
            reason: reason.to_owned(),
        };
        let with_scheme = if self.address.contains("://") {
            self.address.clone()
        } else if self.tls.is_some() || self.api_key.is_some() {
            format!("https://{}", self.address)
        } else {
            format!("http://{}", self.address)
        };
        let mut url: Url = with_scheme.parse().map_err(|error| wrong(&format!("{error}")))?;
        match url.scheme() {
            "http" if self.tls.is_some() => {
                return Err(ConfigError::PlainAddressWithTls(self.address.clone()));
            }
            "http" | "https" => {}
            _ => return Err(wrong("the scheme must be http or https")),
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(wrong("it names no host"));
        }
        if url.port().is_none() && !names_port(&with_scheme) {
            url.set_port(Some(DEFAULT_PORT))
                .map_err(|()| wrong("it cannot have a port"))?;
        }
        Ok(url)
    }
}

/// Whether a URL names its port itself; the parser drops one that is the default of the scheme.
fn names_port(url: &str) -> bool {
    let authority = url
        .split("://")
        .nth(1)
        .unwrap_or_default()
        .split('/')
        .next()
        .unwrap_or_default();
    let after_host = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
    after_host.contains(':')
}

impl TemporalTls {
    fn read(self) -> Result<TlsOptions, ConfigError> {
        let client = self.client.map(|client| {
            let options = ClientTlsOptions::builder()
                .client_cert(read(&client.certificate)?)
                .client_private_key(read(&client.key)?)
                .build();
            Ok(options)
        });
        let authority = self.ca_certificate.as_deref().map(read);
        Ok(TlsOptions::builder()
            .maybe_server_root_ca_cert(authority.transpose()?)
            .maybe_domain(self.server_name)
            .maybe_client_tls_options(client.transpose()?)
            .build())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path).map_err(|error| ConfigError::File {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

/// What a secret looks like in a log.
fn withheld<T>(secret: Option<&T>) -> Option<&'static str> {
    secret.map(|_| "withheld")
}

impl fmt::Debug for TemporalConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TemporalConfig")
            .field("address", &self.address)
            .field("namespace", &self.namespace)
            .field("identity", &self.identity)
            .field("rpc_timeout", &self.rpc_timeout)
            .field("tls", &self.tls)
            .field("api_key", &withheld(self.api_key.as_ref()))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(address: &str) -> Result<String, ConfigError> {
        TemporalConfig::new(address).target().map(|url| url.to_string())
    }

    #[test]
    fn an_address_is_a_host_and_port_or_a_url() {
        for (address, url) in [
            ("127.0.0.1:7233", "http://127.0.0.1:7233/"),
            ("temporal.internal", "http://temporal.internal:7233/"),
            ("[::1]:7000", "http://[::1]:7000/"),
            ("[::1]", "http://[::1]:7233/"),
            ("http://temporal:80", "http://temporal/"),
            ("https://temporal.example", "https://temporal.example:7233/"),
            ("https://temporal.example:443/", "https://temporal.example/"),
        ] {
            assert_eq!(target(address).as_deref(), Ok(url), "{address}");
        }
    }

    #[test]
    fn an_address_that_is_none_is_refused_with_what_is_wrong() {
        for address in ["", "host:port", "ftp://host", "http://"] {
            let refusal = target(address).unwrap_err();
            assert!(
                matches!(&refusal, ConfigError::Address { .. }),
                "{address}: {refusal}"
            );
        }
    }

    #[test]
    fn an_api_key_or_tls_makes_the_connection_secure_and_http_contradicts_tls() {
        let mut config = TemporalConfig::new("temporal:7233");
        config.api_key = Some("key".to_owned());
        assert_eq!(config.target().unwrap().scheme(), "https");
        let mut config = TemporalConfig::new("http://temporal:7233");
        config.tls = Some(TemporalTls::default());
        assert_eq!(
            config.target(),
            Err(ConfigError::PlainAddressWithTls(
                "http://temporal:7233".to_owned()
            ))
        );
    }

    #[test]
    fn secrets_are_not_printed() {
        let mut config = TemporalConfig::new("temporal:7233");
        config.api_key = Some("very-secret".to_owned());
        let printed = format!("{config:?}");
        assert!(!printed.contains("very-secret"), "{printed}");
    }
}
