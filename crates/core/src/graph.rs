//! The graph of a workflow version: nodes with ids, edges between them. Pure.
//!
//! A graph that cannot run (a cycle, a duplicate or unknown id) is refused when the version is made, so whoever
//! holds a [`Graph`] holds a runnable one.

use std::collections::{BTreeSet, HashMap};

use serde::de::DeserializeOwned;
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
    settings: Settings,
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
    fn read(node: &RawValue, place: usize, faults: &mut Vec<Fault>) -> Option<Self> {
        let at = format!("/nodes/{place}");
        let form = "an object with an id";
        let mut settings: Settings = read(node, &at, form, faults)?;
        let before = faults.len();
        let mut text = |field: &str| {
            let value = settings.remove(field)?;
            read::<String>(&value, &format!("{at}/{field}"), "text", faults)
        };
        let (id, kind) = (text("id"), text("type"));
        if faults.len() > before {
            return None;
        }
        let wrong = match &id {
            None => Some("it is missing"),
            Some(id) if id.is_empty() => Some("it is empty"),
            Some(id) if id.contains('\0') => Some("it holds a zero byte"),
            Some(_) => None,
        };
        if let Some(words) = wrong {
            faults.push(Fault::new(format!("{at}/id"), words));
            return None;
        }
        Some(Self {
            id: id?,
            kind: kind.unwrap_or_else(|| "noop".to_owned()),
            place,
            settings,
        })
    }
}

/// An object as it stands in the document.
type Settings = HashMap<String, Box<RawValue>>;

/// An edge, its place in the document, and where it leads.
struct Edge {
    place: usize,
    from: String,
    to: String,
}

impl Edge {
    fn read(edge: &RawValue, place: usize, faults: &mut Vec<Fault>) -> Option<Self> {
        let at = format!("/edges/{place}");
        let settings: Settings = read(edge, &at, "an object with from and to", faults)?;
        let mut end = |field: &str| {
            let at = format!("{at}/{field}");
            if let Some(value) = settings.get(field) {
                read::<String>(value, &at, "the id of a node", faults)
            } else {
                faults.push(Fault::new(at, "it is missing"));
                None
            }
        };
        let (from, to) = (end("from"), end("to"));
        Some(Self {
            place,
            from: from?,
            to: to?,
        })
    }
}

/// A validated graph, its nodes in topological order (ties in the order of the document).
#[derive(Debug, Clone)]
pub struct Graph {
    nodes: Vec<Node>,
}

/// One thing that is wrong with a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where in the document, as a JSON pointer; empty: the whole.
    pub pointer: String,
    /// What is wrong.
    pub words: String,
}

impl Fault {
    fn new(pointer: impl Into<String>, words: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            words: words.into(),
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.pointer.as_str() {
            "" => formatter.write_str(&self.words),
            pointer => write!(formatter, "{pointer}: {}", self.words),
        }
    }
}

/// Why a graph was refused: everything that is wrong with it, as far as it could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the graph cannot run: {}", .faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct GraphError {
    /// What is wrong, in the order of the document.
    pub faults: Vec<Fault>,
}

/// A part of the document that has this form; else a fault.
fn read<T: DeserializeOwned>(
    value: &RawValue,
    pointer: &str,
    form: &str,
    faults: &mut Vec<Fault>,
) -> Option<T> {
    let read = serde_json::from_str(value.get()).ok();
    if read.is_none() {
        let words = format!("{form} is expected, not {}", shown(value));
        faults.push(Fault::new(pointer, words));
    }
    read
}

/// What stands there, in few words.
fn shown(value: &RawValue) -> String {
    let text = value.get().trim_start();
    match text.as_bytes().first() {
        Some(b'{') => "an object".to_owned(),
        Some(b'[') => "a list".to_owned(),
        Some(b'"') => format!("the text {}", text.chars().take(40).collect::<String>()),
        _ => text.to_owned(),
    }
}

impl Graph {
    /// Reads and validates the JSON form.
    pub fn parse(json: &str) -> Result<Self, GraphError> {
        let mut faults = Vec::new();
        let graph = Self::read(json, &mut faults);
        graph.filter(|_| faults.is_empty()).ok_or(GraphError { faults })
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

    fn read(json: &str, faults: &mut Vec<Fault>) -> Option<Self> {
        let Ok(document) = serde_json::from_str::<&RawValue>(json) else {
            let words = "it is not JSON: an object with nodes and edges is expected";
            faults.push(Fault::new("", words));
            return None;
        };
        let document: Settings = read(document, "", "an object with nodes and edges", faults)?;
        let mut list = |field: &str, form: &str| match document.get(field) {
            Some(value) => read::<Vec<Box<RawValue>>>(value, &format!("/{field}"), form, faults),
            None if field == "edges" => Some(Vec::new()),
            None => {
                faults.push(Fault::new(format!("/{field}"), "it is missing"));
                None
            }
        };
        let (nodes, edges) = (list("nodes", "a list of nodes"), list("edges", "a list of edges"));
        let nodes = nodes?;
        if nodes.is_empty() {
            faults.push(Fault::new("/nodes", "a graph has at least one node"));
        }
        let all = nodes.len();
        let nodes: Vec<Node> = (nodes.iter().enumerate())
            .filter_map(|(place, node)| Node::read(node, place, faults))
            .collect();
        let edges: Vec<Edge> = (edges?.iter().enumerate())
            .filter_map(|(place, edge)| Edge::read(edge, place, faults))
            .collect();
        // What could not be read might be what an edge leads to.
        if nodes.len() < all {
            return None;
        }
        Some(Self::connect(nodes, &edges, faults))
    }

    fn connect(nodes: Vec<Node>, edges: &[Edge], faults: &mut Vec<Fault>) -> Self {
        let mut position = HashMap::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            if let Some(first) = position.insert(node.id.as_str(), index) {
                let words = format!("the id {:?} is that of node {first} too, counted from 0", node.id);
                faults.push(Fault::new(format!("/nodes/{index}/id"), words));
            }
        }
        let mut successors = vec![Vec::new(); nodes.len()];
        let mut waits_for = vec![0_usize; nodes.len()];
        for edge in edges {
            let mut find = |field: &str, id: &str| {
                let found = position.get(id).copied();
                if found.is_none() {
                    let words = format!("there is no node {id:?}");
                    faults.push(Fault::new(format!("/edges/{}/{field}", edge.place), words));
                }
                found
            };
            if let (Some(from), Some(to)) = (find("from", &edge.from), find("to", &edge.to)) {
                successors[from].push(to);
                waits_for[to] += 1;
            }
        }
        let order = topological_order(&successors, &mut waits_for);
        if order.len() < nodes.len() {
            let stuck = nodes.iter().zip(&waits_for).filter(|(_, waits)| **waits > 0);
            let stuck: Vec<&str> = stuck.map(|(node, _)| node.id.as_str()).collect();
            let words = format!("the nodes {} form a cycle or wait for one", stuck.join(", "));
            faults.push(Fault::new("/edges", words));
        }
        let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
        let nodes = order
            .into_iter()
            .filter_map(|index| nodes[index].take())
            .collect();
        Self { nodes }
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

    fn faults(json: &str) -> Vec<String> {
        let refused = Graph::parse(json).unwrap_err();
        refused.faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_cycle_is_refused_and_named() {
        let json = r#"{"nodes": [{"id": "a"}, {"id": "b"}, {"id": "free"}],
                       "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]}"#;
        assert_eq!(
            faults(json),
            ["/edges: the nodes a, b form a cycle or wait for one"]
        );
        let itself = r#"{"nodes": [{"id": "a"}], "edges": [{"from": "a", "to": "a"}]}"#;
        assert_eq!(
            faults(itself),
            ["/edges: the nodes a form a cycle or wait for one"]
        );
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once_with_its_place() {
        let json = r#"{"nodes": [{"id": "a"}, {"id": "a"}, {"id": "b"}],
                       "edges": [{"from": "a", "to": "x"}, {"from": "y", "to": "b"}]}"#;
        assert_eq!(
            faults(json),
            [
                "/nodes/1/id: the id \"a\" is that of node 0 too, counted from 0",
                "/edges/0/to: there is no node \"x\"",
                "/edges/1/from: there is no node \"y\"",
            ]
        );
        let json = r#"{"nodes": [{"id": ""}, {"type": "wait"}, 7, {"id": 3, "type": {}}, {"id": "\u0000"}],
                       "edges": [{"from": "a"}, [], {"from": null, "to": "b"}]}"#;
        assert_eq!(
            faults(json),
            [
                "/nodes/0/id: it is empty",
                "/nodes/1/id: it is missing",
                "/nodes/2: an object with an id is expected, not 7",
                "/nodes/3/id: text is expected, not 3",
                "/nodes/3/type: text is expected, not an object",
                "/nodes/4/id: it holds a zero byte",
                "/edges/0/to: it is missing",
                "/edges/1: an object with from and to is expected, not a list",
                "/edges/2/from: the id of a node is expected, not null",
            ]
        );
    }

    #[test]
    fn what_is_no_graph_at_all_is_told_in_words() {
        for (json, words) in [
            ("{", "it is not JSON: an object with nodes and edges is expected"),
            ("[]", "an object with nodes and edges is expected, not a list"),
            ("{}", "/nodes: it is missing"),
            (r#"{"nodes": []}"#, "/nodes: a graph has at least one node"),
            (
                r#"{"nodes": "a", "edges": null}"#,
                "/nodes: a list of nodes is expected, not the text \"a\"",
            ),
        ] {
            assert_eq!(faults(json)[0], words, "{json}");
        }
        assert_eq!(faults(r#"{"nodes": "a", "edges": null}"#).len(), 2);
    }

    #[test]
    fn a_double_edge_is_harmless() {
        let json = r#"{"nodes": [{"id": "a"}, {"id": "b"}],
                       "edges": [{"from": "a", "to": "b"}, {"from": "a", "to": "b"}]}"#;
        assert_eq!(ids(json), ["a", "b"]);
    }
}
