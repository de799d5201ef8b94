//! What an alarm wakes. A kind of target is a variant here; whoever has to know of a new kind is listed by the compiler.

use url::Url;

/// A target, as the alarm's row names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// The alarm names none: the router of the server that fires it.
    Router,
    /// A URL of its own.
    Url(Url),
}

impl Target {
    /// The target on record: the column `target_url`. An error is in words.
    pub(super) fn on_record(url: Option<&str>) -> Result<Self, String> {
        let Some(url) = url else {
            return Ok(Self::Router);
        };
        let url = url.parse().map_err(|error| format!("is not a URL: {error}"))?;
        Ok(Self::Url(url))
    }

    /// Can it be put on record? A URL must be one that can be called, without a password in it. An error is in words.
    pub(super) fn check(url: Option<&str>) -> Result<(), String> {
        match Self::on_record(url)? {
            Self::Url(url) if !matches!(url.scheme(), "http" | "https") => {
                Err("does not begin with http: or https:".to_owned())
            }
            Self::Url(url) if !url.username().is_empty() || url.password().is_some() => {
                Err("has credentials in it; wakes are signed instead".to_owned())
            }
            Self::Router | Self::Url(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_without_a_url_wakes_the_router_and_one_with_a_url_that() {
        assert_eq!(Target::on_record(None), Ok(Target::Router));
        let url = "https://hooks.example/wake";
        assert_eq!(
            Target::on_record(Some(url)),
            Ok(Target::Url(url.parse().unwrap()))
        );
        assert!(Target::on_record(Some("nowhere")).is_err());
    }

    #[test]
    fn only_what_can_be_called_is_put_on_record() {
        assert_eq!(Target::check(None), Ok(()));
        assert_eq!(Target::check(Some("http://hooks.example/")), Ok(()));
        for refused in [
            "ftp://hooks.example/",
            "https://name:word@hooks.example/",
            "/wake",
        ] {
            assert!(Target::check(Some(refused)).is_err(), "{refused}");
        }
    }
}
