//! Which nodes the embedded engine runs, and how they must be set. Pure: asked when a version is made, and again when it is started.
//! `stationmaster_internal.check_nodes` asks the same of whoever inserts a version by SQL.

use crate::graph::{Graph, Node};

/// The node types that run here; others need Temporal.
pub const KNOWN: [&str; 4] = ["noop", "wait", "http", "fail"];
/// A hundred years. What is longer cannot be told by every clock on the way, and nobody means it.
pub(super) const LONGEST_WAIT: f64 = 3_155_760_000.0;

/// What is wrong with a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeProblem {
    /// Its place in the document, from 0.
    pub place: usize,
    /// Its id.
    pub id: String,
    /// Which of its fields is wrong.
    pub field: &'static str,
    /// What is wrong, in words.
    pub words: String,
    /// The type that is not known, when that is wrong.
    pub unknown: Option<String>,
}

/// Everything about the nodes of a graph that the embedded engine could not run.
#[must_use]
pub fn problems(graph: &Graph) -> Vec<NodeProblem> {
    let mut problems: Vec<NodeProblem> = graph.nodes().iter().filter_map(problem).collect();
    problems.sort_by_key(|problem| problem.place);
    problems
}

fn problem(node: &Node) -> Option<NodeProblem> {
    let wrong = |field, words: &str| {
        Some(NodeProblem {
            place: node.place,
            id: node.id.clone(),
            field,
            words: words.to_owned(),
            unknown: None,
        })
    };
    let unread = |field| node.setting(field).is_some() && node.text(field).is_none();
    match node.kind.as_str() {
        "wait" if node.setting("seconds").is_some() => match node.number("seconds") {
            Some(seconds) if (0.0..=LONGEST_WAIT).contains(&seconds) => None,
            _ => wrong("seconds", "a number of seconds, from 0 to a hundred years"),
        },
        "http" if node.text("url").is_none_or(|url| !is_url(&url)) => wrong(
            "url",
            "an http node needs a url that begins with http:// or https://",
        ),
        "http" if unread("method") => wrong("method", "a method of HTTP, such as GET"),
        "fail" if unread("message") => wrong("message", "the words with which it fails, a string"),
        known if KNOWN.contains(&known) => None,
        other => Some(NodeProblem {
            unknown: Some(other.to_owned()),
            ..wrong("type", &unknown(other))?
        }),
    }
}

fn is_url(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.starts_with("http://") || text.starts_with("https://")
}

/// The words about a type that does not run here.
pub(super) fn unknown(kind: &str) -> String {
    let known = KNOWN.join(", ");
    format!(
        "the embedded engine does not run nodes of type {kind:?}; it runs {known}. Other types need the engine temporal"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(nodes: &str) -> Vec<(usize, &'static str)> {
        let graph = Graph::parse(&format!(r#"{{"nodes": [{nodes}]}}"#)).unwrap();
        problems(&graph)
            .into_iter()
            .map(|problem| (problem.place, problem.field))
            .collect()
    }

    #[test]
    fn every_node_that_cannot_run_is_told_by_its_place_and_field() {
        let good = r#"{"id": "a"}, {"id": "b", "type": "wait", "seconds": 1.5}, {"id": "c", "type": "fail"}, {"id": "d", "type": "wait"},
                      {"id": "e", "type": "http", "url": "HTTPS://shop.example"}"#;
        assert_eq!(fields(good), []);
        let bad = r#"{"id": "a", "type": "htp"}, {"id": "b"}, {"id": "c", "type": "wait", "seconds": "5"}, {"id": "d", "type": "http"},
                     {"id": "e", "type": "wait", "seconds": -1}, {"id": "f", "type": "fail", "message": 1},
                     {"id": "g", "type": "http", "url": "https://a.example", "method": 7}, {"id": "h", "type": "wait", "seconds": 1e12}"#;
        let told = [
            (0, "type"),
            (2, "seconds"),
            (3, "url"),
            (4, "seconds"),
            (5, "message"),
            (6, "method"),
            (7, "seconds"),
        ];
        assert_eq!(fields(bad), told);
    }
}
