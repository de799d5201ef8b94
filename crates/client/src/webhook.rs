//! For whoever receives wakes: is it from Stationmaster, is it fresh, and what does it say? By Standard Webhooks: HMAC-SHA256
//! over id, timestamp and body, in the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`. Pure but for the clock.
//!
//! A wake comes at least once: remember the ids of those that were dealt with, they are the same in every try.
//!
//! Whose alarm it was tells [`Wake::workspace_id`], which is of Stationmaster's own record. Everybody who may set alarms may aim them at
//! any target, with any message and any `user_id`: who serves one workspace names it with [`Verifier::only_from`], and who serves
//! several looks at the workspace before anything else.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::Sha256;
use uuid::Uuid;

/// The header that names the wake; the same in every try.
pub const ID: &str = "webhook-id";
/// The header that tells when this try was sent, in seconds since 1970.
pub const TIMESTAMP: &str = "webhook-timestamp";
/// The header that holds the signatures.
pub const SIGNATURE: &str = "webhook-signature";

const PREFIX: &str = "whsec_";
/// How old, or how far ahead, a wake may be unless it is said otherwise.
const TOLERANCE: Duration = Duration::from_mins(5);

/// Why a wake is not to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// A header is missing or cannot be read.
    #[error("the header {0} is missing or cannot be read")]
    Header(&'static str),
    /// It was sent too long ago, or too far ahead: it may be an old one that somebody repeats.
    #[error("the timestamp is too far from now")]
    Stale,
    /// None of the signatures was made with one of our secrets.
    #[error("no signature is by a secret that is known here")]
    Signature,
    /// It is signed, but is no wake.
    #[error("the body is not that of a wake")]
    Body,
    /// It is of a workspace that is not served here.
    #[error("it is of the workspace {0}, which is not served here")]
    Workspace(Uuid),
}

/// Why a secret cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret looks like whsec_ and base64")]
pub struct BadSecret;

/// Verifies wakes by one secret, or by several while they are being exchanged.
#[derive(Clone)]
pub struct Verifier {
    secrets: Vec<Vec<u8>>,
    tolerance: Duration,
    /// Empty: all.
    workspaces: Vec<Uuid>,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

impl Verifier {
    /// A verifier that knows this secret, `whsec_…`: what `stationmaster alarms secrets show` prints for the router or the target.
    pub fn new(secret: &str) -> Result<Self, BadSecret> {
        let none = Self {
            secrets: Vec::new(),
            tolerance: TOLERANCE,
            workspaces: Vec::new(),
        };
        none.or(secret)
    }

    /// One that knows this secret too.
    pub fn or(mut self, secret: &str) -> Result<Self, BadSecret> {
        let encoded = secret.trim().strip_prefix(PREFIX).ok_or(BadSecret)?;
        let key = STANDARD.decode(encoded).map_err(|_| BadSecret)?;
        if key.is_empty() {
            return Err(BadSecret);
        }
        self.secrets.push(key);
        Ok(self)
    }

    /// How old, or how far ahead, a wake may be; five minutes when left out.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Believes wakes of this workspace, and of others that are named so, and of no others.
    #[must_use]
    pub fn only_from(mut self, workspace: Uuid) -> Self {
        self.workspaces.push(workspace);
        self
    }

    /// Verifies a wake and reads it.
    pub fn read<'a>(
        &self,
        header: impl Fn(&'static str) -> Option<&'a str>,
        body: &[u8],
    ) -> Result<(Trusted, Wake), Untrusted> {
        let trusted = self.verify(header, body)?;
        let wake = serde_json::from_slice(body).map_err(|_| Untrusted::Body)?;
        Ok((trusted, wake))
    }

    /// Verifies a wake by its headers and its body, as it came: not parsed and written anew.
    pub fn verify<'a>(
        &self,
        header: impl Fn(&'static str) -> Option<&'a str>,
        body: &[u8],
    ) -> Result<Trusted, Untrusted> {
        self.verify_at(header, body, Timestamp::now())
    }

    fn verify_at<'a>(
        &self,
        header: impl Fn(&'static str) -> Option<&'a str>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Trusted, Untrusted> {
        let read = |name| header(name).ok_or(Untrusted::Header(name));
        let (id, sent, signatures) = (read(ID)?, read(TIMESTAMP)?, read(SIGNATURE)?);
        let seconds: i64 = sent.parse().map_err(|_| Untrusted::Header(TIMESTAMP))?;
        let sent_at = Timestamp::from_second(seconds).map_err(|_| Untrusted::Header(TIMESTAMP))?;
        if now.duration_since(sent_at).unsigned_abs() > self.tolerance {
            return Err(Untrusted::Stale);
        }
        let given: Vec<Vec<u8>> = signatures
            .split(' ')
            .filter_map(|signature| STANDARD.decode(signature.strip_prefix("v1,")?).ok())
            .collect();
        let trusted = self.secrets.iter().any(|secret| {
            let mac = signed(secret, id, sent, body);
            // In constant time, so that nobody learns by trying.
            given
                .iter()
                .any(|signature| mac.clone().verify_slice(signature).is_ok())
        });
        if !trusted {
            return Err(Untrusted::Signature);
        }
        if !self.workspaces.is_empty() {
            let Owner { workspace_id } = serde_json::from_slice(body).map_err(|_| Untrusted::Body)?;
            if !self.workspaces.contains(&workspace_id) {
                return Err(Untrusted::Workspace(workspace_id));
            }
        }
        Ok(Trusted {
            id: id.to_owned(),
            sent_at,
        })
    }
}

fn signed(secret: &[u8], id: &str, sent: &str, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret)
        .unwrap_or_else(|_| unreachable!("a key of any length will do"));
    for part in [id.as_bytes(), b".", sent.as_bytes(), b".", body] {
        mac.update(part);
    }
    mac
}

/// A wake that is from Stationmaster, and fresh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    /// Its name, the same in every try: what was dealt with under it is not to be dealt with again.
    pub id: String,
    /// When this try was sent.
    pub sent_at: Timestamp,
}

/// Of a wake's body, whose it is.
#[derive(Deserialize)]
struct Owner {
    workspace_id: Uuid,
}

/// What a wake says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wake {
    /// Whose alarm it is, by Stationmaster's own record.
    pub workspace_id: Uuid,
    /// For whom it is, as whoever set the alarm said: the workspace's id when nothing was said. Proves nothing.
    pub user_id: String,
    /// The conversation that it belongs to.
    pub conversation_id: Option<String>,
    /// What was asked to be said.
    pub message: Option<String>,
    /// What was asked to be passed on, as it was given.
    pub payload: Option<Box<RawValue>>,
    /// The alarm.
    pub alarm_id: Uuid,
    /// The instant that was meant, whenever it came.
    pub scheduled_for: Timestamp,
    /// Which try this is, from 1.
    pub attempt: u32,
    /// Why it came, such as `schedule`.
    pub origin: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const OTHER: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const GOOD: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn check(verifier: &Verifier, signature: &str, body: &[u8], later: i64) -> Result<Trusted, Untrusted> {
        let header = |name| match name {
            ID => Some("msg_p5jXN8AQM9LWM0D4loKWxJek"),
            TIMESTAMP => Some("1614265330"),
            SIGNATURE => Some(signature),
            _ => None,
        };
        let now = Timestamp::from_second(1_614_265_330 + later).unwrap();
        verifier.verify_at(header, body, now)
    }

    #[test]
    fn the_example_of_the_standard_is_believed() {
        let verifier = Verifier::new(SECRET).unwrap();
        let trusted = check(&verifier, GOOD, BODY, 7).unwrap();
        assert_eq!(trusted.id, "msg_p5jXN8AQM9LWM0D4loKWxJek");
        assert_eq!(trusted.sent_at.as_second(), 1_614_265_330);
    }

    #[test]
    fn a_changed_body_and_a_foreign_secret_are_not_believed() {
        let verifier = Verifier::new(SECRET).unwrap();
        assert_eq!(
            check(&verifier, GOOD, br#"{"test": 2432232315}"#, 0),
            Err(Untrusted::Signature)
        );
        let foreign = Verifier::new(OTHER).unwrap();
        assert_eq!(check(&foreign, GOOD, BODY, 0), Err(Untrusted::Signature));
        for signature in [
            "",
            "v1,",
            "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            "v1,AAAA",
        ] {
            assert_eq!(
                check(&verifier, signature, BODY, 0),
                Err(Untrusted::Signature),
                "{signature}"
            );
        }
    }

    #[test]
    fn while_secrets_are_exchanged_either_is_believed_and_others_are_skipped() {
        let verifier = Verifier::new(OTHER).unwrap().or(SECRET).unwrap();
        let several = format!("v1a,AAAA v1,AAAA {GOOD}");
        assert!(check(&verifier, &several, BODY, 0).is_ok());
    }

    #[test]
    fn what_is_too_old_or_too_far_ahead_is_not_believed() {
        let verifier = Verifier::new(SECRET).unwrap();
        for later in [-300, 300] {
            assert!(check(&verifier, GOOD, BODY, later).is_ok(), "{later}");
        }
        for later in [-301, 301] {
            assert_eq!(
                check(&verifier, GOOD, BODY, later),
                Err(Untrusted::Stale),
                "{later}"
            );
        }
        let patient = verifier.tolerance(Duration::from_hours(1));
        assert!(check(&patient, GOOD, BODY, 3600).is_ok());
    }

    #[test]
    fn who_serves_one_workspace_believes_no_wake_of_another() {
        let (ours, theirs) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let moment = Timestamp::now().as_second().to_string();
        let send = |verifier: &Verifier, body: &str| {
            let key = STANDARD.decode(SECRET.trim_start_matches(PREFIX)).unwrap();
            let mac = signed(&key, "a:b", &moment, body.as_bytes())
                .finalize()
                .into_bytes();
            let signature = format!("v1,{}", STANDARD.encode(mac));
            let header = |name| match name {
                ID => Some("a:b"),
                TIMESTAMP => Some(moment.as_str()),
                _ => Some(signature.as_str()),
            };
            verifier.verify(header, body.as_bytes())
        };
        let body = |workspace: Uuid| format!(r#"{{"workspace_id": "{workspace}", "user_id": "{ours}"}}"#);
        let anybody = Verifier::new(SECRET).unwrap();
        assert!(send(&anybody, &body(theirs)).is_ok());
        let only_ours = anybody.only_from(ours);
        assert!(send(&only_ours, &body(ours)).is_ok());
        assert_eq!(
            send(&only_ours, &body(theirs)),
            Err(Untrusted::Workspace(theirs)),
            "whatever the user is said to be"
        );
        assert_eq!(send(&only_ours, "{}"), Err(Untrusted::Body));
    }

    #[test]
    fn a_missing_header_and_a_bad_secret_are_said() {
        let verifier = Verifier::new(SECRET).unwrap();
        assert_eq!(verifier.verify(|_| None, BODY), Err(Untrusted::Header(ID)));
        for secret in ["", "secret", "whsec_", "whsec_!!"] {
            assert_eq!(Verifier::new(secret).err(), Some(BadSecret), "{secret}");
        }
        assert_eq!(format!("{verifier:?}"), "Verifier { .. }");
    }

    #[test]
    fn a_wake_is_read_and_its_payload_kept_as_it_was_given() {
        let body = r#"{"workspace_id": "01890a5d-ac96-774b-bcce-b302099a8058", "user_id": "u", "conversation_id": null, "message": "hi", "payload": {"n": 1.50},
            "alarm_id": "01890a5d-ac96-774b-bcce-b302099a8057", "scheduled_for": "2026-03-01T12:00:00Z",
            "attempt": 2, "origin": "schedule"}"#;
        let wake: Wake = serde_json::from_str(body).unwrap();
        assert_eq!(wake.payload.unwrap().get(), r#"{"n": 1.50}"#);
        assert_eq!(wake.attempt, 2);
        assert_ne!(wake.workspace_id.to_string(), wake.user_id);
    }
}
