//! The commands of a runbook, run while its alert fires: what the page says that they print, they print; and what it says that mends it does.
//!
//! A block is tried when a mark stands before it, which readers do not see: `<!-- during: EngineAway -->`, or `<!-- mends: OldTransaction -->`. Each
//! line that begins with `$` is run by a shell, through the server `localhost:7373`; the lines below it must be among those that come, once what has
//! a digit in it, such as ids and times, is taken out of both. `…` stands for lines that are left out, or for the rest of a line. Names in capitals
//! are put in by the trial, or are what a command prints: `<!-- stands for: GROUP = stationmaster failures | … -->`, behind the mark.

use std::fmt::Display;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::trial::repository_file;

/// The folder to which what came is written, to be put into the pages by hand; then nothing is compared.
const SEEN: &str = "STATIONMASTER_ALERTS_SEEN";

/// How often somebody looks at what a page shows, when it is not what it shows.
const LOOKS: usize = 10;

/// Where the commands work.
pub(crate) struct Place {
    server: String,
    /// What stands for what.
    names: Vec<(String, String)>,
}

/// A command and what it prints.
#[derive(Debug, PartialEq)]
struct Step {
    command: String,
    prints: Vec<String>,
}

/// Steps that follow one another, and the commands that find what their names stand for.
#[derive(Debug, Default, PartialEq)]
struct Block {
    stands: Vec<(String, String)>,
    steps: Vec<Step>,
}

/// What came of a command.
struct Came {
    well: bool,
    text: String,
}

/// Looks as the runbook of this alert says.
pub(crate) async fn follow(alert: &str, place: &Place) {
    let blocks = blocks(&page_of(alert), &format!("during: {alert}"));
    // The page of zone data tells of both alerts at once.
    assert!(
        !blocks.is_empty() || alert == "ZoneDataDiffers",
        "the runbook of {alert} shows nothing that can be tried"
    );
    for step in blocks.into_iter().flat_map(|block| block.steps) {
        let mut came = run(&place.put_in(&step.command), &place.server).await;
        // What comes and goes while the alert fires may just be away: people look again too.
        for _ in 1..LOOKS {
            if missing(&step, &came).is_none() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            came = run(&place.put_in(&step.command), &place.server).await;
        }
        if let Ok(folder) = std::env::var(SEEN) {
            let text = format!("$ {}\n{}\n", step.command, came.text);
            let file = Path::new(&folder).join(format!("{alert}.txt"));
            let before = std::fs::read_to_string(&file).unwrap_or_default();
            std::fs::write(file, before + &text).unwrap();
            continue;
        }
        compare(alert, &step, &came);
    }
}

/// Mends as the runbook of this alert says: every command has to succeed.
pub(crate) async fn mend(alert: &str, place: &Place) {
    let blocks = blocks(&page_of(alert), &format!("mends: {alert}"));
    assert!(
        !blocks.is_empty(),
        "the runbook of {alert} shows nothing that mends it"
    );
    for block in blocks {
        let mut place = place.knowing(&[]);
        for (name, command) in &block.stands {
            let found = run(&place.put_in(command), &place.server).await.text;
            assert!(!found.trim().is_empty(), "{alert}: `{command}` found nothing");
            place = place.knowing(&[(name, &found.trim())]);
        }
        for step in &block.steps {
            let came = run(&place.put_in(&step.command), &place.server).await;
            assert!(
                came.well,
                "the runbook of {alert} says that `{}` helps, and it failed:\n{}",
                step.command, came.text
            );
            compare(alert, step, &came);
        }
    }
}

/// The first line that should be among what came, and is not.
fn missing<'a>(step: &'a Step, came: &Came) -> Option<&'a String> {
    let rules = |line: &str| line.chars().all(|c| "-+ …".contains(c));
    let has_come = |line: &str| came.text.lines().any(|one| is_like(line, one));
    let mut lines = step.prints.iter().filter(|line| !rules(line));
    lines.find(|line| !has_come(line))
}

fn compare(alert: &str, step: &Step, came: &Came) {
    if let Some(line) = missing(step, came) {
        panic!(
            "the runbook of {alert} says that `{}` prints\n  {line}\nand it printed\n{}",
            step.command, came.text
        );
    }
}

/// The page to which an alert leads.
fn page_of(alert: &str) -> String {
    let rules = repository_file("ops/prometheus/alerts.yml");
    let after = rules.split(&format!("- alert: Stationmaster{alert}\n")).nth(1);
    let url = after.and_then(|rest| rest.split("runbook_url: ").nth(1)?.lines().next());
    repository_file(url.unwrap())
}

/// The blocks of a page that this mark stands before.
fn blocks(page: &str, mark: &str) -> Vec<Block> {
    let mark = format!("<!-- {mark} -->\n");
    page.split(&mark).skip(1).map(block).collect()
}

fn block(text: &str) -> Block {
    let mut block = Block::default();
    let mut lines = text.lines();
    for line in lines.by_ref().take_while(|line| *line != "```text") {
        let within = line
            .strip_prefix("<!-- stands for: ")
            .and_then(|rest| rest.strip_suffix(" -->"));
        match within.and_then(|within| within.split_once(" = ")) {
            Some((name, command)) => block.stands.push((name.to_owned(), command.to_owned())),
            None => assert!(line.is_empty(), "only a block of text follows a mark: {line}"),
        }
    }
    for line in lines.take_while(|line| !line.starts_with("```")) {
        match (line.strip_prefix("$ "), block.steps.last_mut()) {
            (Some(command), _) => block.steps.push(Step {
                command: command.to_owned(),
                prints: Vec::new(),
            }),
            (None, Some(step)) => step.prints.push(line.to_owned()),
            (None, None) => panic!("a block begins with a command: {line}"),
        }
    }
    block
}

impl Place {
    pub(crate) fn at(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            names: Vec::new(),
        }
    }

    /// The same place, where more is known by name.
    pub(crate) fn knowing(&self, more: &[(&str, &dyn Display)]) -> Self {
        let more = more
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.to_string()));
        Self {
            server: self.server.clone(),
            names: self.names.iter().cloned().chain(more).collect(),
        }
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    fn put_in(&self, command: &str) -> String {
        let mut command = command.replace("localhost:7373", &self.server);
        for (name, value) in &self.names {
            command = command.replace(name, value);
        }
        command
    }
}

/// Runs a command as somebody at a shell, to whom the program belongs.
async fn run(command: &str, server: &str) -> Came {
    let ours = Path::new(env!("CARGO_BIN_EXE_stationmaster")).parent().unwrap();
    let paths = format!("{}:{}", ours.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    // What tests are told is no setting that the program knows.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STATIONMASTER_")) {
        shell.env_remove(name);
    }
    shell
        .args(["-c", &format!("{command} 2>&1")])
        .env("PATH", paths)
        .env("STATIONMASTER_URL", format!("http://{server}"))
        .stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || shell.output().unwrap())
        .await
        .unwrap();
    Came {
        well: output.status.success(),
        text: String::from_utf8(output.stdout).unwrap(),
    }
}

/// Is what is printed on the page like the line that came?
fn is_like(printed: &str, came: &str) -> bool {
    match printed.strip_suffix('…') {
        Some(beginning) => shape(came).starts_with(&shape(beginning)),
        None => shape(came) == shape(printed),
    }
}

/// A line without what differs from one run to the next; labels of metrics stay.
fn shape(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let varies = !word.contains("=\"") && word.chars().any(|c| c.is_ascii_digit());
        if !varies {
            words.push(word.to_owned());
        } else if words.last().is_none_or(|last| last != "#") {
            words.push("#".to_owned());
        }
    }
    words.join(" ")
}

#[test]
fn only_blocks_of_the_alert_are_its_steps() {
    let page =
        "Words.\n\n<!-- during: A -->\n\n```text\n$ one\nprinted 7\n$ two\n```\n\n```text\n$ three\n```\n";
    let step = |command: &str, prints: &[&str]| Step {
        command: command.to_owned(),
        prints: prints.iter().map(|&line| line.to_owned()).collect(),
    };
    let whole = Block {
        stands: Vec::new(),
        steps: vec![step("one", &["printed 7"]), step("two", &[])],
    };
    assert_eq!(blocks(page, "during: A"), [whole]);
    assert_eq!(blocks(page, "during: B"), []);
    let page = "<!-- mends: A -->\n<!-- stands for: ID = find it | head -1 -->\n\n```text\n$ end ID\n```\n";
    let found = Block {
        stands: vec![("ID".to_owned(), "find it | head -1".to_owned())],
        steps: vec![step("end ID", &[])],
    };
    assert_eq!(blocks(page, "mends: A"), [found]);
    assert_eq!(shape("a  3 min 4s ago"), shape("a 12s min 1m 2s ago"));
    assert_ne!(shape("ok 1"), shape("warning 1"));
    assert_ne!(shape("a{b=\"500\"} 1"), shape("a{b=\"503\"} 1"));
    assert!(is_like("shop  vacant …", "shop vacant vm 3") && !is_like("shop  vacant", "shop vacant vm 3"));
}
