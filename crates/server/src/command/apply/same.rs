//! Whether two values say the same, however they are written. Pure.

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde_json::Value;

/// Do both say the same? Numbers and times can be written in several ways.
pub(super) fn same(now: &Value, wanted: &Value) -> bool {
    match (now, wanted) {
        (Value::Number(now), Value::Number(wanted)) => now.as_f64() == wanted.as_f64(),
        (Value::String(now), Value::String(wanted)) => {
            let instants = (now.parse::<Timestamp>(), wanted.parse::<Timestamp>());
            let civil = (now.parse::<DateTime>(), wanted.parse::<DateTime>());
            now == wanted
                || matches!(instants, (Ok(now), Ok(wanted)) if now == wanted)
                || matches!((instants, civil), ((Err(_), _), (Ok(now), Ok(wanted))) if now == wanted)
        }
        (now, wanted) => now == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_and_times_are_the_same_however_they_are_written() {
        assert!(same(&json!(5.0), &json!(5)));
        assert!(same(
            &json!("2026-03-29T01:30:00Z"),
            &json!("2026-03-29T02:30:00+01:00")
        ));
        assert!(same(&json!("2026-03-29T02:30:00"), &json!("2026-03-29T02:30")));
        assert!(!same(
            &json!("2026-03-29T02:30:00Z"),
            &json!("2026-03-29T02:30:00+01:00")
        ));
        assert!(!same(&Value::Null, &json!(false)));
    }
}
