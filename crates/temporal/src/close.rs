//! The last event of a history as the end of a run. Pure.

use jiff::Timestamp;
use serde_json::{Value, json};
use stationmaster_core::engine::{Close, CloseStatus};
use stationmaster_core::id::ExecutionId;
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use temporalio_common::protos::temporal::api::history::v1::HistoryEvent;
use temporalio_common::protos::temporal::api::history::v1::history_event::Attributes;

use crate::payload;

/// How a run of this status ended. `None` while it goes on: running, paused, or continued as a new run.
pub(crate) fn status(status: WorkflowExecutionStatus) -> Option<CloseStatus> {
    match status {
        WorkflowExecutionStatus::Completed => Some(CloseStatus::Completed),
        WorkflowExecutionStatus::Failed => Some(CloseStatus::Failed),
        WorkflowExecutionStatus::Canceled => Some(CloseStatus::Cancelled),
        WorkflowExecutionStatus::Terminated => Some(CloseStatus::Terminated),
        WorkflowExecutionStatus::TimedOut => Some(CloseStatus::TimedOut),
        WorkflowExecutionStatus::Unspecified
        | WorkflowExecutionStatus::Running
        | WorkflowExecutionStatus::ContinuedAsNew
        | WorkflowExecutionStatus::Paused => None,
    }
}

/// What the closing of a run means for its execution.
#[derive(Debug, Clone)]
pub(crate) enum Ending {
    /// The execution has ended.
    Closed(Close),
    /// The execution goes on: another run took over, or this one was a stranger's.
    GoesOn,
}

impl Ending {
    /// The same, of this run.
    pub(crate) fn of_run(mut self, run_id: &str, closed_at: Option<Timestamp>) -> Self {
        if let Self::Closed(close) = &mut self {
            close.run_id = Some(run_id.to_owned()).filter(|run_id| !run_id.is_empty());
            close.closed_at = closed_at;
        }
        self
    }
}

/// What the last event of a run that closed with `status` tells.
pub(crate) fn read(execution_id: ExecutionId, status: CloseStatus, event: HistoryEvent) -> Ending {
    let Some(attributes) = event.attributes else {
        return without_history(execution_id, status, "its last event is empty");
    };
    let mut omitted = None;
    // A successor comes from a retry policy or a cron schedule that a worker gave to the run.
    let (status, successor, output, error) = match attributes {
        Attributes::WorkflowExecutionCompletedEventAttributes(completed) => {
            omitted = payload::too_large(completed.result.as_ref());
            let output = payload::to_json(completed.result).filter(|_| omitted.is_none());
            (
                CloseStatus::Completed,
                completed.new_execution_run_id,
                output,
                None,
            )
        }
        Attributes::WorkflowExecutionFailedEventAttributes(failed) => {
            let error = payload::failure(&failed.failure.unwrap_or_default());
            (
                CloseStatus::Failed,
                failed.new_execution_run_id,
                None,
                Some(error),
            )
        }
        Attributes::WorkflowExecutionTimedOutEventAttributes(timed_out) => {
            let error = json!({"message": "the run exceeded the time allowed for it", "type": "TimedOut"});
            (
                CloseStatus::TimedOut,
                timed_out.new_execution_run_id,
                None,
                Some(error),
            )
        }
        Attributes::WorkflowExecutionContinuedAsNewEventAttributes(_) => return Ending::GoesOn,
        Attributes::WorkflowExecutionCanceledEventAttributes(cancelled) => {
            let mut error = json!({"message": "the run was cancelled", "type": "Cancelled"});
            if let Some(details) = payload::to_json(cancelled.details) {
                error["reason"] = serde_json::from_str(details.get()).unwrap_or(Value::Null);
            }
            (CloseStatus::Cancelled, String::new(), None, Some(error))
        }
        Attributes::WorkflowExecutionTerminatedEventAttributes(terminated) => {
            let reason = payload::text(&terminated.reason);
            let error = json!({
                "message": format!("the run was terminated: {reason}"),
                "type": "Terminated",
                "reason": reason,
                "identity": terminated.identity,
            });
            (CloseStatus::Terminated, String::new(), None, Some(error))
        }
        _ => return without_history(execution_id, status, "its last event does not close it"),
    };
    if !successor.is_empty() {
        return Ending::GoesOn;
    }
    let error = error.map(|error| payload::raw(&error));
    Ending::Closed(Close {
        execution_id,
        token: None,
        holder: None,
        run_id: None,
        closed_at: None,
        output_omitted: omitted,
        status,
        output,
        error,
    })
}

/// The end of a run whose history cannot be read: what is known without it, and why there is no more.
pub(crate) fn without_history(execution_id: ExecutionId, status: CloseStatus, why: &str) -> Ending {
    let message = format!("the history of the run cannot be read: {}", payload::text(why));
    let error = payload::raw(&json!({"message": message, "type": "HistoryUnavailable"}));
    Ending::Closed(Close {
        execution_id,
        token: None,
        holder: None,
        run_id: None,
        closed_at: None,
        output_omitted: None,
        status,
        output: None,
        error: Some(error),
    })
}

#[cfg(test)]
mod tests {
    use temporalio_common::protos::temporal::api::history::v1::{
        WorkflowExecutionCompletedEventAttributes, WorkflowExecutionFailedEventAttributes,
        WorkflowExecutionStartedEventAttributes, WorkflowExecutionTerminatedEventAttributes,
    };

    use super::*;

    fn read_attributes(attributes: Attributes) -> Ending {
        let event = HistoryEvent {
            attributes: Some(attributes),
            ..HistoryEvent::default()
        };
        read(ExecutionId::new(), CloseStatus::Failed, event)
    }

    fn error_of(ending: Ending) -> Value {
        let Ending::Closed(Close {
            error: Some(error), ..
        }) = ending
        else {
            panic!("{ending:?}")
        };
        serde_json::from_str(error.get()).unwrap()
    }

    #[test]
    fn a_termination_tells_who_and_why() {
        let terminated = WorkflowExecutionTerminatedEventAttributes {
            reason: "operator".to_owned(),
            identity: "me".to_owned(),
            ..WorkflowExecutionTerminatedEventAttributes::default()
        };
        let ending = read_attributes(Attributes::WorkflowExecutionTerminatedEventAttributes(terminated));
        assert!(matches!(&ending, Ending::Closed(close) if close.status == CloseStatus::Terminated));
        let error = error_of(ending);
        assert_eq!(error["message"], "the run was terminated: operator");
        assert_eq!(error["identity"], "me");
    }

    #[test]
    fn a_run_that_another_one_follows_has_not_ended() {
        let failed = WorkflowExecutionFailedEventAttributes {
            new_execution_run_id: "next".to_owned(),
            ..WorkflowExecutionFailedEventAttributes::default()
        };
        let ending = read_attributes(Attributes::WorkflowExecutionFailedEventAttributes(failed));
        assert!(matches!(ending, Ending::GoesOn));
    }

    #[test]
    fn a_history_without_an_end_is_explained_under_the_status_that_is_known() {
        let started = WorkflowExecutionStartedEventAttributes::default();
        let ending = read_attributes(Attributes::WorkflowExecutionStartedEventAttributes(started));
        assert!(matches!(&ending, Ending::Closed(close) if close.status == CloseStatus::Failed));
        assert_eq!(error_of(ending)["type"], "HistoryUnavailable");
    }

    #[test]
    fn a_run_that_returns_nothing_has_neither_output_nor_error() {
        let completed = WorkflowExecutionCompletedEventAttributes::default();
        let ending = read_attributes(Attributes::WorkflowExecutionCompletedEventAttributes(completed));
        assert!(matches!(
            ending,
            Ending::Closed(Close {
                output: None,
                error: None,
                ..
            })
        ));
    }

    #[test]
    fn a_paused_or_continued_run_is_still_open() {
        for open in [
            WorkflowExecutionStatus::Running,
            WorkflowExecutionStatus::Paused,
            WorkflowExecutionStatus::ContinuedAsNew,
            WorkflowExecutionStatus::Unspecified,
        ] {
            assert_eq!(status(open), None, "{open:?}");
        }
    }
}
