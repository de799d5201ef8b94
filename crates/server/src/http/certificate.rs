//! Our certificate: read at the start, and read again when its files change, so that one that was renewed is shown to whoever connects
//! then. A pair that cannot be used changes nothing: the one before is shown on, and the log says so.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use parking_lot::RwLock;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::config::Http;

/// How often the files are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// See the module.
pub(crate) struct Certificate {
    files: Files,
    acceptor: TlsAcceptor,
    shown: Arc<Shown>,
    /// What the files held when they were last read.
    read: Contents,
}

#[derive(Clone)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// What the two files hold.
#[derive(Clone, PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// What handshakes show.
#[derive(Debug)]
struct Shown(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

impl Certificate {
    /// The certificate and the key of the settings; `None`: plain HTTP.
    pub(crate) fn of(settings: &Http) -> Result<Option<Self>> {
        let (Some(certificate), Some(key)) = (&settings.tls_cert, &settings.tls_key) else {
            return Ok(None);
        };
        let files = Files {
            certificate: certificate.clone(),
            key: key.clone(),
        };
        let read = files.read()?;
        let shown = Arc::new(Shown(RwLock::new(files.understand(&read)?)));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&shown) as _);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Some(Self {
            files,
            acceptor: TlsAcceptor::from(Arc::new(config)),
            shown,
            read,
        }))
    }

    /// What does the handshakes.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.clone()
    }

    /// Looks at the files until `stop`.
    pub(super) async fn follow(mut self, stop: CancellationToken) {
        let mut before = None;
        while stop
            .run_until_cancelled(tokio::time::sleep(EVERY))
            .await
            .is_some()
        {
            let files = self.files.clone();
            let Ok(now) = tokio::task::spawn_blocking(move || files.read()).await else {
                return;
            };
            // Two files are not replaced at once: what is looked at twice and is the same is what was meant.
            let now = now.map_err(|error| format!("{error:#}"));
            let settled = before.as_ref() == Some(&now);
            before = Some(now.clone());
            if settled {
                self.take(now);
            }
        }
    }

    fn take(&mut self, contents: Result<Contents, String>) {
        match contents {
            Ok(contents) if contents == self.read => {}
            Ok(contents) => {
                match self.files.understand(&contents) {
                    Ok(pair) => {
                        *self.shown.0.write() = pair;
                        tracing::info!(
                            file = %self.files.certificate.display(),
                            "The certificate was replaced: who connects from now on is shown the new one"
                        );
                    }
                    Err(error) => complain(&format!("{error:#}")),
                }
                self.read = contents;
            }
            Err(error) => {
                // Told once, and again after it could be read.
                let nothing = Contents {
                    certificate: Vec::new(),
                    key: Vec::new(),
                };
                if self.read != nothing {
                    complain(&error);
                    self.read = nothing;
                }
            }
        }
    }
}

fn complain(error: &str) {
    tracing::error!(
        error,
        "The files of the certificate have changed and cannot be used; the certificate from before is shown on"
    );
}

impl Files {
    fn read(&self) -> Result<Contents> {
        let read = |path: &PathBuf, setting: &str| {
            std::fs::read(path)
                .with_context(|| format!("{} cannot be read (setting {setting})", path.display()))
        };
        Ok(Contents {
            certificate: read(&self.certificate, "http.tls_cert")?,
            key: read(&self.key, "http.tls_key")?,
        })
    }

    fn understand(&self, contents: &Contents) -> Result<Arc<CertifiedKey>> {
        let chain = CertificateDer::pem_slice_iter(&contents.certificate).collect::<Result<Vec<_>, _>>();
        let chain = chain.ok().filter(|chain| !chain.is_empty()).with_context(|| {
            format!(
                "{} is no certificate in PEM (setting http.tls_cert)",
                self.certificate.display()
            )
        })?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key)
            .with_context(|| format!("{} is no key in PEM (setting http.tls_key)", self.key.display()))?;
        let pair = CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider());
        let pair = pair.context(
            "the certificate and the key do not belong together (settings http.tls_cert, http.tls_key)",
        )?;
        Ok(Arc::new(pair))
    }
}
