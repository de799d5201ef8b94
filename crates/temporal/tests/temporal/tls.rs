//! TLS: a private authority, and a server that wants to know who we are.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use stationmaster_core::engine::{Engine, StartOutcome};
use stationmaster_temporal::{ClientIdentity, TemporalConfig, TemporalEngine, TemporalTls};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};

use crate::support::{PATIENCE, request, server_and_engine, start_running};

/// A name that no address has: the certificate must be checked against the configured one.
const NAME: &str = "temporal.test";

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = parameters.self_signed(&key).unwrap().pem();
        Self {
            pem,
            issuer: Issuer::new(parameters, key),
            folder: TempDir::new().unwrap(),
        }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn sign(&self, name: &str) -> ClientIdentity {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        ClientIdentity {
            certificate: self.file(&format!("{name}.pem"), &certificate.pem()),
            key: self.file(&format!("{name}.key"), &key.serialize_pem()),
        }
    }

    /// A TLS endpoint before the server that lets in only whom this authority has signed.
    async fn guard(&self, server: String) -> (String, JoinSet<()>) {
        let provider = Arc::new(crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap())
            .unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let identity = self.sign(NAME);
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(
                vec![CertificateDer::from_pem_file(&identity.certificate).unwrap()],
                PrivateKeyDer::from_pem_file(&identity.key).unwrap(),
            )
            .unwrap();
        config.alpn_protocols.push(b"h2".to_vec());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut guard = JoinSet::new();
        guard.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (acceptor, server) = (acceptor.clone(), server.clone());
                tokio::spawn(async move {
                    let Ok(mut client) = acceptor.accept(client).await else {
                        return;
                    };
                    let Ok(mut server) = TcpStream::connect(server).await else {
                        return;
                    };
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        (address, guard)
    }
}

#[tokio::test]
async fn a_guarded_server_lets_in_whom_its_authority_signed_and_nobody_else() {
    let (server, _) = server_and_engine().await;
    let authority = Authority::new();
    let (address, _guard) = authority.guard(server.address.clone()).await;
    let tls = TemporalTls {
        ca_certificate: Some(authority.file("authority.pem", &authority.pem)),
        server_name: Some(NAME.to_owned()),
        client: Some(authority.sign("stationmaster.test")),
    };
    let engine = |tls: TemporalTls| {
        let config = TemporalConfig {
            tls: Some(tls),
            ..TemporalConfig::new(&address)
        };
        TemporalEngine::new(&config).unwrap()
    };
    start_running(&engine(tls.clone()), &request()).await;

    let another = Authority::new();
    for (what, words, tls) in [
        (
            "a client without a certificate",
            "temporal.tls_cert_file",
            TemporalTls {
                client: None,
                ..tls.clone()
            },
        ),
        (
            "a certificate of another name",
            "temporal.tls_server_name",
            TemporalTls {
                server_name: None,
                ..tls.clone()
            },
        ),
        (
            "an authority that we do not trust",
            "temporal.tls_ca_file",
            TemporalTls {
                ca_certificate: None,
                ..tls.clone()
            },
        ),
        (
            "a client of another authority",
            "temporal.tls_cert_file",
            TemporalTls {
                client: Some(another.sign("stationmaster.test")),
                ..tls
            },
        ),
    ] {
        let outcome = engine(tls).start(&request(), PATIENCE).await;
        assert!(
            matches!(outcome, StartOutcome::Unavailable { .. }) && format!("{outcome:?}").contains(words),
            "{what}: {outcome:?}"
        );
    }
}
