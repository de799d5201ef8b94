//! What an answer to a start means. Pure.
//!
//! The one rule: *unavailable* is said only when nothing was started for certain, because the caller gives the slot
//! back on it. Whatever may have reached the server and has no clear answer is *in doubt*.

use std::error::Error;

use temporalio_client::tonic::{Code, ConnectError, Status};
use temporalio_common::protos::temporal::api::errordetails::v1::WorkflowExecutionAlreadyStartedFailure;
use temporalio_common::protos::utilities::decode_status_detail;

use crate::link::{CallError, chain};

/// What became of a start that did not simply succeed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A run under this id exists or existed.
    Exists {
        /// Which one, when the server says so.
        run_id: Option<String>,
    },
    /// The server will say the same the next time.
    Refused,
    /// Nothing was started.
    Unavailable,
    /// Nobody knows yet.
    InDoubt,
}

/// Judges a start that ended with an error.
pub(crate) fn judge(error: &CallError) -> Verdict {
    match error {
        CallError::NotConnected(_) => Verdict::Unavailable,
        CallError::Expired => Verdict::InDoubt,
        CallError::Answered(status) if status.source().is_some() => judge_connection(status),
        CallError::Answered(status) => judge_answer(status),
    }
}

/// An error that the connection made up. Its code is a guess of the library, so only the cause counts: a connection
/// that could not be made carried nothing, and any other may have carried the request.
fn judge_connection(status: &Status) -> Verdict {
    let never_connected = chain(status.source()).any(<dyn Error>::is::<ConnectError>);
    if never_connected {
        Verdict::Unavailable
    } else {
        Verdict::InDoubt
    }
}

/// An error that the server, or a proxy before it, sent.
fn judge_answer(status: &Status) -> Verdict {
    match status.code() {
        Code::AlreadyExists => Verdict::Exists {
            run_id: existing_run(status),
        },
        // The namespace lives on another cluster now; the request was turned away before it did anything.
        Code::FailedPrecondition if has_detail(status, "NamespaceNotActiveFailure") => Verdict::Unavailable,
        // Our namespace, and below our key and our rights: nothing of any item, and every item would be answered alike. Whoever
        // mends it finds the queue as it was.
        Code::NotFound | Code::FailedPrecondition | Code::InvalidArgument
            if is_about_the_namespace(status) =>
        {
            Verdict::Unavailable
        }
        // Faults of this request: a repeat would be answered alike.
        Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition | Code::Unimplemented => {
            Verdict::Refused
        }
        // A request beyond the server's size limit uses the code of an overload, but will never fit.
        Code::ResourceExhausted if status.message().contains("larger than max") => Verdict::Refused,
        // Rights and rate limits are checked before anything is written.
        Code::Unauthenticated | Code::PermissionDenied | Code::ResourceExhausted => Verdict::Unavailable,
        // `Unavailable` too: a frontend says it when the history service behind it broke off, perhaps after writing.
        Code::Unavailable
        | Code::DeadlineExceeded
        | Code::Cancelled
        | Code::Unknown
        | Code::Internal
        | Code::Aborted
        | Code::DataLoss
        | Code::OutOfRange
        | Code::Ok => Verdict::InDoubt,
    }
}

/// Whether an answer speaks of the namespace and not of what was asked of it: unknown, deprecated, in no state to serve.
fn is_about_the_namespace(status: &Status) -> bool {
    has_detail(status, "NamespaceNotFoundFailure")
        || has_detail(status, "NamespaceInvalidStateFailure")
        || has_detail(status, "NamespaceUnavailableFailure")
        || (status.code() == Code::NotFound && status.message().to_lowercase().contains("namespace"))
}

/// Whether the server is there and asks for fewer calls.
pub(crate) fn is_throttled(error: &CallError) -> bool {
    matches!(error, CallError::Answered(status)
        if status.code() == Code::ResourceExhausted && status.source().is_none())
}

/// Whether the server answered that it does not know the run. That it does not know the *namespace* is another
/// matter, under the same code: taken for an unknown run, it would make every execution look lost.
fn is_unknown_run(error: &CallError) -> bool {
    let CallError::Answered(status) = error else {
        return false;
    };
    status.code() == Code::NotFound && status.source().is_none() && !is_about_the_namespace(status)
}

/// An answer about a run; `None`: there is no such run.
pub(crate) fn known<T>(answer: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match answer {
        Err(error) if is_unknown_run(&error) => Ok(None),
        other => other.map(Some),
    }
}

fn existing_run(status: &Status) -> Option<String> {
    if !has_detail(status, "WorkflowExecutionAlreadyStartedFailure") {
        return None;
    }
    let detail: WorkflowExecutionAlreadyStartedFailure = decode_status_detail(status.details())?;
    Some(detail.run_id).filter(|run_id| !run_id.is_empty())
}

/// Whether the status carries a detail of this type. The type's name stands in the encoded details as plain text.
fn has_detail(status: &Status, name: &str) -> bool {
    status
        .details()
        .windows(name.len())
        .any(|window| window == name.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use temporalio_client::tonic::TimeoutExpired;
    use temporalio_common::protos::google::rpc::Status as Details;
    use temporalio_common::protos::utilities::{encode_status_details, pack_any};

    use super::*;

    fn answered(code: Code, message: &str) -> CallError {
        CallError::Answered(Box::new(Status::new(code, message)))
    }

    fn with_source(code: Code, source: impl Error + Send + Sync + 'static) -> CallError {
        let mut status = Status::new(code, "made up by the connection");
        status.set_source(Arc::new(source));
        CallError::Answered(Box::new(status))
    }

    /// An error that hides another one, as the channel's layers do.
    #[derive(Debug, thiserror::Error)]
    #[error("transport error")]
    struct Wrapped(#[source] ConnectError);

    fn refused_connection() -> ConnectError {
        ConnectError(Box::new(io::Error::from(io::ErrorKind::ConnectionRefused)))
    }

    #[test]
    fn every_way_a_start_can_fail_has_its_verdict() {
        use Verdict::{InDoubt, Refused, Unavailable};
        let table = [
            (CallError::NotConnected("refused".to_owned()), Unavailable),
            (CallError::Expired, InDoubt),
            (answered(Code::InvalidArgument, "task queue is not set"), Refused),
            (
                answered(Code::NotFound, "namespace nowhere is not found"),
                Unavailable,
            ),
            (
                answered(Code::PermissionDenied, "request unauthorized"),
                Unavailable,
            ),
            (answered(Code::Unauthenticated, "no token"), Unavailable),
            (
                answered(Code::FailedPrecondition, "client version not supported"),
                Refused,
            ),
            (answered(Code::Unimplemented, "unknown method"), Refused),
            (
                answered(Code::ResourceExhausted, "namespace rate limit exceeded"),
                Unavailable,
            ),
            (
                answered(
                    Code::ResourceExhausted,
                    "grpc: received message larger than max (5 vs. 4)",
                ),
                Refused,
            ),
            (answered(Code::Unavailable, "shard status unknown"), InDoubt),
            (
                answered(Code::DeadlineExceeded, "context deadline exceeded"),
                InDoubt,
            ),
            (answered(Code::Cancelled, "context canceled"), InDoubt),
            (answered(Code::Unknown, "?"), InDoubt),
            (answered(Code::Internal, "?"), InDoubt),
            (answered(Code::Aborted, "?"), InDoubt),
            (answered(Code::DataLoss, "?"), InDoubt),
            (answered(Code::OutOfRange, "?"), InDoubt),
            (answered(Code::Ok, "?"), InDoubt),
            (
                answered(Code::AlreadyExists, "without details"),
                Verdict::Exists { run_id: None },
            ),
            (with_source(Code::Unavailable, refused_connection()), Unavailable),
            (
                with_source(Code::Unavailable, Wrapped(refused_connection())),
                Unavailable,
            ),
            (
                with_source(Code::Unavailable, io::Error::from(io::ErrorKind::BrokenPipe)),
                InDoubt,
            ),
            (with_source(Code::Cancelled, TimeoutExpired(())), InDoubt),
            // Codes that would mean something else if the server had sent them.
            (
                with_source(
                    Code::ResourceExhausted,
                    io::Error::other("GOAWAY: enhance your calm"),
                ),
                InDoubt,
            ),
            (
                with_source(
                    Code::PermissionDenied,
                    io::Error::other("GOAWAY: inadequate security"),
                ),
                InDoubt,
            ),
        ];
        for (error, verdict) in table {
            assert_eq!(judge(&error), verdict, "{error}");
        }
    }

    #[test]
    fn an_existing_run_is_read_from_the_details() {
        let detail = WorkflowExecutionAlreadyStartedFailure {
            start_request_id: "request".to_owned(),
            run_id: "run".to_owned(),
            ..WorkflowExecutionAlreadyStartedFailure::default()
        };
        let details = encode_status_details(&Details {
            details: vec![
                pack_any(
                    "temporal.api.errordetails.v1.WorkflowExecutionAlreadyStartedFailure".to_owned(),
                    &detail,
                )
                .unwrap(),
            ],
            ..Details::default()
        });
        let status = Status::with_details(Code::AlreadyExists, "already started", details.into());
        let verdict = judge(&CallError::Answered(Box::new(status)));
        assert_eq!(
            verdict,
            Verdict::Exists {
                run_id: Some("run".to_owned())
            }
        );
    }

    #[test]
    fn an_unknown_namespace_is_not_an_unknown_run() {
        assert!(is_unknown_run(&answered(
            Code::NotFound,
            "workflow not found for ID: execution-1"
        )));
        assert!(!is_unknown_run(&answered(
            Code::NotFound,
            "Namespace nowhere is not found."
        )));
        assert!(!is_unknown_run(&answered(
            Code::Unavailable,
            "workflow not found"
        )));
        assert!(!is_unknown_run(&CallError::Expired));
    }
}
