//! Wakes by hand: as Stationmaster signs them, and as somebody else would like to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::StatusCode;
use serde_json::json;
use sha2::Sha256;
use uuid::Uuid;

/// A wake that can be sent, as it is or with something wrong about it.
#[derive(Clone)]
pub(crate) struct Wake {
    pub(crate) id: String,
    pub(crate) sent: i64,
    pub(crate) body: String,
    pub(crate) signatures: Vec<String>,
}

impl Wake {
    /// Signed now with these secrets.
    pub(crate) fn signed(id: &str, secrets: &[&str]) -> Self {
        Self::signed_at(id, jiff::Timestamp::now().as_second(), secrets)
    }

    /// Signed at another time.
    pub(crate) fn signed_at(id: &str, sent: i64, secrets: &[&str]) -> Self {
        let body = json!({ "workspace_id": Uuid::now_v7(), "user_id": "u", "conversation_id": null, "message": "by hand", "payload": {"n": 1.50},
            "alarm_id": Uuid::now_v7(), "scheduled_for": "2026-03-01T12:00:00Z", "attempt": 1, "origin": "schedule" })
        .to_string();
        let sign = |secret: &&str| {
            let key = STANDARD.decode(secret.trim_start_matches("whsec_")).unwrap();
            let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
            mac.update(format!("{id}.{sent}.{body}").as_bytes());
            format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
        };
        let signatures = secrets.iter().map(sign).collect();
        Self {
            id: id.to_owned(),
            sent,
            body,
            signatures,
        }
    }

    pub(crate) async fn send(&self, url: &str) -> StatusCode {
        let request = client()
            .post(url)
            .header("content-type", "application/json")
            .header("webhook-id", &self.id)
            .header("webhook-timestamp", self.sent.to_string())
            .header("webhook-signature", self.signatures.join(" "))
            .body(self.body.clone());
        request.send().await.unwrap().status()
    }
}

/// A request that says nothing of itself.
pub(crate) async fn send_bare(url: &str) -> StatusCode {
    client().post(url).body("{}").send().await.unwrap().status()
}

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}
