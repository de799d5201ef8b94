//! What errors become.

use std::io;

use stationmaster_core::id::{DefinitionId, WorkspaceId};

use super::*;

fn kind(error: impl Into<anyhow::Error>) -> Kind {
    let error = error.into();
    let report = Report::of(&error);
    assert!(!report.message.is_empty());
    report.kind
}

#[test]
fn every_kind_of_error_has_its_code() {
    use stationmaster_core::executions::{enqueue, operate};
    let refused = || db::Error::Sql(sqlx::Error::Io(io::Error::from(io::ErrorKind::ConnectionRefused)));
    assert_eq!(
        kind(catalogue::Error::UnknownWorkspace(WorkspaceId::new())),
        Kind::NotFound
    );
    assert_eq!(
        kind(catalogue::Error::UnknownPlan("GOLD".into(), "FREE".into())),
        Kind::Usage
    );
    assert_eq!(
        kind(catalogue::Error::OtherWorkspace(DefinitionId::new())),
        Kind::Conflict
    );
    assert_eq!(kind(catalogue::Error::Invalid("no".into())), Kind::Usage);
    assert_eq!(kind(catalogue::Error::Database(refused())), Kind::Unavailable);
    assert_eq!(kind(operate::Error::WrongState("no".into())), Kind::Conflict);
    assert_eq!(kind(operate::Error::Database(refused())), Kind::Unavailable);
    assert_eq!(kind(enqueue::Error::Unknown("no".into())), Kind::NotFound);
    assert_eq!(kind(enqueue::Error::TooLarge { index: 0, size: 1 }), Kind::Usage);
    assert_eq!(
        kind(signals::send::Error::Conflict {
            index: 0,
            id: "a".into()
        }),
        Kind::Conflict
    );
    assert_eq!(kind(signals::replay::Error::NotFound("a".into())), Kind::NotFound);
    assert_eq!(kind(signals::triggers::Error::BadName("name")), Kind::Usage);
    assert_eq!(kind(db::Error::Schema { found: 1, needed: 2 }), Kind::Unavailable);
    assert_eq!(kind(locks::Error::Invalid("no".into())), Kind::Usage);
    assert_eq!(kind(locks::Error::Table("no".into())), Kind::Unavailable);
    assert_eq!(kind(locks::Error::Database(refused())), Kind::Unavailable);
    assert_eq!(kind(db::Error::Sql(sqlx::Error::RowNotFound)), Kind::Failed);
    assert_eq!(kind(anyhow::anyhow!("broken")), Kind::Failed);
}

#[test]
fn a_failure_before_a_command_has_a_code_of_its_own() {
    let error = anyhow::Error::from(BeforeTheCommand(locks::Error::Table("no".into()).into()));
    let report = Report::of(&error);
    assert_eq!((report.kind, report.exit_code), (Kind::Unavailable, 125));
}

#[test]
fn causes_are_told_once() {
    let error = db::Error::Sql(sqlx::Error::Io(io::Error::other("the cable is cut")));
    assert_eq!(chain(&error).matches("the cable is cut").count(), 1);
}
