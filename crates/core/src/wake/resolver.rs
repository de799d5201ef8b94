//! Names become addresses, and every address is looked at: the last place before a connection, so that a name which meant
//! something else a moment ago does not get through.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::guard::Guard;

/// Looks names up by the system, and refuses them when one of their addresses may not be called.
pub(super) struct GuardedResolver(pub(super) Arc<Guard>);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.0);
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            for address in &found {
                guard.check(address.ip())?;
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}
