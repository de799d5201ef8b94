//! A certificate authority of the test's own, and what stands before a server that speaks no TLS itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Signs certificates, and keeps them as files.
pub(crate) struct Authority {
    pub(crate) file: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    folder: TempDir,
}

/// A certificate and its key, as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Pair {
    /// Puts this pair where another one is.
    pub(crate) fn replace(&self, other: &Self) {
        std::fs::copy(&self.certificate, &other.certificate).unwrap();
        std::fs::copy(&self.key, &other.key).unwrap();
    }
}

/// A path as settings take it.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

impl Authority {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Two authorities of one name would be one to whoever looks for the signer.
        let name = format!("authority {}", uuid::Uuid::now_v7());
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let file = folder.path().join("authority.pem");
        std::fs::write(&file, parameters.self_signed(&key).unwrap().pem()).unwrap();
        Self {
            file,
            issuer: Issuer::new(parameters, key),
            folder,
        }
    }

    /// A certificate for this host.
    pub(crate) fn sign(&self, host: &str) -> Pair {
        self.signed(CertificateParams::new(vec![host.to_owned()]).unwrap())
    }

    /// One that is over.
    pub(crate) fn sign_expired(&self, host: &str) -> Pair {
        let mut parameters = CertificateParams::new(vec![host.to_owned()]).unwrap();
        parameters.not_before = date_time_ymd(2020, 1, 1);
        parameters.not_after = date_time_ymd(2021, 1, 1);
        self.signed(parameters)
    }

    /// One that ends so long from now.
    #[allow(dead_code, reason = "each test program uses its own part of this")]
    pub(crate) fn sign_for(&self, host: &str, time: std::time::Duration) -> Pair {
        let mut parameters = CertificateParams::new(vec![host.to_owned()]).unwrap();
        parameters.not_after = std::time::SystemTime::now().checked_add(time).unwrap().into();
        self.signed(parameters)
    }

    fn signed(&self, mut parameters: CertificateParams) -> Pair {
        parameters
            .distinguished_name
            .push(DnType::CommonName, "stationmaster");
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        let place = |end: &str, text: &str| {
            let path = self.folder.path().join(format!("{}.{end}", uuid::Uuid::now_v7()));
            std::fs::write(&path, text).unwrap();
            path
        };
        Pair {
            certificate: place("pem", &certificate.pem()),
            key: place("key", &key.serialize_pem()),
        }
    }
}

/// What a TLS endpoint shows, and whom it lets in.
#[derive(Clone)]
pub(crate) struct Manner {
    pub(crate) shows: Pair,
    /// The authority of those who may come in; nobody is asked without one.
    pub(crate) asks_for: Option<PathBuf>,
}

impl Manner {
    fn acceptor(&self) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = match &self.asks_for {
            None => config.with_no_client_auth(),
            Some(authority) => {
                let roots = Arc::new(roots(authority));
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                config.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let chain = vec![CertificateDer::from_pem_file(&self.shows.certificate).unwrap()];
        let key = PrivateKeyDer::from_pem_file(&self.shows.key).unwrap();
        let mut config = config.with_single_cert(chain, key).unwrap();
        config.alpn_protocols.push(b"h2".to_vec());
        TlsAcceptor::from(Arc::new(config))
    }
}

/// Whom a client trusts that trusts this authority.
pub(crate) fn roots(authority: &Path) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(authority).unwrap())
        .unwrap();
    roots
}

/// An endpoint that speaks TLS before a server that does not.
pub(crate) struct TlsFront {
    pub(crate) address: String,
    manner: watch::Sender<Manner>,
    _tasks: JoinSet<()>,
}

impl TlsFront {
    pub(crate) async fn before(server: &str, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let manner = watch::Sender::new(manner);
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server.to_owned(), manner.subscribe()));
        Self {
            address,
            manner,
            _tasks: tasks,
        }
    }

    /// Ends every connection, and goes on in this manner.
    pub(crate) fn change(&self, manner: Manner) {
        self.manner.send_replace(manner);
    }
}

async fn accept(listener: TcpListener, server: String, mut manner: watch::Receiver<Manner>) {
    let mut connections = JoinSet::new();
    let mut acceptor = manner.borrow_and_update().acceptor();
    loop {
        let (client, _) = tokio::select! {
            accepted = listener.accept() => accepted.unwrap(),
            changed = manner.changed() => {
                if changed.is_err() {
                    return;
                }
                acceptor = manner.borrow_and_update().acceptor();
                connections = JoinSet::new();
                continue;
            }
        };
        let (acceptor, server) = (acceptor.clone(), server.clone());
        connections.spawn(async move {
            let Ok(mut client) = acceptor.accept(client).await else {
                return;
            };
            if let Ok(mut server) = TcpStream::connect(server).await {
                let _ = copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}
