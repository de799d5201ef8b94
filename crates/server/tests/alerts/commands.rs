//! The commands that runbooks name in their sentences: each is one that the program knows, with what it needs.

use std::path::Path;
use std::process::Command;

use crate::trial::repository_file;

/// A port at which nobody listens: a command that is understood gets as far as asking there, and no further.
const NOBODY: &str = "http://127.0.0.1:9";
/// The exit code of a command that is not understood.
const USAGE: i32 = 2;

/// What stands between single backquotes, outside of blocks.
fn quoted(page: &str) -> Vec<String> {
    let sentences: String = page.split("```").step_by(2).collect();
    let pieces = sentences.split('`').skip(1).step_by(2);
    pieces.map(|piece| piece.replace('\n', " ")).collect()
}

fn ask(words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_stationmaster"))
        .args(words)
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("STATIONMASTER_URL", NOBODY)
        .output()
        .unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code(), said)
}

/// The nouns of the command line, as it lists them.
fn nouns() -> Vec<String> {
    let (_, help) = ask(&["--help"]);
    let listed = help.lines().filter_map(|line| line.strip_prefix("  "));
    let names = listed.filter_map(|line| line.split_whitespace().next());
    let lower = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    names.filter(lower).map(str::to_owned).collect()
}

/// Something that could stand for a name in capitals.
fn filled(word: &str) -> &str {
    match word {
        "N" => "7",
        "TIME" => "2026-11-16T14:00:00Z",
        "…" | "DIRECT" => "postgres://127.0.0.1:9/nobody",
        other => other,
    }
}

#[test]
fn every_command_that_a_runbook_names_is_one_that_the_program_knows() {
    let nouns = nouns();
    assert!(nouns.iter().any(|noun| noun == "failures"), "{nouns:?}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runbooks");
    let mut tried = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let page = repository_file(&format!("docs/runbooks/{name}"));
        for quoted in quoted(&page) {
            let command = quoted.strip_prefix("stationmaster ").unwrap_or(&quoted);
            let words: Vec<&str> = command.split_whitespace().map(filled).collect();
            if words.len() < 2 || !nouns.iter().any(|noun| noun == words[0]) {
                continue;
            }
            // Only a noun and its verb: what they need besides is left to the reader.
            let named = words.len() == 2 && words[1].chars().all(|c| c.is_ascii_lowercase() || c == '-');
            let asked = if named {
                [words[0], words[1], "--help"].to_vec()
            } else {
                words
            };
            let (code, said) = ask(&asked);
            assert!(code != Some(USAGE), "{name} names `{quoted}`:\n{said}");
            tried += 1;
        }
    }
    assert!(tried > 30, "only {tried} commands were found");
}
