//! The hosts of a database: one, or a primary and those that may take its place.
//!
//! An address may name several hosts (`postgres://a:5432,b:5432/db`). Connections go to the one that was chosen; who looks for
//! another asks all of them at once, and the first that takes writes is chosen. While the chosen one answers and takes writes
//! nobody looks elsewhere, so a second primary, which there should not be, changes nothing.

use std::str::FromStr as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection};

use crate::db::{Error, SESSION};

/// How long a host may take to let us in and to say whether it takes writes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// See the module.
#[derive(Debug)]
pub(crate) struct Hosts {
    all: Vec<Host>,
    chosen: AtomicUsize,
}

#[derive(Debug)]
struct Host {
    /// For words.
    name: String,
    options: PgConnectOptions,
}

/// What looking for a host came to.
pub(crate) enum Reached {
    /// This one takes writes; and it is another one than before.
    Connection(PgConnection, bool),
    /// None does, and what each said.
    Refused(Error),
    /// Nobody answered at all.
    Silence,
}

impl Hosts {
    /// Reads an address.
    pub(crate) fn read(url: &str) -> Result<Self, Error> {
        let urls = split(url).map_err(|words| Error::Url(sqlx::Error::Configuration(words.into())))?;
        let mut all = Vec::with_capacity(urls.len());
        for (name, url) in urls {
            let options = PgConnectOptions::from_str(&url).map_err(Error::Url)?;
            check_files(&url).map_err(|words| Error::Url(sqlx::Error::Configuration(words.into())))?;
            all.push(Host {
                name,
                options: options.application_name("stationmaster"),
            });
        }
        Ok(Self {
            all,
            chosen: AtomicUsize::new(0),
        })
    }

    /// The one that connections go to.
    pub(crate) fn options(&self) -> &PgConnectOptions {
        &self.all[self.chosen.load(Ordering::Relaxed) % self.all.len()].options
    }

    /// Are there others to look for?
    pub(crate) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Does whoever is at the other end of this connection take writes, as far as that matters?
    pub(crate) async fn takes_writes(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        if !self.are_several() {
            return Ok(());
        }
        let query = sqlx::query_scalar::<_, bool>("select pg_is_in_recovery()");
        if query.fetch_one(connection).await? {
            let words = "it is a replica, which takes no writes";
            return Err(sqlx::Error::Io(std::io::Error::other(words)));
        }
        Ok(())
    }

    /// Asks all of them at once, and chooses the first that will do.
    pub(crate) async fn reach(&self) -> Reached {
        let mut asked: FuturesUnordered<_> = (0..self.all.len())
            .map(async |place| (place, tokio::time::timeout(PATIENCE, self.ask(place)).await))
            .collect();
        let mut refusals = Vec::new();
        while let Some((place, answer)) = asked.next().await {
            match answer {
                Ok(Ok(connection)) => {
                    let before = self.chosen.swap(place, Ordering::Relaxed);
                    if before != place {
                        tracing::warn!(
                            host = self.all[place].name,
                            "Another host of the database takes writes now"
                        );
                    }
                    return Reached::Connection(connection, before != place);
                }
                Ok(Err(error)) => refusals.push((place, error)),
                Err(_) => {}
            }
        }
        if refusals.is_empty() {
            return Reached::Silence;
        }
        if !self.are_several()
            && let Some((_, error)) = refusals.pop()
        {
            return Reached::Refused(error.into());
        }
        let mut said: Vec<String> = self
            .all
            .iter()
            .map(|host| format!("{}: no answer", host.name))
            .collect();
        for (place, error) in refusals {
            said[place] = format!("{}: {}", self.all[place].name, Error::from(error));
        }
        Reached::Refused(Error::NoHost(said.join("; ")))
    }

    async fn ask(&self, place: usize) -> Result<PgConnection, sqlx::Error> {
        let mut connection = self.all[place].options.clone().options(SESSION).connect().await?;
        self.takes_writes(&mut connection).await?;
        Ok(connection)
    }
}

/// The files of certificates that an address names are read for each connection; that they are there is asked once, because what cannot
/// be read looks like a database that cannot be reached.
fn check_files(url: &str) -> Result<(), String> {
    for name in ["sslrootcert", "sslcert", "sslkey"] {
        if let (_, Some(value)) = take_parameter(url, name) {
            let path = percent_encoding::percent_decode_str(&value).decode_utf8_lossy();
            std::fs::read(path.as_ref())
                .map_err(|error| format!("the file {path}, named by {name}, cannot be read ({error})"))?;
        }
    }
    Ok(())
}

/// The addresses of the single hosts, where an address names several; the address itself otherwise.
#[must_use]
pub fn each(url: &str) -> Vec<String> {
    match split(url) {
        Ok(all) if all.len() > 1 => all.into_iter().map(|(_, url)| url).collect(),
        _ => vec![url.to_owned()],
    }
}

/// The part of an address that names the hosts.
fn hosts_in(url: &str) -> Option<std::ops::Range<usize>> {
    let begin = url.find("://")? + 3;
    let end = url[begin..]
        .find(['/', '?'])
        .map_or(url.len(), |place| begin + place);
    let begin = url[begin..end]
        .rfind('@')
        .map_or(begin, |place| begin + place + 1);
    Some(begin..end)
}

/// The address with the hosts of another one.
#[must_use]
pub fn with_hosts_of(url: &str, other: &str) -> String {
    match (hosts_in(url), hosts_in(other)) {
        (Some(place), Some(hosts)) => {
            format!("{}{}{}", &url[..place.start], &other[hosts], &url[place.end..])
        }
        _ => url.to_owned(),
    }
}

/// One address for each host, with its name. An address with one host stays as it is.
fn split(url: &str) -> Result<Vec<(String, String)>, String> {
    let (url, wanted) = take_parameter(url, "target_session_attrs");
    if let Some(other) = wanted.filter(|wanted| !["read-write", "primary"].contains(&wanted.as_str())) {
        return Err(format!("target_session_attrs is read-write here, not {other}"));
    }
    let Some(place) = hosts_in(&url) else {
        return Ok(vec![(String::new(), url)]);
    };
    let (before, hosts, after) = (&url[..place.start], &url[place.clone()], &url[place.end..]);
    let all = hosts
        .split(',')
        .map(|host| (host.to_owned(), format!("{before}{host}{after}")));
    if hosts.contains(',') && hosts.split(',').any(str::is_empty) {
        return Err("a host is missing beside a comma".to_owned());
    }
    Ok(all.collect())
}

/// The address without a parameter, and its value.
fn take_parameter(url: &str, name: &str) -> (String, Option<String>) {
    let Some((before, query)) = url.split_once('?') else {
        return (url.to_owned(), None);
    };
    let mut value = None;
    let mut kept = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some((key, found)) if key == name => value = Some(found.to_owned()),
            _ => kept.push(pair),
        }
    }
    let url = if kept.is_empty() {
        before.to_owned()
    } else {
        format!("{before}?{}", kept.join("&"))
    };
    (url, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(url: &str) -> Vec<String> {
        split(url).unwrap().into_iter().map(|(_, url)| url).collect()
    }

    #[test]
    fn an_address_with_one_host_stays_as_it_is() {
        for url in [
            "postgres://ann:a,b@host:5432/db?sslmode=require",
            "postgres:///db?host=/var/run",
            "postgres://host",
            "postgres://[::1]:5432/db",
            "nothing",
        ] {
            assert_eq!(hosts(url), [url]);
        }
    }

    #[test]
    fn several_hosts_are_as_many_addresses_with_everything_else_the_same() {
        assert_eq!(
            hosts(
                "postgres://ann:secret@a:5432,b,[::1]:5433/db?target_session_attrs=read-write&sslmode=require"
            ),
            [
                "postgres://ann:secret@a:5432/db?sslmode=require",
                "postgres://ann:secret@b/db?sslmode=require",
                "postgres://ann:secret@[::1]:5433/db?sslmode=require",
            ]
        );
        assert_eq!(
            with_hosts_of(
                "postgres://ann:***@a:5432/db",
                "postgres://ann:secret@a:5432,b/db"
            ),
            "postgres://ann:***@a:5432,b/db"
        );
    }

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        assert!(split("postgres://a,/db").is_err());
        assert!(split("postgres://a,b/db?target_session_attrs=standby").is_err());
    }
}
