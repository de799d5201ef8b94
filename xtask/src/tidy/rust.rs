//! Rules for Rust files, and for everything in which work could be left unfinished.

use super::Violation;
use super::tree::{Source, Tree};

const LONGEST_FILE: usize = 600;

/// Marks of unfinished work, put together so that this file does not hold them itself.
const UNFINISHED: [&str; 5] = [
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
];

/// A file that outgrows this holds two ideas.
pub(crate) fn files_are_short(tree: &Tree) -> Vec<Violation> {
    let length = |file: &Source| file.text.lines().count();
    let long = tree.with_ending("rs").filter(|file| length(file) > LONGEST_FILE);
    long.map(|file| {
        file.violation(format!(
            "has {} lines, more than {LONGEST_FILE}: it probably holds two ideas, split it",
            length(file)
        ))
    })
    .collect()
}

/// Every module says its place before anything else.
pub(crate) fn modules_begin_with_a_header(tree: &Tree) -> Vec<Violation> {
    let modules = tree.with_ending("rs").filter(|file| is_module(&file.path));
    let bare = modules.filter(|file| !file.text.starts_with("//!"));
    bare.map(|file| {
        file.violation_at(
            1,
            "does not begin with a `//!` header that says what the module is for",
        )
    })
    .collect()
}

fn is_module(path: &str) -> bool {
    matches!(path.split('/').collect::<Vec<_>>()[..], ["crates", _, "src", ..])
}

/// What is not finished belongs into an issue, not into the code.
pub(crate) fn nothing_is_unfinished(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.with_ending("rs").chain(tree.with_ending("sql")) {
        for (number, line) in file.lines() {
            let marks = UNFINISHED.iter().filter(|mark| holds_word(line, mark));
            violations.extend(
                marks.map(|mark| file.violation_at(number, format!("`{mark}`: finish it or take it out"))),
            );
        }
    }
    violations
}

/// Whether the word stands by itself in the line.
fn holds_word(line: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let after = line[start + word.len()..].chars().next();
        !line[..start].ends_with(part_of_word) && (word.ends_with('!') || !after.is_some_and(part_of_word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_found_and_one_at_the_limit_is_not() {
        let (long, limit) = ("\n".repeat(LONGEST_FILE + 1), "\n".repeat(LONGEST_FILE));
        let found = files_are_short(&Tree::of(&[
            ("xtask/src/long.rs", &long),
            ("xtask/src/limit.rs", &limit),
        ]));
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .to_string()
                .starts_with("xtask/src/long.rs: has 601 lines"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn a_module_without_a_header_is_found_but_tests_need_none() {
        let bare = "use std::fs;\n";
        let files = [
            ("crates/core/src/a/b.rs", bare),
            ("crates/core/src/c.rs", "//! Fine.\n"),
            ("crates/core/tests/d.rs", bare),
        ];
        let found = modules_begin_with_a_header(&Tree::of(&files));
        assert_eq!(
            found
                .iter()
                .map(|violation| violation.path.as_str())
                .collect::<Vec<_>>(),
            ["crates/core/src/a/b.rs"]
        );
    }

    #[test]
    fn every_mark_of_unfinished_work_is_found_in_rust_and_sql() {
        for mark in UNFINISHED {
            for path in ["crates/core/src/a.rs", "crates/core/sql/a/b.sql"] {
                let text = format!("fine\n-- {mark} later\n");
                let found = nothing_is_unfinished(&Tree::of(&[(path, &text)]));
                assert_eq!(
                    found.iter().map(|violation| violation.line).collect::<Vec<_>>(),
                    [2],
                    "{mark} in {path}"
                );
            }
        }
    }

    #[test]
    fn words_that_only_hold_a_mark_are_left_alone() {
        let text = format!("{}_LISTS {}S my{}", UNFINISHED[3], UNFINISHED[3], UNFINISHED[2]);
        assert_eq!(nothing_is_unfinished(&Tree::of(&[("a.rs", &text)])), []);
    }
}
