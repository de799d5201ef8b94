//! A line to the database that can be cut and can go silent. When one end leaves, the other is told, as by the kernel.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Connections are numbered from 1.
#[derive(Clone)]
struct Faults {
    newest: watch::Sender<u64>,
    /// Up to here they are closed.
    cut: watch::Sender<u64>,
    /// Up to here nothing passes.
    silent: watch::Sender<u64>,
}

pub(crate) struct Line {
    pub(crate) port: u16,
    faults: Faults,
    _tasks: JoinSet<()>,
}

impl Line {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let faults = Faults {
            newest: watch::Sender::new(0),
            cut: watch::Sender::new(0),
            silent: watch::Sender::new(0),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, port, faults.clone()));
        Self {
            port: own,
            faults,
            _tasks: tasks,
        }
    }

    /// Closes what is open; new connections are served.
    pub(crate) fn cut(&self) {
        self.faults.cut.send_replace(*self.faults.newest.borrow());
    }

    /// What is open goes silent; new connections are served.
    pub(crate) fn silence(&self) {
        self.faults.silent.send_replace(*self.faults.newest.borrow());
    }
}

async fn accept(listener: TcpListener, port: u16, faults: Faults) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else {
            continue;
        };
        faults.newest.send_modify(|newest| *newest += 1);
        let number = *faults.newest.borrow();
        let (mut cut, silent) = (faults.cut.subscribe(), faults.silent.clone());
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        connections.spawn(async move {
            tokio::select! {
                () = pass(from_client, to_server, number, silent.clone()) => {}
                () = pass(from_server, to_client, number, silent) => {}
                _ = cut.wait_for(|cut| *cut >= number) => {}
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Until one end is closed. What is read in a silence is lost.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, number: u64, silent: watch::Sender<u64>) {
    let mut buffer = vec![0; 32 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if *silent.borrow() < number && to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
