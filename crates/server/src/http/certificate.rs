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
use stationmaster_core::observe::Metrics;
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
    /// Where to tell when it ends.
    metrics: Option<Arc<Metrics>>,
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

impl Shown {
    /// When the first of the chain ends, in seconds since 1970.
    fn ends_at(&self) -> Option<f64> {
        let pair = Arc::clone(&self.0.read());
        ends_at(pair.cert.first()?)
    }
}

/// The end of a certificate's validity. Of all that stands before it only the lengths are read.
fn ends_at(certificate: &[u8]) -> Option<f64> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut body, _) = element(certificate)?;
    // The version may be left out; then come serial number, algorithm and issuer, and then the validity.
    if body.first() == Some(&0xA0) {
        body = element(body)?.2;
    }
    for _ in 0..3 {
        body = element(body)?.2;
    }
    let (_, validity, _) = element(body)?;
    let (_, _, until) = element(validity)?;
    let (kind, text, _) = element(until)?;
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let digits = match kind {
        // Two digits of the year, of which those from 50 on are of the last century.
        0x17 if text.get(..2)? >= "50" => format!("19{text}"),
        0x17 => format!("20{text}"),
        0x18 => text.to_owned(),
        _ => return None,
    };
    let moment = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", &digits).ok()?;
    let moment = moment.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit")]
    Some(moment.as_second() as f64)
}

/// The first element of what is encoded by DER: its kind, what it holds, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&kind, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7F => (usize::from(first), rest),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    let (held, rest) = rest.split_at_checked(length)?;
    Some((kind, held, rest))
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
            metrics: None,
        }))
    }

    /// Tells when what is shown ends, now and whenever it is replaced.
    pub(super) fn tell(&mut self, metrics: Arc<Metrics>) {
        metrics.certificate_ends(self.shown.ends_at());
        self.metrics = Some(metrics);
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
                        if let Some(metrics) = &self.metrics {
                            metrics.certificate_ends(self.shown.ends_at());
                        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_tells_when_it_ends_in_either_of_the_two_ways_to_write_it() {
        // Two digits for the year until 2049, four from then on.
        for (year, seconds) in [(2030, 1_893_542_400.0), (2060, 2_840_227_200.0)] {
            let mut wanted = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            wanted.not_after = rcgen::date_time_ymd(year, 1, 2);
            let key = rcgen::KeyPair::generate().unwrap();
            let certificate = wanted.self_signed(&key).unwrap();
            assert_eq!(ends_at(certificate.der()), Some(seconds));
        }
        assert_eq!(ends_at(b"no certificate"), None);
    }
}
