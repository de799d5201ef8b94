//! A public fuzzer against the served document: no server error, and no answer that the document does not describe.

use std::process::Command;

use uuid::Uuid;

use crate::scene::{ENDLESS, Scene};
use crate::support::{eventually, setting};

/// Examples for each operation; `cargo xtask fuzz-api` takes many more.
const EXAMPLES: &str = "8";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fuzzer_finds_no_server_error_and_no_answer_outside_the_document() {
    let program = setting("STATIONMASTER_TEST_SCHEMATHESIS");
    let examples = std::env::var("STATIONMASTER_TEST_FUZZ_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_owned());
    let scene = Scene::with(&[
        ("HTTP__RATE_LIMIT", "1000000"),
        ("HTTP__AUTH_FAILURES", "1000000"),
    ])
    .await;
    let token = scene.token(stationmaster_core::access::Role::Admin, None).await;
    let (document, url) = (scene.url("/v1/openapi.json"), scene.url(""));
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::write(folder.path().join("schemathesis.toml"), real_things(&scene).await).unwrap();
    let mut command = Command::new(program);
    command
        .current_dir(folder.path())
        .args(["run", &document, "--url", &url])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        // A stream does not end by itself; a fuzzer that may revoke tokens revokes its own, and one that may delete
        // workspaces deletes the one that everything else is in.
        .args(["--exclude-operation-id", "listen_events"])
        .args(["--exclude-operation-id", "revoke_token"])
        .args(["--exclude-operation-id", "delete_workspace"])
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
    assert!(
        !said.contains("Authentication failed") && !said.contains("Rate limited"),
        "it came in nowhere:\n{said}"
    );
    assert!(!scene.server.log().contains("panicked"), "{}", scene.server.log());
    println!("{said}");
}

/// Ids that lead somewhere, for every operation that does not delete what they name: answers are then more than 404.
async fn real_things(scene: &Scene) -> String {
    let tenant = scene.tenant(1, ENDLESS).await;
    let client = scene.admin().await;
    let (running, waiting) = (scene.item(tenant).await, scene.item(tenant).await);
    let mut execution = None;
    eventually("one runs", async || {
        execution = client.queue_item(running).await.unwrap().item.execution_id;
        execution.is_some()
    })
    .await;
    let own = client.own_token().await.unwrap().id;
    let things = [
        ("workspaces", tenant.workspace),
        ("workflows", tenant.workflow),
        ("queue", waiting),
        ("executions", execution.unwrap()),
        ("tokens", own),
    ];
    let entry = |(noun, id): (&str, Uuid)| {
        format!(
            "[[operations]]\ninclude-path-regex = \"^/v1/{noun}/.id.\"\nexclude-method = \"DELETE\"\nparameters = {{ id = \"{id}\" }}\n"
        )
    };
    things.map(entry).concat()
}
