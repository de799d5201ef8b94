//! What of a secret may be shown. When in doubt: nothing.

use stationmaster_core::hosts;
use url::Url;

/// How much of a setting is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    /// Nothing.
    Open,
    /// The password inside a URL.
    Password,
    /// All of it.
    Whole,
}

const HIDDEN: &str = "***";

/// The value as it may be shown.
pub(super) fn shown(text: &str, secrecy: Secrecy) -> String {
    match secrecy {
        Secrecy::Open => text.to_owned(),
        Secrecy::Password => without_password(text),
        Secrecy::Whole => HIDDEN.to_owned(),
    }
}

/// Would something of this value be hidden?
pub(super) fn hides(text: &str, secrecy: Secrecy) -> bool {
    shown(text, secrecy).contains(HIDDEN)
}

/// A URL without its password.
fn without_password(text: &str) -> String {
    let hosts = hosts::each(text);
    if hosts.len() > 1 {
        return hosts::with_hosts_of(&without_password(&hosts[0]), text);
    }
    // Without an authority there is no telling which part is the password.
    let Some(mut url) = Url::parse(text).ok().filter(|url| !url.cannot_be_a_base()) else {
        return HIDDEN.to_owned();
    };
    if url.password().is_some() && url.set_password(Some(HIDDEN)).is_err() {
        return HIDDEN.to_owned();
    }
    // A database URL may carry its password as a parameter as well, and a key's passphrase in the same way.
    if url.query().is_some() {
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let hides = |name: &str| name.to_ascii_lowercase().contains("pass");
        if pairs.iter().any(|(name, _)| hides(name)) {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (name, if hides(name) { HIDDEN } else { value }));
            url.query_pairs_mut().clear().extend_pairs(pairs);
        }
    }
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_of_a_url_is_hidden() {
        for (url, seen) in [
            (
                "postgres://ann:s3cret@db:5432/main",
                "postgres://ann:***@db:5432/main",
            ),
            ("postgres://ann@db/main", "postgres://ann@db/main"),
            (
                "postgres://db/main?user=ann&password=s3cret",
                "postgres://db/main?user=ann&password=***",
            ),
            ("redis://:s3cret@cache:6379/0", "redis://:***@cache:6379/0"),
            (
                "postgres://ann:s3cret@a:5432,b:5433/main",
                "postgres://ann:***@a:5432,b:5433/main",
            ),
        ] {
            assert_eq!(shown(url, Secrecy::Password), seen);
        }
    }

    #[test]
    fn what_is_no_url_and_what_is_secret_as_a_whole_is_hidden_as_a_whole() {
        assert_eq!(shown("ann:s3cret at db", Secrecy::Password), "***");
        assert_eq!(shown("key", Secrecy::Whole), "***");
        assert_eq!(shown("key", Secrecy::Open), "key");
    }
}
