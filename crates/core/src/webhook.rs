//! Signatures of webhooks by Standard Webhooks: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`. Pure.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

const PREFIX: &str = "whsec_";

/// A key that signs. Never printed.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(withheld)")
    }
}

impl Secret {
    /// Reads `whsec_<base64>`, with or without the prefix.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let encoded = text.trim().strip_prefix(PREFIX).unwrap_or(text.trim());
        let key = STANDARD.decode(encoded).map_err(|_| "it is not base64")?;
        match key.len() {
            24..=64 => Ok(Self(key)),
            _ => Err("a key has 24 to 64 bytes"),
        }
    }
}

/// The header `webhook-signature` of a message.
#[must_use]
pub fn sign(secret: &Secret, id: &str, timestamp: i64, body: &[u8]) -> String {
    // HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&secret.0) else {
        return String::new();
    };
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference libraries.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let secret = Secret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = sign(
            &secret,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", "whsec_", "whsec_!!", "whsec_c2hvcnQ="] {
            assert!(Secret::read(text).is_err(), "{text}");
        }
        assert!(!format!("{:?}", Secret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")).contains("Mf"));
    }
}
