//! The commands of a runbook, run while its alert fires: what the page says that they print, they print.
//!
//! A block is tried when a mark stands before it, which readers do not see: `<!-- during: EngineAway -->`. Each line that begins with `$` is
//! run by a shell, through the server `localhost:7373`; the lines below it must be among those that come, once what has a digit in it, such as
//! ids and times, is taken out of both. `…` stands for lines that are left out, or for the rest of a line. Names in capitals are put in by the
//! trial.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::trial::repository_file;

/// The folder to which what came is written, to be put into the pages by hand; then nothing is compared.
const SEEN: &str = "STATIONMASTER_ALERTS_SEEN";

/// Where the commands work.
pub(crate) struct Place<'a> {
    pub(crate) server: &'a str,
    /// What stands for what.
    pub(crate) names: &'a [(&'a str, String)],
}

/// A command and what it prints.
#[derive(Debug, PartialEq)]
struct Step {
    command: String,
    prints: Vec<String>,
}

/// Tries what the runbook of this alert shows.
pub(crate) async fn follow(alert: &str, place: &Place<'_>) {
    let steps = steps(&page_of(alert), alert);
    // The page of zone data tells of both alerts at once.
    assert!(
        !steps.is_empty() || alert == "ZoneDataDiffers",
        "the runbook of {alert} shows nothing that can be tried"
    );
    for step in steps {
        let (command, server) = (place.put_in(&step.command), place.server.to_owned());
        let came = tokio::task::spawn_blocking(move || run(&command, &server))
            .await
            .unwrap();
        if let Ok(folder) = std::env::var(SEEN) {
            let text = format!("$ {}\n{came}\n", step.command);
            let file = Path::new(&folder).join(format!("{alert}.txt"));
            let before = std::fs::read_to_string(&file).unwrap_or_default();
            std::fs::write(file, before + &text).unwrap();
            continue;
        }
        let rules = |line: &str| line.chars().all(|c| "-+ …".contains(c));
        for line in step.prints.iter().filter(|line| !rules(line)) {
            assert!(
                came.lines().any(|one| is_like(line, one)),
                "the runbook of {alert} says that `{}` prints\n  {line}\nand it printed\n{came}",
                step.command
            );
        }
    }
}

/// The page to which an alert leads.
fn page_of(alert: &str) -> String {
    let rules = repository_file("ops/prometheus/alerts.yml");
    let after = rules.split(&format!("- alert: Stationmaster{alert}\n")).nth(1);
    let url = after.and_then(|rest| rest.split("runbook_url: ").nth(1)?.lines().next());
    repository_file(url.unwrap())
}

/// The steps of a page that are tried during this alert.
fn steps(page: &str, alert: &str) -> Vec<Step> {
    let mark = format!("<!-- during: {alert} -->\n\n```text\n");
    let blocks = page.split(&mark).skip(1);
    let mut steps: Vec<Step> = Vec::new();
    for line in blocks.flat_map(|block| block.lines().take_while(|line| !line.starts_with("```"))) {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step {
                command: command.to_owned(),
                prints: Vec::new(),
            }),
            (None, Some(step)) => step.prints.push(line.to_owned()),
            (None, None) => panic!("a block begins with a command: {line}"),
        }
    }
    steps
}

impl Place<'_> {
    fn put_in(&self, command: &str) -> String {
        let mut command = command.replace("localhost:7373", self.server);
        for (name, value) in self.names {
            command = command.replace(name, value);
        }
        command
    }
}

fn run(command: &str, server: &str) -> String {
    let ours = Path::new(env!("CARGO_BIN_EXE_stationmaster")).parent().unwrap();
    let paths = format!("{}:{}", ours.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", &format!("{command} 2>&1")])
        .env("PATH", paths)
        .env("STATIONMASTER_URL", format!("http://{server}"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
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
    assert_eq!(steps(page, "A"), [step("one", &["printed 7"]), step("two", &[])]);
    assert_eq!(steps(page, "B"), []);
    assert_eq!(shape("a  3 min 4s ago"), shape("a 12s min 1m 2s ago"));
    assert_ne!(shape("ok 1"), shape("warning 1"));
    assert_ne!(shape("a{b=\"500\"} 1"), shape("a{b=\"503\"} 1"));
    assert!(is_like("shop  vacant …", "shop vacant vm 3") && !is_like("shop  vacant", "shop vacant vm 3"));
}
