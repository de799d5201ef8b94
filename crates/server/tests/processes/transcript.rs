//! Every command and every piece of SQL that README, the guides and the runbooks of what is done by hand print, run as it is printed against a fresh `dev`, at a terminal where somebody says yes; and
//! the answers that they print, compared by their shape.
//!
//! A guide is one session of a shell. Marks, which readers do not see, stand before a block:
//!
//! - `<!-- not run: why -->`: it cannot be run here; how many there are is part of the test
//! - `<!-- before: commands -->`: what a reader has done by then
//! - `<!-- file: name -->`: the block is a file, and lies there
//! - `<!-- stands for: word = command -->`: where the guide prints a word, such as an id, this is meant
//! - `<!-- answer -->`: the block is what the one before it answers; of a `console` block that is what follows a `$` line
//! - `<!-- shows: text -->`: the answer holds this
//! - `<!-- dev says -->`: `dev` itself prints this
//!
//! Blocks of SQL are run as well, by `psql` in the database of that `dev`, and stop at the first error; in marks, `sql` runs what is piped into it.
//!
//! An answer has the same shape when each of its lines is among those that came, once numbers, ids and times are taken out of both.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::pty::{Winsize, openpty};

use crate::support::{Launch, eventually, setting};

/// Guides whose readers have followed the ones before.
const ORDER: [&str; 5] = [
    "docs/guides/quick-start.md",
    "docs/runbooks/operations.md",
    "docs/runbooks/manual-test.md",
    "README.md",
    "docs/guides/apply.md",
];
/// Guides that `cargo xtask examples` runs as they are printed, with the languages that they are about.
const RUN_BY_EXAMPLES: [&str; 2] = [
    "docs/guides/temporal-workers.md",
    "docs/guides/generated-clients.md",
];
/// Guides that say themselves where commands work: whoever follows them begins without an address.
const BEGIN_WITHOUT_ADDRESS: [&str; 4] = [
    "README.md",
    "docs/guides/quick-start.md",
    "docs/guides/command-line.md",
    "docs/guides/tokens.md",
];
/// What they say of where the binary is.
const OWN_PATH: &str = "PATH=\"$PWD/target/trial:$PATH\"";
/// Blocks that cannot be run: a change of this number is a change of what is proved.
const NOT_RUN: usize = 11;
/// How SQL is run, in the database and by the program that the environment of the script names.
const SQL: &str = "sql() { \"$PSQL\" --no-psqlrc --quiet --set ON_ERROR_STOP=1 \"$DATABASE\"; }\n";
/// No guide takes as long, on a slow machine.
const PATIENCE: Duration = Duration::from_mins(3);

struct Block {
    line: usize,
    language: String,
    text: String,
    marks: Vec<(String, String)>,
}

impl Block {
    fn mark(&self, name: &str) -> Option<&str> {
        let found = self.marks.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Is it something to run? A file is only written.
    fn is_run(&self) -> bool {
        ["sh", "console", "sql"].contains(&self.language.as_str()) && self.mark("file").is_none()
    }

    /// What the guide prints for something that a reader has, each with the variable that holds what is meant.
    fn stand_ins(&self) -> Vec<(&str, String)> {
        let words = self.marks.iter().filter(|(mark, _)| mark == "stands for");
        let words = words.map(|(_, value)| value.split(" = ").next().unwrap_or_default());
        let named = |(place, word)| (word, format!("stands_for_{place}"));
        words.enumerate().map(named).collect()
    }

    /// A line of a shell, with what is meant.
    fn meant(&self, line: &str) -> String {
        let stand_ins = self.stand_ins();
        stand_ins.iter().fold(line.to_owned(), |line, (word, variable)| {
            line.replace(&format!(" {word}"), &format!(" \"${variable}\""))
        })
    }

    /// The block of SQL as lines of a shell, with what is meant.
    fn as_script(&self) -> String {
        let mut script = format!("text=$(cat <<'END OF SQL'\n{}END OF SQL\n)\n", self.text);
        for (word, variable) in self.stand_ins() {
            let _ = writeln!(script, "text=${{text//'{word}'/\"${variable}\"}}");
        }
        script.push_str("sql <<< \"$text\"\n");
        script
    }
}

const MARKS: [&str; 7] = [
    "not run",
    "before",
    "file",
    "stands for",
    "answer",
    "shows",
    "dev says",
];

/// The blocks of a guide, each with the marks before it.
fn blocks(text: &str, guide: &str) -> Vec<Block> {
    let (mut found, mut marks, mut open): (Vec<Block>, Vec<_>, Option<Block>) =
        (Vec::new(), Vec::new(), None);
    for (number, line) in text.lines().enumerate() {
        if let Some(block) = &mut open {
            if line.starts_with("```") {
                found.extend(open.take());
            } else {
                block.text.push_str(line);
                block.text.push('\n');
            }
            continue;
        }
        let mark = line
            .strip_prefix("<!-- ")
            .and_then(|rest| rest.strip_suffix(" -->"));
        if let Some(mark) = mark {
            let (name, value) = mark.split_once(": ").unwrap_or((mark, ""));
            assert!(
                MARKS.contains(&name),
                "{guide}:{}: no such mark: {mark}",
                number + 1
            );
            marks.push((name.to_owned(), value.to_owned()));
        } else if let Some(language) = line.strip_prefix("```") {
            open = Some(Block {
                line: number + 1,
                language: language.to_owned(),
                text: String::new(),
                marks: std::mem::take(&mut marks),
            });
        } else if !line.is_empty() {
            assert!(
                marks.is_empty(),
                "{guide}:{}: a mark stands before no block",
                number + 1
            );
        }
    }
    found
}

/// A line without what differs from one run to the next.
fn shape(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '■' && c != '□');
        let unit = ["s", "min", "h", "days"].contains(&bare) && words.last().is_some_and(|last| last == "0");
        if unit {
            continue;
        }
        let id = bare.len() >= 8 && bare.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        let slots = !bare.is_empty() && bare.chars().all(|c| c == '■' || c == '□');
        words.push(match () {
            () if slots => "■".to_owned(),
            () if id || bare.contains(|c: char| c.is_ascii_digit()) => "0".to_owned(),
            () => word.to_owned(),
        });
    }
    words.join(" ")
}

fn has_shape(printed: &str, came: &str) -> Result<(), String> {
    let shapes: Vec<String> = came.lines().map(shape).collect();
    let missing = printed.lines().find(|line| !shapes.contains(&shape(line)));
    missing.map_or(Ok(()), |line| {
        Err(format!("no line like\n  {line}\namong\n{came}"))
    })
}

/// What one guide says, as one script; and what is expected of each of its parts.
struct Session {
    script: String,
    expected: Vec<(String, String)>,
    shows: Vec<(String, String)>,
    run: usize,
    not_run: usize,
    of_dev: Vec<String>,
}

fn session(guide: &str, blocks: &[Block]) -> Session {
    let mut session = Session {
        script: format!("set -eu -o pipefail\n{SQL}"),
        expected: Vec::new(),
        shows: Vec::new(),
        run: 0,
        not_run: 0,
        of_dev: Vec::new(),
    };
    let mut last = String::new();
    for block in blocks {
        let place = format!("{guide}:{}", block.line);
        if let Some(why) = block.mark("not run") {
            assert!(why.len() > 10, "{place}: say why");
            session.not_run += usize::from(block.is_run());
            continue;
        }
        let mut stand_ins = block.stand_ins().into_iter();
        for (mark, value) in &block.marks {
            let added = match mark.as_str() {
                "before" => format!("{value}\n"),
                "file" => format!("cat > {value} <<'END OF FILE'\n{}END OF FILE\n", block.text),
                "stands for" => {
                    let (_, command) = value.split_once(" = ").expect("word = command");
                    let (_, variable) = stand_ins.next().expect("one for each");
                    format!("{variable}=$({command})\n")
                }
                _ => continue,
            };
            session.script.push_str(&added);
        }
        if block.mark("answer").is_some() {
            session.expected.push((last.clone(), block.text.clone()));
        }
        if block.mark("dev says").is_some() {
            session.of_dev.push(block.text.clone());
        }
        if !block.is_run() {
            continue;
        }
        session.run += 1;
        last.clone_from(&place);
        let _ = writeln!(session.script, "echo '@@ {place}'");
        let shows = block.marks.iter().filter(|(mark, _)| mark == "shows");
        session
            .shows
            .extend(shows.map(|(_, text)| (place.clone(), text.clone())));
        if block.language != "console" {
            let script = match block.language.as_str() {
                "sql" => block.as_script(),
                _ => block.meant(&block.text),
            };
            session.script.push_str(&script);
            continue;
        }
        let mut part = place.clone();
        for (number, line) in block.text.lines().enumerate() {
            if let Some(command) = line.strip_prefix("$ ") {
                part = format!("{place} {number}");
                let _ = write!(session.script, "echo '@@ {part}'\n{}\n", block.meant(command));
            } else {
                session.expected.push((part.clone(), line.to_owned()));
            }
        }
    }
    session.script.push_str("echo '@@ end'\n");
    session
}

/// Runs a script at a terminal, and says yes to whatever it asks.
fn at_a_terminal(script: &Path, folder: &Path, environment: &[(&str, String)]) -> (bool, String) {
    let size = Winsize {
        ws_row: 50,
        ws_col: 220,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let pair = openpty(Some(&size), None).unwrap();
    let end = || Stdio::from(pair.slave.try_clone().unwrap());
    let mut command = Command::new("timeout");
    command
        .args([&format!("{}", PATIENCE.as_secs()), "setsid", "bash"])
        .arg(script)
        .current_dir(folder)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (*name, value)))
        .stdin(end())
        .stdout(end())
        .stderr(end());
    let mut child = command.spawn().unwrap();
    drop(command);
    drop(pair.slave);
    let (mut screen, mut keys) = (
        File::from(pair.master.try_clone().unwrap()),
        File::from(pair.master),
    );
    let (mut said, mut bytes) = (String::new(), [0; 4096]);
    while let Ok(count @ 1..) = screen.read(&mut bytes) {
        said.push_str(&String::from_utf8_lossy(&bytes[..count]));
        if said.ends_with("[y/N] ") {
            keys.write_all(b"y\n").unwrap();
        }
    }
    (child.wait().unwrap().success(), said.replace('\r', ""))
}

/// What came of each part of a session.
fn parts(said: &str) -> Vec<(String, String)> {
    let parts = said.split("@@ ").skip(1);
    parts
        .map(|part| {
            let (name, answer) = part.split_once('\n').unwrap_or((part, ""));
            (name.to_owned(), answer.to_owned())
        })
        .collect()
}

fn guides() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut names: Vec<String> = ORDER.map(str::to_owned).into();
    let found = std::fs::read_dir(root.join("docs/guides")).unwrap().flatten();
    let mut others: Vec<String> = found
        .map(|entry| format!("docs/guides/{}", entry.file_name().to_string_lossy()))
        .filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "md") && !names.contains(name))
        .filter(|name| !RUN_BY_EXAMPLES.contains(&name.as_str()))
        .collect();
    others.sort_unstable();
    names.extend(others);
    let read = |name: String| {
        let text = std::fs::read_to_string(root.join(&name)).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_readme_and_the_guides_print_is_what_happens() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::Builder::new()
        .prefix("stationmaster-transcript-")
        .tempdir()
        .unwrap();
    std::fs::set_permissions(parent.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let dev = Launch::dev(&["--data-dir", parent.path().join("data").to_str().unwrap()])
        .with("DEV__POSTGRES_BIN", &setting("STATIONMASTER_TEST_POSTGRES_BIN"))
        .start_ready()
        .await;
    let address = dev.address().expect("it listens");
    let address = address.trim_start_matches("http://").to_owned();
    let log = dev.log();
    let database = log
        .lines()
        .find_map(|line| line.trim().strip_prefix("database "))
        .unwrap()
        .trim()
        .to_owned();
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_stationmaster"));
    let folder = parent.path().join("reader");
    std::fs::create_dir(&folder).unwrap();
    // Where a build would have put it, in the folder of the repository.
    std::fs::create_dir(folder.join("target")).unwrap();
    std::os::unix::fs::symlink(binary.parent().unwrap(), folder.join("target/trial")).unwrap();
    let plain_path = "/usr/local/bin:/usr/bin:/bin";
    let environment = [
        (
            "PATH",
            format!("{}:{plain_path}", binary.parent().unwrap().display()),
        ),
        ("HOME", folder.display().to_string()),
        ("TERM", "xterm".to_owned()),
        ("NO_COLOR", "1".to_owned()),
        ("STATIONMASTER_URL", format!("http://{address}")),
        (
            "PSQL",
            format!("{}/psql", setting("STATIONMASTER_TEST_POSTGRES_BIN")),
        ),
        ("DATABASE", database.clone()),
    ];
    // What `dev` tells people to type is the first of the guides.
    eventually(
        "the example has failed, for there is something to see",
        async || {
            let failures = Command::new(&binary)
                .arg("failures")
                .env_clear()
                .envs(environment.clone())
                .output()
                .unwrap();
            String::from_utf8_lossy(&failures.stdout).contains("order 8812 not found")
        },
    )
    .await;
    let tour: Vec<&str> = log
        .lines()
        .skip_while(|line| !line.contains("A tour,"))
        .filter(|line| line.starts_with("  "))
        .take(6)
        .collect();
    assert_eq!(tour.len(), 6, "{log}");
    let readme = guides().into_iter().find(|(name, _)| name == "README.md");
    let (_, readme) = readme.expect("it is among them");
    for line in &tour[1..] {
        let command = line.split('#').next().unwrap_or_default().trim();
        assert!(
            readme.contains(&format!("\n{command} ")),
            "README shows {command} too"
        );
    }
    let tour = ("tour".to_owned(), format!("```sh\n{}\n```\n", tour.join("\n")));

    let (mut run, mut not_run, mut wrong) = (0, 0, Vec::new());
    for (guide, text) in std::iter::once(tour).chain(guides()) {
        let blocks = blocks(&text, &guide);
        let session = session(&guide, &blocks);
        (run, not_run) = (run + session.run, not_run + session.not_run);
        if session.run > 0 {
            let script = session
                .script
                .replace("127.0.0.1:7373", &address)
                .replace("https://stationmaster.example.org", &format!("http://{address}"))
                .replace("postgres://…", &database);
            let without_address = BEGIN_WITHOUT_ADDRESS.contains(&guide.as_str());
            let mut environment = environment.to_vec();
            environment.retain(|(name, _)| !(without_address && *name == "STATIONMASTER_URL"));
            if script.contains(OWN_PATH) {
                plain_path.clone_into(&mut environment[0].1);
            }
            let path = folder.join("script");
            std::fs::write(&path, &script).unwrap();
            let (well, said) = at_a_terminal(&path, &folder, &environment);
            let parts = parts(&said);
            if !well || parts.last().is_none_or(|(name, _)| name != "end") {
                let (at, answer) = parts.last().cloned().unwrap_or_default();
                wrong.push(format!("{at}: it did not go on here:\n{answer}"));
                continue;
            }
            let came = |place: &str| {
                let parts = parts
                    .iter()
                    .filter(|(name, _)| name == place || name.starts_with(&format!("{place} ")));
                parts.map(|(_, answer)| answer.as_str()).collect::<String>()
            };
            for (place, printed) in &session.expected {
                if let Err(differs) = has_shape(printed, &came(place)) {
                    wrong.push(format!("{place}: {differs}"));
                }
            }
            for (place, text) in &session.shows {
                if !came(place).contains(text.as_str()) {
                    wrong.push(format!("{place}: no {text:?} in\n{}", came(place)));
                }
            }
        }
        for printed in session.of_dev {
            eventually("dev says it too", async || {
                has_shape(&printed, &dev.log()).is_ok()
            })
            .await;
        }
    }
    println!("{run} blocks were run, {not_run} could not be");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert_eq!(not_run, NOT_RUN, "blocks that cannot be run");
    assert!(run >= 20, "{run}");
}

#[test]
fn a_block_of_sql_is_run_with_what_its_words_stand_for() {
    let guide = "<!-- stands for: $1 = echo 7 -->\n\n```sql\nselect $1;\n```\n\n```json\n{}\n```\n";
    let session = session("here", &blocks(guide, "here"));
    assert_eq!((session.run, session.not_run), (1, 0));
    let echo = session.script.replace(SQL, "sql() { cat; }\n");
    let said = Command::new("bash").args(["-c", &echo]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert_eq!(said, "@@ here:3\nselect 7;\n@@ end\n");
}

#[test]
fn a_shape_is_what_stays_of_a_line() {
    assert_eq!(
        shape("shop  3   2 min ago  01a1e3ce-522a"),
        shape("shop  17  41 s ago    01a1e3cf-0000")
    );
    assert_eq!(shape("acme ■ 1/1 +9 waiting"), shape("acme □ 0/1 +12 waiting"));
    assert_ne!(shape("shop  FAILED"), shape("shop  PENDING"));
    assert!(has_shape("ID  NAME\n", "ID     NAME\n1  x").is_ok());
    assert!(has_shape("ID  NAMES\n", "ID     NAME\n1  x").is_err());
    let marked = blocks(
        "<!-- not run: it is only here to be read -->\n\n```sh\nls\n```\n",
        "here",
    );
    assert_eq!(session("here", &marked).not_run, 1);
}
