//! What errors become.

use std::io;

use stationmaster_client::Error;
use stationmaster_client::wire::Problem;

use super::*;

fn kind(error: impl Into<anyhow::Error>) -> Kind {
    let error = error.into();
    let report = Report::of(&error);
    assert!(!report.message.is_empty());
    report.kind
}

fn problem(name: &str, status: u16, detail: &str) -> Box<Problem> {
    Box::new(Problem {
        kind: format!("urn:stationmaster:problem:{name}"),
        title: "A title".to_owned(),
        status,
        detail: Some(detail.to_owned()),
        request_id: Some("r-1".to_owned()),
        errors: Vec::new(),
        taken: None,
    })
}

fn away(name: &str, status: u16) -> Error {
    Error::Unavailable {
        problem: problem(name, status, "no"),
        retry_after: None,
    }
}

#[test]
fn every_kind_of_error_has_its_code() {
    let refused = || db::Error::Sql(sqlx::Error::Io(io::Error::from(io::ErrorKind::ConnectionRefused)));
    let no = |name, status| problem(name, status, "no");
    for (error, expected) in [
        (Error::Settings("no".into()), Kind::Usage),
        (Error::Unauthenticated(no("unauthenticated", 401)), Kind::Denied),
        (Error::Forbidden(no("forbidden", 403)), Kind::Denied),
        (Error::NotFound(no("not-found", 404)), Kind::NotFound),
        (Error::Conflict(no("conflict", 409)), Kind::Conflict),
        (Error::Conflict(no("idempotency-conflict", 409)), Kind::Conflict),
        (Error::Conflict(no("lock-lost", 409)), Kind::Conflict),
        (Error::Conflict(no("one that is new", 409)), Kind::Conflict),
        (
            Error::Precondition(no("precondition-failed", 412)),
            Kind::Conflict,
        ),
        (Error::Invalid(no("malformed", 400)), Kind::Usage),
        (Error::Invalid(no("bad-cursor", 400)), Kind::Usage),
        (Error::Invalid(no("too-large", 413)), Kind::Usage),
        (Error::Invalid(no("invalid", 422)), Kind::Usage),
        (away("unavailable", 503), Kind::Unavailable),
        (away("timeout", 503), Kind::Unavailable),
        (away("internal", 500), Kind::Failed),
        (Error::Answer("no".into()), Kind::Failed),
    ] {
        let words = format!("{error:?}");
        assert_eq!(kind(error), expected, "{words}");
    }
    assert_eq!(kind(refused()), Kind::Unavailable);
    assert_eq!(kind(db::Error::Schema { found: 1, needed: 2 }), Kind::Unavailable);
    assert_eq!(kind(db::Error::Sql(sqlx::Error::RowNotFound)), Kind::Failed);
    assert_eq!(kind(anyhow::anyhow!("broken")), Kind::Failed);
}

#[test]
fn what_is_not_there_is_looked_for_in_its_own_list() {
    let advice = |words: &str| {
        let error = Error::NotFound(problem("not-found", 404, words)).into();
        Report::of(&error).advice.unwrap_or_default()
    };
    assert_eq!(
        advice("there is no alarm 7"),
        "See which there are: stationmaster alarms list"
    );
    assert!(advice("something else is gone").contains("the list of its noun"));
}

#[test]
fn a_request_is_named_only_where_a_log_may_tell_more() {
    let message = |error: Error| Report::of(&error.into()).message;
    assert!(message(away("internal", 500)).contains("r-1"));
    assert!(!message(Error::NotFound(problem("not-found", 404, "no"))).contains("r-1"));
}

#[test]
fn a_failure_before_a_command_has_a_code_of_its_own() {
    let error = anyhow::Error::from(BeforeTheCommand(away("unavailable", 503).into()));
    let report = Report::of(&error);
    assert_eq!((report.kind, report.exit_code), (Kind::Unavailable, 125));
}

#[test]
fn fields_are_named_as_people_know_them() {
    let mut wrong = problem("invalid", 422, "/plan: there is no plan \"GOLD\"");
    let field = stationmaster_client::wire::FieldError::new;
    wrong.errors = vec![field("/plan", "there is no plan \"GOLD\""), field("/a/b", "no")];
    let error = anyhow::Error::from(Error::Invalid(wrong));
    assert_eq!(
        Report::of(&error).message,
        "plan: there is no plan \"GOLD\"; a.b: no"
    );
}

#[test]
fn tables_of_a_newer_version_are_told_with_one_piece_of_advice() {
    let error = anyhow::Error::from(db::Error::Schema { found: 12, needed: 8 });
    let report = Report::of(&error);
    assert!(!report.message.contains("migrate"), "{}", report.message);
    assert!(report.advice.as_ref().unwrap().contains("newer version"));
}
