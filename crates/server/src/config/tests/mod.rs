//! The tests of the whole way from sources to a checked configuration, without the environment of the test itself.

use tempfile::NamedTempFile;

use super::*;

mod exclusive;
mod refusals;
mod values;

/// Loads what these sources say, without the environment of the test itself.
fn load_with(
    file: Option<&str>,
    environment: &[(&str, &str)],
    mut flags: Flags,
) -> Result<Loaded, Vec<Complaint>> {
    let file = file.map(written);
    flags.config = file.as_ref().map(|file| file.path().to_owned());
    let environment = environment
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    load_from(&flags, environment).map_err(|complaints| complaints.0)
}

fn written(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn set(pairs: &[&str]) -> Flags {
    Flags {
        set: pairs.iter().map(|&pair| pair.to_owned()).collect(),
        ..Flags::default()
    }
}

fn from_set(pairs: &[&str]) -> Result<Loaded, Vec<Complaint>> {
    load_with(None, &[], set(pairs))
}

/// What is in order, whatever it was loaded from.
#[track_caller]
fn right<E>(loaded: Result<Loaded, E>) -> Loaded {
    loaded.ok().expect("nothing to complain about")
}

/// The only complaint about this setting.
#[track_caller]
fn complaint(loaded: Result<Loaded, Vec<Complaint>>) -> Complaint {
    let complaints = loaded.err().expect("it should be refused");
    let [complaint] = complaints.try_into().expect("one complaint");
    complaint
}

fn value<'a>(loaded: &'a Loaded, key: &str) -> &'a Effective {
    loaded.values.iter().find(|value| value.key == key).unwrap()
}
