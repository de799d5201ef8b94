//! Temporal's payloads and failures as JSON. Pure.
//!
//! JSON passes through byte for byte: a number or a string that was re-read and re-written might not be the same.

use std::collections::HashMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use stationmaster_core::engine::OmittedOutput;
use temporalio_common::protos::temporal::api::common::v1::{Payload, Payloads};
use temporalio_common::protos::temporal::api::failure::v1::Failure;
use temporalio_common::protos::temporal::api::failure::v1::failure::FailureInfo;

/// A result beyond this stays in Temporal; what we keep says so.
const OUTPUT_LIMIT: usize = 256 * 1024;
/// A message beyond this is cut.
const TEXT_LIMIT: usize = 16 * 1024;
/// Causes below this depth are left out.
const CAUSE_LIMIT: usize = 8;

const ENCODING: &str = "encoding";

/// A payload that holds this JSON text.
pub(crate) fn from_json(text: Vec<u8>) -> Payload {
    Payload {
        metadata: HashMap::from([(ENCODING.to_owned(), b"json/plain".to_vec())]),
        data: text,
        ..Payload::default()
    }
}

/// The first of some payloads as JSON, when there is one and it is not null by its encoding.
pub(crate) fn to_json(payloads: Option<Payloads>) -> Option<Box<RawValue>> {
    let payload = payloads?.payloads.into_iter().next()?;
    let encoding = encoding(&payload);
    if encoding == "binary/null" {
        return None;
    }
    let size = payload.data.len();
    if size > OUTPUT_LIMIT {
        return Some(raw(&json!({
            "message": format!("the result is larger than {OUTPUT_LIMIT} bytes and was left in Temporal"),
            "encoding": encoding,
            "size": size,
        })));
    }
    if matches!(encoding.as_str(), "json/plain" | "json/protobuf")
        && let Some(verbatim) = verbatim(&payload.data)
    {
        return Some(verbatim);
    }
    Some(raw(
        &json!({"encoding": encoding, "data": BASE64_STANDARD.encode(&payload.data)}),
    ))
}

/// What is known of a result beyond the limit; `None`: it is within it.
pub(crate) fn too_large(payloads: Option<&Payloads>) -> Option<OmittedOutput> {
    let payload = payloads?.payloads.first()?;
    (payload.data.len() > OUTPUT_LIMIT).then(|| OmittedOutput {
        size: payload.data.len() as u64,
        encoding: encoding(payload),
    })
}

/// A failure and what caused it, as `{"message", "type", "details", "stackTrace", "cause"}`, of which the latter may be missing.
pub(crate) fn failure(failure: &Failure) -> Value {
    failure_within(failure, CAUSE_LIMIT)
}

/// A value of our own making in the form that leaves this crate.
pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A text of bounded length, without the character NUL, which not every store of JSON can hold.
pub(crate) fn text(message: &str) -> String {
    let kept = &message[..message.floor_char_boundary(TEXT_LIMIT)];
    let mut text = kept.replace('\0', "\u{fffd}");
    if kept.len() < message.len() {
        text.push_str(" ...");
    }
    text
}

fn encoding(payload: &Payload) -> String {
    let name = payload.metadata.get(ENCODING);
    name.map_or_else(
        || "unknown".to_owned(),
        |name| String::from_utf8_lossy(name).into_owned(),
    )
}

fn verbatim(data: &[u8]) -> Option<Box<RawValue>> {
    RawValue::from_string(str::from_utf8(data).ok()?.to_owned()).ok()
}

fn failure_within(failure: &Failure, depth: usize) -> Value {
    let mut value = json!({"message": text(&failure.message), "type": kind(failure)});
    if let Some(details) = details(failure) {
        value["details"] = details;
    }
    if !failure.stack_trace.is_empty() {
        value["stackTrace"] = Value::String(text(&failure.stack_trace));
    }
    if let Some(cause) = &failure.cause
        && depth > 0
    {
        value["cause"] = failure_within(cause, depth - 1);
    }
    value
}

/// What the application gave along with its failure, one value after the other.
fn details(failure: &Failure) -> Option<Value> {
    let payloads = match failure.failure_info.as_ref()? {
        FailureInfo::ApplicationFailureInfo(info) => info.details.as_ref()?,
        FailureInfo::CanceledFailureInfo(info) => info.details.as_ref()?,
        _ => return None,
    };
    if payloads.payloads.is_empty() {
        return None;
    }
    let size: usize = payloads.payloads.iter().map(|payload| payload.data.len()).sum();
    if size > TEXT_LIMIT {
        return Some(json!(format!(
            "{size} bytes, more than {TEXT_LIMIT}, were left in Temporal"
        )));
    }
    let read = |payload: &Payload| {
        let one = Payloads {
            payloads: vec![payload.clone()],
        };
        let json = to_json(Some(one)).and_then(|raw| serde_json::from_str(raw.get()).ok());
        without_nul(json.unwrap_or_default())
    };
    Some(payloads.payloads.iter().map(read).collect())
}

/// The same without the character NUL, which not every store of JSON can hold.
fn without_nul(value: Value) -> Value {
    let plain = |text: String| text.replace('\0', "\u{fffd}");
    match value {
        Value::String(text) => Value::String(plain(text)),
        Value::Array(values) => values.into_iter().map(without_nul).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (plain(name), without_nul(value)))
            .collect(),
        other => other,
    }
}

/// What the application called its failure, or which part of Temporal failed.
fn kind(failure: &Failure) -> String {
    let kind = match &failure.failure_info {
        Some(FailureInfo::ApplicationFailureInfo(info)) if !info.r#type.is_empty() => {
            return text(&info.r#type);
        }
        Some(FailureInfo::ApplicationFailureInfo(_)) => "ApplicationFailure",
        Some(FailureInfo::TimeoutFailureInfo(_)) => "TimeoutFailure",
        Some(FailureInfo::CanceledFailureInfo(_)) => "CancelledFailure",
        Some(FailureInfo::TerminatedFailureInfo(_)) => "TerminatedFailure",
        Some(FailureInfo::ServerFailureInfo(_)) => "ServerFailure",
        Some(FailureInfo::ResetWorkflowFailureInfo(_)) => "ResetWorkflowFailure",
        Some(FailureInfo::ActivityFailureInfo(_)) => "ActivityFailure",
        Some(FailureInfo::ChildWorkflowExecutionFailureInfo(_)) => "ChildWorkflowFailure",
        Some(FailureInfo::NexusOperationExecutionFailureInfo(_)) => "NexusOperationFailure",
        Some(FailureInfo::NexusHandlerFailureInfo(_)) => "NexusHandlerFailure",
        None => "Failure",
    };
    kind.to_owned()
}

#[cfg(test)]
mod tests {
    use temporalio_common::protos::temporal::api::failure::v1::{
        ActivityFailureInfo, ApplicationFailureInfo,
    };

    use super::*;

    fn payload(encoding: &str, data: &[u8]) -> Payloads {
        let metadata = HashMap::from([(ENCODING.to_owned(), encoding.as_bytes().to_vec())]);
        let data = data.to_vec();
        Payloads {
            payloads: vec![Payload {
                metadata,
                data,
                ..Payload::default()
            }],
        }
    }

    fn json_of(payloads: Payloads) -> Option<String> {
        to_json(Some(payloads)).map(|raw| raw.get().to_owned())
    }

    #[test]
    fn json_passes_through_byte_for_byte() {
        let text = r#"{"b": 1.10, "a": [12345678901234567890, "\u00fcü✓", null]}"#;
        assert_eq!(
            json_of(payload("json/plain", text.as_bytes())).as_deref(),
            Some(text)
        );
        let read_back = to_json(Some(Payloads {
            payloads: vec![from_json(text.as_bytes().to_vec())],
        }));
        assert_eq!(read_back.unwrap().get(), text);
    }

    #[test]
    fn nothing_and_null_are_no_output() {
        assert!(to_json(None).is_none());
        assert_eq!(json_of(Payloads::default()), None);
        assert_eq!(json_of(payload("binary/null", b"")), None);
        assert_eq!(json_of(payload("json/plain", b"null")).as_deref(), Some("null"));
    }

    #[test]
    fn what_is_not_json_is_wrapped() {
        let wrapped = json_of(payload("binary/encrypted", b"\x00\x01")).unwrap();
        assert_eq!(wrapped, r#"{"data":"AAE=","encoding":"binary/encrypted"}"#);
        let broken = json_of(payload("json/plain", b"{")).unwrap();
        assert_eq!(broken, r#"{"data":"ew==","encoding":"json/plain"}"#);
    }

    #[test]
    fn a_result_beyond_the_limit_is_told_of_and_left_where_it_is() {
        let at_limit = vec![b'1'; OUTPUT_LIMIT];
        assert_eq!(
            json_of(payload("json/plain", &at_limit)).unwrap().len(),
            OUTPUT_LIMIT
        );
        let beyond = vec![b'1'; OUTPUT_LIMIT + 1];
        assert_eq!(too_large(Some(&payload("json/plain", &at_limit))), None);
        let expected = OmittedOutput {
            size: OUTPUT_LIMIT as u64 + 1,
            encoding: "json/plain".to_owned(),
        };
        assert_eq!(too_large(Some(&payload("json/plain", &beyond))), Some(expected));
    }

    #[test]
    fn a_failure_names_its_message_type_and_cause() {
        let application = ApplicationFailureInfo {
            r#type: "CardDeclined".to_owned(),
            ..ApplicationFailureInfo::default()
        };
        let cause = Failure {
            message: "declined".to_owned(),
            failure_info: Some(FailureInfo::ApplicationFailureInfo(application)),
            ..Failure::default()
        };
        let outer = Failure {
            message: "Activity task failed".to_owned(),
            failure_info: Some(FailureInfo::ActivityFailureInfo(ActivityFailureInfo::default())),
            cause: Some(Box::new(cause)),
            ..Failure::default()
        };
        assert_eq!(
            failure(&outer),
            json!({
                "message": "Activity task failed",
                "type": "ActivityFailure",
                "cause": {"message": "declined", "type": "CardDeclined"},
            })
        );
    }

    #[test]
    fn a_failure_brings_its_details_and_its_stack_trace() {
        let with = |details: Payloads| Failure {
            message: "declined".to_owned(),
            stack_trace: "at pay (shop.py:7)".to_owned(),
            failure_info: Some(FailureInfo::ApplicationFailureInfo(ApplicationFailureInfo {
                details: Some(details),
                ..ApplicationFailureInfo::default()
            })),
            ..Failure::default()
        };
        let mut two = payload("json/plain", br#"{"code": "51", "text": "a\u0000b"}"#);
        two.payloads.extend(payload("binary/plain", b"\x01").payloads);
        let told = failure(&with(two));
        assert_eq!(told["stackTrace"], "at pay (shop.py:7)");
        assert_eq!(
            told["details"],
            json!([{"code": "51", "text": "a\u{fffd}b"}, {"encoding": "binary/plain", "data": "AQ=="}])
        );
        let many = failure(&with(payload("json/plain", &vec![b'1'; TEXT_LIMIT + 1])));
        assert!(many["details"].as_str().unwrap().contains("left in Temporal"));
        assert!(failure(&with(Payloads::default())).get("details").is_none());
    }

    #[test]
    fn a_failure_is_bounded_in_length_and_depth() {
        let mut chain = Failure {
            message: "ü".repeat(TEXT_LIMIT),
            ..Failure::default()
        };
        for _ in 0..100 {
            chain = Failure {
                message: "\0".to_owned(),
                cause: Some(Box::new(chain)),
                ..Failure::default()
            };
        }
        let text = failure(&chain).to_string();
        assert_eq!(text.matches("cause").count(), CAUSE_LIMIT);
        assert!(!text.contains("\\u0000"));
        let long = failure(&Failure {
            message: "ü".repeat(TEXT_LIMIT),
            ..Failure::default()
        });
        assert!(long["message"].as_str().unwrap().len() <= TEXT_LIMIT + 4);
    }
}
