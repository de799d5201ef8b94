//! The graph of a workflow version: nodes with ids, edges between them. Pure.
//!
//! A graph that cannot run (a cycle, a duplicate or unknown id) is refused when the version is made, so whoever
//! holds a [`Graph`] holds a runnable one.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;
use serde_json::value::RawValue;

/// One step.
#[derive(Debug, Clone)]
pub struct Node {
    /// Unique within the graph.
    pub id: String,
    /// What kind of step; the embedded engine knows `noop`, `wait`, `http` and `fail`.
    pub kind: String,
    /// Its place in the document, from 0.
    pub place: usize,
    settings: HashMap<String, Box<RawValue>>,
}

impl Node {
    /// A setting as it stands in the document.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&RawValue> {
        self.settings.get(name).map(AsRef::as_ref)
    }

    /// A setting that is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.setting(name)?.get()).ok()
    }

    /// A setting that is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        serde_json::from_str(self.setting(name)?.get()).ok()
    }

    /// What a node is set to is kept as it stands: only its id and its type are looked at.
    fn new(mut settings: HashMap<String, Box<RawValue>>, index: usize) -> Result<Self, GraphError> {
        let mut text = |name: &str| match settings.remove(name) {
            None => Ok(None),
            Some(value) => serde_json::from_str::<String>(value.get())
                .map(Some)
                .map_err(|_| {
                    GraphError::Malformed(format!(
                        "the {name} of node {index} (counted from 0) is not a string"
                    ))
                }),
        };
        let (id, kind) = (text("id")?, text("type")?);
        let id = id.filter(|id| !id.is_empty()).ok_or(GraphError::EmptyId(index))?;
        if id.contains('\0') {
            return Err(GraphError::Malformed(format!(
                "the id of node {index} (counted from 0) holds a NUL"
            )));
        }
        Ok(Self {
            id,
            kind: kind.unwrap_or_else(|| "noop".to_owned()),
            place: index,
            settings,
        })
    }
}

#[derive(Debug, Clone, Deserialize)]
struct Edge {
    from: String,
    to: String,
}

#[derive(Debug, Deserialize)]
struct Document {
    nodes: Vec<HashMap<String, Box<RawValue>>>,
    #[serde(default)]
    edges: Vec<Edge>,
}

/// A validated graph, its nodes in topological order (ties in the order of the document).
#[derive(Debug, Clone)]
pub struct Graph {
    nodes: Vec<Node>,
}

/// Why a graph was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Not of the documented form.
    #[error(
        "the graph is not of the form {{\"nodes\": [{{\"id\": ..., \"type\": ...}}], \"edges\": [{{\"from\": ..., \"to\": ...}}]}}: {0}"
    )]
    Malformed(String),
    /// A graph must do something.
    #[error("the graph has no nodes")]
    Empty,
    /// A node without a name cannot be pointed at.
    #[error("node {0} (counted from 0) has an empty id")]
    EmptyId(usize),
    /// Two nodes with one id.
    #[error("the id {0:?} is used by two nodes")]
    DuplicateId(String),
    /// An edge from or to nowhere.
    #[error("the edge {from:?} -> {to:?} names the unknown node {unknown:?}")]
    UnknownId {
        /// Where the edge starts.
        from: String,
        /// Where the edge ends.
        to: String,
        /// Which of the two is unknown.
        unknown: String,
    },
    /// The nodes that wait for each other.
    #[error("the nodes {} form a cycle or wait for one", .0.join(", "))]
    Cycle(Vec<String>),
}

impl Graph {
    /// Reads and validates the JSON form.
    pub fn parse(json: &str) -> Result<Self, GraphError> {
        let document =
            serde_json::from_str(json).map_err(|error| GraphError::Malformed(error.to_string()))?;
        Self::new(document)
    }

    /// The nodes in topological order.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The ids of the nodes in topological order.
    pub fn node_ids(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.id.as_str())
    }

    fn new(document: Document) -> Result<Self, GraphError> {
        if document.nodes.is_empty() {
            return Err(GraphError::Empty);
        }
        let nodes = document
            .nodes
            .into_iter()
            .enumerate()
            .map(|(index, settings)| Node::new(settings, index));
        let nodes: Vec<Node> = nodes.collect::<Result<_, _>>()?;
        let mut position = HashMap::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            if position.insert(node.id.as_str(), index).is_some() {
                return Err(GraphError::DuplicateId(node.id.clone()));
            }
        }
        let mut successors = vec![Vec::new(); nodes.len()];
        let mut waits_for = vec![0_usize; nodes.len()];
        for edge in &document.edges {
            let find = |id: &String| {
                position
                    .get(id.as_str())
                    .copied()
                    .ok_or_else(|| GraphError::UnknownId {
                        from: edge.from.clone(),
                        to: edge.to.clone(),
                        unknown: id.clone(),
                    })
            };
            let (from, to) = (find(&edge.from)?, find(&edge.to)?);
            successors[from].push(to);
            waits_for[to] += 1;
        }
        let order = topological_order(&successors, &mut waits_for);
        if order.len() < nodes.len() {
            let stuck = nodes.iter().zip(&waits_for).filter(|(_, waits)| **waits > 0);
            return Err(GraphError::Cycle(
                stuck.map(|(node, _)| node.id.clone()).collect(),
            ));
        }
        let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
        let nodes = order
            .into_iter()
            .filter_map(|index| nodes[index].take())
            .collect();
        Ok(Self { nodes })
    }
}

/// Kahn's algorithm; among the nodes that are free, the first of the document goes first.
fn topological_order(successors: &[Vec<usize>], waits_for: &mut [usize]) -> Vec<usize> {
    let mut free: BTreeSet<usize> = (0..successors.len())
        .filter(|&node| waits_for[node] == 0)
        .collect();
    let mut order = Vec::with_capacity(successors.len());
    while let Some(node) = free.pop_first() {
        order.push(node);
        for &next in &successors[node] {
            waits_for[next] -= 1;
            if waits_for[next] == 0 {
                free.insert(next);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(json: &str) -> Vec<String> {
        Graph::parse(json)
            .unwrap()
            .node_ids()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn nodes_come_in_topological_order_and_ties_in_document_order() {
        let json = r#"{"nodes": [{"id": "d"}, {"id": "b"}, {"id": "a"}, {"id": "c"}],
                       "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "d"}, {"from": "c", "to": "d"}]}"#;
        assert_eq!(ids(json), ["a", "b", "c", "d"]);
    }

    #[test]
    fn a_graph_without_edges_keeps_its_order() {
        assert_eq!(
            ids(r#"{"nodes": [{"id": "z"}, {"id": "y", "type": "wait", "seconds": 1}]}"#),
            ["z", "y"]
        );
    }

    #[test]
    fn a_cycle_is_refused_and_named() {
        let json = r#"{"nodes": [{"id": "a"}, {"id": "b"}, {"id": "free"}],
                       "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]}"#;
        assert_eq!(
            Graph::parse(json).unwrap_err(),
            GraphError::Cycle(vec!["a".into(), "b".into()])
        );
    }

    #[test]
    fn a_self_loop_is_a_cycle() {
        let json = r#"{"nodes": [{"id": "a"}], "edges": [{"from": "a", "to": "a"}]}"#;
        assert_eq!(
            Graph::parse(json).unwrap_err(),
            GraphError::Cycle(vec!["a".into()])
        );
    }

    #[test]
    fn duplicate_unknown_and_empty_ids_are_refused() {
        let duplicate = r#"{"nodes": [{"id": "a"}, {"id": "a"}]}"#;
        assert_eq!(
            Graph::parse(duplicate).unwrap_err(),
            GraphError::DuplicateId("a".into())
        );
        let unknown = r#"{"nodes": [{"id": "a"}], "edges": [{"from": "a", "to": "x"}]}"#;
        assert!(
            matches!(Graph::parse(unknown), Err(GraphError::UnknownId { unknown, .. }) if unknown == "x")
        );
        assert_eq!(
            Graph::parse(r#"{"nodes": [{"id": ""}]}"#).unwrap_err(),
            GraphError::EmptyId(0)
        );
        assert_eq!(Graph::parse(r#"{"nodes": []}"#).unwrap_err(), GraphError::Empty);
        assert!(matches!(Graph::parse("[]"), Err(GraphError::Malformed(_))));
    }

    #[test]
    fn a_double_edge_is_harmless() {
        let json = r#"{"nodes": [{"id": "a"}, {"id": "b"}],
                       "edges": [{"from": "a", "to": "b"}, {"from": "a", "to": "b"}]}"#;
        assert_eq!(ids(json), ["a", "b"]);
    }
}
