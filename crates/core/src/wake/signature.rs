//! Signatures by Standard Webhooks: HMAC-SHA256 over id, timestamp and body. Pure. Whoever receives them verifies them with the
//! client crate's `webhook`.
//!
//! Secrets are shown once, when they are made, and never again: they have no `Display`, and their `Debug` hides them.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

const PREFIX: &str = "whsec_";
/// Shorter ones can be guessed; longer ones bring nothing. By the standard.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;
/// Keeps what is derived here apart from anything else that the same secret may be used for.
const DERIVATION: &[u8] = b"stationmaster wake secret";

/// A key to sign with.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl Secret {
    /// Reads `whsec_<base64>`. An error does not repeat what it read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let encoded = text
            .trim()
            .strip_prefix(PREFIX)
            .ok_or("it does not begin with whsec_")?;
        let key = STANDARD
            .decode(encoded)
            .map_err(|_| "what follows whsec_ is not base64")?;
        if LENGTHS.contains(&key.len()) {
            Ok(Self(key))
        } else {
            Err(format!(
                "it holds {} bytes; {} to {} are needed",
                key.len(),
                LENGTHS.start(),
                LENGTHS.end()
            ))
        }
    }

    /// A new one, by chance.
    #[must_use]
    pub fn random() -> Self {
        Self(rand::random::<[u8; 32]>().to_vec())
    }

    /// The secret of one target and generation. Whoever knows it knows nothing of the others.
    #[must_use]
    pub fn derive(&self, target: &str, generation: i32) -> Self {
        let mut mac = self.mac();
        mac.update(DERIVATION);
        mac.update(&generation.to_be_bytes());
        mac.update(target.as_bytes());
        Self(mac.finalize().into_bytes().to_vec())
    }

    /// As the receiver is given it, once.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    fn mac(&self) -> Hmac<Sha256> {
        Hmac::new_from_slice(&self.0).unwrap_or_else(|_| unreachable!("a key of any length will do"))
    }
}

/// The header `webhook-signature`: one signature for each secret, so that a receiver may know either of two.
#[must_use]
pub fn sign(secrets: &[Secret], id: &str, timestamp: i64, body: &[u8]) -> String {
    let signatures: Vec<String> = secrets
        .iter()
        .map(|secret| {
            let mut mac = secret.mac();
            mac.update(format!("{id}.{timestamp}.").as_bytes());
            mac.update(body);
            format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
        })
        .collect();
    signatures.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard_is_signed_as_it_says() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = br#"{"test": 2432232314}"#;
        let header = sign(
            std::slice::from_ref(&secret),
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            body,
        );
        assert_eq!(header, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn during_a_rotation_there_is_a_signature_by_each_secret() {
        let (old, new) = (Secret::random(), Secret::random());
        let by = |secret: &Secret, timestamp, body: &[u8]| {
            sign(std::slice::from_ref(secret), "a:b", timestamp, body)
        };
        let header = sign(&[new.clone(), old.clone()], "a:b", 7, b"{}");
        assert_eq!(header, format!("{} {}", by(&new, 7, b"{}"), by(&old, 7, b"{}")));
        assert_ne!(by(&new, 7, b"{}"), by(&old, 7, b"{}"));
        assert_ne!(by(&new, 7, b"{}"), by(&new, 8, b"{}"));
        assert_ne!(by(&new, 7, b"{}"), by(&new, 7, b"{ }"));
    }

    #[test]
    fn every_target_and_generation_has_a_secret_of_its_own() {
        let master = Secret::random();
        let derived = master.derive("https://a.example", 1);
        assert_eq!(derived, master.derive("https://a.example", 1));
        assert_ne!(derived, master.derive("https://a.example", 2));
        assert_ne!(derived, master.derive("https://b.example", 1));
        assert_eq!(Secret::parse(&derived.reveal()).unwrap(), derived);
    }

    #[test]
    fn a_secret_is_not_shown_by_accident_nor_repeated_when_it_is_refused() {
        assert_eq!(format!("{:?}", Secret::random()), "Secret(***)");
        for text in ["s3cret", "whsec_s3cret!", "whsec_czNjcmV0"] {
            let refusal = Secret::parse(text).unwrap_err();
            assert!(
                !refusal.contains("s3cret") && !refusal.contains("czNj"),
                "{refusal}"
            );
        }
    }
}
