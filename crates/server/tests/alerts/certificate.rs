//! The certificate of a server.

use std::time::Duration;

use crate::runbook::Place;
use crate::support::authority::{Authority, text};
use crate::support::{Launch, TestDatabase};
use crate::trial::Watch;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_near_its_end_is_noticed_until_it_is_replaced() {
    let authority = Authority::new();
    let shown = authority.sign_for("127.0.0.1", Duration::from_hours(5 * 24));
    let database = TestDatabase::new().await;
    let server = Launch::on(&database)
        .with("HTTP__TLS_CERT", text(&shown.certificate))
        .with("HTTP__TLS_KEY", text(&shown.key))
        .start();
    let mut address = None;
    crate::support::eventually("it listens", async || {
        let log = server.log();
        let after = log.split("https://").nth(1).unwrap_or_default();
        let known: String = after
            .chars()
            .take_while(|c| c.is_ascii_digit() || ".:".contains(*c))
            .collect();
        address = (after.len() > known.len()).then_some(known);
        address.is_some()
    })
    .await;
    let address = address.unwrap();
    let watch = Watch::with(&[&address], Duration::from_secs(1), true).await;
    let mut trial = watch.begin(&["CertificateEnds"]).await;
    let file = text(&shown.certificate).to_owned();
    let place = Place::at(&address).knowing(&[("FILE", &file)]);
    trial.fire(&place).await;
    authority
        .sign_for("127.0.0.1", Duration::from_hours(60 * 24))
        .replace(&shown);
    trial.clear().await;
}
