//! Is there a pooler on the way to the database, and do the settings say so?

use stationmaster_core::db::{Database, Error};
use stationmaster_core::pooler::{self, BEHIND_A_POOLER, Sessions};
use stationmaster_core::task::chain;

use super::{Finding, ok, problem, warning};
use crate::config::{Config, Way};

pub(super) const ID: &str = "database.pooler";

pub(super) async fn look(database: &Database, config: &Config) -> Result<Finding, Error> {
    let way = &config.database_way;
    let work = pooler::sessions_of_work(database).await?;
    let direct = match &way.direct_url {
        Some(_) => Some(pooler::sessions_of_the_direct_way(database).await),
        None => None,
    };
    Ok(judge(way, work, direct.as_ref()))
}

fn judge(way: &Way, work: Sessions, direct: Option<&Result<Sessions, Error>>) -> Finding {
    match (work, direct) {
        (_, Some(Err(error))) => problem(
            ID,
            format!("the direct way does not lead to the database: {}", chain(error)),
            "Mend the setting database_direct_url: without it no server hears of new work, and none starts",
        ),
        (_, Some(Ok(Sessions::Shared { .. }))) => problem(
            ID,
            "database_direct_url leads through a pooler that hands out transactions too",
            "Let it name PostgreSQL itself: notifications need a session of their own",
        ),
        (Sessions::Shared { prepared: false }, _) if way.prepared => problem(
            ID,
            "database_url leads through a pooler in which prepared statements do not survive",
            BEHIND_A_POOLER,
        ),
        (Sessions::Shared { .. }, None) => warning(
            ID,
            "database_url leads through a pooler that hands out transactions, and there is no direct way: notifications do not arrive, and work starts by the poll alone",
            "Set database_direct_url to an address that leads past the pooler",
        ),
        (Sessions::Shared { prepared }, Some(_)) => ok(
            ID,
            format!(
                "through a pooler that {} prepared statements, with a direct way for notifications",
                if prepared { "keeps" } else { "does not keep" }
            ),
        ),
        (Sessions::Own, None) if !way.prepared => warning(
            ID,
            "no pooler is in the way, and database_prepared is false",
            "Leave it out: without prepared statements every call is planned anew",
        ),
        (Sessions::Own, None) => ok(ID, "none that hands out transactions"),
        (Sessions::Own, Some(_)) => ok(
            ID,
            "database_url and the direct way both lead to sessions of their own",
        ),
    }
}
