//! What a shell completes while somebody types: commands and flags by itself, names by asking.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use crate::served::Served;
use crate::support::{GRAPH, run};

/// What bash would offer behind this line.
fn offered(line: &str, environment: &[(&str, &str)]) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let (last, before) = (words.len() - 1, words.len().saturating_sub(2));
    // As readline calls the function that the script registers.
    let script = format!(
        "source <(stationmaster completions bash)
         COMP_WORDS=({}); COMP_CWORD={last}
         complete -p stationmaster | grep -o -- '-F [^ ]*' | {{ read -r _ function; echo \"function=$function\"; }} > registered
         source ./registered
         \"$function\" stationmaster \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{before}]}}\"
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" ")
    );
    let folder = tempfile::tempdir().unwrap();
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_stationmaster"));
    let path = format!("{}:/usr/bin:/bin", binary.parent().unwrap().display());
    let ended = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", path)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(errors.is_empty(), "{line}: {errors}");
    said.lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn bash_completes_names_by_asking_and_everything_else_by_itself() {
    let served = Served::start();
    let (workspace, _) = served.database.workflow(GRAPH);
    served.done(&["workspaces", "create", "south"]);
    served.done(&[
        "alarms",
        "set",
        "--workspace",
        "north",
        "--in",
        "9d",
        "--name",
        "tea",
    ]);
    let item = crate::support::text(
        &served.json(&[
            "queue",
            "add",
            "--workspace",
            &workspace,
            "--workflow",
            "north.nightly",
        ]),
        "id",
    );
    let there = [
        ("STATIONMASTER_URL", served.url.as_str()),
        ("STATIONMASTER_TOKEN", served.token.as_str()),
    ];
    for (line, names) in [
        ("stationmaster queue list --workspace ", &["north", "south"][..]),
        ("stationmaster queue list --workspace so", &["south"]),
        ("stationmaster workspaces pause n", &["north"]),
        ("stationmaster workspaces create n", &[]),
        (
            "stationmaster queue add --workspace north --workflow ni",
            &["nightly"],
        ),
        ("stationmaster workflows show nor", &["north.nightly"]),
        ("stationmaster workspaces set north --plan P", &["PRO"]),
        ("stationmaster alarms fire ", &["north.tea"]),
        ("stationmaster tokens revoke b", &["boss"]),
        ("stationmaster queue show 0", &[item.as_str()]),
        ("stationmaster queue can", &["cancel", "cancel-all"]),
        ("stationmaster queue list --wat", &["--watch"]),
        // Behind a comma the next of several values, and none of them twice.
        ("stationmaster queue list --workspace north,", &["north,south"]),
        (
            "stationmaster executions list --status failed,ti",
            &["failed,timed_out"],
        ),
        (
            "stationmaster queue list --status pending,claimed,",
            &[
                "pending,claimed,cancelled",
                "pending,claimed,dispatched",
                "pending,claimed,failed",
            ],
        ),
        ("stationmaster queue list --status disp", &["dispatched"]),
    ] {
        let mut found = offered(line, &there);
        found.sort_unstable();
        assert_eq!(found, names, "{line}");
    }
    // Where nobody answers, the shell knows what it knows, and is told of no error.
    let nowhere = [("STATIONMASTER_URL", "http://127.0.0.1:9")];
    assert_eq!(offered("stationmaster queue list --wat", &nowhere), ["--watch"]);
    assert!(!offered("stationmaster queue list --workspace no", &nowhere).contains(&"north".to_owned()));
    let asked = run(
        &["__complete", "--", "queue", "list", "--workspace", "no"],
        &nowhere,
        "",
    );
    assert_eq!(
        (asked.code, asked.stdout.as_str(), asked.stderr.as_str()),
        (1, "", "")
    );
}

/// A bash at a terminal, and somebody who types.
struct Terminal {
    bash: Child,
    screen: File,
    keys: File,
    /// What is on the screen, and was not looked at yet.
    shown: String,
}

impl Terminal {
    fn new(environment: &[(&str, &str)]) -> Self {
        // Wide enough for every line of these tests: a narrow one is shown in parts.
        let size = nix::pty::Winsize {
            ws_row: 50,
            ws_col: 200,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = nix::pty::openpty(Some(&size), None).unwrap();
        let end = || Stdio::from(pair.slave.try_clone().unwrap());
        let binary = std::path::Path::new(env!("CARGO_BIN_EXE_stationmaster"));
        let path = format!("{}:/usr/bin:/bin", binary.parent().unwrap().display());
        // What never comes is not waited for: the screen goes dark.
        let bash = Command::new("timeout")
            .args([
                "--signal",
                "KILL",
                "60",
                "setsid",
                "bash",
                "--norc",
                "--noprofile",
                "-i",
            ])
            .env_clear()
            .envs([
                ("PATH", path.as_str()),
                ("TERM", "dumb"),
                ("INPUTRC", "/dev/null"),
            ])
            .envs(environment.iter().copied())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        Self {
            bash,
            screen: pair.master.try_clone().unwrap().into(),
            keys: pair.master.into(),
            shown: String::new(),
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Looks at the screen until this is on it.
    #[track_caller]
    fn until(&mut self, words: &str) {
        let mut bytes = [0; 1024];
        while !self.shown.contains(words) {
            let count = self.screen.read(&mut bytes).unwrap_or_default();
            assert!(count > 0, "no {words:?} in {:?}", self.shown);
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        let seen = self.shown.find(words).unwrap_or_default() + words.len();
        self.shown.drain(..seen);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.bash.kill();
        let _ = self.bash.wait();
    }
}

#[test]
fn at_a_terminal_bash_completes_the_next_of_several_values() {
    let served = Served::start();
    for name in ["north", "south"] {
        served.done(&["workspaces", "create", name]);
    }
    let there = [
        ("STATIONMASTER_URL", served.url.as_str()),
        ("STATIONMASTER_TOKEN", served.token.as_str()),
    ];
    let mut terminal = Terminal::new(&there);
    terminal.press("source <(stationmaster completions bash); echo re''ady\n");
    terminal.until("\nready");
    for (typed, line) in [
        ("--workspace north,so", "--workspace north,south "),
        ("--status pending,disp", "--status pending,dispatched "),
    ] {
        // The tabulator asks; then the whole line is thrown away.
        terminal.press(&format!("stationmaster queue list {typed}\t"));
        terminal.until(line);
        terminal.press("\u{15}");
    }
}

#[test]
fn the_scripts_of_other_shells_ask_for_names_too() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell], &[], "").stdout;
        assert_eq!(script.matches("__complete -- ").count(), 1, "{shell}");
    }
    let zsh = run(&["completions", "zsh"], &[], "").stdout;
    assert!(zsh.contains("_stationmaster_known() {") && zsh.contains("_stationmaster_known \"$@\""));
}
