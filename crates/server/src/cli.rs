//! The command line: which commands there are and how they are read. What they do is told in `command`; what the flags of
//! the settings mean is told in `config`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::command::{
    alarms, apply, audit, bench, completions, config as show_config, contexts, dev, dispatchers, docs,
    doctor, engine, executions, failures, locks, man, migrate, plans, queue, serve, servers, signals, tokens,
    top, triggers, workflows, workspaces,
};
use crate::config::{Flags, TargetFlags};
use crate::failure;
use crate::output::{Format, Width};

/// Durable dispatch: every piece of work leaves once, in time, and only when there is room
#[derive(Debug, Parser)]
#[command(name = "stationmaster", version, long_version = crate::version::long(), after_help = failure::EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Print JSON instead of tables; errors too
    #[arg(long, global = true)]
    json: bool,

    /// How to print: table (short ids), wide (whole ids) or json
    #[arg(
        short = 'o',
        long = "format",
        global = true,
        value_name = "FORM",
        default_value = "table",
        hide_default_value = true,
        hide_possible_values = true,
        conflicts_with = "json"
    )]
    form: Form,

    #[command(flatten)]
    pub(crate) target: TargetFlags,

    #[command(flatten)]
    pub(crate) flags: Flags,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a server
    Serve(serve::ServeArgs),

    /// Run everything on this machine, with a database of its own and a live example
    Dev(dev::DevArgs),

    /// Measure this machine, and the ceiling beside it
    #[command(subcommand)]
    Bench(bench::Command),

    /// Bring the tables of the database up to date
    Migrate(migrate::MigrateArgs),

    /// Look at everything that Stationmaster stands on, and say what to do; exit code 1 when there is a problem
    Doctor(doctor::DoctorArgs),

    /// Make everything as a file says: plans, workspaces, workflows, triggers, alarms
    Apply(apply::ApplyArgs),

    /// Tenants, their plans and limits
    #[command(subcommand)]
    Workspaces(workspaces::Command),

    /// What the plans allow
    #[command(subcommand)]
    Plans(plans::Command),

    /// Workflow definitions and their versions
    #[command(subcommand)]
    Workflows(workflows::Command),

    /// What waits to run: add, look, cancel, retry
    #[command(subcommand)]
    Queue(queue::Command),

    /// What runs or has run
    #[command(subcommand)]
    Executions(executions::Command),

    /// A live view of everything, with keys to look closer and to act
    Top(top::TopArgs),

    /// What failed and needs a person: look, retry, set aside
    Failures(failures::FailuresArgs),

    /// What fires at a time
    #[command(subcommand)]
    Alarms(alarms::AlarmsCommand),

    /// Named locks, shared with ShedLock applications; `lock` is the same
    #[command(subcommand, visible_alias = "lock")]
    Locks(locks::Command),

    /// Who may come in by HTTP
    #[command(subcommand)]
    Tokens(tokens::Command),

    /// Who changed what, and when
    #[command(subcommand)]
    Audit(audit::Command),

    /// The servers that share the work
    #[command(subcommand)]
    Servers(servers::Command),

    /// The engine that executions run on, and moving to another one
    #[command(subcommand)]
    Engine(engine::Command),

    /// Events that came in: send, look, replay what could not be routed
    #[command(subcommand)]
    Signals(signals::Command),

    /// Which workflow a signal's name leads to
    #[command(subcommand)]
    Triggers(triggers::Command),

    /// The routers of signals: who owns them, what happened to them, what is left behind
    #[command(subcommand)]
    Dispatchers(dispatchers::Command),

    /// The effective settings and where they came from
    #[command(subcommand)]
    Config(show_config::Command),

    /// Names for servers, with their tokens
    #[command(subcommand)]
    Contexts(contexts::Command),

    /// Print the completions of a shell
    Completions(completions::CompletionsArgs),

    /// Write the pages for `man`
    Man(man::ManArgs),

    /// Print a generated page of the documentation
    #[command(subcommand, hide = true)]
    Docs(docs::Command),
}

impl Cli {
    /// For whom to write.
    pub(crate) fn format(&self) -> Format {
        if self.json || self.form == Form::Json {
            Format::Json
        } else {
            Format::People
        }
    }

    /// How much room tables take.
    pub(crate) fn width(&self) -> Width {
        if self.form == Form::Wide {
            Width::Wide
        } else {
            Width::Usual
        }
    }
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    // Told in the help of the flag: a text for each would make every page of help a long one.
    Table,
    Wide,
    Json,
}

/// Reads the arguments of this process. Help and mistakes are printed here; the code is what to end with.
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match Cli::try_parse_from(&arguments) {
        Ok(mut cli) => {
            cli.flags.set = every_set(&arguments);
            Ok(cli)
        }
        Err(error) if error.use_stderr() => {
            let json = arguments.iter().any(|argument| argument == "--json");
            Err(failure::report_usage(
                &error,
                if json { Format::Json } else { Format::People },
            ))
        }
        Err(help) => {
            // Nobody is left to be told that the help could not be printed.
            let _ = help.print();
            Err(ExitCode::SUCCESS)
        }
    }
}

/// Every value of `--set`, wherever it stands: of a global argument that is given both before and after a command, clap
/// keeps only the later ones. The arguments were accepted, so `--set` can be nothing but the flag, and has its value.
fn every_set(arguments: &[OsString]) -> Vec<String> {
    let mut arguments = arguments
        .iter()
        .map(|argument| argument.to_string_lossy())
        .take_while(|word| word != "--");
    let mut values = Vec::new();
    while let Some(word) = arguments.next() {
        match word.strip_prefix("--set") {
            Some("") => values.extend(arguments.next().map(String::from)),
            Some(rest) => values.extend(rest.strip_prefix('=').map(str::to_owned)),
            None => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn set_counts_before_and_after_the_command() {
        let line = "stationmaster --set a=1 config --set=b=2 show --set c=3";
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        assert!(Cli::try_parse_from(&arguments).is_ok());
        assert_eq!(every_set(&arguments), ["a=1", "b=2", "c=3"]);
    }
}
