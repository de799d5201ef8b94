//! What every command has at hand: the settings, the way to the database, the format of its output, and who acts. Settings
//! are read when a command asks for them, so that a command which needs none is not stopped by a wrong one.

use std::sync::Arc;
use std::time::Duration;

use nix::unistd::{Uid, User};
use serde::Serialize;
use stationmaster_client::{Client, ClientBuilder, Retries};
use stationmaster_core::db::Database;
use stationmaster_core::locks::Locks;
use stationmaster_core::observe::Metrics;
use stationmaster_core::session::Scope;

use crate::config::{Complaints, Flags, Loaded, Stored, Target, TargetFlags, before_contexts, load, target};
use crate::failure::{Kind, Refusal};
use crate::output::{Format, ask};
use crate::{http, wiring};

/// A command does one thing at a time; one that watches also listens.
const CONNECTIONS: u32 = 3;
/// People wait for the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// And rather hear soon that nobody is there: what was refused at once is tried again, and not what was waited for in vain. A server waits some
/// seconds itself for a database that is away.
const RETRIES: Retries = Retries {
    tries: 3,
    base: Duration::from_millis(200),
    cap: Duration::from_secs(2),
    deadline: Duration::from_secs(3),
};

/// What a command has at hand.
pub(crate) struct Context {
    /// For whom to write.
    pub(crate) format: Format,
    /// Where to work, as the flags say.
    pub(crate) target: TargetFlags,
    flags: Flags,
}

impl Context {
    pub(crate) fn new(format: Format, target: TargetFlags, flags: Flags) -> Self {
        Self {
            format,
            target,
            flags,
        }
    }

    /// Prints a result.
    pub(super) fn print<T: Serialize + ?Sized>(
        &self,
        value: &T,
        for_people: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        self.format.print(value, for_people)
    }

    /// Says what was done: an answer for programs, words for people.
    pub(super) fn say(&self, answer: &impl Serialize, words: String) -> anyhow::Result<()> {
        self.format.print(answer, |_| words)
    }

    /// Tells people something beside the result.
    pub(super) fn hint(&self, text: &str) {
        self.format.hint(text);
    }

    /// Where this command works.
    pub(crate) fn target(&self) -> anyhow::Result<Target> {
        target(&self.target, &self.flags)
    }

    /// What comes before the context that is in use, if something does.
    pub(super) fn before_contexts(&self) -> Option<&'static str> {
        before_contexts(&self.flags)
    }

    /// What this command works through: a server, or the same API on a database alone.
    pub(super) async fn client(&self) -> anyhow::Result<Client> {
        match self.target()? {
            Target::Api(api) => Self::client_of(&api.server),
            Target::Database => self.client_on(&self.database().await?),
        }
    }

    /// A client on this database.
    pub(super) fn client_on(&self, database: &Database) -> anyhow::Result<Client> {
        let config = Arc::new(self.settings()?.config);
        http::alone(builder(), &Self::actor(), database, &config)
    }

    /// A client of that server.
    pub(crate) fn client_of(server: &Stored) -> anyhow::Result<Client> {
        Self::built(builder(), server)
    }

    /// The same for whoever wants to hear what is wrong: it asks once.
    pub(super) fn client_that_asks_once(server: &Stored) -> anyhow::Result<Client> {
        Self::built(builder().retries(Retries::none()), server)
    }

    fn built(mut builder: ClientBuilder, server: &Stored) -> anyhow::Result<Client> {
        if let Some(token) = &server.token {
            builder = builder.token(token);
        }
        if let Some(path) = &server.ca_file {
            let pem = std::fs::read(path).map_err(|error| {
                let message = format!("the file {} cannot be read: {error}", path.display());
                Refusal::usage(message, "Name a certificate in PEM by --ca-file")
            })?;
            builder = builder.authority(pem);
        }
        Ok(builder.build(&server.url)?)
    }

    /// The settings, checked.
    pub(crate) fn settings(&self) -> Result<Loaded, Complaints> {
        load(&self.flags)
    }

    /// The database, with the tables that this program needs.
    pub(crate) async fn database(&self) -> anyhow::Result<Database> {
        let database = self.any_database().await?;
        database.check_schema().await?;
        // What is changed is written down under the name of whoever runs the command.
        Ok(database.on_behalf(&Self::actor(), Scope::All))
    }

    /// The database, whatever tables it has.
    pub(crate) async fn any_database(&self) -> anyhow::Result<Database> {
        self.any_database_with(CONNECTIONS).await
    }

    /// The same, for a command that does several things at once.
    pub(crate) async fn any_database_with(&self, connections: u32) -> anyhow::Result<Database> {
        if let Target::Api(api) = self.target()? {
            let message = format!(
                "this works only directly on a database, and {} says to work through {}",
                api.origin, api.server.url
            );
            return Err(Refusal::usage(message, "Give --database-url").into());
        }
        let config = self.settings()?.config;
        let Some(url) = &config.database_url else {
            return Err(Refusal::usage(
                "no database is configured: the setting database_url is missing, and no server was named",
                "Set STATIONMASTER_DATABASE_URL=postgres://user:password@host:5432/database, or give --database-url or --config; \
                 or work through a server: --url, or stationmaster contexts add NAME --url URL",
            )
            .into());
        };
        let database = config.database(url, connections)?;
        wiring::reach(&database).await?;
        Ok(database)
    }

    /// The lock table itself, for commands that look after it. What they count nobody reads.
    pub(crate) fn locks(&self, database: &Database) -> Result<Locks, Complaints> {
        let table = self.settings()?.config.locks.table;
        Ok(Locks::new(database.clone(), table, Arc::new(Metrics::new())))
    }

    /// Who acts, in words for histories.
    pub(crate) fn actor() -> String {
        let user = Uid::current();
        let name = User::from_uid(user).ok().flatten().map(|user| user.name);
        format!("cli:{}", name.unwrap_or_else(|| user.to_string()))
    }

    /// Goes on only when a person agrees, now or by `--yes`.
    pub(crate) fn confirm(question: &str, yes: bool) -> anyhow::Result<()> {
        let agreed = if yes { Some(true) } else { ask(question)? };
        match agreed {
            Some(true) => Ok(()),
            Some(false) => Err(Refusal::new(Kind::Failed, "left as it is", "Nothing was changed").into()),
            None => Err(Refusal::usage(
                "this is asked first, and there is no terminal to ask at",
                "Say --yes to go on, or --dry-run to see what would happen",
            )
            .into()),
        }
    }
}

fn builder() -> ClientBuilder {
    Client::builder()
        .timeout(PATIENCE)
        .retries(RETRIES)
        .user_agent(concat!("stationmaster/", env!("CARGO_PKG_VERSION")))
}
