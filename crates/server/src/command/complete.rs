//! `stationmaster __complete`, hidden: what the scripts of `completions` ask while somebody types. It says which names fit where the cursor
//! is, one a line, and ends with 1 where no name belongs or nobody answers soon: then the shell goes by what it knows itself.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Arg, Args, Command};
use stationmaster_client::Client;
use stationmaster_client::wire::{
    AlarmQuery, DispatcherQuery, ExecutionQuery, FailureQuery, OperationQuery, PageQuery, QueueQuery,
    Reference, WorkflowQuery,
};

use super::Context;
use super::names::reference;
use crate::cli::tree;
use crate::config::{Contexts, Flags, TargetFlags};
use crate::failure::PassedOn;
use crate::output::{Format, printable};

/// Somebody waits with a finger on a key.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// Names that are asked for; nobody reads more.
const MOST: u32 = 500;
/// Ids say little: the newest are enough.
const NEWEST: u32 = 50;

/// What was typed.
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// The words behind the name of the program, up to and with the one that is being typed
    #[arg(last = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Things whose names can be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    Workspace,
    Workflow,
    Plan,
    Alarm,
    Token,
    Server,
    Item,
    Execution,
    Group,
    Operation,
    Lock,
    Dispatcher,
    Context,
}

pub(crate) async fn run(args: &CompleteArgs) -> Result<()> {
    let typed = Typed::read(&args.words);
    let names = match typed.wanted {
        Some(Wanted::Name(thing)) => {
            let asked = tokio::time::timeout(PATIENCE, names(thing, &typed)).await;
            asked.ok().and_then(Result::ok)
        }
        Some(Wanted::Word(ref words)) => Some(words.clone()),
        None => None,
    };
    let Some(names) = names else {
        // A shell that is told of an error shows it in the middle of the line.
        return Err(PassedOn(1).into());
    };
    let mut out = std::io::stdout().lock();
    for name in names.iter().filter(|name| typed.may_be(name)) {
        writeln!(out, "{}", printable(&format!("{}{name}", typed.before)))?;
    }
    Ok(())
}

async fn names(thing: Thing, typed: &Typed) -> Result<Vec<String>> {
    if thing == Thing::Context {
        return Ok(Contexts::load()?.contexts.into_keys().collect());
    }
    let context = Context::new(Format::People, typed.target(), typed.settings());
    let client = context.client().await?;
    let workspace_id = typed.flag("workspace").and_then(|name| reference(&name).ok());
    listed(thing, workspace_id, &client).await
}

async fn listed(thing: Thing, workspace_id: Option<Reference>, client: &Client) -> Result<Vec<String>> {
    let page = PageQuery {
        limit: Some(MOST),
        ..PageQuery::default()
    };
    let strings = |ids: Vec<uuid::Uuid>| ids.iter().map(ToString::to_string).collect();
    Ok(match thing {
        Thing::Workspace => {
            let found = client.workspaces(&page).await?.items;
            found.into_iter().map(|one| one.name).collect()
        }
        Thing::Workflow => {
            let within = workspace_id.is_some();
            let query = WorkflowQuery {
                workspace_id,
                limit: Some(MOST),
                ..WorkflowQuery::default()
            };
            let found = client.workflows(&query).await?.items.into_iter();
            found
                .map(|one| {
                    if within {
                        one.name
                    } else {
                        format!("{}.{}", one.workspace, one.name)
                    }
                })
                .collect()
        }
        Thing::Plan => client.plans().await?.into_iter().map(|one| one.name).collect(),
        Thing::Alarm => {
            let query = AlarmQuery {
                limit: Some(MOST),
                ..AlarmQuery::default()
            };
            let found = client.alarms(&query).await?.items.into_iter();
            found
                .map(|one| match (one.workspace, one.name) {
                    (Some(workspace), Some(name)) => format!("{workspace}.{name}"),
                    _ => one.id.to_string(),
                })
                .collect()
        }
        Thing::Token => {
            let found = client.tokens(&page).await?.items.into_iter();
            found.filter(|one| one.active).map(|one| one.name).collect()
        }
        Thing::Server => client.servers().await?.into_iter().map(|one| one.name).collect(),
        Thing::Item => {
            let query = QueueQuery {
                limit: Some(NEWEST),
                ..QueueQuery::default()
            };
            strings(
                client
                    .queue(&query)
                    .await?
                    .items
                    .iter()
                    .map(|one| one.id)
                    .collect(),
            )
        }
        Thing::Execution => {
            let query = ExecutionQuery {
                limit: Some(NEWEST),
                ..ExecutionQuery::default()
            };
            strings(
                client
                    .executions(&query)
                    .await?
                    .items
                    .iter()
                    .map(|one| one.id)
                    .collect(),
            )
        }
        Thing::Group => {
            let query = FailureQuery {
                limit: Some(NEWEST),
                ..FailureQuery::default()
            };
            client
                .failures(&query)
                .await?
                .items
                .into_iter()
                .map(|one| one.id)
                .collect()
        }
        Thing::Operation => {
            let query = OperationQuery {
                limit: Some(NEWEST),
                ..OperationQuery::default()
            };
            let found = client.operations(&query).await?.items;
            strings(found.iter().map(|one| one.id).collect())
        }
        Thing::Lock => client.locks().await?.into_iter().map(|one| one.name).collect(),
        Thing::Dispatcher => {
            let query = DispatcherQuery {
                limit: Some(MOST),
                ..DispatcherQuery::default()
            };
            client
                .dispatchers(&query)
                .await?
                .items
                .into_iter()
                .map(|one| one.id)
                .collect()
        }
        // Kept on this machine.
        Thing::Context => Vec::new(),
    })
}

/// What belongs where the cursor is.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// The name of such a thing.
    Name(Thing),
    /// One of these. Shells know them too, and take only the first of several with commas for one.
    Word(Vec<String>),
}

/// A line that is being typed.
#[derive(Debug, PartialEq, Eq)]
struct Typed {
    /// Flags with their values.
    flags: Vec<(String, String)>,
    /// What belongs where the cursor is, when that is known here.
    wanted: Option<Wanted>,
    /// The values before it in the same word, where one takes several: up to and with the last comma.
    before: String,
    /// What is there of it.
    begun: String,
}

impl Typed {
    fn read(words: &[String]) -> Self {
        let mut root = tree();
        root.build();
        let (mut command, mut path) = (&root, Vec::new());
        let (mut flags, mut positional, mut waiting): (Vec<(String, String)>, usize, Option<&Arg>) =
            (Vec::new(), 0, None);
        // Some shells make a word of the = between a flag and its value.
        let mut words = words
            .iter()
            .map(String::as_str)
            .filter(|word| *word != "=")
            .collect::<Vec<_>>();
        let begun = words.pop().unwrap_or_default();
        for word in words {
            if let Some(flag) = waiting.take() {
                flags.push((long(flag), word.to_owned()));
            } else if word.starts_with('-') {
                match word.split_once('=') {
                    Some((name, value)) => {
                        flags.extend(found(command, name).map(|flag| (long(flag), value.to_owned())));
                    }
                    None => waiting = found(command, word).filter(|flag| flag.get_action().takes_values()),
                }
            } else if let Some(verb) = command.find_subcommand(word) {
                command = verb;
                path.push(verb.get_name());
            } else {
                positional += 1;
            }
        }
        let (argument, begun) = match (waiting, begun.split_once('=')) {
            (Some(flag), _) => (Some(flag), begun),
            (None, Some((name, value))) if begun.starts_with("--") => (found(command, name), value),
            (None, _) if begun.starts_with('-') => (None, begun),
            (None, _) => (command.get_positionals().nth(positional), begun),
        };
        let several = argument.and_then(Arg::get_value_delimiter);
        let last = several.and_then(|comma| begun.rfind(comma));
        let (before, begun) = begun.split_at(last.map_or(0, |comma| comma + 1));
        let words = argument.filter(|_| !before.is_empty()).map(words_of);
        let words = words.filter(|words| !words.is_empty()).map(Wanted::Word);
        let name = argument.and_then(|argument| thing(&path, argument));
        Self {
            wanted: name.map(Wanted::Name).or(words),
            flags,
            before: before.to_owned(),
            begun: begun.to_owned(),
        }
    }

    /// Does it go on like this, and does it not stand there already?
    fn may_be(&self, name: &str) -> bool {
        name.starts_with(&self.begun) && !self.before.split(',').any(|given| given == name)
    }

    fn flag(&self, name: &str) -> Option<String> {
        let given = self.flags.iter().rev().find(|(known, _)| known == name);
        given.map(|(_, value)| value.clone())
    }

    fn target(&self) -> TargetFlags {
        TargetFlags {
            url: self.flag("url"),
            context: self.flag("context"),
            ca_file: self.flag("ca-file").map(PathBuf::from),
        }
    }

    fn settings(&self) -> Flags {
        Flags {
            config: self.flag("config").map(PathBuf::from),
            database_url: self.flag("database-url"),
            ..Flags::default()
        }
    }
}

fn long(flag: &Arg) -> String {
    flag.get_long().unwrap_or_default().to_owned()
}

/// The flag of this name, `--long` or `-s`.
fn found<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let flags = command.get_arguments();
    match name.strip_prefix("--") {
        Some(name) => flags.into_iter().find(|flag| flag.get_long() == Some(name)),
        None => flags
            .into_iter()
            .find(|flag| flag.get_short() == name.chars().nth(1)),
    }
}

/// The words that an argument takes, if it takes no others.
fn words_of(argument: &Arg) -> Vec<String> {
    let words = argument.get_possible_values().into_iter();
    words.map(|word| word.get_name().to_owned()).collect()
}

/// What an argument names.
fn thing(path: &[&str], argument: &Arg) -> Option<Thing> {
    match (argument.get_long(), path) {
        (Some("workspace"), _) => Some(Thing::Workspace),
        (Some("workflow"), _) => Some(Thing::Workflow),
        (Some("plan"), _) => Some(Thing::Plan),
        (Some("context"), _) => Some(Thing::Context),
        (Some(_), _) | (None, [_, "create" | "add" | "next" | "init" | "id", ..]) => None,
        // The number of a version, or a priority.
        (None, _) if ["version", "priority"].contains(&argument.get_id().as_str()) => None,
        (None, ["workspaces", ..]) => Some(Thing::Workspace),
        (None, ["workflows", ..]) => Some(Thing::Workflow),
        (None, ["plans", ..]) => Some(Thing::Plan),
        (None, ["alarms", verb]) if *verb != "secrets" => Some(Thing::Alarm),
        (None, ["tokens", ..]) => Some(Thing::Token),
        (None, ["servers", ..]) => Some(Thing::Server),
        (None, ["queue", ..]) => Some(Thing::Item),
        (None, ["executions", ..]) => Some(Thing::Execution),
        (None, ["failures", ..]) => Some(Thing::Group),
        (None, ["operations", ..]) => Some(Thing::Operation),
        (None, ["locks", ..]) => Some(Thing::Lock),
        (None, ["dispatchers", ..]) => Some(Thing::Dispatcher),
        (None, ["contexts", ..]) => Some(Thing::Context),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_where_the_cursor_is_is_known() {
        for (line, thing, begun) in [
            ("queue list --workspace ", Some(Thing::Workspace), ""),
            ("queue list --workspace sh", Some(Thing::Workspace), "sh"),
            ("queue list --workspace=sh", Some(Thing::Workspace), "sh"),
            ("queue list --workspace = sh", Some(Thing::Workspace), "sh"),
            (
                "queue add --workspace shop --workflow im",
                Some(Thing::Workflow),
                "im",
            ),
            ("workspaces pause ", Some(Thing::Workspace), ""),
            ("workspaces create ", None, ""),
            ("workspaces list ", None, ""),
            ("workspaces set shop --plan P", Some(Thing::Plan), "P"),
            ("workflows publish shop.im", Some(Thing::Workflow), "shop.im"),
            ("workflows publish shop.import ", None, ""),
            ("alarms show ", Some(Thing::Alarm), ""),
            ("alarms secrets show ", None, ""),
            ("tokens revoke c", Some(Thing::Token), "c"),
            ("operations wait 01", Some(Thing::Operation), "01"),
            ("lock release night", Some(Thing::Lock), "night"),
            ("-o wide queue show 01", Some(Thing::Item), "01"),
            ("contexts use ", Some(Thing::Context), ""),
            ("--context pr", Some(Thing::Context), "pr"),
            ("queue list --workspace shop,no", Some(Thing::Workspace), "no"),
            ("queue list --workspace=shop,", Some(Thing::Workspace), ""),
            ("workspaces pause shop,no", Some(Thing::Workspace), "shop,no"),
            ("queue list --status fai", None, "fai"),
            ("queue list --li", None, "--li"),
            ("que", None, "que"),
            ("", None, ""),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let typed = Typed::read(&words);
            let thing = thing.map(Wanted::Name);
            assert_eq!((typed.wanted, typed.begun.as_str()), (thing, begun), "{line}");
        }
        let line = "queue list --url http://here --workspace "
            .split(' ')
            .map(str::to_owned);
        let typed = Typed::read(&line.collect::<Vec<_>>());
        assert_eq!(typed.flag("url").as_deref(), Some("http://here"));
    }

    #[test]
    fn behind_a_comma_the_next_of_several_values_is_completed_and_none_comes_twice() {
        let words = "executions list --status failed,".split(' ').map(str::to_owned);
        let typed = Typed::read(&words.collect::<Vec<_>>());
        let Some(Wanted::Word(words)) = &typed.wanted else {
            panic!("{typed:?}");
        };
        assert!(words.contains(&"timed_out".to_owned()), "{words:?}");
        assert_eq!(typed.before, "failed,");
        assert!(typed.may_be("timed_out") && !typed.may_be("failed"));
    }
}
