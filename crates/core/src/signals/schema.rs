//! JSON schemas of payloads. Pure: no schema is ever fetched from anywhere.

use serde_json::Value;

/// The most that is told of what is wrong with a payload.
const MAX_WORDS: usize = 500;

/// A schema, ready to judge payloads.
pub struct Schema(jsonschema::Validator);

impl Schema {
    /// Reads a schema. The error says what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        if !value.is_object() && !value.is_boolean() {
            return Err("a JSON schema is an object".to_owned());
        }
        jsonschema::validator_for(&value)
            .map(Self)
            .map_err(|error| cut(&format!("it is not a JSON schema: {error}")))
    }

    /// What is wrong with a payload; `None`: nothing.
    #[must_use]
    pub fn complaint(&self, payload: &str) -> Option<String> {
        let value: Value = match serde_json::from_str(payload) {
            Ok(value) => value,
            Err(error) => return Some(format!("it is not JSON: {error}")),
        };
        let error = self.0.iter_errors(&value).next()?;
        let path = error.instance_path().to_string();
        let place = if path.is_empty() { "the payload" } else { &path };
        // The masked form names no value: a payload may hold secrets, and this text goes into lists and logs.
        Some(cut(&format!("{place}: {}", error.masked())))
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_WORDS)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &str =
        r#"{"type": "object", "required": ["order"], "properties": {"order": {"type": "integer"}}}"#;

    #[test]
    fn a_payload_that_fits_has_no_complaint_and_one_that_does_not_is_told_where() {
        let schema = Schema::read(ORDER).ok().unwrap();
        assert_eq!(schema.complaint(r#"{"order": 17}"#), None);
        let wrong = schema.complaint(r#"{"order": "s3cret"}"#).unwrap();
        assert!(wrong.starts_with("/order: "), "{wrong}");
        assert!(!wrong.contains("s3cret"), "{wrong}");
        assert!(schema.complaint("{}").unwrap().contains("order"));
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for text in [
            "",
            "[]",
            "7",
            r#"{"type": "orderly"}"#,
            r#"{"$ref": "http://example.org/schema"}"#,
        ] {
            assert!(Schema::read(text).is_err(), "{text}");
        }
    }
}
