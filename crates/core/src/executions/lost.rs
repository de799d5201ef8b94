//! Claims whose answer was lost: the connection broke while a claim was being committed or loaded, so that it may hold in
//! the database while nobody here knows of it. Given back at once, instead of when the lease runs out.

use parking_lot::Mutex;

use super::settle::{Release, give_back};
use super::{ExecutionsContext, WaitsFor};
use crate::db::{self, Read as _, statement};
use crate::id::{ExecutionId, ServerId, Token};

/// Beyond this many the leases do it.
const MOST: usize = 1_000;

/// Tokens under which executions may have been claimed unnoticed.
#[derive(Default)]
pub(super) struct Lost(Mutex<Vec<(ServerId, Token)>>);

impl Lost {
    /// A claim under this token failed, at a point where it may have been committed.
    pub(super) fn suspect(&self, holder: ServerId, token: Token) {
        let mut suspects = self.0.lock();
        if suspects.len() < MOST {
            suspects.push((holder, token));
        }
    }

    /// Gives back what was claimed. Called before the next claim, so nothing that somebody works on is among it.
    pub(super) async fn give_back(&self, context: &ExecutionsContext) -> Result<(), db::Error> {
        let suspects = self.0.lock().clone();
        let Some(&(holder, _)) = suspects.last() else {
            return Ok(());
        };
        // What an earlier self of this server has claimed is recovered like any dead server's.
        let tokens: Vec<Token> = suspects
            .iter()
            .filter(|(server, _)| *server == holder)
            .map(|(_, token)| *token)
            .collect();
        let query = sqlx::query_as(statement!("executions/lost_claims"))
            .bind(tokens)
            .bind(holder);
        let rows: Vec<(ExecutionId, Token)> = query.all(&context.database).await?;
        let release = || Release::at_once(WaitsFor::Released, "the answer to the claim was lost");
        let releases: Vec<_> = rows
            .into_iter()
            .map(|(execution, token)| (execution, token, release()))
            .collect();
        if !releases.is_empty() {
            let count = give_back(context, holder, releases, 1).await?;
            tracing::info!(executions = count, "Gave back claims whose answer was lost");
        }
        self.0.lock().clear();
        Ok(())
    }
}
