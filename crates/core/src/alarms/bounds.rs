//! What may stand in the fields of an alarm: what the constraints of its table demand, asked before them. A table tells of the first
//! that is broken; whoever filled in a form wants to hear of all. Pure.

use jiff::Timestamp;
use serde_json::value::RawValue;
use stationmaster_wire::{AlarmChange, NewAlarm};

use super::set::demanded;
use super::terms::Wrong;

/// The fields that have bounds, as far as they are given.
struct Given<'a> {
    idempotency_key: Option<&'a str>,
    label: Option<&'a str>,
    user_id: Option<&'a str>,
    conversation_id: Option<&'a str>,
    message: Option<&'a str>,
    payload: Option<&'a RawValue>,
    max_failures: Option<u32>,
    pause_after: Option<u32>,
    catch_up: Option<u32>,
    misfire_window: Option<f64>,
    jitter: Option<f64>,
    start_at: Option<Timestamp>,
    end_at: Option<Timestamp>,
}

/// A day, in seconds.
const DAY: f64 = 86_400.0;

impl Given<'_> {
    /// By the name of the constraint, which says what it demands.
    fn broken(&self) -> Vec<Wrong> {
        let longer = |text: Option<&str>, most: usize| text.is_some_and(|text| text.chars().count() > most);
        let beyond =
            |number: Option<u32>, most: u32| number.is_some_and(|number| !(1..=most).contains(&number));
        let order = self.start_at.zip(self.end_at);
        let key = self.idempotency_key.map(|key| key.chars().count());
        let demands = [
            (
                key.is_some_and(|length| !(1..=256).contains(&length)),
                "the_idempotency_key_has_1_to_256_characters",
            ),
            (longer(self.label, 200), "the_label_has_at_most_200_characters"),
            (longer(self.user_id, 256), "user_id_has_at_most_256_characters"),
            (
                longer(self.conversation_id, 256),
                "conversation_id_has_at_most_256_characters",
            ),
            (
                self.message.is_some_and(|message| message.len() > 65_536),
                "the_message_is_at_most_64_kib",
            ),
            (
                self.payload.is_some_and(|payload| payload.get().len() > 262_144),
                "the_payload_is_at_most_256_kib",
            ),
            (
                beyond(self.max_failures, 100),
                "max_failures_is_a_number_from_1_to_100",
            ),
            (
                beyond(self.pause_after, 1000),
                "pause_after_is_a_number_from_1_to_1000",
            ),
            (beyond(self.catch_up, 1000), "catch_up_is_a_number_from_1_to_1000"),
            (
                self.misfire_window.is_some_and(|window| window <= 0.0),
                "the_misfire_window_is_positive",
            ),
            (
                self.jitter.is_some_and(|jitter| !(0.0..=DAY).contains(&jitter)),
                "jitter_is_between_nothing_and_a_day",
            ),
            (
                order.is_some_and(|(start, end)| end <= start),
                "the_end_comes_after_the_start",
            ),
        ];
        let broken = demands.into_iter().filter(|(is_broken, _)| *is_broken);
        broken.map(|(_, constraint)| demanded(constraint)).collect()
    }
}

/// Of a new alarm.
pub(super) fn of_new(request: &NewAlarm) -> Vec<Wrong> {
    let given = Given {
        idempotency_key: request.idempotency_key.as_deref(),
        label: Some(&request.label),
        user_id: request.user_id.as_deref(),
        conversation_id: request.conversation_id.as_deref(),
        message: request.message.as_deref(),
        payload: request.payload.as_deref(),
        max_failures: request.max_failures,
        pause_after: request.pause_after,
        catch_up: request.catch_up,
        misfire_window: request.misfire_window,
        jitter: request.jitter,
        start_at: request.start_at,
        end_at: request.end_at,
    };
    given.broken()
}

/// Of a change; what it takes away has no bounds.
pub(super) fn of_change(change: &AlarmChange) -> Vec<Wrong> {
    let given = Given {
        idempotency_key: None,
        label: change.label.as_deref(),
        user_id: change.user_id.as_ref().and_then(Option::as_deref),
        conversation_id: change.conversation_id.as_ref().and_then(Option::as_deref),
        message: change.message.as_ref().and_then(Option::as_deref),
        payload: change.payload.as_ref().and_then(Option::as_deref),
        max_failures: change.max_failures.flatten(),
        pause_after: change.pause_after.flatten(),
        catch_up: change.catch_up,
        misfire_window: change.misfire_window.flatten(),
        jitter: change.jitter,
        start_at: change.start_at.flatten(),
        end_at: change.end_at.flatten(),
    };
    given.broken()
}
