//! The rule for documents: a link into the repository leads to something that is there.

use super::Violation;
use super::tree::{Source, Tree};

/// Links to other sites are not ours to check.
pub(crate) fn links_lead_somewhere(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.with_ending("md") {
        for (number, line) in prose(file) {
            let broken = targets(&line).filter(|target| !leads_somewhere(tree, &file.path, target));
            violations.extend(broken.map(|target| {
                file.violation_at(
                    number,
                    format!("the link to `{target}` leads nowhere: mend the path or drop the link"),
                )
            }));
        }
    }
    violations
}

/// Lines outside of code blocks, without what stands in backticks.
fn prose(file: &Source) -> impl Iterator<Item = (usize, String)> {
    let mut in_code = false;
    file.lines().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        in_code ^= fence;
        (!in_code && !fence).then(|| (number, line.split('`').step_by(2).collect::<Vec<_>>().join("")))
    })
}

/// What the links of a line point to: `[text](target "title")` and `[name]: target`.
fn targets(line: &str) -> impl Iterator<Item = String> {
    let inline = line
        .split("](")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap_or(rest));
    let definition = line
        .trim_start()
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]:"))
        .map(|(_, target)| target);
    let words = inline
        .chain(definition)
        .filter_map(|target| target.split_whitespace().next());
    words.map(|target| target.trim_matches(['<', '>']).to_owned())
}

fn leads_somewhere(tree: &Tree, from: &str, target: &str) -> bool {
    let elsewhere = target.contains("://") || target.starts_with("mailto:");
    let path = target.split(['#', '?']).next().unwrap_or(target);
    if elsewhere || path.is_empty() {
        return true;
    }
    let folder = if path.starts_with('/') {
        ""
    } else {
        from.rsplit_once('/').map_or("", |(folder, _)| folder)
    };
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return false;
                }
            }
            name => parts.push(name),
        }
    }
    parts.is_empty() || tree.paths.contains(&parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str) -> Vec<usize> {
        let tree = Tree::of(&[
            ("README.md", ""),
            ("docs/guide.md", text),
            ("crates/core/src/lib.rs", ""),
        ]);
        links_lead_somewhere(&tree)
            .iter()
            .map(|violation| violation.line)
            .collect()
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let text = "[a](missing.md)\n[b](../README.md)\n[c](../../README.md)\n\n[d]: ../nothing 'title'\n";
        assert_eq!(broken(text), [1, 3, 5]);
    }

    #[test]
    fn links_to_files_folders_sections_and_other_sites_are_fine() {
        let text = "[a](../README.md#part) [b](#here) [c](https://example.org/x) [d](../crates/core/) [e](/README.md)\n\
                    [f](<guide.md> \"title\") [g](mailto:a@example.org)\n";
        assert_eq!(broken(text), [0; 0]);
    }

    #[test]
    fn what_looks_like_a_link_in_code_is_none() {
        assert_eq!(
            broken("```\n[a](missing.md)\n```\n`[b](missing.md)`\n[c](missing.md)\n"),
            [5]
        );
    }
}
