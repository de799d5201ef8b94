//! What an address or a form says: pairs of names and texts. Text that is empty says nothing, as a form sends what was left empty.

use std::convert::Infallible;
use std::fmt::Display;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request;
use url::form_urlencoded;

use super::frame::Trouble;

/// The pairs, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(super) fn read(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    pub(super) fn from_pairs(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }

    /// What is said, unless it is nothing.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.said(name).filter(|text| !text.is_empty())
    }

    /// What is said, also when it is nothing.
    pub(super) fn said(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, text)| text.trim())
    }

    /// All that is said under a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let same = self.0.iter().filter(move |(known, _)| known == name);
        same.map(|(_, text)| text.trim()).filter(|text| !text.is_empty())
    }

    pub(super) fn owned(&self, name: &str) -> Option<String> {
        self.get(name).map(ToOwned::to_owned)
    }

    /// What must be said.
    pub(super) fn need(&self, name: &str) -> Result<&str, Trouble> {
        self.get(name)
            .ok_or_else(|| Trouble::invalid(format!("{name}: it is missing")))
    }

    /// What is said, as what it should be.
    pub(super) fn parse<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Trouble> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let wrong = |error| Trouble::invalid(format!("{name}: {error}"));
        text.parse().map(Some).map_err(wrong)
    }

    pub(super) fn must<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, Trouble> {
        self.need(name)?;
        self.parse(name)?
            .ok_or_else(|| Trouble::invalid(format!("{name}: it is missing")))
    }

    /// Something to be referred to, by its name or its id.
    pub(super) fn reference<T: From<String>>(&self, name: &str) -> Option<T> {
        self.owned(name).map(T::from)
    }

    /// These pairs and no others, of those that say something.
    pub(super) fn only(&self, names: &[&str]) -> Vec<(String, String)> {
        let kept = self
            .0
            .iter()
            .filter(|(name, text)| names.contains(&name.as_str()) && !text.trim().is_empty());
        kept.cloned().collect()
    }

    /// All pairs but these, of those that say something.
    pub(super) fn without(&self, names: &[&str]) -> Vec<(String, String)> {
        let kept = self
            .0
            .iter()
            .filter(|(name, text)| !names.contains(&name.as_str()) && !text.trim().is_empty());
        kept.cloned().collect()
    }
}

impl<S: Sync> FromRequestParts<S> for Fields {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut request::Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::read(parts.uri.query().unwrap_or_default().as_bytes()))
    }
}

/// A part of the path, as it was meant.
pub(super) fn segment(text: &str) -> String {
    const KEPT: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~');
    percent_encoding::utf8_percent_encode(text, KEPT).to_string()
}

/// An address of ours with these pairs.
pub(super) fn address<K: AsRef<str>, V: AsRef<str>>(path: &str, pairs: &[(K, V)]) -> String {
    if pairs.is_empty() {
        return path.to_owned();
    }
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, text) in pairs {
        query.append_pair(name.as_ref(), text.as_ref());
    }
    format!("{path}?{}", query.finish())
}

/// Where to go back to: a page of ours, whatever was asked for.
pub(super) fn ours(path: Option<&str>) -> &str {
    let path = path.unwrap_or("/");
    let plain = path.starts_with('/')
        && !path.starts_with("//")
        && !path.contains('\\')
        && path.bytes().all(|byte| byte.is_ascii_graphic());
    if plain { path } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_leads_to_no_other_host() {
        assert_eq!(ours(Some("/queue?status=PENDING")), "/queue?status=PENDING");
        for elsewhere in [
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "/a\nb",
            "queue",
        ] {
            assert_eq!(ours(Some(elsewhere)), "/", "{elsewhere}");
        }
    }

    #[test]
    fn what_was_left_empty_says_nothing() {
        let fields = Fields::read(b"status=&workspace=+acme+&text=a%26b");
        assert_eq!(fields.get("status"), None);
        assert_eq!(fields.get("workspace"), Some("acme"));
        assert_eq!(
            address("/queue", &fields.only(&["status", "text"])),
            "/queue?text=a%26b"
        );
    }
}
