//! Where each node of an execution's graph stands, as far as its engine lets anybody know. Reads only.
//!
//! The embedded engine goes through the nodes in their order and remembers where it is whenever that matters (a call, a long wait), so what
//! lies between is told from the graph: what does nothing is over at once. Of other engines only the graph is known.

use jiff::Timestamp;
use serde_json::value::RawValue;
use stationmaster_wire::{Execution, ExecutionNodes, ExecutionStatus, NodeStanding, NodeState};

use crate::columns::MaybeAt;
use crate::db::{self, Database, Read as _, statement};
use crate::engine::LOCAL;
use crate::graph::Graph;

/// What is remembered of a run.
#[derive(sqlx::FromRow)]
struct Remembered {
    graph: String,
    position: Option<i32>,
    #[sqlx(try_from = "MaybeAt")]
    wake_at: Option<Timestamp>,
    woken: Option<bool>,
}

/// The nodes of an execution that the caller may see.
pub async fn nodes(database: &Database, execution: &Execution) -> Result<ExecutionNodes, db::Error> {
    let row: Option<Remembered> = sqlx::query_as(statement!("inspect/nodes"))
        .bind(execution.workflow_definition_version_id)
        .bind(execution.id)
        .maybe(&database.own())
        .await?;
    let Some(row) = row else {
        return Ok(ExecutionNodes::default());
    };
    let graph = Graph::parse(&row.graph).ok();
    let nodes = graph.map_or_else(Vec::new, |graph| standings(&graph, execution, &row));
    Ok(ExecutionNodes {
        graph: RawValue::from_string(row.graph).ok(),
        nodes,
    })
}

/// How far a run got: all before a place are finished.
enum Reach {
    /// Nobody knows.
    Unknown,
    /// The node at this place is under way.
    At(usize),
    /// It failed there.
    Failed(usize),
    /// It ended there for another reason.
    Stopped(usize),
}

fn standings(graph: &Graph, execution: &Execution, row: &Remembered) -> Vec<NodeStanding> {
    let reach = reach(graph, execution, row);
    let state = |place: usize| match reach {
        Reach::Unknown => None,
        Reach::At(at) | Reach::Failed(at) | Reach::Stopped(at) if place < at => Some(NodeState::Finished),
        Reach::At(at) if place == at => Some(NodeState::UnderWay),
        Reach::Failed(at) if place == at => Some(NodeState::Failed),
        _ => Some(NodeState::Ahead),
    };
    let waits = row.wake_at.filter(|_| row.woken == Some(false));
    let nodes = graph.nodes().iter().enumerate();
    nodes
        .map(|(place, node)| {
            let state = state(place);
            NodeStanding {
                id: node.id.clone(),
                kind: node.kind.clone(),
                until: waits.filter(|_| state == Some(NodeState::UnderWay)),
                state,
            }
        })
        .collect()
}

fn reach(graph: &Graph, execution: &Execution, row: &Remembered) -> Reach {
    let is_local = |engine: &str| LOCAL.contains(&engine);
    if !execution.engine.as_deref().is_some_and(is_local) {
        return Reach::Unknown;
    }
    let whole = graph.nodes().len();
    match execution.status {
        ExecutionStatus::Completed => Reach::Stopped(whole),
        ExecutionStatus::Failed => failed_at(graph, execution).map_or(Reach::Unknown, Reach::Failed),
        ExecutionStatus::Running | ExecutionStatus::Starting => Reach::At(first_open(graph, row)),
        ExecutionStatus::Cancelled | ExecutionStatus::Terminated | ExecutionStatus::TimedOut => row
            .position
            .map_or(Reach::Unknown, |_| Reach::Stopped(first_open(graph, row))),
        ExecutionStatus::Pending => Reach::Stopped(first_open(graph, row)),
    }
}

/// The place of the node that the error names.
fn failed_at(graph: &Graph, execution: &Execution) -> Option<usize> {
    let error: serde_json::Value = serde_json::from_str(execution.error.as_ref()?.get()).ok()?;
    let node = error.get("node")?.as_str()?;
    graph.node_ids().position(|id| id == node)
}

/// The first node that is not known to be finished: behind what is remembered, behind a wait that is over, behind what does nothing.
fn first_open(graph: &Graph, row: &Remembered) -> usize {
    let remembered = row
        .position
        .and_then(|at| usize::try_from(at).ok())
        .unwrap_or_default();
    let remembered = remembered + usize::from(row.woken == Some(true));
    let rest = graph.nodes().iter().skip(remembered);
    remembered + rest.take_while(|node| node.kind == "noop").count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: &str = r#"{"nodes": [{"id": "a", "type": "noop"}, {"id": "b", "type": "wait", "seconds": 60},
        {"id": "c", "type": "noop"}, {"id": "d", "type": "http", "url": "https://a.example"}],
        "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}, {"from": "c", "to": "d"}]}"#;

    fn execution(status: ExecutionStatus, engine: &str, error: Option<&str>) -> Execution {
        let error = error.map(|error| serde_json::from_str::<serde_json::Value>(error).unwrap());
        serde_json::from_value(serde_json::json!({
            "id": uuid::Uuid::nil(), "queue_item_id": uuid::Uuid::nil(), "workspace_id": uuid::Uuid::nil(), "workspace": null,
            "workflow_definition_id": uuid::Uuid::nil(), "workflow": null, "workflow_definition_version_id": null,
            "status": status, "claimed_at": null, "started_at": null, "completed_at": null, "closed_at": null, "superseded_at": null,
            "engine": engine, "run_id": null, "reason": null, "attempts": 0, "recoveries": 0, "input": null, "output": null, "error": error
        }))
        .unwrap()
    }

    fn told(execution: &Execution, position: Option<i32>, woken: Option<bool>) -> String {
        let row = Remembered {
            graph: String::new(),
            position,
            wake_at: woken.map(|_| Timestamp::UNIX_EPOCH),
            woken,
        };
        let nodes = standings(&Graph::parse(GRAPH).unwrap(), execution, &row);
        let letter = |node: &NodeStanding| match node.state {
            None => '?',
            Some(NodeState::Finished) => 'x',
            Some(NodeState::UnderWay) if node.until.is_some() => 'w',
            Some(NodeState::UnderWay) => 'o',
            Some(NodeState::Failed) => '!',
            Some(NodeState::Ahead) => '.',
        };
        nodes.iter().map(letter).collect()
    }

    #[test]
    fn a_run_stands_at_the_first_node_that_is_not_known_to_be_finished() {
        let running = execution(ExecutionStatus::Running, "embedded", None);
        assert_eq!(told(&running, None, None), "xo..", "nothing is remembered yet");
        assert_eq!(told(&running, Some(1), Some(false)), "xw..", "it waits");
        assert_eq!(told(&running, Some(1), Some(true)), "xxxo", "the wait is over");
        assert_eq!(told(&running, Some(4), None), "xxxx", "it is about to end");
        let pending = execution(ExecutionStatus::Pending, "embedded", None);
        assert_eq!(told(&pending, Some(3), None), "xxx.");
    }

    #[test]
    fn an_end_is_told_where_it_happened_and_not_guessed_elsewhere() {
        let completed = execution(ExecutionStatus::Completed, "embedded", None);
        assert_eq!(told(&completed, None, None), "xxxx");
        let error = Some(r#"{"message": "no", "node": "d"}"#);
        let failed = execution(ExecutionStatus::Failed, "embedded", error);
        assert_eq!(told(&failed, None, None), "xxx!");
        let by_hand = execution(ExecutionStatus::Failed, "embedded", Some(r#"{"message": "no"}"#));
        assert_eq!(told(&by_hand, None, None), "????", "it does not say where");
        let terminated = execution(ExecutionStatus::Terminated, "embedded", None);
        assert_eq!(told(&terminated, None, None), "????", "nothing is remembered");
        assert_eq!(told(&terminated, Some(1), Some(false)), "x...");
        let elsewhere = execution(ExecutionStatus::Completed, "temporal", None);
        assert_eq!(
            told(&elsewhere, None, None),
            "????",
            "another engine does not say"
        );
    }
}
