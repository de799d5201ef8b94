//! A public fuzzer against the served document: no server error, and no answer that the document does not describe.

use std::process::Command;

use crate::scene::{ENDLESS, Scene};
use crate::support::setting;

/// Examples for each operation; `cargo xtask fuzz-api` takes many more.
const EXAMPLES: &str = "8";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fuzzer_finds_no_server_error_and_no_answer_outside_the_document() {
    let program = setting("STATIONMASTER_TEST_SCHEMATHESIS");
    let examples = std::env::var("STATIONMASTER_TEST_FUZZ_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_owned());
    let scene = Scene::with(&[("HTTP__RATE_LIMIT", "1000000")]).await;
    let tenant = scene.tenant(1, ENDLESS).await;
    scene.item(tenant).await;
    let token = scene.token(stationmaster_core::access::Role::Admin, None).await;
    let (document, url) = (scene.url("/v1/openapi.json"), scene.url(""));
    let folder = tempfile::TempDir::new().unwrap();
    let mut command = Command::new(program);
    command
        .current_dir(folder.path())
        .args(["run", &document, "--url", &url])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        // A stream does not end by itself.
        .args(["--exclude-operation-id", "listen_events"])
        .args(["--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,unsupported_method,ignored_auth"])
        .args(["--phases", "examples,coverage,fuzzing"])
        .args(["--max-examples", &examples])
        .args(["--generation-database", "none", "--seed", "1", "--no-color", "--request-timeout", "30"]);
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .expect("the fuzzer runs");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{said}");
    assert!(!scene.server.log().contains("panicked"), "{}", scene.server.log());
    println!("{}", said.lines().rev().take(12).collect::<Vec<_>>().join("\n"));
}
