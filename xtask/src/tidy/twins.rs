//! The rule for the twins, which are too slow to be run every day: every edit still fits, and every test that should notice is there.

use super::Violation;
use super::tree::Tree;
use crate::twins::{TWINS, Twin};

const LIST: &str = "xtask/src/twins/list.rs";

pub(crate) fn edits_fit_and_tests_exist(tree: &Tree) -> Vec<Violation> {
    TWINS.iter().flat_map(|twin| look(tree, twin)).collect()
}

fn look(tree: &Tree, twin: &Twin) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut wrong = |message: String| {
        violations.push(Violation {
            path: LIST.to_owned(),
            line: 0,
            message: format!("the twin without {}: {message}", twin.name),
        });
    };
    let file = tree.files.iter().find(|file| file.path == twin.file);
    if file.and_then(|file| twin.edited(&file.text)).is_none() {
        wrong(format!(
            "its edit does not fit {}: say anew how the guard is taken out",
            twin.file
        ));
    }
    let (name, place) = twin.stands_in();
    let declaration = format!("fn {name}(");
    let there = tree
        .files
        .iter()
        .any(|file| file.path == place && file.text.contains(&declaration));
    if !there {
        wrong(format!("there is no test `{name}` in {place}"));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWIN: Twin = Twin {
        name: "its lock",
        file: "crates/core/sql/queue/claim.sql",
        find: "for update",
        put: "",
        place: ("stationmaster-core", "queue"),
        test: "claims::a_claim_is_made_once",
    };
    const TEST: (&str, &str) = (
        "crates/core/tests/queue/claims.rs",
        "async fn a_claim_is_made_once() {}",
    );

    fn violations(files: &[(&str, &str)]) -> usize {
        look(&Tree::of(files), &TWIN).len()
    }

    #[test]
    fn a_twin_whose_edit_fits_and_whose_test_is_there_is_accepted() {
        assert_eq!(violations(&[(TWIN.file, "select 1 for update"), TEST]), 0);
    }

    #[test]
    fn an_edit_that_does_not_fit_and_a_test_that_is_gone_are_found() {
        assert_eq!(violations(&[(TWIN.file, "select 1"), TEST]), 1);
        assert_eq!(violations(&[TEST]), 1);
        assert_eq!(
            violations(&[(TWIN.file, "select 1 for update"), (TEST.0, "fn another() {}")]),
            1
        );
    }
}
