//! An example or two of every command, shown below its help. A test reads each of them as the program would.

use clap::Command;

/// Examples of a noun that are shown with it, one of each of its verbs.
const OF_A_NOUN: usize = 5;

/// A command and how it may be given.
type Examples = (&'static str, &'static [&'static str]);

const EXAMPLES: &[Examples] = &[
    (
        "serve",
        &[
            "serve --config stationmaster.toml",
            "serve --listen 0.0.0.0:7373 --engine temporal",
        ],
    ),
    ("dev", &["dev", "dev --data-dir /var/tmp/trial --no-example"]),
    ("bench executions", &["bench executions --items 10000"]),
    ("bench alarms", &["bench alarms --scenario burst"]),
    ("bench api", &["bench api"]),
    ("migrate", &["migrate", "migrate --check"]),
    (
        "doctor",
        &[
            "doctor",
            "doctor --quiet --strict",
            "doctor --url http://127.0.0.1:7373",
        ],
    ),
    (
        "apply",
        &["apply -f shop.toml --dry-run", "apply -f shop.toml --yes"],
    ),
    (
        "workspaces create",
        &[
            "workspaces create shop --plan PRO",
            "workspaces create lab --limit 2",
        ],
    ),
    (
        "workspaces list",
        &["workspaces list", "workspaces list --sort -ready -o wide"],
    ),
    ("workspaces show", &["workspaces show shop"]),
    (
        "workspaces set",
        &[
            "workspaces set shop --limit 20",
            "workspaces set shop --plan ENTERPRISE --no-limit",
        ],
    ),
    ("workspaces pause", &["workspaces pause shop"]),
    ("workspaces resume", &["workspaces resume shop"]),
    (
        "workspaces delete",
        &["workspaces delete shop --dry-run", "workspaces delete shop --yes"],
    ),
    ("plans list", &["plans list"]),
    ("plans set", &["plans set BULK --limit 10 --weight 0.5"]),
    (
        "workflows create",
        &[
            "workflows create import --workspace shop --graph graph.json",
            "workflows create report --workspace shop --task-queue reports --run-timeout 30m",
        ],
    ),
    ("workflows list", &["workflows list --workspace shop"]),
    ("workflows show", &["workflows show shop.import"]),
    (
        "workflows set",
        &["workflows set shop.import --run-timeout 30m --max-attempts 5"],
    ),
    ("workflows publish", &["workflows publish shop.import 2"]),
    (
        "workflows add-version",
        &["workflows add-version shop.import --graph graph.json"],
    ),
    ("workflows pause", &["workflows pause shop.import"]),
    ("workflows resume", &["workflows resume shop.import"]),
    ("workflows delete", &["workflows delete shop.import --dry-run"]),
    (
        "queue add",
        &[
            "queue add --workspace shop --workflow import --input '{\"file\": \"a.csv\"}'",
            "queue add --workspace shop --workflow import --at 'tomorrow 9:00 Europe/Berlin'",
            "queue add --workspace shop --workflow import --key order-17 --priority 5",
        ],
    ),
    (
        "queue list",
        &[
            "queue list --workspace shop --status pending,claimed",
            "queue list --status failed --created-after 1h --sort workspace",
            "queue list --workspace shop --sort next",
            "queue list --search 'not found' -o wide",
        ],
    ),
    (
        "queue show",
        &["queue show 0199a0de", "queue show --workspace shop"],
    ),
    ("queue cancel", &["queue cancel 0199a0de --note 'ordered twice'"]),
    ("queue retry", &["queue retry 0199a0de"]),
    (
        "queue retry-all",
        &[
            "queue retry-all --workspace shop --status failed,timed_out --dry-run",
            "queue retry-all --end-reason refused --ended-after 'yesterday 14:00' --yes",
        ],
    ),
    (
        "queue cancel-all",
        &[
            "queue cancel-all --workspace shop --workflow import --status pending --dry-run",
            "queue cancel-all --workspace shop,lab --created-before 1d --detach",
        ],
    ),
    (
        "queue priority-all",
        &["queue priority-all 10 --workspace shop --workflow import"],
    ),
    ("queue priority", &["queue priority 0199a0de 10"]),
    (
        "executions list",
        &[
            "executions list --workspace shop --status running --sort started",
            "executions list --status failed,timed_out --ended-after 2h",
        ],
    ),
    ("executions show", &["executions show 0199a0de"]),
    ("executions watch", &["executions watch 0199a0de"]),
    ("executions cancel", &["executions cancel 0199a0de --dry-run"]),
    (
        "executions terminate",
        &["executions terminate 0199a0de --note 'it hangs'"],
    ),
    (
        "executions complete",
        &["executions complete 0199a0de --output '{\"rows\": 17}' --yes"],
    ),
    ("executions strays", &["executions strays"]),
    (
        "executions end-stray",
        &["executions end-stray execution-0199a0de --dry-run"],
    ),
    ("top", &["top", "top --once"]),
    (
        "failures list",
        &[
            "failures list --workspace shop",
            "failures list --kind execution,start --ended-after 1d",
        ],
    ),
    ("failures show", &["failures show 6d1f"]),
    (
        "failures retry",
        &[
            "failures retry 6d1f",
            "failures retry --workspace shop --kind occurrence --dry-run",
        ],
    ),
    (
        "failures set-aside",
        &["failures set-aside 6d1f --note 'the sender is being mended'"],
    ),
    ("failures cancel", &["failures cancel 6d1f --dry-run"]),
    (
        "operations list",
        &["operations list", "operations list --status pending,running"],
    ),
    ("operations show", &["operations show 0199a0de"]),
    ("operations wait", &["operations wait 0199a0de"]),
    ("operations cancel", &["operations cancel 0199a0de"]),
    (
        "history",
        &[
            "history --since 6h",
            "history --since yesterday --workspace shop --step 1h",
            "history --by workspace",
        ],
    ),
    (
        "alarms next",
        &[
            "alarms next '30 2 * * *' --zone Europe/Berlin",
            "alarms next '@daily' --from tomorrow --count 3",
        ],
    ),
    (
        "alarms set",
        &[
            "alarms set --workspace shop --name stand-up --cron '0 9 * * MON-FRI' --zone Europe/Zurich",
            "alarms set --workspace shop --in 90m --target https://hooks.example/tea --payload '{\"cup\": 2}'",
            "alarms set --workspace shop --at 'tomorrow 9:00' --message 'good morning'",
        ],
    ),
    (
        "alarms list",
        &["alarms list --workspace shop --status active,paused --sort next"],
    ),
    ("alarms show", &["alarms show shop.stand-up"]),
    (
        "alarms edit",
        &["alarms edit shop.stand-up --cron '0 10 * * *' --clear payload"],
    ),
    ("alarms cancel", &["alarms cancel shop.stand-up --dry-run"]),
    ("alarms pause", &["alarms pause shop.stand-up"]),
    ("alarms resume", &["alarms resume shop.stand-up"]),
    ("alarms fire", &["alarms fire shop.stand-up"]),
    (
        "alarms backfill",
        &["alarms backfill shop.stand-up --from yesterday --to now --dry-run"],
    ),
    (
        "alarms occurrences",
        &["alarms occurrences shop.stand-up --status failed,skipped"],
    ),
    ("alarms secrets generate", &["alarms secrets generate"]),
    (
        "alarms secrets show",
        &[
            "alarms secrets show router",
            "alarms secrets show https://hooks.example",
        ],
    ),
    (
        "alarms secrets rotate",
        &["alarms secrets rotate router --keep-old 2d"],
    ),
    ("alarms secrets list", &["alarms secrets list"]),
    ("locks list", &["locks list"]),
    (
        "locks run",
        &["lock run nightly-report --at-most 5m -- ./report.sh --all"],
    ),
    ("locks release", &["locks release nightly-report --dry-run"]),
    (
        "tokens create",
        &[
            "tokens create ops --role admin",
            "tokens create ci --role operator --workspace shop --expires-in 90d",
        ],
    ),
    ("tokens list", &["tokens list --sort last-used"]),
    ("tokens show", &["tokens show ci"]),
    (
        "tokens revoke",
        &["tokens revoke ci --dry-run", "tokens revoke ci --yes"],
    ),
    (
        "audit list",
        &[
            "audit list --workspace shop --action workspace.change",
            "audit list --actor ops --since 'yesterday 14:00' --until now",
        ],
    ),
    (
        "servers list",
        &["servers list --sort started", "servers list --all"],
    ),
    ("servers show", &["servers show station-1"]),
    (
        "servers drain",
        &[
            "servers drain station-1 --dry-run",
            "servers drain station-1 --exit --yes",
        ],
    ),
    ("servers resume", &["servers resume station-1"]),
    ("engine show", &["engine show"]),
    ("engine change", &["engine change --dry-run"]),
    (
        "signals send",
        &["signals send shop order.paid --id order-17 --payload '{\"order\": 17}'"],
    ),
    (
        "signals list",
        &["signals list --project shop --status pending,dead --since 1h"],
    ),
    ("signals show", &["signals show order-17"]),
    ("signals dead", &["signals dead --project shop"]),
    (
        "signals replay",
        &[
            "signals replay order-17",
            "signals replay --all --project shop --dead-reason unknown_signal --dry-run",
        ],
    ),
    (
        "triggers set",
        &["triggers set shop order.paid --workflow shop.import"],
    ),
    ("triggers list", &["triggers list --project shop"]),
    ("triggers remove", &["triggers remove shop order.paid --dry-run"]),
    ("dispatchers list", &["dispatchers list --project shop"]),
    ("dispatchers show", &["dispatchers show dispatcher-shop-default"]),
    (
        "dispatchers id",
        &["dispatchers id shop", "dispatchers id my-shop high-priority"],
    ),
    (
        "dispatchers remove",
        &["dispatchers remove dispatcher-shop-night --dry-run"],
    ),
    (
        "dispatchers reconcile",
        &["dispatchers reconcile --dry-run", "dispatchers reconcile --yes"],
    ),
    ("config show", &["config show", "config show --sort from"]),
    (
        "config init",
        &["config init", "config init /etc/stationmaster.toml"],
    ),
    (
        "contexts add",
        &["contexts add prod --url https://stationmaster.example.org --token-file token"],
    ),
    ("contexts list", &["contexts list"]),
    ("contexts use", &["contexts use prod"]),
    ("contexts remove", &["contexts remove prod --yes"]),
    ("completions", &["completions bash", "completions fish"]),
    ("man", &["man --out /usr/local/share/man/man1"]),
];

/// Shows examples below the help of every command.
pub(crate) fn shown(root: Command) -> Command {
    below(root, "")
}

fn below(command: Command, path: &str) -> Command {
    let examples = of(path);
    let command = command.mut_subcommands(|verb| {
        let path = format!("{path} {}", verb.get_name());
        below(verb, path.trim())
    });
    if path.is_empty() || examples.is_empty() {
        return command;
    }
    let lines: Vec<String> = examples
        .iter()
        .map(|line| format!("  stationmaster {line}"))
        .collect();
    command.after_help(format!("Examples:\n{}", lines.join("\n")))
}

/// Puts a line below the help of every command.
pub(crate) fn with_last_line(command: Command, line: &str) -> Command {
    let command = command.mut_subcommands(|verb| with_last_line(verb, line));
    let below = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    command.after_help(format!("{below}\n\n{line}").trim_start().to_owned())
}

/// The examples of a verb; of a noun the first of each of its verbs.
fn of(path: &str) -> Vec<&'static str> {
    let own = EXAMPLES.iter().find(|(of, _)| *of == path);
    if let Some((_, examples)) = own {
        return examples.to_vec();
    }
    let verbs = EXAMPLES
        .iter()
        .filter(|(of, _)| of.strip_prefix(path).is_some_and(|rest| rest.starts_with(' ')));
    verbs
        .filter_map(|(_, examples)| examples.first().copied())
        .take(OF_A_NOUN)
        .collect()
}

/// All of them.
#[cfg(test)]
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES
        .iter()
        .flat_map(|(path, examples)| examples.iter().map(|line| (*path, *line)))
}
