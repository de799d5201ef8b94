//! What cannot be read, told whole: every field that is wrong, where it stands, and in words for people.
//!
//! Whoever reads a body stops at the first field that is wrong. So that field is put right in a copy, by whatever can be read in its
//! place, and the copy is read again, until it can be. Nothing is done with the copy but this. Of a body that is large only the first is
//! told: nobody may make us read it a hundred times.

use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::{Value, json};
use stationmaster_client::wire::FieldError;

use super::problem::{Kind, Problem};

/// Fields that are told of a body at most.
const MOST: usize = 16;
/// Of a larger body only the first is told.
const LARGE: usize = 32 * 1024;
/// Less alike is another name.
const ALIKE: f64 = 0.6;

/// The first field that is wrong.
struct Wrong {
    pointer: String,
    message: String,
}

/// Reads a body.
pub(super) fn body<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    match read::<T>(body) {
        Ok(value) => Ok(value),
        Err(Ok(first)) if body.len() > LARGE => Err(Problem::fields(vec![told(&first)])),
        Err(Ok(first)) => Err(Problem::fields(all::<T>(body, first))),
        Err(Err(words)) => Err(Problem::new(
            Kind::Malformed,
            format!("the body is not JSON: {words}"),
        )),
    }
}

/// Reads the query of an address, of which some is known to be wrong already.
pub(super) fn query<T: DeserializeOwned>(
    mut pairs: Vec<(String, String)>,
    mut errors: Vec<FieldError>,
) -> Result<T, Problem> {
    loop {
        let text = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&pairs)
            .finish();
        let parsed = url::form_urlencoded::parse(text.as_bytes());
        let error = match serde_path_to_error::deserialize(serde_urlencoded::Deserializer::new(parsed)) {
            Ok(value) if errors.is_empty() => return Ok(value),
            Ok(_) => return Err(Problem::fields(errors)),
            Err(error) => error,
        };
        let field = match error.path().to_string() {
            path if path == "." => "query".to_owned(),
            path => path,
        };
        errors.push(FieldError::new(
            field.as_str(),
            words(&error.into_inner().to_string()),
        ));
        let before = pairs.len();
        pairs.retain(|(name, _)| *name != field);
        if pairs.len() == before || errors.len() >= MOST {
            return Err(Problem::fields(errors));
        }
    }
}

/// What is wrong first, or, when it is no JSON at all, the words about that.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Result<Wrong, String>> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let pointer = pointer(error.path());
        let inner = error.into_inner();
        match inner.classify() {
            Category::Data => Ok(Wrong {
                pointer: with_missing(pointer, &inner.to_string()),
                message: inner.to_string(),
            }),
            _ => Err(inner.to_string()),
        }
    })?;
    json.end().map_err(|error| Err(error.to_string()))?;
    Ok(value)
}

/// Everything that is wrong.
fn all<T: DeserializeOwned>(body: &[u8], first: Wrong) -> Vec<FieldError> {
    let mut errors = vec![told(&first)];
    let Ok(mut copy) = serde_json::from_slice::<Value>(body) else {
        return errors;
    };
    let mut wrong = first;
    // What was taken out because it was wrong may be missing then.
    for _ in 0..2 * MOST {
        if errors.len() >= MOST || !mend::<T>(&mut copy, &wrong) {
            break;
        }
        let Some(next) = again::<T>(&copy) else {
            break;
        };
        if !errors.iter().any(|error| error.field == next.pointer) {
            errors.push(told(&next));
        }
        wrong = next;
    }
    errors
}

fn again<T: DeserializeOwned>(copy: &Value) -> Option<Wrong> {
    read::<T>(copy.to_string().as_bytes()).err()?.ok()
}

/// Puts something in the place of what is wrong that can be read there, or takes it out. False: nothing will do.
fn mend<T: DeserializeOwned>(copy: &mut Value, wrong: &Wrong) -> bool {
    let Some((parent, name)) = wrong.pointer.rsplit_once('/') else {
        return false;
    };
    let name = name.replace("~1", "/").replace("~0", "~");
    let is_right = |copy: &Value| {
        again::<T>(copy).is_none_or(|next| {
            let rest = next.pointer.strip_prefix(&wrong.pointer);
            !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    if let Some(Value::Object(fields)) = copy.pointer_mut(parent) {
        fields.remove(&name);
        if is_right(copy) {
            return true;
        }
    }
    let listed = expected(&wrong.message).into_iter().next();
    let stand_ins = [
        json!(listed),
        json!(""),
        json!("x"),
        json!(1),
        json!(true),
        json!([]),
        json!({}),
        json!("00000000-0000-0000-0000-000000000000"),
        json!("2000-01-01T00:00:00Z"),
    ];
    stand_ins.into_iter().any(|stand_in| {
        match copy.pointer_mut(parent) {
            Some(Value::Object(fields)) => {
                fields.insert(name.clone(), stand_in);
            }
            Some(Value::Array(items)) => {
                match name.parse::<usize>().ok().and_then(|place| items.get_mut(place)) {
                    Some(item) => *item = stand_in,
                    None => return false,
                }
            }
            _ => return false,
        }
        is_right(copy)
    })
}

fn told(wrong: &Wrong) -> FieldError {
    FieldError::new(wrong.pointer.as_str(), words(&wrong.message))
}

/// What is missing has no path of its own; its name stands in the words.
fn with_missing(pointer: String, message: &str) -> String {
    match between(message, "missing field `", "`") {
        Some(name) => format!("{pointer}/{name}"),
        None => pointer,
    }
}

/// A path as a JSON pointer.
fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let escape = |text: &str| text.replace('~', "~0").replace('/', "~1");
    let parts = path.iter().map(|segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => format!("/{}", escape(key)),
        Segment::Enum { variant } => format!("/{}", escape(variant)),
        Segment::Unknown => "/?".to_owned(),
    });
    parts.collect()
}

/// What the reader says, in words for people.
pub(super) fn words(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message);
    if message.starts_with("missing field") {
        return "it is missing".to_owned();
    }
    if let Some(name) = between(message, "unknown field `", "`") {
        let known = expected(message);
        return match nearest(name, &known) {
            Some(meant) => format!("there is no such field: did you mean {meant}?"),
            None if known.is_empty() => "there is no such field".to_owned(),
            None => format!("there is no such field; there are {}", known.join(", ")),
        };
    }
    if let Some(found) = between(message, "unknown variant `", "`") {
        let known = expected(message);
        let meant = nearest(found, &known).map(|meant| format!(": did you mean {meant}?"));
        return format!(
            "{found:?} is none of {}{}",
            known.join(", "),
            meant.unwrap_or_default()
        );
    }
    let told = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "));
    match told.and_then(|told| told.rsplit_once(", expected ")) {
        Some((found, expected)) => format!("{} is expected, not {}", kind(expected), thing(found)),
        None if message.starts_with("UUID parsing failed") => {
            "a UUID is expected, such as 0190a1b2-0000-7000-8000-000000000000".to_owned()
        }
        None if message.starts_with("invalid digit") => "a whole number is expected".to_owned(),
        None => message.to_owned(),
    }
}

/// What is expected, as people call it.
fn kind(expected: &str) -> &str {
    match expected {
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "f32" | "f64" => "a number",
        "a string" | "a borrowed string" | "a character" => "text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        "unit" => "null",
        other if other.starts_with("struct ") || other.starts_with("internally tagged enum") => "an object",
        other => other,
    }
}

/// What was found, as people call it.
fn thing(found: &str) -> String {
    let quoted = |text: &str| text.trim_matches('`').to_owned();
    match found.split_once(' ') {
        Some(("string", text)) => format!("the text {text}"),
        Some(("integer" | "boolean", value)) => quoted(value),
        _ if found.starts_with("floating point ") => quoted(found.trim_start_matches("floating point ")),
        _ => match found {
            "map" => "an object".to_owned(),
            "sequence" => "a list".to_owned(),
            other => other.to_owned(),
        },
    }
}

/// The names that the reader lists.
fn expected(message: &str) -> Vec<&str> {
    let Some((_, list)) = message.split_once("`, expected ") else {
        return Vec::new();
    };
    list.split('`').skip(1).step_by(2).collect()
}

fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let alike =
        |known: &str| strsim::normalized_damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase());
    let best = known
        .iter()
        .copied()
        .max_by(|one, other| alike(one).total_cmp(&alike(other)))?;
    (alike(best) >= ALIKE).then_some(best)
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.strip_prefix(before)?
        .split_once(after)
        .map(|(found, _)| found)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use stationmaster_client::wire;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only read")]
    struct Order {
        id: uuid::Uuid,
        many: u32,
        status: wire::ItemStatus,
        lines: Vec<Line>,
        note: Option<String>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only read")]
    struct Line {
        priority: i32,
        at: jiff::Timestamp,
    }

    fn problems(text: &str) -> Vec<(String, String)> {
        let Err(wrong) = read::<Order>(text.as_bytes()) else {
            return Vec::new();
        };
        let errors = all::<Order>(text.as_bytes(), wrong.unwrap());
        errors
            .into_iter()
            .map(|error| (error.field, error.detail))
            .collect()
    }

    #[test]
    fn every_field_that_is_wrong_is_told_once_and_in_words_for_people() {
        let good =
            r#"{"id": "0190a1b2-0000-7000-8000-000000000000", "many": 1, "status": "failed", "lines": []}"#;
        assert_eq!(problems(good), []);
        let bad = r#"{"many": "3", "status": "FALED", "nte": 1, "note": 7,
                      "lines": [{"priority": 1.5, "at": "2026-01-01T00:00:00Z"}, {"priority": "high"}]}"#;
        let mut told = problems(bad);
        told.sort();
        let (fields, words): (Vec<&str>, Vec<&str>) = told
            .iter()
            .map(|(field, words)| (field.as_str(), words.as_str()))
            .unzip();
        let expected = [
            "/id",
            "/lines/0/priority",
            "/lines/1/at",
            "/lines/1/priority",
            "/many",
            "/note",
            "/nte",
            "/status",
        ];
        assert_eq!(fields, expected, "{told:?}");
        assert_eq!(words[0], "it is missing");
        assert_eq!(words[1], "a whole number is expected, not 1.5");
        assert_eq!(
            words[4],
            "a whole number, 0 or more is expected, not the text \"3\""
        );
        assert_eq!(words[5], "text is expected, not 7");
        assert_eq!(words[6], "there is no such field: did you mean note?");
        assert!(words[7].ends_with("did you mean FAILED?"), "{}", words[7]);
    }

    #[test]
    fn a_body_that_is_no_object_is_told_as_such() {
        assert_eq!(problems("[]").len(), 1, "{:?}", problems("[]"));
        let query = query::<wire::QueueQuery>(
            vec![
                ("limit".to_owned(), "many".to_owned()),
                ("status".to_owned(), "pending".to_owned()),
                ("colour".to_owned(), "red".to_owned()),
            ],
            Vec::new(),
        );
        assert!(query.is_err());
    }
}
