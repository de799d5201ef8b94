//! Words between the wire and the core, one match each: a word that one side lacks does not compile.

use stationmaster_client::wire;
use stationmaster_core::access::Role;
use stationmaster_core::alarms::{AlarmKind, AlarmStatus, MisfirePolicy, OccurrenceStatus, Overlap};
use stationmaster_core::engine::CloseStatus;
use stationmaster_core::executions::{ExecutionStatus, ItemStatus};
use stationmaster_core::signals::SignalStatus;
use stationmaster_schedule::DstPolicy;

/// A word of one side as the other side's.
pub(crate) trait Translate<Other> {
    /// The same word.
    fn translate(self) -> Other;
}

macro_rules! translate {
    ($($one:path = $other:path { $($word:ident),+ $(,)? })+) => {$(
        impl Translate<$other> for $one {
            fn translate(self) -> $other {
                match self {
                    $(<$one>::$word => <$other>::$word,)+
                }
            }
        }
    )+};
}

translate! {
    ItemStatus = wire::ItemStatus { Pending, Claimed, Dispatched, Failed, Cancelled }
    wire::ItemStatus = ItemStatus { Pending, Claimed, Dispatched, Failed, Cancelled }
    wire::CancellableStatus = ItemStatus { Pending, Claimed, Dispatched }
    ExecutionStatus = wire::ExecutionStatus {
        Pending, Starting, Running, Completed, Failed, Cancelled, Terminated, TimedOut
    }
    wire::ExecutionStatus = ExecutionStatus {
        Pending, Starting, Running, Completed, Failed, Cancelled, Terminated, TimedOut
    }
    wire::CompleteStatus = CloseStatus { Completed, Failed, Cancelled, Terminated, TimedOut }
    wire::RetriableStatus = CloseStatus { Failed, Cancelled, Terminated, TimedOut }
    SignalStatus = wire::SignalStatus { Pending, Routed, Dead }
    wire::SignalStatus = SignalStatus { Pending, Routed, Dead }
    AlarmKind = wire::AlarmKind { Once, Cron }
    wire::AlarmKind = AlarmKind { Once, Cron }
    AlarmStatus = wire::AlarmStatus { Active, Paused, Fired, Cancelled, Failed }
    wire::AlarmStatus = AlarmStatus { Active, Paused, Fired, Cancelled, Failed }
    OccurrenceStatus = wire::OccurrenceStatus {
        Pending, Claimed, Retrying, Fired, Failed, Skipped, Coalesced, Cancelled
    }
    wire::OccurrenceStatus = OccurrenceStatus {
        Pending, Claimed, Retrying, Fired, Failed, Skipped, Coalesced, Cancelled
    }
    MisfirePolicy = wire::Misfire { Coalesce, CatchUp, Skip }
    Overlap = wire::Overlap { Allow, Queue, Skip }
    wire::Overlap = Overlap { Allow, Queue, Skip }
    DstPolicy = wire::Dst { Vixie, Skip, Both }
    wire::Dst = DstPolicy { Vixie, Skip, Both }
    Role = wire::Role { Viewer, Operator, Admin }
    wire::Role = Role { Viewer, Operator, Admin }
}
