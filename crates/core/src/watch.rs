//! The watch on the way to the database: a host that goes silent is noticed, and everything that waits for it is given up.
//!
//! A crash closes connections, and whoever uses one is told. A host that loses power, an address that moves or a gateway that
//! forgets its connections say nothing: what was sent is never answered, and a call would wait until its own bound. So a
//! connection that does nothing else is asked for a sign of life, once a second. When none comes, and a new connection gets
//! one where the old one still does not, the old ones are dead: calls under way return at once, nothing from before is pooled
//! again, and every loop is woken. A database that is merely slow answers on the old connection as soon as on a new one, and
//! is left in peace.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};

use crate::db::{self, Database};
use crate::listen::Bells;
use crate::task::{Next, Pass};

/// How often a sign of life is asked for.
const EVERY: Duration = Duration::from_secs(1);
/// How long it may take before it is looked for elsewhere.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a new connection may take.
const CONNECT: Duration = Duration::from_secs(3);
/// After a new connection has answered, the old one has this long to do so too.
const SECOND_CHANCE: Duration = Duration::from_millis(500);

/// See the module.
pub(crate) struct Watch {
    database: Database,
    bells: Bells,
    connection: Option<PgConnection>,
    /// The way has been silent, and nothing has been heard since.
    is_silent: bool,
}

/// What asking for a sign of life came to.
enum Sign {
    Answered,
    /// The connection is gone, and whoever uses another one knows it too.
    Closed(sqlx::Error),
    /// Nothing on the old connection, something on a new one.
    OnlyElsewhere(Option<PgConnection>),
    /// Nothing anywhere.
    Nowhere,
}

impl Watch {
    pub(crate) fn new(database: Database, bells: Bells) -> Self {
        Self {
            database,
            bells,
            connection: None,
            is_silent: false,
        }
    }

    /// The way is open again, and what is on it from before is dead.
    fn give_up_the_old(&mut self) {
        tracing::warn!("The database was silent; what waited for it is given up, and the way is open again");
        self.is_silent = false;
        self.database.give_up();
        self.bells.ring_all();
    }
}

impl Pass for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let Some(mut connection) = self.connection.take() else {
            match open(self.database.options()).await {
                Heard::Nothing => return Err(db::Error::Silent),
                Heard::Refusal(error) => {
                    if self.is_silent {
                        self.give_up_the_old();
                    }
                    return Err(error.into());
                }
                Heard::Connection(connection) => self.connection = Some(connection),
            }
            if self.is_silent {
                self.give_up_the_old();
            }
            return Ok(Next::After(EVERY));
        };
        match ask(&mut connection, self.database.options()).await {
            Sign::Answered => self.connection = Some(connection),
            Sign::Closed(error) => return Err(error.into()),
            Sign::OnlyElsewhere(another) => {
                self.connection = another;
                self.give_up_the_old();
            }
            Sign::Nowhere => {
                tracing::warn!("The database is silent");
                self.is_silent = true;
                return Err(db::Error::Silent);
            }
        }
        Ok(Next::After(EVERY))
    }
}

async fn ask(connection: &mut PgConnection, options: &PgConnectOptions) -> Sign {
    let mut sign = std::pin::pin!(connection.ping());
    let answered = |answer| match answer {
        Ok(()) => Sign::Answered,
        Err(error) => Sign::Closed(error),
    };
    if let Ok(answer) = tokio::time::timeout(PATIENCE, &mut sign).await {
        return answered(answer);
    }
    let another = match open(options).await {
        Heard::Nothing => return Sign::Nowhere,
        Heard::Refusal(_) => None,
        Heard::Connection(another) => Some(another),
    };
    match tokio::time::timeout(SECOND_CHANCE, &mut sign).await {
        Ok(answer) => answered(answer),
        Err(_) => Sign::OnlyElsewhere(another),
    }
}

enum Heard {
    Connection(PgConnection),
    /// Somebody is there, and does not let us in.
    Refusal(sqlx::Error),
    Nothing,
}

async fn open(options: &PgConnectOptions) -> Heard {
    match tokio::time::timeout(CONNECT, options.connect()).await {
        Ok(Ok(connection)) => Heard::Connection(connection),
        Ok(Err(error)) => Heard::Refusal(error),
        Err(_) => Heard::Nothing,
    }
}
