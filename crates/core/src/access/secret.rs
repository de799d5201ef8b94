//! The form of a token's secret: `smt_`, 256 bits of chance in hexadecimal, and a checksum. Pure.
//!
//! The constant beginning lets scanners find a token where it should not be; the checksum tells a typing error from a token
//! that was revoked, without asking anybody.

use std::fmt::Write as _;

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

const BEGINNING: &str = "smt_";
const RANDOM: usize = 64;
const CHECKSUM: usize = 8;

/// A token as its holder knows it. Never printed by accident.
#[derive(Clone)]
pub struct Secret(SecretString);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret(…{})", self.hint())
    }
}

/// Why a text is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It does not look like one.
    #[error("a token begins with smt_ and has 76 characters")]
    Form,
    /// It looks like one, with a mistake in it.
    #[error("the token's checksum is wrong: a character was lost or changed")]
    Checksum,
}

impl Secret {
    /// A new one.
    #[must_use]
    pub fn generate() -> Self {
        let random: [u8; 32] = rand::random();
        let body = hexadecimal(&random);
        Self(format!("{BEGINNING}{body}{}", checksum(&body)).into())
    }

    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let rest = text.strip_prefix(BEGINNING).ok_or(Malformed::Form)?;
        let hexadecimal = rest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if rest.len() != RANDOM + CHECKSUM || !hexadecimal {
            return Err(Malformed::Form);
        }
        let (body, given) = rest.split_at(RANDOM);
        if checksum(body) == given {
            Ok(Self(text.to_owned().into()))
        } else {
            Err(Malformed::Checksum)
        }
    }

    /// What is stored in its place.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.expose_secret().as_bytes()).into()
    }

    /// The last characters before the checksum: enough to tell tokens apart.
    #[must_use]
    pub fn hint(&self) -> &str {
        let text = self.0.expose_secret();
        let end = text.len() - CHECKSUM;
        &text[end - 4..end]
    }

    /// The secret itself, for whoever may see it: once, when it is made.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

fn checksum(body: &str) -> String {
    format!("{:08x}", crc32fast::hash(body.as_bytes()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_token_can_be_read_again_and_no_two_are_alike() {
        let (one, other) = (Secret::generate(), Secret::generate());
        assert_eq!(Secret::parse(one.expose()).unwrap().hash(), one.hash());
        assert_ne!(one.hash(), other.hash());
        assert_eq!(one.expose().len(), 76);
    }

    #[test]
    fn a_typing_error_is_told_apart_from_something_else() {
        let token = Secret::generate();
        let mut wrong = token.expose().to_owned();
        let last = if wrong.ends_with('0') { "1" } else { "0" };
        wrong.replace_range(75.., last);
        assert_eq!(Secret::parse(&wrong).unwrap_err(), Malformed::Checksum);
        for text in [
            "",
            "smt_",
            "secret",
            &token.expose()[..75],
            &token.expose().to_uppercase(),
        ] {
            assert_eq!(Secret::parse(text).unwrap_err(), Malformed::Form, "{text}");
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        let token = Secret::generate();
        let shown = format!("{token:?}");
        assert!(!shown.contains(&token.expose()[4..60]), "{shown}");
    }
}
