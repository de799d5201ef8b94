//! Which Stationmaster a command talks to: a server by HTTP, or a database directly. Flags before the environment, the
//! environment before the settings, the settings before the context in use.

use std::path::PathBuf;

use clap::Args;

use super::contexts::{Contexts, Stored};
use super::{Flags, load};
use crate::failure::{Kind, Refusal};

const URL: &str = "STATIONMASTER_URL";
const TOKEN: &str = "STATIONMASTER_TOKEN";
const CONTEXT: &str = "STATIONMASTER_CONTEXT";
/// Variables that say which server a command talks to. They are no settings: a server does not mind them.
pub(super) const VARIABLES: [&str; 3] = [URL, TOKEN, CONTEXT];

/// Flags that say where a command works.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Where to work")]
pub(crate) struct TargetFlags {
    /// Work through the server at this address (also: `STATIONMASTER_URL`), with the token in `STATIONMASTER_TOKEN`
    #[arg(long, global = true, value_name = "URL", conflicts_with_all = ["context", "database_url"])]
    pub(crate) url: Option<String>,

    /// Work through the server of this context (also: `STATIONMASTER_CONTEXT`); see `stationmaster contexts`
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "database_url")]
    pub(crate) context: Option<String>,

    /// The authority that signed the server's certificate, PEM; besides those that this machine trusts
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) ca_file: Option<PathBuf>,
}

/// Where a command works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Through a server.
    Api(Api),
    /// On the database of the setting `database_url`.
    Database,
}

/// A server, and how to come in; without a token the server may be open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Api {
    pub(crate) server: Stored,
    /// What said so, for people.
    pub(crate) origin: String,
}

impl Api {
    fn new(url: String, token: Option<String>, origin: &str) -> Self {
        let server = Stored {
            url,
            token,
            ca_file: None,
        };
        let origin = origin.to_owned();
        Self { server, origin }
    }
}

/// Where a command works.
pub(crate) fn target(flags: &TargetFlags, settings: &Flags) -> anyhow::Result<Target> {
    let mut found = find(flags, settings, &|name| std::env::var(name).ok(), Contexts::load)?;
    if let (Target::Api(api), Some(path)) = (&mut found, &flags.ca_file) {
        api.server.ca_file = Some(path.clone());
    }
    Ok(found)
}

/// What is said already and comes before the context that is in use.
pub(crate) fn before_contexts(settings: &Flags) -> Option<&'static str> {
    let environment = |name: &str| std::env::var(name).ok();
    if let Some(name) = [URL, CONTEXT]
        .into_iter()
        .find(|name| given(&environment, name).is_some())
    {
        return Some(name);
    }
    // Settings that cannot be read are told by whoever needs them.
    let database = load(settings).is_ok_and(|loaded| loaded.config.database_url.is_some());
    database.then_some("the setting database_url")
}

/// The token of the environment, for a context that is being made.
pub(crate) fn token_of_the_environment() -> Option<String> {
    given(&|name| std::env::var(name).ok(), TOKEN)
}

fn given(environment: &dyn Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    let value = environment(name)?.trim().to_owned();
    (!value.is_empty()).then_some(value)
}

fn find(
    flags: &TargetFlags,
    settings: &Flags,
    environment: &dyn Fn(&str) -> Option<String>,
    contexts: impl FnOnce() -> anyhow::Result<Contexts>,
) -> anyhow::Result<Target> {
    let given = |name| given(environment, name);
    if let Some(url) = &flags.url {
        return Ok(Target::Api(Api::new(url.clone(), given(TOKEN), "--url")));
    }
    if let Some(name) = &flags.context {
        return of_context(name, &contexts()?, given(TOKEN));
    }
    if settings.database_url.is_some() {
        return Ok(Target::Database);
    }
    if let Some(url) = given(URL) {
        return Ok(Target::Api(Api::new(url, given(TOKEN), URL)));
    }
    if let Some(name) = given(CONTEXT) {
        return of_context(&name, &contexts()?, given(TOKEN));
    }
    let contexts = contexts()?;
    // Only then do the settings matter: a wrong one must not be in the way of a command that needs none.
    let Some(current) = contexts.current.clone() else {
        return Ok(Target::Database);
    };
    if load(settings)?.config.database_url.is_some() {
        return Ok(Target::Database);
    }
    of_context(&current, &contexts, given(TOKEN))
}

fn of_context(name: &str, contexts: &Contexts, token: Option<String>) -> anyhow::Result<Target> {
    let stored = contexts.contexts.get(name);
    let mut server = stored.ok_or_else(|| no_context(name, contexts))?.clone();
    server.token = server.token.or(token);
    let origin = format!("the context {name}");
    Ok(Target::Api(Api { server, origin }))
}

/// There is no such context, and which one may have been meant.
pub(crate) fn no_context(name: &str, contexts: &Contexts) -> Refusal {
    /// Less alike is another word.
    const ALIKE: f64 = 0.6;
    let known = contexts.contexts.keys();
    let best = known
        .map(|known| (strsim::normalized_damerau_levenshtein(name, known), known))
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    let list = "See which there are: stationmaster contexts list";
    let advice = match best {
        Some((alike, known)) if alike >= ALIKE => format!("Did you mean {known}? {list}"),
        _ => list.to_owned(),
    };
    Refusal::new(Kind::NotFound, format!("there is no context {name:?}"), advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contexts() -> Contexts {
        let stored = |url: &str, token: Option<&str>| Stored {
            url: url.to_owned(),
            token: token.map(str::to_owned),
            ca_file: None,
        };
        Contexts {
            current: Some("here".to_owned()),
            contexts: [
                ("here".to_owned(), stored("http://here", Some("smt_here"))),
                ("there".to_owned(), stored("http://there", None)),
            ]
            .into(),
        }
    }

    fn found(
        url: Option<&str>,
        context: Option<&str>,
        database: Option<&str>,
        environment: &[(&str, &str)],
    ) -> String {
        let flags = TargetFlags {
            url: url.map(str::to_owned),
            context: context.map(str::to_owned),
            ca_file: None,
        };
        let settings = Flags {
            database_url: database.map(str::to_owned),
            ..Flags::default()
        };
        let variable = |name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        match find(&flags, &settings, &variable, || Ok(contexts())) {
            Ok(Target::Database) => "database".to_owned(),
            Ok(Target::Api(api)) => format!("{} {}", api.server.url, api.server.token.unwrap_or_default()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn flags_come_before_the_environment_and_that_before_the_context_in_use() {
        let all = [(URL, "http://env"), (TOKEN, "smt_env"), (CONTEXT, "there")];
        assert_eq!(
            found(Some("http://flag"), None, None, &all),
            "http://flag smt_env"
        );
        assert_eq!(found(None, Some("here"), None, &all), "http://here smt_here");
        assert_eq!(found(None, None, Some("postgres://db"), &all), "database");
        assert_eq!(found(None, None, None, &all), "http://env smt_env");
        assert_eq!(found(None, None, None, &all[1..]), "http://there smt_env");
        assert_eq!(found(None, None, None, &[]), "http://here smt_here");
        assert_eq!(found(None, None, None, &[(URL, " ")]), "http://here smt_here");
    }

    #[test]
    fn a_context_that_is_not_there_is_said() {
        assert_eq!(
            found(None, Some("nowhere"), None, &[]),
            "there is no context \"nowhere\""
        );
    }

    #[test]
    fn a_token_is_not_in_what_is_logged() {
        let api = Api::new("http://here".to_owned(), Some("smt_secret".to_owned()), "--url");
        assert!(!format!("{:?}", Target::Api(api)).contains("secret"));
    }
}
