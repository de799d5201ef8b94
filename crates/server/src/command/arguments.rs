//! Arguments that several commands share, and how their words are read.

use std::io::Read as _;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::Context;
use crate::config;
use crate::failure::{Kind, Refusal};

/// For commands that destroy; one that does not delete has its own words for `dry_run`.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Caution {
    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
    /// Only say what would be deleted
    #[arg(long, conflicts_with = "yes")]
    pub(super) dry_run: bool,
}

impl Caution {
    /// Does a person agree? Not when this is a dry run, which changes nothing and asks nobody.
    pub(super) fn agreed(self, question: &str) -> Result<bool> {
        if self.dry_run {
            return Ok(false);
        }
        Context::confirm(question, self.yes)?;
        Ok(true)
    }

    /// Deletes what a person agrees to, and answers what was done or would be.
    pub(super) async fn delete(
        self,
        what: &str,
        then: &str,
        delete: impl Future<Output = stationmaster_client::Result<()>>,
    ) -> Result<String> {
        if !self.agreed(&format!("Delete {what}? Then {then}."))? {
            return Ok(format!("Would delete {what}. Then {then}."));
        }
        delete.await?;
        Ok(format!("Deleted {what}."))
    }
}

/// What was to be made is there.
pub(super) fn already_there(noun: &str, name: &str) -> Refusal {
    let advice = format!("Change it, as this tells: stationmaster {noun}s set {name} --help");
    Refusal::new(
        Kind::Conflict,
        format!("there is a {noun} {name} already"),
        advice,
    )
}

/// What was to be ended has ended.
pub(super) fn has_ended(what: &str, status: &str) -> Refusal {
    Refusal::new(
        Kind::Conflict,
        format!("{what} has ended before: it is {status}"),
        "Nothing was changed, and nothing has to be",
    )
}

/// One of these words, which mean what they mean on the wire; there some are written in capitals.
pub(super) fn word_of<T>(words: impl Into<PossibleValuesParser>) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let words: PossibleValuesParser = words.into();
    words.try_map(|word| {
        let capitals = serde_json::from_value(word.to_uppercase().into());
        capitals.or_else(|_| serde_json::from_value(word.to_lowercase().into()))
    })
}

/// Words and what they mean, for [`word_of`].
pub(super) fn explained(words: &[(&'static str, &'static str)]) -> PossibleValuesParser {
    let words = words.iter();
    words
        .map(|(word, help)| PossibleValue::new(word).help(*help))
        .collect::<Vec<_>>()
        .into()
}

/// Each of them once.
pub(super) fn distinct<T: Copy + PartialEq>(values: &[T]) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(value) {
            distinct.push(*value);
        }
    }
    distinct
}

/// An id: the whole UUID. A part of one would become ambiguous as soon as there is more work.
pub(super) fn id<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| "not an id: give the whole UUID, as lists show it".to_owned())
}

/// A name, or something else that must not be empty.
pub(super) fn text(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("it is empty".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// A time that passes.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    config::duration(text).map_err(|problem| format!("{problem}: write it like 90s, 5m, 1h 30m or 2d"))
}

/// The text of a file, or of the standard input for `-`.
pub(super) fn read(path: &str) -> Result<String> {
    let read = || -> std::io::Result<String> {
        if path != "-" {
            return std::fs::read_to_string(path);
        }
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        Ok(text)
    };
    let advice = "Name a file that can be read, or - for the standard input";
    Ok(read().map_err(|error| Refusal::usage(format!("cannot read {path}: {error}"), advice))?)
}

/// JSON, kept as it was written.
pub(super) fn json(what: &str, text: &str) -> Result<Box<RawValue>> {
    let wrong = |error: serde_json::Error| {
        Refusal::usage(
            format!("{what} is not JSON: {}", unreadable(&error)),
            "Quote it for the shell, as in '{\"n\": 1}'",
        )
    };
    Ok(serde_json::from_str(text).map_err(wrong)?)
}

/// What is wrong with JSON, and where, in the words of people.
fn unreadable(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let words = error.to_string();
    let words = words
        .strip_suffix(&format!(" at line {line} column {column}"))
        .unwrap_or(&words);
    match line {
        0 => words.to_owned(),
        1 => format!("{words}, at character {column}"),
        _ => format!("{words}, in line {line}"),
    }
}

/// JSON that was given here or in a file; or not at all.
pub(super) fn json_given(
    what: &str,
    here: Option<String>,
    file: Option<&str>,
) -> Result<Option<Box<RawValue>>> {
    let text = match (here, file) {
        (None, Some(path)) => Some(read(path)?),
        (here, _) => here,
    };
    text.map(|text| json(what, &text)).transpose()
}

#[cfg(test)]
mod tests {
    use stationmaster_core::id::ItemId;

    use super::*;

    #[test]
    fn an_id_is_a_whole_uuid() {
        assert!(id::<ItemId>("01890a5d-ac96-774b-bcce-b302099a8057").is_ok());
        for part in ["", "01890a5d", "01890a5d-ac96-774b-bcce-b302099a805", "item"] {
            assert!(id::<ItemId>(part).unwrap_err().contains("whole UUID"), "{part}");
        }
    }

    #[test]
    fn json_is_kept_as_it_was_written() {
        assert_eq!(
            json("the input", " {\"n\": 1.50} ").unwrap().get(),
            "{\"n\": 1.50}"
        );
        let refused = json("the input", "{n: 1}").unwrap_err().to_string();
        assert!(refused.ends_with(", at character 2"), "{refused}");
        let refused = json("the input", "{\n\"n\" 1}").unwrap_err().to_string();
        assert!(refused.ends_with(", in line 2"), "{refused}");
    }
}
