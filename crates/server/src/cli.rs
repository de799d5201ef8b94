//! The command line: which commands there are and how they are read. What they do is told in `command`; what the flags of
//! the settings mean is told in `config`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::command::{
    alarms, apply, audit, bench, complete, completions, config as show_config, contexts, dev, dispatchers,
    docs, doctor, engine, examples, executions, failures, history, locks, man, migrate, operations, plans,
    queue, serve, servers, signals, tokens, top, triggers, workflows, workspaces,
};
use crate::config::{Flags, TargetFlags};
use crate::failure;
use crate::output::{Format, Looks, Times};

/// Durable dispatch: every piece of work leaves once, in time, and only when there is room
#[derive(Debug, Parser)]
#[command(name = "stationmaster", version, long_version = crate::version::long(), after_help = failure::EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Print JSON instead of tables; errors too
    #[arg(long, global = true)]
    json: bool,

    /// How to print: table (fits the terminal), wide (everything, whole ids) or json
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

    /// Show exact times, as clocks show them here, instead of how long ago
    #[arg(long, global = true)]
    absolute: bool,

    /// Show exact times, in UTC; what is not a terminal gets them anyway
    #[arg(long, global = true, conflicts_with = "absolute")]
    utc: bool,

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

    /// What servers do to many things at once, begun by `--detach`: look, wait, cancel
    #[command(subcommand)]
    Operations(operations::Command),

    /// What happened, minute by minute: how much came, started and ended, and how long it took
    History(history::HistoryArgs),

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

    /// Say which names fit where somebody types
    #[command(name = "__complete", hide = true)]
    Complete(complete::CompleteArgs),

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

    /// How tables and times look.
    pub(crate) fn looks(&self) -> Looks {
        let times = match (self.utc, self.absolute) {
            (true, _) => Some(Times::Utc),
            (_, true) => Some(Times::Local),
            _ => None,
        };
        Looks::new(self.form == Form::Wide, times)
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
    let (asked, everything) = help_asked(&arguments);
    let read = helpful(everything)
        .try_get_matches_from(asked)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    match read {
        Ok(mut cli) => {
            cli.flags.set = every_set(&arguments);
            Ok(cli)
        }
        Err(error) if error.use_stderr() => {
            let json = wants_json(&arguments);
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

/// Is JSON asked for, on a command line that cannot be read?
fn wants_json(arguments: &[OsString]) -> bool {
    let mut before = "";
    for argument in arguments.iter().filter_map(|argument| argument.to_str()) {
        let joined = ["--json", "-ojson", "-o=json", "--output=json"].contains(&argument);
        if joined || (["-o", "--output"].contains(&before) && argument == "json") {
            return true;
        }
        before = argument;
    }
    false
}

/// The whole command line, with examples.
pub(crate) fn tree() -> clap::Command {
    examples::shown(Cli::command())
}

/// The same, as help shows it: the options of every command stand in the way of its own.
fn helpful(everything: bool) -> clap::Command {
    if everything {
        return tree();
    }
    let rest = "Options of every command (how to print, where to work, settings): --help --all";
    examples::with_last_line(tree(), rest).mut_args(|argument| {
        if argument.is_global_set() {
            argument.hide(true)
        } else {
            argument
        }
    })
}

/// The arguments, and whether all of the help is asked for: `--all` beside `--help` is no flag of the command.
fn help_asked(arguments: &[OsString]) -> (Vec<OsString>, bool) {
    let ours = arguments
        .iter()
        .position(|argument| argument == "--")
        .unwrap_or(arguments.len());
    let (own, others) = arguments.split_at(ours);
    let has = |word: &str| own.iter().any(|argument| argument == word);
    let help = has("--help") || has("-h") || own.get(1).is_some_and(|first| first == "help");
    if !(help && has("--all")) {
        return (arguments.to_vec(), false);
    }
    let own = own.iter().filter(|argument| *argument != "--all");
    (own.chain(others).cloned().collect(), true)
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
    use std::path::Path;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        tree().debug_assert();
    }

    /// Words as a shell makes them of a line.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quoted, mut begun) = (vec![String::new()], None, false);
        for character in line.chars() {
            match (quoted, character) {
                (Some(quote), _) if quote == character => quoted = None,
                (Some(_), _) => words.last_mut().unwrap().push(character),
                (None, '\'' | '"') => (quoted, begun) = (Some(character), true),
                (None, ' ') => {
                    if begun {
                        words.push(String::new());
                    }
                    begun = false;
                }
                (None, _) => {
                    words.last_mut().unwrap().push(character);
                    begun = true;
                }
            }
        }
        words
    }

    fn read(line: &str) -> Result<clap::ArgMatches, clap::Error> {
        let line = format!("stationmaster {line}");
        let matches = tree().try_get_matches_from(words(line.trim()))?;
        Cli::from_arg_matches(&matches)?;
        Ok(matches)
    }

    /// The path of a command that was read.
    fn path(mut matches: &clap::ArgMatches) -> String {
        let mut path = Vec::new();
        while let Some((name, below)) = matches.subcommand() {
            path.push(name);
            matches = below;
        }
        path.join(" ")
    }

    #[test]
    fn every_command_has_an_example_and_every_example_can_be_read() {
        let mut shown: Vec<String> = Vec::new();
        for (of, line) in examples::all() {
            let matches = read(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(path(&matches), of, "{line}");
            shown.push(of.to_owned());
        }
        let mut root = helpful(false);
        root.build();
        let mut commands = vec![(String::new(), root)];
        while let Some((path, command)) = commands.pop() {
            for verb in command.get_subcommands() {
                if verb.is_hide_set() || verb.get_name() == "help" {
                    continue;
                }
                let path = format!("{path} {}", verb.get_name()).trim().to_owned();
                let help = verb.clone().render_help().to_string();
                assert!(help.contains("Examples:\n  stationmaster "), "{path}: {help}");
                assert!(
                    !help.contains("--temporal-address") && help.contains("--help --all"),
                    "{path}: {help}"
                );
                assert!(
                    verb.has_subcommands() || shown.contains(&path),
                    "{path} has no example"
                );
                commands.push((path, verb.clone()));
            }
        }
    }

    /// What stands in hints for something of the reader's own.
    fn filled(line: &str) -> String {
        let mut line = line.to_owned();
        while let (Some(begin), Some(end)) = (line.find('{'), line.find('}')) {
            line.replace_range(begin..=end, "something");
        }
        let word = |word: &str| match word {
            "N" | "PRIORITY" => "5".to_owned(),
            "URL" => "http://127.0.0.1:7373".to_owned(),
            "DURATION" => "5m".to_owned(),
            "ROLE" => "viewer".to_owned(),
            "SHELL" => "bash".to_owned(),
            other => other.to_owned(),
        };
        line.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }

    /// The commands that a source file tells people to run.
    fn hints(source: &str) -> Vec<String> {
        let mut found = Vec::new();
        let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code = code.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
        for (at, _) in code.match_indices("stationmaster ") {
            let before = code[..at].chars().next_back().unwrap_or(' ');
            let rest = &code[at + "stationmaster ".len()..];
            let end = rest
                .find(['"', '`', ';', ',', '\n', ')', '\\', ':'])
                .unwrap_or(rest.len());
            let line = rest[..end].trim_end_matches(['.', ' ']);
            // A command begins with a noun of ours; a crate's name or a process has none behind it.
            let noun = line.split(' ').next().unwrap_or_default();
            let known = tree().find_subcommand(noun).is_some();
            if known && !before.is_alphanumeric() && !['-', '/', '_', '.'].contains(&before) {
                found.push(
                    line.split(" starts ")
                        .next()
                        .unwrap_or(line)
                        .split("   ")
                        .next()
                        .unwrap_or(line)
                        .to_owned(),
                );
            }
        }
        found
    }

    #[test]
    fn every_hint_is_a_command_that_can_be_read() {
        let mut folders = vec![
            Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src"),
        ];
        let (mut read_ones, mut wrong) = (0, Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                if path.extension().is_none_or(|kind| kind != "rs") || path.ends_with("cli.rs") {
                    continue;
                }
                for hint in hints(&std::fs::read_to_string(&path).unwrap()) {
                    read_ones += 1;
                    if let Err(error) = read(&filled(&hint)) {
                        let error = error.to_string();
                        wrong.push(format!("{}: stationmaster {hint}: {error}", path.display()));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(read_ones > 30, "only {read_ones} hints were found");
    }

    /// A noun and a verb that are there, or a noun alone: that a page may speak of.
    fn is_a_command(line: &str) -> bool {
        let mut root = tree();
        root.build();
        let mut at = Some(&root);
        for word in line.split(' ') {
            at = at.and_then(|command| command.find_subcommand(word));
        }
        at.is_some()
    }

    #[test]
    fn every_command_that_a_page_speaks_of_can_be_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let pages = |folder: &str| {
            std::fs::read_dir(root.join(folder))
                .unwrap()
                .flatten()
                .map(|entry| entry.path())
        };
        let pages = pages(".").chain(pages("docs")).chain(pages("docs/guides"));
        let (mut spoken_of, mut wrong) = (0, Vec::new());
        for page in pages.filter(|page| page.extension().is_some_and(|kind| kind == "md")) {
            let text = std::fs::read_to_string(&page).unwrap();
            // Blocks are run by another test.
            let prose = text.split("```").step_by(2).collect::<String>();
            for line in prose
                .split('`')
                .skip(1)
                .step_by(2)
                .filter_map(|code| code.strip_prefix("stationmaster "))
            {
                spoken_of += 1;
                let line = line.replace(" …", "").replace('\n', " ");
                if !is_a_command(&line) && read(&filled(&line)).is_err() {
                    wrong.push(format!("{}: stationmaster {line}", page.display()));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(spoken_of > 40, "only {spoken_of}");
    }

    #[test]
    fn all_of_the_help_is_asked_for_beside_help_alone() {
        let asked = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let (left, everything) = help_asked(&arguments);
            (left.len(), everything)
        };
        assert_eq!(asked("stationmaster queue list --help --all"), (4, true));
        assert_eq!(asked("stationmaster -h --all"), (2, true));
        assert_eq!(asked("stationmaster queue retry-all --all"), (4, false));
        assert_eq!(asked("stationmaster lock run x -- ls --help --all"), (8, false));
    }

    #[test]
    fn set_counts_before_and_after_the_command() {
        let line = "stationmaster --set a=1 config --set=b=2 show --set c=3";
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        assert!(Cli::try_parse_from(&arguments).is_ok());
        assert_eq!(every_set(&arguments), ["a=1", "b=2", "c=3"]);
    }
}
