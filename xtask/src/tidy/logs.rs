//! The rule for the page of the log: a line that it names is said by the code, at that level. Somebody may wait for it in an alert of his own.

use super::Violation;
use super::tree::Tree;

const PAGE: &str = "docs/logs.md";

/// Rows look like `| WARN | words | fields |`.
pub(crate) fn named_lines_are_said(tree: &Tree) -> Vec<Violation> {
    let page = tree.files.iter().find(|file| file.path == PAGE);
    let mut violations = Vec::new();
    for (number, line) in page.iter().flat_map(|page| page.lines()) {
        let cells: Vec<&str> = line
            .split(" | ")
            .map(|cell| cell.trim_matches([' ', '|']))
            .collect();
        let [level @ ("ERROR" | "WARN" | "INFO" | "DEBUG"), words, ..] = cells[..] else {
            continue;
        };
        let call = format!("tracing::{}!(", level.to_lowercase());
        let is_said = tree
            .with_ending("rs")
            .filter(|source| source.path.starts_with("crates/"))
            .any(|source| says(&source.text, &call, words));
        if !is_said {
            let words = format!("nothing says \"{words}\" at {level}");
            violations.extend(page.map(|page| page.violation_at(number, words)));
        }
    }
    violations
}

/// Is this said by one of these calls? A line may be broken in the source.
fn says(text: &str, call: &str, words: &str) -> bool {
    text.match_indices(call).any(|(at, _)| {
        let rest = &text[at..];
        let end = rest.find(");").unwrap_or(rest.len());
        let said = rest[..end].replace('\\', " ");
        let said: Vec<&str> = said.split_whitespace().collect();
        said.join(" ").contains(words)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_nobody_says_or_at_another_level_is_found() {
        let source = "tracing::warn!(error, \"It is \\\n        gone\");\n";
        let wrong = |row: &str| {
            let tree = Tree::of(&[("crates/a.rs", source), (PAGE, row)]);
            named_lines_are_said(&tree).len()
        };
        assert_eq!(wrong("| WARN | It is gone | `error` |"), 0);
        assert_eq!(wrong("| INFO | It is gone | `error` |"), 1);
        assert_eq!(wrong("| WARN | It is back | |"), 1);
        assert_eq!(wrong("| level | line | fields |"), 0);
    }
}
