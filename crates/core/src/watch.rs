//! The watch on the way to the database: a host that goes silent is noticed, and everything that waits for it is given up.
//!
//! A crash closes connections, and whoever uses one is told. A host that loses power, an address that moves or a gateway that
//! forgets its connections say nothing: what was sent is never answered, and a call would wait until its own bound. So a
//! connection that does nothing else is asked for a sign of life, once a second. When none comes, and a new connection gets
//! one where the old one still does not, the old ones are dead: calls under way return at once, nothing from before is pooled
//! again, and every loop is woken. A database that is merely slow answers on the old connection as soon as on a new one, and
//! is left in peace.
//!
//! What the watch last saw is what readiness tells ([`Outlook`]): whoever asks for it never waits for the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::PgConnection;

use crate::db::{self, Database, Read as _, within};
use crate::hosts::Reached;
use crate::listen::Bells;
use crate::schema;
use crate::task::{Next, Pass, chain};

/// How often a sign of life is asked for.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// How long it may take before it is looked for elsewhere.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// After a new connection has answered, the old one has this long to do so too.
pub(crate) const SECOND_CHANCE: Duration = Duration::from_millis(500);
/// How often the tables are looked at: somebody may have dropped them, or moved them on.
const TABLES_EVERY: Duration = Duration::from_secs(15);
/// For how long after a sign of life the database is taken to be there. Longer than a round that has to look elsewhere and finds
/// it slow, so that a slow database is no absent one.
const TRUSTED: Duration = Duration::from_secs(4);

/// Numbers that must never come twice go far ahead when the database is not where it was.
const FOLLOW_TIMELINE: &str = "select stationmaster_internal.follow_timeline()";

/// Before a server does anything: the database may have been restored from a backup, and know less than it has given out.
pub(crate) async fn follow_timeline(database: &Database) -> Result<(), db::Error> {
    let query = sqlx::query_scalar::<_, bool>(FOLLOW_TIMELINE);
    tell(query.one(database).await?);
    Ok(())
}

fn tell(moved: bool) {
    if moved {
        tracing::warn!(
            "The database goes on elsewhere, or from an earlier state: tokens and epochs go far ahead"
        );
    }
}

/// What was last seen of the database.
#[derive(Debug, Clone)]
pub(crate) struct Outlook(Arc<Mutex<Seen>>);

#[derive(Debug)]
struct Seen {
    answered_at: Instant,
    problem: Option<String>,
}

impl Outlook {
    /// The database has just answered.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Seen {
            answered_at: Instant::now(),
            problem: None,
        })))
    }

    /// What is wrong with the database, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        let seen = self.0.lock();
        let silent_for = seen.answered_at.elapsed();
        seen.problem.clone().or_else(|| {
            (silent_for > TRUSTED)
                .then(|| format!("the database has not answered for {} s", silent_for.as_secs()))
        })
    }

    fn note(&self, round: &Result<Next, db::Error>) {
        let mut seen = self.0.lock();
        seen.problem = round.as_ref().err().map(|error| chain(error));
        if round.is_ok() {
            seen.answered_at = Instant::now();
        }
    }
}

/// See the module.
pub(crate) struct Watch {
    database: Database,
    bells: Bells,
    outlook: Outlook,
    connection: Option<PgConnection>,
    /// When the tables were last found to be those that are needed.
    tables_seen_at: Option<Instant>,
    /// The way has been silent, and nothing has been heard since.
    is_silent: bool,
}

/// What asking for a sign of life came to.
enum Sign {
    Answered,
    /// The connection is gone, and whoever uses another one knows it too.
    Closed(sqlx::Error),
    /// Nothing on the old connection; a new one is made, or refused by whoever is there now.
    OnlyElsewhere(Result<(PgConnection, bool), db::Error>),
    /// Nothing anywhere.
    Nowhere,
}

impl Watch {
    pub(crate) fn new(database: Database, bells: Bells, outlook: Outlook) -> Self {
        Self {
            database,
            bells,
            outlook,
            connection: None,
            tables_seen_at: None,
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

    async fn look(&mut self) -> Result<Next, db::Error> {
        let Some(mut connection) = self.connection.take() else {
            match self.database.reach().await {
                Reached::Silence => {
                    // What was sent by others meanwhile is dead too.
                    self.is_silent = true;
                    return Err(db::Error::Silent);
                }
                Reached::Refused(error) => {
                    if self.is_silent {
                        self.give_up_the_old();
                    }
                    return Err(error);
                }
                Reached::Connection(connection, is_another) => {
                    let went_on = self.go_on(connection, is_another).await;
                    if self.is_silent {
                        self.give_up_the_old();
                    }
                    went_on?;
                }
            }
            return self.look_at_tables().await;
        };
        match ask(&mut connection, &self.database).await {
            Sign::Answered => self.connection = Some(connection),
            Sign::Closed(error) => return Err(error.into()),
            Sign::OnlyElsewhere(another) => {
                let went_on = match another {
                    Ok((connection, is_another)) => self.go_on(connection, is_another).await,
                    Err(refused) => Err(refused),
                };
                self.give_up_the_old();
                went_on?;
            }
            Sign::Nowhere => {
                tracing::warn!("The database is silent");
                self.is_silent = true;
                return Err(db::Error::Silent);
            }
        }
        self.look_at_tables().await
    }

    /// Goes on by a new connection; when it leads to another host, everybody goes there.
    async fn go_on(&mut self, connection: PgConnection, is_another: bool) -> Result<(), db::Error> {
        self.connection = Some(connection);
        self.tables_seen_at = None;
        let followed = self.follow_timeline().await;
        if is_another {
            self.database.move_over();
            self.bells.ring_all();
        }
        followed
    }

    /// After a failover the database may have lost what it had given out.
    async fn follow_timeline(&mut self) -> Result<(), db::Error> {
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        let query = sqlx::query_scalar::<_, bool>(FOLLOW_TIMELINE);
        let follow = within(query.fetch_one(connection));
        let Ok(moved) = tokio::time::timeout(PATIENCE, follow).await else {
            // The next round begins with a new connection; and should the way fall silent before, nobody would have noticed.
            self.connection = None;
            self.is_silent = true;
            return Ok(());
        };
        tell(moved?);
        Ok(())
    }

    /// Now and then: can this program go on with the tables?
    async fn look_at_tables(&mut self) -> Result<Next, db::Error> {
        let seen_lately = |at: Instant| at.elapsed() < TABLES_EVERY;
        if let Some(connection) = &mut self.connection
            && !self.tables_seen_at.is_some_and(seen_lately)
        {
            self.tables_seen_at = None;
            // No answer in time is none about the tables; whether it is silence, the next sign of life shows.
            if let Ok(tables) = tokio::time::timeout(PATIENCE, schema::check_still_usable(connection)).await {
                tables?;
                self.tables_seen_at = Some(Instant::now());
            }
        }
        Ok(Next::After(EVERY))
    }
}

impl Pass for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let round = self.look().await;
        if round.is_ok() {
            db::heard();
        }
        self.outlook.note(&round);
        round
    }
}

async fn ask(connection: &mut PgConnection, database: &Database) -> Sign {
    let mut sign = std::pin::pin!(database.ask_for_life(connection));
    let answered = |answer| match answer {
        Ok(()) => Sign::Answered,
        Err(error) => Sign::Closed(error),
    };
    if let Ok(answer) = tokio::time::timeout(PATIENCE, &mut sign).await {
        return answered(answer);
    }
    let another = match database.reach().await {
        Reached::Silence => return Sign::Nowhere,
        Reached::Refused(error) => Err(error),
        Reached::Connection(connection, is_another) => Ok((connection, is_another)),
    };
    match tokio::time::timeout(SECOND_CHANCE, &mut sign).await {
        Ok(answer) => answered(answer),
        Err(_) => Sign::OnlyElsewhere(another),
    }
}
