//! The rule for the page of the log: it tells every line that the code says, at its level and with its fields, and no other. Somebody may wait
//! for one of them in an alert of his own.

use super::Violation;
use super::tree::{Source, Tree};

const PAGE: &str = "docs/logs.md";
const LEVELS: [&str; 5] = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];
/// What stands before an argument that is no field.
const NO_FIELDS: [&str; 3] = ["target:", "parent:", "name:"];

/// A line of the log.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    level: String,
    words: String,
    /// In the order of their names.
    fields: Vec<String>,
}

/// See the module.
pub(crate) fn the_page_tells_every_line_that_is_said_and_no_other(tree: &Tree) -> Vec<Violation> {
    let Some(page) = tree.files.iter().find(|file| file.path == PAGE) else {
        return Vec::new();
    };
    let rows: Vec<(usize, Line)> = page
        .lines()
        .filter_map(|(number, line)| Some((number, row(line)?)))
        .collect();
    let ours = |source: &&Source| source.path.starts_with("crates/") && source.path.contains("/src/");
    let said: Vec<(&Source, usize, Line)> = tree
        .with_ending("rs")
        .filter(ours)
        .flat_map(|source| said(source).map(move |(number, line)| (source, number, line)))
        .collect();
    let unsaid = rows
        .iter()
        .filter(|(_, row)| !said.iter().any(|(_, _, line)| line == row));
    let unsaid =
        unsaid.map(|(number, row)| page.violation_at(*number, format!("nothing says {}", row.told())));
    let untold = said
        .iter()
        .filter(|(_, _, line)| !rows.iter().any(|(_, row)| row == line));
    let untold = untold.map(|(source, number, line)| {
        source.violation_at(*number, format!("{PAGE} does not tell {}", line.told()))
    });
    unsaid.chain(untold).collect()
}

impl Line {
    fn new(level: &str, words: String, mut fields: Vec<String>) -> Self {
        fields.sort();
        Self {
            level: level.to_owned(),
            words,
            fields,
        }
    }

    fn told(&self) -> String {
        let Self { level, words, fields } = self;
        format!("\"{words}\" at {level} with the fields {fields:?}")
    }
}

/// Rows look like `| WARN | words | `a`, `b` |`.
fn row(line: &str) -> Option<Line> {
    let cells = line.strip_prefix("| ")?.strip_suffix('|')?;
    let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
    let [level, words, fields] = cells[..] else {
        return None;
    };
    let fields = fields.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    LEVELS
        .contains(&level)
        .then(|| Line::new(level, words.to_owned(), fields))
}

/// The lines that a source says, outside of its tests, each with where it does.
fn said(source: &Source) -> impl Iterator<Item = (usize, Line)> {
    let text = source.text.split("#[cfg(test)]").next().unwrap_or_default();
    text.match_indices("tracing::").filter_map(|(at, word)| {
        let call = &text[at + word.len()..];
        let (name, rest) = call.split_once("!(")?;
        let level = LEVELS.into_iter().find(|level| level.to_lowercase() == name)?;
        let number = text[..at].matches('\n').count() + 1;
        Some((number, spoken(level, rest)?))
    })
}

/// What a call says, by its arguments: fields, then the words, then what is put into them.
fn spoken(level: &str, call: &str) -> Option<Line> {
    let mut fields = Vec::new();
    for argument in arguments(call) {
        if let Some(quoted) = argument.strip_prefix('"') {
            let pieces = quoted.strip_suffix('"')?.split("\\\n").enumerate();
            // A line may be broken in the source.
            let words: Vec<&str> = pieces
                .map(|(index, piece)| if index == 0 { piece } else { piece.trim_start() })
                .collect();
            return Some(Line::new(level, words.concat().replace("\\\"", "\""), fields));
        }
        if !NO_FIELDS.iter().any(|beginning| argument.starts_with(beginning)) {
            let name = argument.split('=').next().unwrap_or_default();
            fields.push(name.trim().trim_start_matches(['%', '?']).to_owned());
        }
    }
    None
}

/// The arguments of a call that has been opened, up to where it is closed.
fn arguments(call: &str) -> Vec<&str> {
    let (mut found, mut from, mut depth) = (Vec::new(), 0, 1);
    let mut characters = call.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                while let Some((_, within)) = characters.next() {
                    match within {
                        '\\' => drop(characters.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && character == ',') {
            found.push(call[from..at].trim());
            from = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "fn say() {\n    tracing::warn!(%error, tries = call(a, \"b, c\"), \"It is \\\n        gone, {}\", who(1));\n}\n\
                          #[cfg(test)]\nmod tests { tracing::info!(\"Only here\"); }\n";

    fn wrong(source: &str, page: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/a/src/b.rs", source), (PAGE, page)]);
        let violations = the_page_tells_every_line_that_is_said_and_no_other(&tree);
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_row_that_is_said_with_these_fields_is_right() {
        assert_eq!(
            wrong(SOURCE, "| WARN | It is gone, {} | `error`, `tries` |\n"),
            [""; 0]
        );
        assert_eq!(
            wrong(SOURCE, "| WARN | It is gone, {} | `tries`, `error` |\n"),
            [""; 0]
        );
        assert_eq!(
            wrong(
                "tracing::info!(\"Up\")\n",
                "| level | line | fields |\n| INFO | Up |  |\n"
            ),
            [""; 0]
        );
    }

    #[test]
    fn a_line_that_nobody_says_that_is_said_otherwise_or_that_nobody_tells_is_found() {
        for page in [
            "| INFO | It is gone, {} | `error`, `tries` |\n",
            "| WARN | It is back | `error`, `tries` |\n",
            "| WARN | It is gone, {} | `error` |\n",
        ] {
            let found = wrong(SOURCE, page);
            assert_eq!(found.len(), 2, "{found:?}");
            assert!(found[0].starts_with("docs/logs.md:1: nothing says "), "{found:?}");
            assert!(found[1].starts_with("crates/a/src/b.rs:2: "), "{found:?}");
        }
        assert_eq!(wrong(SOURCE, "No rows.\n").len(), 1);
    }
}
