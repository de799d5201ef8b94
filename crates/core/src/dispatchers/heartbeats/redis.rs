//! Heartbeats in Redis, under `dispatcher:heartbeat:<dispatcher id>`. Redis's own clock dates them; scripts make every write
//! conditional on the epoch. A key outlives any stale threshold by far, so that an orphan is seen and removed, not hidden.

use std::path::PathBuf;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ErrorKind, RedisError, Script, TlsCertificates, cmd,
};
use futures::FutureExt as _;
use futures::future::try_join_all;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::{Answered, Found, Heartbeat, Heartbeats, Unavailable, Unread};
use crate::dispatchers::{DispatcherId, Epoch, Tenure};
use crate::id::ServerId;
use crate::tls;

const PREFIX: &str = "dispatcher:heartbeat:";
/// The longest that a call may take, connecting included.
const TIMEOUT: Duration = Duration::from_secs(2);
/// What nobody removes is gone after a day.
const EXPIRY: Duration = Duration::from_hours(24);
const SCAN_PAGE: usize = 500;

/// KEYS: the heartbeat. ARGV: epoch, the heartbeat without its time, expiry in ms.
const BEAT: &str = r"
local clock = redis.call('TIME')
local old = redis.call('GET', KEYS[1])
if old then
    local readable, held = pcall(cjson.decode, old)
    if readable and type(held) == 'table' and (tonumber(held.epoch) or 0) > tonumber(ARGV[1]) then
        return 0
    end
end
local beat = cjson.decode(ARGV[2])
beat.last_heartbeat = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('SET', KEYS[1], cjson.encode(beat), 'PX', ARGV[3])
return 1";

/// KEYS: the heartbeat. ARGV: epoch, server.
const REMOVE: &str = r"
local old = redis.call('GET', KEYS[1])
if not old then return 0 end
local readable, held = pcall(cjson.decode, old)
if not readable or type(held) ~= 'table' or tonumber(held.epoch) ~= tonumber(ARGV[1]) or held.server_id ~= ARGV[2] then
    return 0
end
return redis.call('DEL', KEYS[1])";

/// KEYS: what was found. ARGV: what it said.
const REMOVE_SAME: &str = r"
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])";

/// A heartbeat as it is kept.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    beat: Heartbeat,
    /// Milliseconds since 1970, by the clock of Redis.
    #[serde(default)]
    last_heartbeat: u64,
}

/// The files that an encrypted connection (`rediss://`) is made with, PEM. They are read for each connection.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The authority that signed the certificate of Redis; without one, those that browsers trust.
    pub authority: Option<PathBuf>,
    /// Our certificate and its key, where Redis asks for one.
    pub own: Option<(PathBuf, PathBuf)>,
}

impl Files {
    fn client(&self, url: &str) -> Result<Client, RedisError> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| {
                let words = format!("the file {} cannot be read: {error}", path.display());
                RedisError::from((ErrorKind::InvalidClientConfig, "a certificate is missing", words))
            })
        };
        if self.authority.is_none() && self.own.is_none() {
            return Client::open(url);
        }
        let own = self.own.as_ref().map(|(certificate, key)| {
            Ok::<_, RedisError>(ClientTlsConfig {
                client_cert: read(certificate)?,
                client_key: read(key)?,
            })
        });
        let certificates = TlsCertificates {
            client_tls: own.transpose()?,
            root_cert: self.authority.as_ref().map(read).transpose()?,
        };
        Client::build_with_tls(url, certificates)
    }
}

/// See the module.
pub struct RedisHeartbeats {
    url: String,
    files: Files,
    /// Made when first needed, made again when it is found dead.
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl RedisHeartbeats {
    /// Heartbeats at this address. Nothing is sent yet: a Redis that is away shows in the first call.
    pub fn new(url: &str, files: Files) -> Result<Self, RedisError> {
        // Another part of the program may have chosen the same provider before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        files.client(url)?;
        Ok(Self {
            url: url.to_owned(),
            files,
            connection: Mutex::new(None),
        })
    }

    async fn connected(&self) -> Result<MultiplexedConnection, RedisError> {
        let mut place = self.connection.lock().await;
        if let Some(connection) = &*place {
            return Ok(connection.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT));
        let connection = self
            .files
            .client(&self.url)?
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        Ok(place.insert(connection).clone())
    }

    /// Makes a call on the connection; a connection on which one failed is not used again.
    async fn call<T>(
        &self,
        call: impl AsyncFnOnce(MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<T, Unavailable> {
        let attempt = async { call(self.connected().await?).await };
        let problem = match tokio::time::timeout(TIMEOUT * 2, attempt).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => tls::explain(&error, &tls::REDIS).unwrap_or_else(|| error.to_string()),
            Err(_) => "no answer in time".to_owned(),
        };
        *self.connection.lock().await = None;
        Err(unavailable(problem))
    }
}

fn unavailable(reason: String) -> Unavailable {
    Unavailable {
        store: "Redis",
        reason,
    }
}

/// The heartbeat of a tenure as it is kept, but for its time.
fn written(tenure: &Tenure) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Written {
        beat: Heartbeat {
            dispatcher_id: tenure.dispatcher_id.clone(),
            project: tenure.project.clone(),
            task_queue: tenure.task_queue.clone(),
            server_id: tenure.owner,
            epoch: tenure.epoch,
            age: Duration::ZERO,
        },
        last_heartbeat: 0,
    })
}

fn key(dispatcher: &DispatcherId) -> String {
    format!("{PREFIX}{dispatcher}")
}

/// Redis's time, and what lies under each name. What is no text is no heartbeat of anybody's, and is left out.
async fn read_all(
    mut connection: MultiplexedConnection,
) -> Result<(u64, Vec<(String, Option<String>)>), RedisError> {
    let mut keys: Vec<String> = Vec::new();
    let mut cursor = 0_u64;
    loop {
        let (next, page): (u64, Vec<String>) = cmd("SCAN")
            .arg(cursor)
            .arg("MATCH")
            .arg(format!("{PREFIX}*"))
            .arg("COUNT")
            .arg(SCAN_PAGE)
            .query_async(&mut connection)
            .await?;
        keys.extend(page);
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    keys.sort_unstable();
    keys.dedup();
    let (seconds, micros): (u64, u64) = cmd("TIME").query_async(&mut connection).await?;
    let now = seconds * 1_000 + micros / 1_000;
    if keys.is_empty() {
        return Ok((now, Vec::new()));
    }
    let values: Vec<Option<Vec<u8>>> = cmd("MGET").arg(&keys).query_async(&mut connection).await?;
    let texts = values.into_iter().map(|value| String::from_utf8(value?).ok());
    Ok((now, keys.into_iter().zip(texts).collect()))
}

impl Heartbeats for RedisHeartbeats {
    fn beat<'a>(&'a self, tenures: &'a [Tenure]) -> Answered<'a, usize> {
        async move {
            let texts: Vec<String> = tenures
                .iter()
                .map(written)
                .collect::<Result<_, _>>()
                .map_err(|error| unavailable(error.to_string()))?;
            let script = Script::new(BEAT);
            let taken: Vec<i64> = self
                .call(async |connection| {
                    // They share the connection, so they go out together.
                    let beats = tenures.iter().zip(&texts).map(|(tenure, text)| {
                        let mut connection = connection.clone();
                        let mut call = script.prepare_invoke();
                        call.key(key(&tenure.dispatcher_id))
                            .arg(tenure.epoch.0)
                            .arg(text)
                            .arg(EXPIRY.as_secs() * 1_000);
                        async move { call.invoke_async(&mut connection).await }
                    });
                    try_join_all(beats).await
                })
                .await?;
            Ok(taken.into_iter().filter(|taken| *taken == 1).count())
        }
        .boxed()
    }

    fn check(&self) -> Answered<'_, ()> {
        self.call(async |mut connection| cmd("PING").query_async::<()>(&mut connection).await)
            .boxed()
    }

    fn list(&self) -> Answered<'_, Found> {
        async move {
            let (now, values) = self.call(read_all).await?;
            let mut found = Found::default();
            for (key, text) in values {
                let Some(text) = text else { continue };
                match serde_json::from_str::<Written>(&text) {
                    Ok(one) => found.heartbeats.push(Heartbeat {
                        age: Duration::from_millis(now.saturating_sub(one.last_heartbeat)),
                        ..one.beat
                    }),
                    Err(_) => found.unread.push(Unread {
                        dispatcher_id: DispatcherId(key.trim_start_matches(PREFIX).to_owned()),
                        text,
                    }),
                }
            }
            Ok(found)
        }
        .boxed()
    }

    fn remove_unread<'a>(&'a self, found: &'a Unread) -> Answered<'a, bool> {
        async move {
            let removed: i64 = self
                .call(async |mut connection| {
                    Script::new(REMOVE_SAME)
                        .key(key(&found.dispatcher_id))
                        .arg(&found.text)
                        .invoke_async(&mut connection)
                        .await
                })
                .await?;
            Ok(removed == 1)
        }
        .boxed()
    }

    fn remove<'a>(
        &'a self,
        dispatcher: &'a DispatcherId,
        epoch: Epoch,
        server: ServerId,
    ) -> Answered<'a, bool> {
        async move {
            let removed: i64 = self
                .call(async |mut connection| {
                    Script::new(REMOVE)
                        .key(key(dispatcher))
                        .arg(epoch.0)
                        .arg(server.to_string())
                        .invoke_async(&mut connection)
                        .await
                })
                .await?;
            Ok(removed == 1)
        }
        .boxed()
    }
}
