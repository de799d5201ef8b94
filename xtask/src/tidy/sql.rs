//! Rules for the statements of the product, `crates/core/sql/<noun>/<verb>.sql`: one statement, one file, with a header,
//! and in use; and for the parts of its schema, `crates/core/schema/<room>/<kind>.sql`, which have to be in use, too.

use super::Violation;
use super::tree::{Source, Tree};

const FOLDER: &str = "crates/core/sql/";
const PARTS: &str = "crates/core/schema/";
const CODE: &str = "crates/core/src/";
const SHORTEST_HEADER: usize = 2;

fn statements(tree: &Tree) -> impl Iterator<Item = &Source> {
    tree.with_ending("sql")
        .filter(|file| file.path.starts_with(FOLDER))
}

/// A header says what the statement does, who calls it, what it locks and which index it uses.
pub(crate) fn files_begin_with_a_header(tree: &Tree) -> Vec<Violation> {
    let header = |file: &Source| {
        file.text
            .lines()
            .take_while(|line| line.starts_with("--"))
            .count()
    };
    let bare = statements(tree).filter(|file| header(file) < SHORTEST_HEADER);
    bare.map(|file| {
        let message =
            "does not begin with a header of two `--` lines: what it does, who calls it, what it locks";
        file.violation_at(1, message)
    })
    .collect()
}

/// A driver prepares one statement at a time, and a reader looks for one.
pub(crate) fn files_hold_one_statement(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in statements(tree) {
        let code = blank_out(&file.text);
        let code = code.trim_end();
        if code.trim_start().trim_end_matches(';').is_empty() {
            violations.push(file.violation("holds no statement"));
        }
        let inner = code.strip_suffix(';').unwrap_or(code);
        let ends = inner
            .match_indices(';')
            .map(|(at, _)| inner[..at].lines().count().max(1));
        violations.extend(
            ends.map(|line| file.violation_at(line, "a second statement begins here: give it its own file")),
        );
    }
    violations
}

/// A statement that nothing uses misleads whoever changes the schema, and a part that nothing applies is not there. The code
/// names it as `"<noun>/<verb>"`, with or without the ending.
pub(crate) fn files_are_used(tree: &Tree) -> Vec<Violation> {
    let code: Vec<&Source> = tree
        .with_ending("rs")
        .filter(|file| file.path.starts_with(CODE))
        .collect();
    let used = |name: &str| {
        let stem = name.strip_suffix(".sql").unwrap_or(name);
        let spellings = [format!("{name}\""), format!("{stem}\"")];
        code.iter()
            .any(|file| spellings.iter().any(|spelling| names(&file.text, spelling)))
    };
    let named = |file: &&Source| {
        let path = file.path.as_str();
        let name = path.strip_prefix(FOLDER).or_else(|| path.strip_prefix(PARTS));
        name.is_some_and(|name| !used(name))
    };
    let unused = tree.with_ending("sql").filter(named);
    unused
        .map(|file| file.violation(format!("nothing in {CODE} uses it: use it or delete it")))
        .collect()
}

/// Whether the text holds the end of a string literal, not as the tail of a longer name.
fn names(text: &str, spelling: &str) -> bool {
    text.match_indices(spelling)
        .any(|(start, _)| text[..start].ends_with(['"', '/']))
}

/// Replaces comments and quoted text by blanks, keeping the lines.
fn blank_out(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let skipped = quoted_length(rest);
        let length = if skipped > 0 {
            skipped
        } else {
            rest.chars().next().map_or(0, char::len_utf8)
        };
        let (part, remainder) = rest.split_at(length);
        if skipped > 0 {
            code.extend(part.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            code.push_str(part);
        }
        rest = remainder;
    }
    code
}

/// How long the comment or quoted text is that begins here; zero when none does.
fn quoted_length(text: &str) -> usize {
    let until = |opening: &str, closing: &str| {
        let inner = &text[opening.len()..];
        inner
            .find(closing)
            .map_or(text.len(), |end| opening.len() + end + closing.len())
    };
    match text.as_bytes() {
        [b'-', b'-', ..] => text.find('\n').unwrap_or(text.len()),
        [b'/', b'*', ..] => until("/*", "*/"),
        // A doubled quote inside is two literals next to each other, which blanks out the same.
        [b'\'', ..] => until("'", "'"),
        [b'"', ..] => until("\"", "\""),
        [b'$', ..] => match text[1..].find('$').map(|end| &text[..end + 2]) {
            Some(tag) if is_tag(&tag[1..tag.len() - 1]) => until(tag, tag),
            _ => 0,
        },
        _ => 0,
    }
}

/// `$1` is a parameter, `$$` and `$name$` are quotes.
fn is_tag(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/core/sql/queue/claim.sql";
    const HEADER: &str = "-- Claims; see below.\n-- Called by nobody.\n";

    fn statement(body: &str) -> Tree {
        Tree::of(&[(PATH, &format!("{HEADER}{body}"))])
    }

    #[test]
    fn a_statement_without_a_header_is_found() {
        assert_eq!(files_begin_with_a_header(&statement("select 1\n")), []);
        for text in ["select 1\n", "-- One line.\nselect 1\n"] {
            assert_eq!(
                files_begin_with_a_header(&Tree::of(&[(PATH, text)])).len(),
                1,
                "{text}"
            );
        }
        let migration = Tree::of(&[(
            "crates/core/migrations/1.sql",
            "create table a (); create table b ();",
        )]);
        assert_eq!(files_begin_with_a_header(&migration), []);
        assert_eq!(files_hold_one_statement(&migration), []);
    }

    #[test]
    fn a_second_statement_is_found_at_its_line() {
        let found = files_hold_one_statement(&statement("select 1;\nselect 2;\n"));
        assert_eq!(
            found.iter().map(|violation| violation.line).collect::<Vec<_>>(),
            [3]
        );
        assert_eq!(files_hold_one_statement(&statement("")).len(), 1);
    }

    #[test]
    fn semicolons_in_quotes_and_comments_end_nothing() {
        let bodies = [
            "select $1, $2 -- one; two\n",
            "select ';', \"a;b\", 'it''s; fine';",
            "select $$a;b$$, $tag$ $$;$$ $tag$ /* ; */;\n-- the end;\n",
        ];
        for body in bodies {
            assert_eq!(files_hold_one_statement(&statement(body)), [], "{body}");
        }
    }

    #[test]
    fn a_statement_that_nothing_uses_is_found() {
        let using =
            |code: &str| files_are_used(&Tree::of(&[(PATH, HEADER), ("crates/core/src/queue.rs", code)]));
        assert_eq!(using("sql!(\"queue/claim\")"), []);
        assert_eq!(using("include_str!(\"../sql/queue/claim.sql\")"), []);
        assert_eq!(using("sql!(\"queue/claim_all\")").len(), 1);
        assert_eq!(using("sql!(\"old_queue/claim\")").len(), 1);
        assert_eq!(using("// queue/claim").len(), 1);
        let part = |code: &str| {
            let schema = ("crates/core/schema/queue/views.sql", "create view a as select 1;");
            files_are_used(&Tree::of(&[schema, ("crates/core/src/queue.rs", code)]))
        };
        assert_eq!(part("parts![\"queue/views\"]"), []);
        assert_eq!(part("parts![\"queue/calls\"]").len(), 1);
    }
}
