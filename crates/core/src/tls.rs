//! What a handshake that failed means, in words: whose certificate was refused, for which reason, and which setting mends it. What the
//! libraries say is true and short (`UnknownIssuer`), and tells nobody what to do. And clients of HTTP, which have to begin with somebody to trust.

use std::error::Error;
use std::io;
use std::sync::{Arc, Once};

use rustls::{AlertDescription, CertificateError};

use crate::task::chain;

/// Whom we speak to, and where its settings are.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// What it is called.
    pub name: &'static str,
    /// What to set so that another authority is trusted.
    pub authority: &'static str,
    /// What to set so that another name is expected.
    pub host: &'static str,
    /// What to set so that it knows who we are.
    pub own: &'static str,
}

/// The database.
pub const POSTGRES: Peer = Peer {
    name: "PostgreSQL",
    authority: "name the authority that signed it by sslrootcert=PATH in database_url",
    host: "use the name that the certificate has as the host in database_url, or sslmode=verify-ca, which asks for no name",
    own: "name ours by sslcert=PATH and sslkey=PATH in database_url",
};

/// The heartbeats.
pub const REDIS: Peer = Peer {
    name: "Redis",
    authority: "name the authority that signed it by the setting redis_tls_ca_file",
    host: "use the name that the certificate has as the host in redis_url",
    own: "name ours by the settings redis_tls_cert_file and redis_tls_key_file",
};

/// The engine.
pub const TEMPORAL: Peer = Peer {
    name: "Temporal",
    authority: "name the authority that signed it by the setting temporal.tls_ca_file",
    host: "name the one that it has by the setting temporal.tls_server_name",
    own: "name ours by the settings temporal.tls_cert_file and temporal.tls_key_file",
};

/// A client of HTTP that trusts the authorities of this machine. Where there are none it trusts nobody, and still goes wherever no
/// certificate is asked for: a bare machine is no reason not to work.
pub(crate) fn client(
    builder: impl Fn() -> reqwest::ClientBuilder,
) -> Result<reqwest::Client, reqwest::Error> {
    static TOLD: Once = Once::new();
    builder().build().or_else(|error| {
        let client = builder().tls_certs_only([]).build()?;
        TOLD.call_once(|| {
            let error = chain(&error);
            tracing::warn!(
                error,
                "This machine knows no certificate authorities, so nothing is trusted that begins with https: install ca-certificates, or name a file of them by SSL_CERT_FILE"
            );
        });
        Ok(client)
    })
}

/// What is wrong and what to do, when this error is a handshake that failed.
#[must_use]
pub fn explain(error: &(dyn Error + 'static), peer: &Peer) -> Option<String> {
    let failure = find(error)?;
    let Peer { name, .. } = peer;
    Some(match failure {
        rustls::Error::InvalidCertificate(why) => {
            let (what, remedy) = judge(why, peer);
            format!("the certificate of {name} {what} ({failure}): {remedy}")
        }
        rustls::Error::NoCertificatesPresented => format!("{name} has shown no certificate"),
        rustls::Error::AlertReceived(alert) if is_about_us(*alert) => {
            format!("{name} does not take our certificate ({failure}): {}", peer.own)
        }
        other => format!("TLS with {name} failed: {other}"),
    })
}

fn judge(why: &CertificateError, peer: &Peer) -> (&'static str, &'static str) {
    use CertificateError as Why;
    match why {
        Why::Expired | Why::ExpiredContext { .. } => ("has expired", "renew it there"),
        Why::NotValidYet | Why::NotValidYetContext { .. } => {
            ("is not valid yet", "compare the clocks, or renew it there")
        }
        Why::NotValidForName | Why::NotValidForNameContext { .. } => ("is for another host name", peer.host),
        Why::UnknownIssuer | Why::BadSignature => (
            "was signed by an authority that is not trusted here",
            peer.authority,
        ),
        Why::Revoked => ("was revoked", "renew it there"),
        _ => ("cannot be accepted", "renew it there"),
    }
}

/// Did it refuse us for what we showed, or did not show?
fn is_about_us(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::CertificateRequired
            | Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::DecryptError
    )
}

/// Libraries wrap it in what is not told as a cause: errors of input and output, and shared ones.
fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(found) = error.downcast_ref() {
        return Some(found);
    }
    let wrapped: Option<&'a (dyn Error + 'static)> = if let Some(error) = error.downcast_ref::<io::Error>() {
        error.get_ref().map(|inner| inner as _)
    } else if let Some(shared) = error.downcast_ref::<Arc<dyn Error + Send + Sync>>() {
        Some(&**shared)
    } else {
        None
    };
    wrapped.or_else(|| error.source()).and_then(find)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_certificate_is_told_with_its_reason_and_its_remedy_however_it_is_wrapped() {
        let refused = || rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let plain = io::Error::new(io::ErrorKind::InvalidData, refused());
        let shared: Arc<dyn Error + Send + Sync> =
            Arc::new(io::Error::new(io::ErrorKind::InvalidData, refused()));
        let twice = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, refused()));
        for error in [&plain as &(dyn Error + 'static), &shared, &twice] {
            let words = explain(error, &TEMPORAL).unwrap();
            assert!(words.contains("not trusted here"), "{words}");
            assert!(words.contains("temporal.tls_ca_file"), "{words}");
        }
    }

    #[test]
    fn each_reason_has_its_own_words() {
        let words = |why| explain(&rustls::Error::InvalidCertificate(why), &REDIS).unwrap();
        assert!(words(CertificateError::Expired).contains("has expired"));
        assert!(words(CertificateError::NotValidForName).contains("redis_url"));
        let alert = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
        assert!(explain(&alert, &REDIS).unwrap().contains("redis_tls_cert_file"));
        assert_eq!(explain(&io::Error::other("no handshake"), &REDIS), None);
    }
}
