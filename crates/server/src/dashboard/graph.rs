//! The graph of a workflow as a picture: what depends on nothing stands left, everything else right of all that it waits for.

use std::collections::HashMap;
use std::fmt::Write as _;

use maud::{Markup, html};
use serde::Deserialize;
use stationmaster_client::wire::{NodeStanding, NodeState};

#[derive(Deserialize)]
struct Graph {
    #[serde(default)]
    nodes: Vec<Node>,
    #[serde(default)]
    edges: Vec<Edge>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct Edge {
    from: String,
    to: String,
}

const WIDTH: usize = 150;
const HEIGHT: usize = 46;
const GAP_X: usize = 56;
const GAP_Y: usize = 18;
/// More than this nobody can follow in a picture.
const MOST: usize = 120;

/// Where a node stands: its colour and its word.
fn state(standings: &[NodeStanding], id: &str) -> Option<(&'static str, &'static str)> {
    let standing = standings.iter().find(|standing| standing.id == id)?;
    Some(match standing.state? {
        NodeState::Finished => ("finished", "finished"),
        NodeState::UnderWay if standing.until.is_some() => ("at", "waits"),
        NodeState::UnderWay => ("at", "under way"),
        NodeState::Failed => ("broken", "failed"),
        NodeState::Ahead => ("ahead", "not yet"),
    })
}

/// The picture, with where each node stands as far as that is known; none when it is no graph that can be drawn.
pub(super) fn draw(text: &str, standings: &[NodeStanding]) -> Option<Markup> {
    let graph: Graph = serde_json::from_str(text).ok()?;
    if graph.nodes.is_empty() || graph.nodes.len() > MOST {
        return None;
    }
    let places = places(&graph);
    let columns = places.values().map(|(column, _)| column + 1).max()?;
    let rows = places.values().map(|(_, row)| row + 1).max()?;
    let (width, height) = (
        columns * (WIDTH + GAP_X) - GAP_X + 4,
        rows * (HEIGHT + GAP_Y) - GAP_Y + 4,
    );
    let corner = |id: &str| {
        let (column, row) = places.get(id)?;
        Some((2 + column * (WIDTH + GAP_X), 2 + row * (HEIGHT + GAP_Y)))
    };
    let lines = graph.edges.iter().filter_map(|edge| {
        let ((x, y), (to_x, to_y)) = (corner(&edge.from)?, corner(&edge.to)?);
        let (x, y, to_y) = (x + WIDTH, y + HEIGHT / 2, to_y + HEIGHT / 2);
        let half = usize::midpoint(x, to_x);
        Some(format!(
            "M{x} {y}C{half} {y} {half} {to_y} {} {to_y}",
            to_x.saturating_sub(6)
        ))
    });
    Some(html! {
        div.scroll tabindex="0" role="region" aria-label="The graph" {
            svg.graph width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(words(&graph, standings)) {
                defs {
                    marker #tip viewBox="0 0 8 8" refX="2" refY="4" markerWidth="7" markerHeight="7" orient="auto" { path d="M0 0L8 4L0 8z" {} }
                }
                @for line in lines { path.edge d=(line) marker-end="url(#tip)" {} }
                @for node in &graph.nodes {
                    @if let Some((x, y)) = corner(&node.id) {
                        @let (class, state) = state(standings, &node.id).unwrap_or_default();
                        g.(class) {
                            title { (node.id) " (" (node.kind) ")" @if !state.is_empty() { ": " (state) } }
                            rect.node x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx="6" {}
                            text.name x=(x + 12) y=(y + 20) { (short(&node.id)) }
                            text.kind x=(x + 12) y=(y + 36) { (short(&node.kind)) @if !state.is_empty() { " · " (state) } }
                        }
                    }
                }
            }
        }
    })
}

fn words(graph: &Graph, standings: &[NodeStanding]) -> String {
    let edges: Vec<String> = graph
        .edges
        .iter()
        .map(|edge| format!("{} before {}", edge.from, edge.to))
        .collect();
    let mut words = format!("{} steps: {}", graph.nodes.len(), edges.join(", "));
    for node in &graph.nodes {
        if let Some((_, state)) = state(standings, &node.id) {
            let _ = write!(words, "; {} {state}", node.id);
        }
    }
    words
}

fn short(text: &str) -> String {
    if text.chars().count() <= 18 {
        return text.to_owned();
    }
    text.chars().take(17).chain(['…']).collect()
}

/// Column and row of each node: a column further right than all that come before it.
fn places(graph: &Graph) -> HashMap<&str, (usize, usize)> {
    let mut column: HashMap<&str, usize> = graph.nodes.iter().map(|node| (node.id.as_str(), 0)).collect();
    // As many rounds as there are nodes settle it; a cycle, which is refused elsewhere, ends there too.
    for _ in 0..graph.nodes.len() {
        let mut moved = false;
        for edge in &graph.edges {
            let Some(before) = column.get(edge.from.as_str()).copied() else {
                continue;
            };
            if let Some(after) = column.get_mut(edge.to.as_str())
                && *after <= before
                && before + 1 < graph.nodes.len()
            {
                *after = before + 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let mut filled = vec![0; graph.nodes.len()];
    let mut places = HashMap::new();
    for node in &graph.nodes {
        let at = column.get(node.id.as_str()).copied().unwrap_or_default();
        places.insert(node.id.as_str(), (at, filled[at]));
        filled[at] += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_stands_right_of_everything_that_it_waits_for() {
        let text = r#"{"nodes": [{"id": "c"}, {"id": "a"}, {"id": "b"}, {"id": "d"}],
                       "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}, {"from": "a", "to": "c"}, {"from": "a", "to": "d"}]}"#;
        let graph: Graph = serde_json::from_str(text).unwrap();
        let places = places(&graph);
        assert_eq!(places["a"].0, 0);
        assert_eq!((places["b"].0, places["d"].0), (1, 1));
        assert_ne!(places["b"].1, places["d"].1);
        assert_eq!(places["c"].0, 2);
    }

    #[test]
    fn what_is_no_graph_is_not_drawn_and_names_are_text() {
        assert!(draw("[]", &[]).is_none() && draw("{}", &[]).is_none());
        let picture = draw(r#"{"nodes": [{"id": "<script>", "type": "noop"}]}"#, &[])
            .unwrap()
            .into_string();
        assert!(
            picture.contains("&lt;script&gt;") && !picture.contains("<script>"),
            "{picture}"
        );
    }
}
