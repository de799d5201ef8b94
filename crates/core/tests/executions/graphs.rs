//! Graphs are looked at twice, by the program and by the database: both must say the same, whoever inserts a version.

use std::time::{Duration, Instant};

use stationmaster_core::catalogue;
use stationmaster_core::graph::Graph;
use stationmaster_core::id::DefinitionId;

use crate::common::{Testbed, brisk};

const GOOD: &[&str] = &[
    r#"{"nodes": [{"id": "a"}]}"#,
    r#"{"nodes": [{"id": "a", "type": "noop"}], "edges": []}"#,
    r#"{"nodes": [{"id": "b"}, {"id": "a"}], "edges": [{"from": "a", "to": "b"}]}"#,
    r#"{"nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"from": "a", "to": "b"}, {"from": "a", "to": "b"}]}"#,
    r#"{"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}],
        "edges": [{"from": "a", "to": "b"}, {"from": "a", "to": "c"}, {"from": "b", "to": "d"}, {"from": "c", "to": "d"}]}"#,
    r#"{"nodes": [{"id": " "}], "more": {"x": 1}}"#,
    r#"{"nodes": [{"id": "a", "type": "http", "url": "http://x", "body": {"deep": [1, {"er": null}]}}]}"#,
    r#"{"nodes": [{"id": "'; drop table x; --"}, {"id": "ü"}], "edges": [{"from": "ü", "to": "'; drop table x; --"}]}"#,
];

const BAD: &[&str] = &[
    "null",
    "[]",
    "7",
    "{}",
    r#"{"nodes": null}"#,
    r#"{"nodes": {}}"#,
    r#"{"nodes": []}"#,
    r#"{"nodes": [1]}"#,
    r#"{"nodes": [null]}"#,
    r#"{"nodes": [{}]}"#,
    r#"{"nodes": [{"id": ""}]}"#,
    r#"{"nodes": [{"id": null}]}"#,
    r#"{"nodes": [{"id": 1}]}"#,
    r#"{"nodes": [{"id": "a"}, {"id": "a"}]}"#,
    r#"{"nodes": [{"id": "a", "type": 5}]}"#,
    r#"{"nodes": [{"id": "a", "type": null}]}"#,
    r#"{"nodes": [{"id": "a"}], "edges": null}"#,
    r#"{"nodes": [{"id": "a"}], "edges": {}}"#,
    r#"{"nodes": [{"id": "a"}], "edges": [{}]}"#,
    r#"{"nodes": [{"id": "a"}], "edges": [7]}"#,
    r#"{"nodes": [{"id": "a"}], "edges": [{"from": "a"}]}"#,
    r#"{"nodes": [{"id": "a"}], "edges": [{"from": "a", "to": "x"}]}"#,
    r#"{"nodes": [{"id": "a"}], "edges": [{"from": "x", "to": "a"}]}"#,
    r#"{"nodes": [{"id": "a"}], "edges": [{"from": "a", "to": null}]}"#,
    r#"{"nodes": [{"id": "1"}], "edges": [{"from": 1, "to": "1"}]}"#,
    r#"{"nodes": [{"id": "a"}], "edges": [{"from": "a", "to": "a"}]}"#,
    r#"{"nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]}"#,
    r#"{"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}],
        "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}, {"from": "c", "to": "b"}, {"from": "c", "to": "d"}]}"#,
    r#"{"nodes": [{"id": "\u0000"}]}"#,
];

async fn database_accepts(testbed: &Testbed, definition: DefinitionId, graph: &str) -> Result<(), String> {
    let query = "insert into stationmaster.workflow_definition_versions (workflow_definition_id, workflow) values ($1, $2::jsonb)";
    let done = sqlx::query(query)
        .bind(definition)
        .bind(graph)
        .execute(testbed.pool())
        .await;
    done.map(|_| ()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn the_database_and_the_program_refuse_the_same_graphs() {
    let testbed = Testbed::new().await;
    let (_, definition) = testbed.tenant(1, crate::common::NOOP).await;
    let mut differences = Vec::new();
    let table = GOOD
        .iter()
        .map(|graph| (true, *graph))
        .chain(BAD.iter().map(|graph| (false, *graph)));
    for (good, graph) in table {
        let program = Graph::parse(graph).map(|_| ()).map_err(|error| error.to_string());
        let database = database_accepts(&testbed, definition, graph).await;
        if program.is_ok() != good || database.is_ok() != good {
            differences.push(format!(
                "{graph}\n  good: {good}\n  program: {program:?}\n  database: {database:?}"
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// What the database lets in, the program must be able to run.
#[tokio::test]
async fn a_graph_that_the_database_accepts_can_be_run() {
    let testbed = Testbed::new().await;
    let deep = format!(
        r#"{{"nodes": [{{"id": "a", "x": {}1{}}}]}}"#,
        "[".repeat(300),
        "]".repeat(300)
    );
    let graphs = [
        deep.as_str(),
        r#"{"nodes": [{"id": "a", "x": 1e400}]}"#,
        r#"{"nodes": [{"id": "a"}], "nodes": [{"id": "b"}]}"#,
    ];
    let server = testbed.server(brisk()).await;
    let mut misled = Vec::new();
    for graph in graphs {
        let (workspace, definition) = testbed.tenant(1, crate::common::NOOP).await;
        if database_accepts(&testbed, definition, graph).await.is_err() {
            continue;
        }
        let item = testbed.enqueue((workspace, definition)).await;
        let over = async || matches!(testbed.outcome(item).await.as_str(), "COMPLETED" | "FAILED");
        crate::common::eventually("it has ended", over).await;
        let ended = testbed.execution(item).await;
        if ended.status.as_str() != "COMPLETED" {
            misled.push((graph[..graph.len().min(60)].to_owned(), ended.reason));
        }
    }
    assert!(misled.is_empty(), "accepted and then not run: {misled:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_graph_that_is_refused_is_refused_by_the_api_with_words_and_not_as_a_broken_database() {
    let testbed = Testbed::new().await;
    let (_, definition) = testbed.tenant(1, crate::common::NOOP).await;
    for graph in BAD {
        let answer = catalogue::add_version(&testbed.database, definition, graph).await;
        let told = matches!(
            answer,
            Err(catalogue::Error::Graph(_) | catalogue::Error::Invalid(_))
        );
        assert!(told, "{graph}: {answer:?}");
    }
}

/// A workflow of some hundred steps in a row is nothing special.
#[tokio::test]
async fn a_long_chain_is_accepted_in_reasonable_time() {
    const STEPS: usize = 400;
    let testbed = Testbed::new().await;
    let (_, definition) = testbed.tenant(1, crate::common::NOOP).await;
    let nodes: Vec<_> = (0..STEPS)
        .map(|n| serde_json::json!({"id": format!("node-{n}")}))
        .collect();
    let edges: Vec<_> = (1..STEPS)
        .map(|n| serde_json::json!({"from": format!("node-{}", n - 1), "to": format!("node-{n}")}))
        .collect();
    let graph = serde_json::json!({"nodes": nodes, "edges": edges}).to_string();
    let began = Instant::now();
    let answer = catalogue::add_version(&testbed.database, definition, &graph).await;
    let took = began.elapsed();
    assert!(answer.is_ok(), "{answer:?} after {took:?}");
    assert!(took < Duration::from_secs(2), "took {took:?}");
}

/// A server that is there, with this engine; nothing runs behind it.
async fn a_server_with(testbed: &Testbed, engine: &str) {
    let row = format!(
        "insert into stationmaster_internal.servers (id, name, version, engine, engine_up, claiming, lease_until)
         values (stationmaster.new_id(), '{engine}', '0', '{engine}', true, true, now() + interval '1 hour')"
    );
    testbed.run(&row).await;
}

#[tokio::test]
async fn nodes_that_the_only_engine_cannot_run_are_refused_by_the_program_and_by_sql_alike() {
    let testbed = Testbed::new().await;
    let (_, definition) = testbed.tenant(1, crate::common::NOOP).await;
    let by_program = async |graph: &str| {
        catalogue::add_version(&testbed.database, definition, graph)
            .await
            .err()
            .map(|error| error.to_string())
    };
    let by_sql = async |graph: &str| {
        let query = "insert into stationmaster.workflow_definition_versions (workflow_definition_id, workflow) values ($1, $2::jsonb)";
        let insert = sqlx::query(query).bind(definition).bind(graph);
        insert
            .execute(testbed.pool())
            .await
            .err()
            .map(|error| error.to_string())
    };
    let bad = [
        r#"{"id": "a", "type": "htp"}"#,
        r#"{"id": "a", "type": "Wait"}"#,
        r#"{"id": "a", "type": "wait", "seconds": "5"}"#,
        r#"{"id": "a", "type": "wait", "seconds": -1}"#,
        r#"{"id": "a", "type": "wait", "seconds": 1e300}"#,
        r#"{"id": "a", "type": "wait", "seconds": null}"#,
        r#"{"id": "a", "type": "http"}"#,
        r#"{"id": "a", "type": "http", "url": "shop.example"}"#,
        r#"{"id": "a", "type": "http", "url": "https://shop.example", "method": 1}"#,
        r#"{"id": "a", "type": "fail", "message": {}}"#,
    ];
    let good = [
        r#"{"id": "a"}"#,
        r#"{"id": "a", "type": "noop", "whatever": []}"#,
        r#"{"id": "a", "type": "wait"}"#,
        r#"{"id": "a", "type": "wait", "seconds": 0.5}"#,
        r#"{"id": "a", "type": "http", "url": "HTTP://shop.example", "method": "get", "body": 1}"#,
        r#"{"id": "a", "type": "fail"}"#,
    ];
    let graph = |node: &str| format!(r#"{{"nodes": [{{"id": "first"}}, {node}]}}"#);
    // While there is no server nobody knows where it will run.
    for node in bad {
        assert_eq!(
            (by_program(&graph(node)).await, by_sql(&graph(node)).await),
            (None, None),
            "{node}"
        );
    }
    a_server_with(&testbed, "embedded").await;
    for node in good {
        assert_eq!(
            (by_program(&graph(node)).await, by_sql(&graph(node)).await),
            (None, None),
            "{node}"
        );
    }
    for node in bad {
        for refused in [by_program(&graph(node)).await, by_sql(&graph(node)).await] {
            assert!(
                refused.as_ref().is_some_and(|words| words.contains("node \"a\"")),
                "{node}: {refused:?}"
            );
        }
    }
    a_server_with(&testbed, "temporal").await;
    for node in bad {
        assert_eq!(
            (by_program(&graph(node)).await, by_sql(&graph(node)).await),
            (None, None),
            "{node}"
        );
    }
}
