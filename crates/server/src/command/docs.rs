//! `stationmaster docs`, hidden: prints the pages of the documentation that are made from the code, so that they are true.

mod schema;

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Result;
use clap::{Arg, Subcommand};

use super::Context;
use crate::cli::tree;
use crate::config;
use crate::failure::EXIT_CODES;
use crate::http;

/// Which page.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// docs/configuration.md
    Configuration,
    /// docs/cli.md
    Cli,
    /// The table of verbs in docs/guides/command-line.md
    Guards,
    /// docs/metrics.md
    Metrics,
    /// docs/openapi.json
    Openapi,
    /// docs/schema.md, from a database that has been migrated
    Schema,
}

pub(crate) async fn run(command: &Command, context: &Context) -> Result<()> {
    let page = match command {
        Command::Configuration => config::reference(),
        Command::Cli => reference(),
        Command::Guards => super::guards::table(),
        Command::Metrics => metrics(),
        Command::Openapi => format!("{}\n", http::document().to_pretty_json()?),
        Command::Schema => schema::page(&context.database().await?).await?,
    };
    std::io::stdout().write_all(page.as_bytes())?;
    Ok(())
}

/// The page of the metrics, read from what a server that has done nothing shows.
fn metrics() -> String {
    let mut page = "# Metrics\n\n<!-- Generated: cargo run -p stationmaster -- docs metrics > docs/metrics.md -->\n\n\
        `GET /metrics`, in the text format of OpenMetrics. Labels are bounded: reasons and statuses, never ids.\n\n\
        | metric | type | meaning |\n|---|---|---|\n"
        .to_owned();
    let text = stationmaster_core::observe::Metrics::new().render();
    let mut help = "";
    for line in text.lines() {
        if let Some((_, words)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            help = words;
        }
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let suffix = if kind == "counter" { "_total" } else { "" };
            let _ = writeln!(page, "| `{name}{suffix}` | {kind} | {help} |");
        }
    }
    page
}

const HEAD: &str = "\
# Command line

<!-- Generated: cargo run -p stationmaster -- docs cli > docs/cli.md -->

One binary, `stationmaster`; commands are a noun and a verb. They work through a server (`--url`, a context) or on the database of
the setting `database_url` ([The command line](guides/command-line.md), [Configuration](configuration.md)). Results go to stdout, everything else to stderr. With `--json` a list is an array, one
thing is an object, and an error is `{\"error\": {\"kind\", \"exit_code\", \"message\", \"advice\"}}` on stderr. Colours are
left out when the output is no terminal or `NO_COLOR` is set. What is done to an item is in its history, under `cli:` and the
name of the user.

";

/// The page of the command line, walked from clap's own description of it.
fn reference() -> String {
    let mut root = tree();
    root.build();
    let codes = EXIT_CODES.split_once('\n').map_or(EXIT_CODES, |(_, rows)| rows);
    let mut page = HEAD.to_owned();
    let _ = write!(page, "## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for (code, meaning) in codes.lines().filter_map(|line| line.trim().split_once("  ")) {
        let _ = writeln!(page, "| {code} | {meaning} |");
    }
    let _ = write!(page, "\n## Flags of every command\n\n");
    arguments(&mut page, root.get_arguments().filter(|arg| arg.is_global_set()));
    for command in root.get_subcommands() {
        describe(&mut page, command, 2);
    }
    page
}

fn describe(page: &mut String, command: &clap::Command, depth: usize) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(page, "\n{} `{name}`\n\n{about}.\n", "#".repeat(depth));
    if command.has_subcommands() {
        for verb in command.get_subcommands() {
            describe(page, verb, depth + 1);
        }
        return;
    }
    let usage = command.clone().render_usage().to_string();
    let _ = write!(page, "\n```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
    let own: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_global_set() && arg.get_id() != "help")
        .collect();
    if !own.is_empty() {
        page.push('\n');
        arguments(page, own.into_iter());
    }
}

fn arguments<'a>(page: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let _ = write!(page, "| argument | meaning |\n|---|---|\n");
    for argument in arguments.filter(|argument| !argument.is_hide_set()) {
        let _ = writeln!(page, "| `{}` | {} |", spelling(argument), meaning(argument));
    }
}

/// How the argument is written.
fn spelling(argument: &Arg) -> String {
    let takes_value = argument
        .get_num_args()
        .is_some_and(|values| values.takes_values());
    let names = argument.get_value_names().unwrap_or_default();
    let value = names
        .first()
        .map(|name| format!("<{name}>"))
        .filter(|_| takes_value)
        .unwrap_or_default();
    match argument.get_long() {
        Some(long) => format!("--{long} {value}").trim_end().to_owned(),
        None => value,
    }
}

fn meaning(argument: &Arg) -> String {
    let mut meaning = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && !["true", "false"].contains(&value.get_name()))
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() {
        let _ = write!(meaning, "; one of {}", values.join(", "));
    }
    if let [default] = argument.get_default_values()
        && argument
            .get_num_args()
            .is_some_and(|values| values.takes_values())
    {
        let _ = write!(meaning, "; default `{}`", default.to_string_lossy());
    }
    meaning.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_repository_is_what_the_command_line_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == reference(),
            "docs/cli.md is not what the command line says: cargo run -p stationmaster -- docs cli > docs/cli.md"
        );
    }

    #[test]
    fn the_page_of_the_metrics_is_what_a_server_shows() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == metrics(),
            "docs/metrics.md is not what a server shows: cargo run -p stationmaster -- docs metrics > docs/metrics.md"
        );
    }

    #[test]
    fn every_argument_is_explained() {
        let mut root = tree();
        root.build();
        let mut commands: Vec<clap::Command> = vec![root];
        while let Some(command) = commands.pop() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "{} {}",
                    command.get_name(),
                    argument.get_id()
                );
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }
}
