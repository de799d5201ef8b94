//! Views: addresses of lists with their filters that people keep under a name, for themselves or for all. A view is words and holds no
//! right: whoever follows it sees what the pages show to them.

pub use stationmaster_wire::{NewView, View};
use uuid::Uuid;

use crate::access::{self, acting};
use crate::db::{self, Database, Read as _, statement, within};

/// Views that one owner may keep.
const MOST: i64 = 200;
/// Views in a list.
const LISTED: i64 = 1_000;

/// Whose views are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// Who acts, as histories name them.
    pub actor: &'a str,
    /// Do they see what is for all?
    pub sees_all: bool,
}

impl Owner<'_> {
    /// A token is known by its name: another secret under the same name finds its views again.
    fn name(self) -> String {
        self.actor.splitn(3, ':').take(2).collect::<Vec<_>>().join(":")
    }
}

/// The views of an owner and those for all, by name.
pub async fn list(database: &Database, owner: Owner<'_>) -> Result<Vec<View>, db::Error> {
    let query = sqlx::query_as(statement!("views/list"))
        .bind(owner.name())
        .bind(owner.sees_all)
        .bind(None::<Uuid>)
        .bind(LISTED);
    query.all(&database.own()).await
}

/// Keeps a view; one that the owner has under this name gets the new address.
pub async fn keep(database: &Database, owner: Owner<'_>, new: &NewView) -> Result<View, access::Error> {
    let mut transaction = acting(database, owner.actor).await?;
    let query = sqlx::query_as(statement!("views/keep"))
        .bind(owner.name())
        .bind(&new.name)
        .bind(&new.path)
        .bind(new.shared)
        .bind(owner.actor)
        .bind(MOST);
    let kept: Option<View> = within(query.fetch_optional(&mut *transaction)).await?;
    within(transaction.commit()).await?;
    kept.ok_or_else(|| access::Error::Invalid(format!("at most {MOST} views can be kept; forget some")))
}

/// Forgets a view. Answers whether there was one.
pub async fn forget(database: &Database, owner: Owner<'_>, id: Uuid) -> Result<bool, db::Error> {
    let mut transaction = acting(database, owner.actor).await?;
    let query = sqlx::query_scalar::<_, Uuid>(statement!("views/forget"))
        .bind(id)
        .bind(owner.name())
        .bind(owner.sees_all);
    let gone = within(query.fetch_optional(&mut *transaction)).await?;
    within(transaction.commit()).await?;
    Ok(gone.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_name_whatever_its_secret() {
        let name = |actor| {
            Owner {
                actor,
                sees_all: true,
            }
            .name()
        };
        assert_eq!(
            name("token:anna:0190a1b2-7c3d-7000-8000-5e6f70819203"),
            "token:anna"
        );
        assert_eq!(
            name("token:anna:0190a1b2-7c3d-7000-8000-5e6f70819204"),
            "token:anna"
        );
        assert_eq!(name("cli:anna"), "cli:anna");
        assert_eq!(name("open"), "open");
    }
}
