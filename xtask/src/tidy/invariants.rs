//! The rule for the pages of invariants, of security and of faults: a test that such a page names is there. A promise whose test was renamed
//! away would look kept for ever.

use super::Violation;
use super::tree::Tree;

const PAGES: [&str; 3] = ["docs/invariants.md", "docs/security.md", "docs/faults.md"];

/// A bare word with fewer underscores is a column or a function; names of tests are sentences.
const FEWEST_UNDERSCORES: usize = 3;

/// Names stand in backticks, as `file::name_of_the_test` or as `name_of_the_test`.
pub(crate) fn named_tests_exist(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for page in tree
        .files
        .iter()
        .filter(|file| PAGES.contains(&file.path.as_str()))
    {
        for (number, line) in page.lines() {
            let named = line.split('`').skip(1).step_by(2).filter_map(test_name);
            let missing = named.filter(|&(file, name)| !exists(tree, file, name));
            violations.extend(missing.map(|(file, name)| {
                let place = file.map_or_else(
                    || "anywhere".to_owned(),
                    |file| format!("in a file or folder `{file}`"),
                );
                page.violation_at(
                    number,
                    format!("there is no test `{name}` {place}: name the test that keeps the promise"),
                )
            }));
        }
    }
    violations
}

/// Splits what stands in backticks into file and name; `None` when it names no test.
fn test_name(word: &str) -> Option<(Option<&str>, &str)> {
    let plain = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let parts: Vec<&str> = word.split("::").collect();
    let (&name, path) = parts.split_last()?;
    let file = path.last().copied();
    let sentence = name.matches('_').count() >= FEWEST_UNDERSCORES;
    (parts.iter().all(|part| plain(part)) && (file.is_some() || sentence)).then_some((file, name))
}

fn exists(tree: &Tree, file: Option<&str>, name: &str) -> bool {
    let declaration = format!("fn {name}(");
    let in_place = |path: &str, stem: &str| {
        file.is_none_or(|file| stem == file || path.split('/').any(|part| part == file))
    };
    tree.with_ending("rs")
        .filter(|source| in_place(&source.path, source.stem()))
        .any(|source| source.text.contains(&declaration))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(page: &str) -> usize {
        let tests = "#[test]\nfn a_claim_is_settled_once() {}\n";
        named_tests_exist(&Tree::of(&[
            (PAGES[0], page),
            ("crates/core/tests/claims.rs", tests),
        ]))
        .len()
    }

    #[test]
    fn tests_that_are_there_are_accepted() {
        assert_eq!(
            missing("kept by `a_claim_is_settled_once` and `claims::a_claim_is_settled_once`"),
            0
        );
    }

    #[test]
    fn tests_that_are_missing_or_elsewhere_are_found() {
        assert_eq!(missing("`a_claim_is_settled_twice`"), 1);
        assert_eq!(
            missing("`a_claim_is_settled`"),
            1,
            "the beginning of a name is no name"
        );
        assert_eq!(missing("`alarms::a_claim_is_settled_once`"), 1);
    }

    #[test]
    fn other_words_in_backticks_are_no_tests() {
        assert_eq!(
            missing("`lock_until`, `now()`, `Candidate -> Claim`, `Lease::token`, `a_b_c_d e`"),
            0
        );
    }
}
