//! The live view, in a terminal of its own: what it shows, and what its keys do.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};

use crate::support::{GRAPH, TestDatabase, binary, run, written};

/// A program in a terminal.
struct InTerminal {
    child: Child,
    keys: File,
    said: Arc<Mutex<String>>,
}

impl InTerminal {
    fn start(database: &TestDatabase, arguments: &[&str]) -> Self {
        Self::of_size(database, arguments, (140, 40))
    }

    fn of_size(database: &TestDatabase, arguments: &[&str], (columns, rows): (u16, u16)) -> Self {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = openpty(Some(&size), None).unwrap();
        let end = || Stdio::from(pair.slave.try_clone().unwrap());
        let environment = [
            ("STATIONMASTER_DATABASE_URL", database.url()),
            ("TERM", "xterm".to_owned()),
        ];
        let environment: Vec<(&str, &str)> = environment
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let child = binary(arguments, &environment)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let (mut screen, keys) = (
            File::from(pair.master.try_clone().unwrap()),
            File::from(pair.master),
        );
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                heard
                    .lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { child, keys, said }
    }

    fn press(&mut self, keys: &str) {
        self.said.lock().unwrap().clear();
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    #[track_caller]
    fn shows(&self, words: &str) {
        let began = Instant::now();
        while !plain(&self.said.lock().unwrap()).contains(&plain(words)) {
            let said = self.said.lock().unwrap().clone();
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "no {words:?} in {said:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Without the words to the terminal, and without blanks: where one is drawn already, the cursor is only moved.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            plain.extend((!letter.is_whitespace()).then_some(letter));
            continue;
        }
        // `ESC [ numbers letter`.
        letters.next();
        letters.by_ref().find(char::is_ascii_alphabetic);
    }
    plain
}

impl Drop for InTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_live_view_shows_workspaces_and_failures_and_acts_only_after_a_yes() {
    let database = TestDatabase::migrated();
    let (workspace, _) = database.workflow(GRAPH);
    let paused = || database.json(&["workspaces", "show", &workspace])["paused"].clone();
    let mut top = InTerminal::start(&database, &["top"]);
    top.shows("1 Workspaces");
    top.shows("Nothing needs a person.");
    top.press("p");
    top.shows("What runs goes on");
    top.press("n");
    top.shows("Nothing was changed.");
    assert_eq!(paused(), false);
    top.press("p");
    top.shows("What runs goes on");
    top.press("y");
    top.shows("is paused.");
    assert_eq!(paused(), true);
    top.press("?");
    top.shows("choose a list");
    top.press(" ");
    top.press("\r");
    top.shows("Esc goes back");
    top.press("q");
    top.press("q");
    assert_eq!(top.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_small_terminal_shows_whole_names_and_a_closer_look_from_which_one_can_act() {
    let database = TestDatabase::migrated();
    let name = "the-northern-line-of-the-railway";
    database.done(&["workspaces", "create", name]);
    let graph = written(GRAPH);
    let graph = graph.path().to_str().unwrap();
    database.done(&["workflows", "create", "w", "--workspace", name, "--graph", graph]);
    database.enqueue(name, "w");
    let mut top = InTerminal::of_size(&database, &["top"], (80, 24));
    top.shows(name);
    top.shows("4 Servers");
    top.press("\r");
    top.shows("Esc goes back");
    top.shows("FREE");
    top.shows("PENDING");
    let said = plain(&top.said.lock().unwrap());
    assert!(!said.contains("[38;5;"), "colours as text: {said}");
    top.press("p");
    top.shows("What runs goes on");
    top.press("y");
    top.shows("is paused.");
    assert_eq!(database.json(&["workspaces", "show", name])["paused"], true);
    top.press("q");
    assert_eq!(top.child.wait().unwrap().code(), Some(0));
}

#[test]
fn without_a_terminal_there_is_one_picture_or_a_word_why_not() {
    let database = TestDatabase::migrated();
    database.workflow(GRAPH);
    let refused = database.refused(2, &["top"]);
    assert!(refused.contains("--once"), "{refused}");
    let picture = database.done(&["top", "--once"]);
    for words in ["1 Workspaces", "failures that need a person 0", "NO SERVER RUNS"] {
        assert!(picture.contains(words), "{words}: {picture}");
    }
    let numbers = database.json(&["top", "--once"]);
    assert_eq!(numbers["overview"]["overview"]["failures"], 0, "{numbers}");
}

#[test]
fn a_file_to_begin_with_is_written_once_and_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stationmaster.toml");
    let path = path.to_str().unwrap();
    let written = run(&["config", "init", path], &[], "");
    assert_eq!(written.code, 0, "{}", written.stderr);
    let again = run(&["config", "init", path], &[], "");
    assert_eq!(again.code, 4, "{}", again.stderr);
    assert!(again.stderr.contains("--yes"), "{}", again.stderr);
    assert_eq!(run(&["config", "init", path, "--yes"], &[], "").code, 0);
    let printed = run(&["config", "init", "-"], &[], "");
    assert_eq!(printed.stdout, std::fs::read_to_string(path).unwrap());
    let shown = run(&["config", "show", "--config", path, "--json"], &[], "");
    assert_eq!(shown.code, 0, "{}", shown.stderr);
}
