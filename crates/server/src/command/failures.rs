//! `stationmaster failures`: what needs a person, and what a person does about it.

use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    BulkFailures, Failure, FailureGroup, FailureKind, FailureQuery, OperationKind, PageQuery, Reference,
};

use super::arguments::{explained, text, word_of};
use super::bulk::{self, How, Words, each};
use super::names::{self, Place, reference};
use super::pages::{Asked, Newest, Part};
use super::queue::CANCELS;
use super::times::past;
use super::{Context, typed};
use crate::output::{
    Column, Described, cell, column, details, fields, in_details, in_table, long, maybe, minor, rows, time,
    word,
};

/// Failures of a group that are shown with it.
const SHOWN: u32 = 20;

/// What to do about failures; without a word, they are listed.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct FailuresArgs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What needs a person, by what it has in common
    List(ListArgs),
    /// One group: its message whole, and its failures
    Show {
        /// The group: its id, or the first digits of it
        #[arg(value_parser = text)]
        group: String,
    },
    /// Try again what failed: items go back into the queue, occurrences are due again, dead letters go back into the inbox
    Retry(ActArgs),
    /// Set failures aside: they stay on record and need nobody any more
    SetAside(SetAsideArgs),
    /// Cancel what still waits of the workflow that a group is about
    Cancel(CancelArgs),
}

/// Which groups.
#[derive(Debug, Args)]
struct ListArgs {
    /// Only of this workspace; several with commas, or repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = reference)]
    workspace: Vec<Reference>,
    /// Only of this workflow
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workflow: Option<Reference>,
    /// Only of this kind; several with commas, or repeated
    #[arg(long, value_delimiter = ',', value_parser = word_of::<FailureKind>(explained(&KINDS)), ignore_case = true)]
    kind: Vec<FailureKind>,
    /// Only groups in which something ended at this time or later
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    ended_after: Option<Timestamp>,
    /// Only groups in which something ended before this time
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    ended_before: Option<Timestamp>,
    /// Only with this text in the message, in whatever case
    #[arg(long, value_name = "TEXT", value_parser = text)]
    search: Option<String>,
    #[command(flatten)]
    part: Newest,
}

impl ListArgs {
    fn is_filtered(&self) -> bool {
        let times = [self.ended_after, self.ended_before];
        !self.workspace.is_empty()
            || self.workflow.is_some()
            || times.iter().any(Option::is_some)
            || !self.kind.is_empty()
            || self.search.is_some()
    }
}

const KINDS: [(&str, &str); 4] = [
    ("start", "An item whose execution could not be started"),
    (
        "execution",
        "An execution that ended FAILED, TERMINATED or TIMED_OUT",
    ),
    ("occurrence", "An occurrence of an alarm that no target accepted"),
    ("signal", "A signal that could not be routed: a dead letter"),
];

/// What to do something about, and how.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be tried again")))]
struct ActArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    how: How,
}

/// The same, with a note.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be set aside")))]
struct SetAsideArgs {
    #[command(flatten)]
    which: Which,
    /// Why, for those who look later
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    how: How,
}

/// Every filter that is given must match, and at least one must be given: neither a note nor a consent is one.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Which {
    /// The group: its id, or the first digits of it
    #[arg(value_parser = text)]
    group: Option<String>,
    /// Only of this workspace; several with commas, or repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = reference)]
    workspace: Vec<Reference>,
    /// Only of this workflow
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workflow: Option<Reference>,
    /// Only of this kind; several with commas, or repeated
    #[arg(long, value_delimiter = ',', value_parser = word_of::<FailureKind>(explained(&KINDS)), ignore_case = true)]
    kind: Vec<FailureKind>,
    /// Only what ended at this time or later
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    ended_after: Option<Timestamp>,
    /// Everything that needs a person
    #[arg(long)]
    all: bool,
}

/// What not to let follow.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be cancelled")))]
struct CancelArgs {
    /// The group: its id, or the first digits of it
    #[arg(value_parser = text)]
    group: String,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    how: How,
}

pub(crate) async fn run(args: FailuresArgs, context: &Context) -> Result<()> {
    match args.command.unwrap_or(Command::List(args.list)) {
        Command::List(args) => list(args, context).await,
        Command::Show { group } => show(&group, context).await,
        Command::Retry(args) => retry(args, context).await,
        Command::SetAside(args) => set_aside(args, context).await,
        Command::Cancel(args) => cancel(args, context).await,
    }
}

async fn list(args: ListArgs, context: &Context) -> Result<()> {
    let filtered = args.is_filtered();
    let client = context.client().await?;
    let places = names::places(&client, &args.workspace, args.workflow.as_ref()).await?;
    let query = FailureQuery {
        after: args.ended_after,
        before: args.ended_before,
        search: args.search,
        ..FailureQuery::default()
    };
    let newest =
        |one: &FailureGroup, other: &FailureGroup| (other.last_at, &other.id).cmp(&(one.last_at, &one.id));
    let asked = Asked::of_each(query, &args.kind, |query, kind| query.kind = Some(kind), newest);
    let asked = asked.within(&places, |query, place| {
        query.workspace_id = place.workspace.map(Reference::from);
        query.workflow_definition_id = place.workflow.map(Reference::from);
    });
    let part = Part::from(args.part);
    let part = if filtered {
        part.or_say("Nothing that matches needs a person.")
    } else {
        part
    };
    context.list_asked(&client, part, &asked, Client::failures).await
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    group: FailureGroup,
    failures: Vec<Failure>,
}

async fn show(group: &str, context: &Context) -> Result<()> {
    let client = context.client().await?;
    let group = client.failure_group(group).await?;
    let query = PageQuery {
        limit: Some(SHOWN),
        ..PageQuery::default()
    };
    let failures = client.failures_of(&group.id, &query).await?.items;
    context.print(&Shown { group, failures }, |Shown { group, failures }| {
        let [retry, set_aside] =
            ["retry", "set-aside"].map(|verb| typed::beside(&format!("failures {verb} {}", group.id)));
        let advice = format!("Try them again: {retry}\nSet them aside:  {set_aside}");
        format!("{}\n\n{}\n\n{advice}", fields(details(group)), rows(failures))
    })
}

/// What is meant, by ids.
struct Meant<'a> {
    which: &'a Which,
    /// What is asked for in turn.
    parts: Vec<(Place, Option<FailureKind>)>,
    note: Option<&'a String>,
}

impl Which {
    async fn meant<'a>(&'a self, client: &Client, note: Option<&'a String>) -> Result<Meant<'a>> {
        let places = names::places(client, &self.workspace, self.workflow.as_ref()).await?;
        let kinds = each(&self.kind);
        let with_each = |place: Place| kinds.iter().map(move |kind| (place, *kind));
        Ok(Meant {
            which: self,
            parts: places.into_iter().flat_map(with_each).collect(),
            note,
        })
    }
}

impl Meant<'_> {
    fn request(&self, step: bulk::Step) -> BulkFailures {
        let (place, kind) = self.parts[step.part];
        BulkFailures {
            group: self.which.group.clone(),
            workspace_id: place.workspace,
            workflow_definition_id: place.workflow,
            kind,
            ended_after: self.which.ended_after,
            before: step.as_of,
            note: self.note.cloned(),
            after: step.after,
            all: self.which.all,
            dry_run: step.dry_run,
        }
    }
}

async fn retry(args: ActArgs, context: &Context) -> Result<()> {
    let client = context.client().await?;
    let meant = args.which.meant(&client, None).await?;
    let request = |step| meant.request(step);
    let words = Words {
        doing: "Retrying",
        noun: "failure",
        done: "retried",
        question: |failures| {
            format!(
                "Try {failures} again? Items go back into the queue, occurrences are due again, dead letters go back into the inbox."
            )
        },
        sentence: |failures| format!("Tried again: {failures}."),
    };
    let what = (OperationKind::RetryFailures, args.how);
    bulk::run(what, &words, meant.parts.len(), request, (&client, context)).await
}

async fn set_aside(args: SetAsideArgs, context: &Context) -> Result<()> {
    let client = context.client().await?;
    let meant = args.which.meant(&client, args.note.as_ref()).await?;
    let request = |step| meant.request(step);
    let words = Words {
        doing: "Setting aside",
        noun: "failure",
        done: "set_aside",
        question: |failures| {
            format!(
                "Set {failures} aside? They stay on record, can be retried one by one, and are listed here no more."
            )
        },
        sentence: |failures| format!("Set aside: {failures}."),
    };
    let what = (OperationKind::SetFailuresAside, args.how);
    bulk::run(what, &words, meant.parts.len(), request, (&client, context)).await
}

async fn cancel(args: CancelArgs, context: &Context) -> Result<()> {
    let client = context.client().await?;
    let request = |step: bulk::Step| -> BulkFailures {
        BulkFailures {
            group: Some(args.group.clone()),
            before: step.as_of,
            note: args.note.clone(),
            after: step.after,
            dry_run: step.dry_run,
            ..BulkFailures::default()
        }
    };
    let what = (OperationKind::CancelFailures, args.how);
    bulk::run(what, &CANCELS, 1, request, (&client, context)).await
}

impl Described for FailureGroup {
    const COLUMNS: &'static [Column<Self>] = &[
        column("GROUP", |group| cell(&group.id)),
        column("KIND", |group| cell(word(&group.kind))),
        column("COUNT", |group| {
            cell(if group.count > 10_000 {
                "over 10000".to_owned()
            } else {
                group.count.to_string()
            })
        }),
        column("WORKSPACE", |group| {
            maybe(
                group
                    .workspace
                    .clone()
                    .or(group.workspace_id.map(|id| id.to_string())),
            )
        }),
        column("WORKFLOW", |group| {
            maybe(
                group
                    .workflow
                    .clone()
                    .or(group.workflow_definition_id.map(|id| id.to_string())),
            )
        }),
        column("ALARM", |group| {
            let id = group.alarm_id.map(|id| id.to_string());
            maybe(group.alarm.clone().or(id))
        }),
        in_details(column("ALARM ID", |group| maybe(group.alarm_id))),
        minor(time("FIRST", |group| Some(group.first_at))),
        time("LAST", |group| Some(group.last_at)),
        long("MESSAGE", |group| Some(&group.message)),
    ];
    const NOTHING: &'static str = "Nothing needs a person.";
}

impl Described for Failure {
    const COLUMNS: &'static [Column<Self>] = &[
        in_table(time("AT", |failure| Some(failure.at))),
        column("WHAT", |failure| {
            match (&failure.queue_item_id, &failure.scheduled_for, &failure.signal_id) {
                (Some(item), ..) => cell(format!("item {item}")),
                (_, Some(at), _) => {
                    let alarm = failure.alarm.clone();
                    let alarm = alarm.or_else(|| Some(failure.alarm_id?.to_string()));
                    cell(format!("alarm {}, due {at}", alarm.unwrap_or_default()))
                }
                (.., Some(signal)) => cell(format!("signal {signal}")),
                _ => cell("-"),
            }
        }),
        long("MESSAGE", |failure| Some(&failure.message)),
        in_table(column("SET ASIDE BY", |failure| {
            maybe(failure.set_aside_by.as_ref())
        })),
        long("NOTE", |failure| failure.note.as_deref()),
    ];
}
