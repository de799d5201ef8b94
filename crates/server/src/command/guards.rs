//! What each verb does to what there is, said once: who looks, who changes what can be changed back, and who asks. The guide shows
//! it as a table, and a test holds the whole command line to it.

use std::fmt::Write as _;

/// How much a verb does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// It changes nothing.
    Looks,
    /// It makes something, or changes what another command changes back: which.
    Changes(&'static str),
    /// It destroys something, or changes many things at once: it asks or is told `--yes`, and has a `--dry-run`. What is lost.
    Asks(&'static str),
}

use Weight::{Asks, Changes, Looks};

const VERBS: &[(&str, Weight)] = &[
    ("serve", Changes("end it")),
    ("dev", Changes("delete its folder")),
    ("bench executions", Looks),
    ("bench alarms", Looks),
    ("bench api", Looks),
    (
        "migrate",
        Changes("tables only go forward; `--check` looks first"),
    ),
    ("doctor", Looks),
    (
        "apply",
        Asks(
            "whatever the file changes; with `--prune` also workflows, triggers and alarms that are not in it",
        ),
    ),
    ("workspaces create", Changes("`workspaces delete`")),
    ("workspaces list", Looks),
    ("workspaces show", Looks),
    ("workspaces set", Changes("`workspaces set`")),
    ("workspaces pause", Changes("`workspaces resume`")),
    ("workspaces resume", Changes("`workspaces pause`")),
    (
        "workspaces delete",
        Asks("the workspace and its workflows; what waits fails"),
    ),
    ("plans list", Looks),
    ("plans set", Changes("`plans set`")),
    ("workflows create", Changes("`workflows delete`")),
    ("workflows list", Looks),
    ("workflows show", Looks),
    ("workflows set", Changes("`workflows set`")),
    ("workflows publish", Changes("`workflows publish`")),
    (
        "workflows add-version",
        Changes("`workflows publish` of another version"),
    ),
    ("workflows pause", Changes("`workflows resume`")),
    ("workflows resume", Changes("`workflows pause`")),
    (
        "workflows delete",
        Asks("the workflow and its versions; what waits fails"),
    ),
    ("queue add", Changes("`queue cancel`")),
    ("queue list", Looks),
    ("queue show", Looks),
    (
        "queue cancel",
        Asks("the run, and what it was at; a retry begins from the beginning"),
    ),
    ("queue retry", Changes("`queue cancel`")),
    ("queue retry-all", Asks("many items run again")),
    ("queue cancel-all", Asks("many runs, and what they were at")),
    ("queue priority-all", Asks("the priorities that many items had")),
    ("queue priority", Changes("`queue priority`")),
    ("executions list", Looks),
    ("executions show", Looks),
    ("executions watch", Looks),
    ("executions cancel", Asks("the run, and what it was at")),
    (
        "executions terminate",
        Asks("the run, without a chance to tidy up"),
    ),
    (
        "executions complete",
        Asks("the run; its outcome is what you say"),
    ),
    ("executions strays", Looks),
    ("executions end-stray", Asks("the run, of which no row tells")),
    ("top", Looks),
    ("failures list", Looks),
    ("failures show", Looks),
    ("failures retry", Asks("many things are tried again")),
    ("failures set-aside", Asks("failures leave the list")),
    ("failures cancel", Asks("what still waits of the workflow")),
    ("operations list", Looks),
    ("operations show", Looks),
    ("operations wait", Looks),
    (
        "operations cancel",
        Changes("the command that began it, given again, does the rest"),
    ),
    ("history", Looks),
    ("alarms next", Looks),
    ("alarms set", Changes("`alarms cancel`")),
    ("alarms list", Looks),
    ("alarms show", Looks),
    ("alarms edit", Changes("`alarms edit`")),
    ("alarms cancel", Asks("the alarm: it cannot be resumed")),
    ("alarms pause", Changes("`alarms resume`")),
    ("alarms resume", Changes("`alarms pause`")),
    ("alarms fire", Changes("a wake that was sent was sent")),
    ("alarms backfill", Asks("wakes of the past are sent")),
    ("alarms occurrences", Looks),
    ("alarms secrets generate", Looks),
    ("alarms secrets show", Looks),
    (
        "alarms secrets rotate",
        Asks("the secret before, once its time is over"),
    ),
    ("alarms secrets list", Looks),
    ("locks list", Looks),
    (
        "locks run",
        Changes("the lock is given back when the command ends"),
    ),
    (
        "locks release",
        Asks("the lock of somebody who may still be at work"),
    ),
    ("tokens create", Changes("`tokens revoke`")),
    ("tokens list", Looks),
    ("tokens show", Looks),
    ("tokens revoke", Asks("the token: it opens no door any more")),
    ("audit list", Looks),
    ("servers list", Looks),
    ("servers show", Looks),
    (
        "servers drain",
        Asks(
            "with `--exit`: the process, which does not come back by itself; else `servers resume` takes it back, without a question",
        ),
    ),
    ("servers resume", Changes("`servers drain`")),
    ("engine show", Looks),
    (
        "engine change",
        Asks("what runs on the engine before, unless `--keep-runs`"),
    ),
    ("signals send", Changes("a signal that was sent was sent")),
    ("signals list", Looks),
    ("signals show", Looks),
    ("signals dead", Looks),
    (
        "signals replay",
        Asks("with `--all`: many signals are routed again; one is put back without a question"),
    ),
    ("triggers set", Changes("`triggers set`, `triggers remove`")),
    ("triggers list", Looks),
    (
        "triggers remove",
        Asks("the trigger; signals of its name become dead letters"),
    ),
    ("dispatchers list", Looks),
    ("dispatchers show", Looks),
    ("dispatchers id", Looks),
    (
        "dispatchers remove",
        Asks("the dispatcher and its run; the next signal makes it anew"),
    ),
    (
        "dispatchers reconcile",
        Asks("runs, leases and heartbeats that were left behind"),
    ),
    ("config show", Looks),
    (
        "config init",
        Asks("a file that is there already; a new one is written without a question"),
    ),
    ("contexts add", Changes("`contexts remove`")),
    ("contexts list", Looks),
    ("contexts use", Changes("`contexts use`")),
    ("contexts remove", Asks("the context and its token")),
    ("completions", Looks),
    ("man", Changes("delete the pages")),
];

/// The table of the guide: every verb that does more than look.
pub(super) fn table() -> String {
    let mut table = "| command | asks? | taken back by, or what is lost |\n|---|---|---|\n".to_owned();
    for (verb, weight) in VERBS {
        let _ = match weight {
            Looks => continue,
            Changes(back) => writeln!(table, "| `{verb}` | | {back} |"),
            Asks(lost) => writeln!(table, "| `{verb}` | yes | {lost} |"),
        };
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cli::tree;

    /// Every command that does something, with its path.
    fn leaves() -> Vec<(String, clap::Command)> {
        fn walk(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
            for verb in command.get_subcommands() {
                if verb.is_hide_set() || verb.get_name() == "help" {
                    continue;
                }
                let path = format!("{path} {}", verb.get_name()).trim().to_owned();
                if verb.has_subcommands() {
                    walk(verb, &path, found);
                } else {
                    found.push((path, verb.clone()));
                }
            }
        }
        let mut root = tree();
        root.build();
        let mut found = Vec::new();
        walk(&root, "", &mut found);
        found
    }

    #[test]
    fn every_verb_is_weighed_and_those_that_destroy_ask_and_have_a_dry_run() {
        let leaves = leaves();
        let paths: Vec<&str> = leaves.iter().map(|(path, _)| path.as_str()).collect();
        let weighed: Vec<&str> = VERBS.iter().map(|(path, _)| *path).collect();
        assert_eq!(
            paths, weighed,
            "a verb is missing on one side, or in another place"
        );
        for ((path, command), (_, weight)) in leaves.iter().zip(VERBS) {
            let has = |flag: &str| command.get_arguments().any(|arg| arg.get_long() == Some(flag));
            let asks = matches!(weight, Asks(_));
            assert_eq!((has("yes"), has("dry-run")), (asks, asks), "{path}");
            assert!(
                !has("force") || path == "executions complete",
                "{path}: --yes is the word"
            );
        }
    }

    #[test]
    fn a_flag_means_the_same_wherever_it_is() {
        let mut meanings: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (path, command) in leaves() {
            for argument in command
                .get_arguments()
                .filter(|argument| !argument.is_global_set())
            {
                let Some(long) = argument.get_long() else { continue };
                let takes = argument.get_action().takes_values();
                let names = argument.get_value_names().unwrap_or_default().join(" ");
                let value = if takes { names } else { "(no value)".to_owned() };
                meanings
                    .entry(long.to_owned())
                    .or_default()
                    .insert(value, path.clone());
            }
        }
        // The plan of a migration and that of a workspace are both called so, and nobody takes one for the other.
        meanings.get_mut("plan").unwrap().remove("(no value)").unwrap();
        let torn: Vec<_> = meanings.iter().filter(|(_, values)| values.len() > 1).collect();
        assert!(torn.is_empty(), "{torn:#?}");
        // A note is a note, and a filter is a filter.
        assert!(!meanings.contains_key("reason"), "{:?}", meanings["reason"]);
    }

    #[test]
    fn the_guide_shows_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/command-line.md");
        let guide = std::fs::read_to_string(path).unwrap();
        assert!(
            guide.contains(&table()),
            "docs/guides/command-line.md does not hold what `stationmaster docs guards` prints:\n{}",
            table()
        );
    }
}
