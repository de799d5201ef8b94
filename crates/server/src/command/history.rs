//! `stationmaster history`: what happened in each minute, or longer step, as a table; or in each workspace, as a line.

use anyhow::Result;
use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    HistoryChart, HistoryPoint, HistoryQuery, PageQuery, Reference, Workflow, WorkflowQuery, Workspace,
};

use super::Context;
use super::names::{self, reference};
use super::pages::{Part, Sorting, listed};
use super::times::past;
use crate::failure::Refusal;
use crate::output::{Column, Described, cell, column, maybe, rows, time};

/// Lines that fit on a screen: the steps of a table, unless somebody says how long they are.
const LINES: i64 = 12;
/// Steps that are chosen, in minutes.
const STEPS: [i64; 9] = [1, 5, 15, 30, 60, 180, 360, 720, 1440];
/// Points of a sparkline.
const SPARKS: i64 = 30;
/// Workspaces or workflows that are told apart: each is asked about by itself.
const MOST: u32 = 100;

/// Which part of the history.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Since when
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = past, allow_hyphen_values = true)]
    since: Timestamp,
    /// Until when; now when left out
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    until: Option<Timestamp>,
    /// Only of this workspace
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workspace: Option<Reference>,
    /// Only of this workflow
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workflow: Option<Reference>,
    /// Only what this server had in hand
    #[arg(long, value_name = "NAME", value_parser = reference, conflicts_with_all = ["workspace", "workflow", "by"])]
    server: Option<Reference>,
    /// How much time a line stands for, whole minutes, such as 1m, 15m or 1h; about a dozen lines when left out
    #[arg(long, value_name = "DURATION", conflicts_with = "by")]
    step: Option<String>,
    /// A line for each workspace or workflow instead of each step
    #[arg(long, value_enum)]
    by: Option<By>,
    #[command(flatten)]
    sorting: Sorting,
}

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Workspace,
    Workflow,
}

/// What happened in all of the time to one of several.
#[derive(Debug, Serialize)]
struct Sum {
    /// Its name.
    name: String,
    enqueued: i64,
    started: i64,
    completed: i64,
    /// Failed, terminated or timed out.
    failed: i64,
    cancelled: i64,
    /// The longest line of those that waited.
    waiting: Option<i64>,
    /// What ended in each step.
    ended: Vec<i64>,
    /// How much time each step stands for.
    step_seconds: i64,
}

pub(crate) async fn run(args: HistoryArgs, context: &Context) -> Result<()> {
    let client = context.client().await?;
    let workspace = names::workspace_asked(&client, args.workspace.as_ref()).await?;
    let workflow = names::workflow_asked(&client, workspace, args.workflow.as_ref()).await?;
    let span = args
        .until
        .unwrap_or_else(Timestamp::now)
        .duration_since(args.since);
    let query = HistoryQuery {
        from: Some(args.since),
        to: args.until,
        workspace: workspace.map(Reference::from),
        workflow: workflow.map(Reference::from),
        server: args.server,
        step: args.step,
    };
    let Some(by) = args.by else {
        if args.sorting.is_asked() {
            let message = "steps stand in the order of time: --sort goes with --by";
            return Err(Refusal::usage(
                message,
                "Leave out --sort, or give --by workspace or --by workflow",
            )
            .into());
        }
        let query = HistoryQuery {
            step: query.step.or_else(|| step(span, LINES)),
            ..query
        };
        let chart = client.history_chart(&query).await?;
        return context.print(&chart, table);
    };
    let query = HistoryQuery {
        step: step(span, SPARKS),
        ..query
    };
    let mut sums = Vec::new();
    let (several, more) = each(by, &query, &client).await?;
    for (name, query) in several {
        let chart = client.history_chart(&query).await?;
        let sum = Sum::of(name, &chart);
        if sum.moved() > 0 || sum.waiting.is_some_and(|many| many > 0) {
            sums.push(sum);
        }
    }
    // Those with the most come first.
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.moved()));
    context.show_all(sums, &args.sorting)?;
    if more {
        let advice = match by {
            By::Workspace => "name one by --workspace",
            By::Workflow => "name one by --workflow, or its workspace by --workspace",
        };
        context.hint(&format!(
            "Only the first {MOST} that were made were looked at; there are more: {advice}"
        ));
    }
    Ok(())
}

/// As little as makes at most so many points.
fn step(span: SignedDuration, points: i64) -> Option<String> {
    let fits = |minutes: &&i64| span.as_secs() <= **minutes * 60 * points;
    STEPS.iter().find(fits).map(|minutes| format!("{minutes}m"))
}

/// The same question about each of them; and whether there are more.
async fn each(by: By, query: &HistoryQuery, client: &Client) -> Result<(Vec<(String, HistoryQuery)>, bool)> {
    let part = Part::first(MOST);
    Ok(match by {
        By::Workspace => {
            let (found, more) = if let Some(asked) = &query.workspace {
                (vec![client.workspace(asked.clone()).await?], false)
            } else {
                let all = listed(client, &part, PageQuery::default(), Client::workspaces).await?;
                (all.rows, all.next.is_some())
            };
            let about = |one: Workspace| {
                let workspace = Some(Reference::from(one.id));
                let query = query.clone();
                (one.name, HistoryQuery { workspace, ..query })
            };
            (found.into_iter().map(about).collect(), more)
        }
        By::Workflow => {
            let (found, more) = if let Some(asked) = &query.workflow {
                (vec![client.workflow(asked.clone()).await?], false)
            } else {
                let which = WorkflowQuery {
                    workspace_id: query.workspace.clone(),
                    ..WorkflowQuery::default()
                };
                let all = listed(client, &part, which, Client::workflows).await?;
                (all.rows, all.next.is_some())
            };
            let about = |one: Workflow| {
                let workflow = Some(Reference::from(one.id));
                let query = query.clone();
                (
                    format!("{}.{}", one.workspace, one.name),
                    HistoryQuery { workflow, ..query },
                )
            };
            (found.into_iter().map(about).collect(), more)
        }
    })
}

impl Sum {
    fn of(name: String, chart: &HistoryChart) -> Self {
        let sum = |of: fn(&HistoryPoint) -> i64| chart.points.iter().map(of).sum();
        Self {
            name,
            enqueued: sum(|point| point.enqueued),
            started: sum(|point| point.started),
            completed: sum(|point| point.completed),
            failed: sum(badly),
            cancelled: sum(|point| point.cancelled),
            waiting: chart.points.iter().filter_map(|point| point.waiting).max(),
            ended: chart.points.iter().map(ended).collect(),
            step_seconds: chart.step_seconds,
        }
    }

    fn moved(&self) -> i64 {
        self.enqueued + self.started + self.completed + self.failed + self.cancelled
    }
}

fn badly(point: &HistoryPoint) -> i64 {
    point.failed + point.terminated + point.timed_out
}

fn ended(point: &HistoryPoint) -> i64 {
    point.completed + badly(point) + point.cancelled
}

impl Described for Sum {
    const COLUMNS: &'static [Column<Self>] = &[
        column("NAME", |sum| cell(&sum.name)),
        column("ENQUEUED", |sum| cell(sum.enqueued)),
        column("STARTED", |sum| cell(sum.started)),
        column("COMPLETED", |sum| cell(sum.completed)),
        column("FAILED", |sum| cell(sum.failed)),
        column("CANCELLED", |sum| cell(sum.cancelled)),
        column("WAITING", |sum| maybe(sum.waiting)),
        column("ENDED", |sum| cell(sparkline(&sum.ended))),
    ];
}

impl Described for HistoryPoint {
    const COLUMNS: &'static [Column<Self>] = &[
        time("FROM", |point| Some(point.at)),
        column("ENQUEUED", |point| cell(point.enqueued)),
        column("STARTED", |point| cell(point.started)),
        column("COMPLETED", |point| cell(point.completed)),
        column("FAILED", |point| cell(badly(point))),
        column("CANCELLED", |point| cell(point.cancelled)),
        column("WAITING", |point| maybe(point.waiting)),
        column("ACTIVE", |point| maybe(point.active)),
        column("WAIT P95", |point| {
            maybe(point.wait.map(|wait| seconds(wait.p95)))
        }),
        column("RUN P95", |point| maybe(point.run.map(|run| seconds(run.p95)))),
    ];
}

fn table(chart: &HistoryChart) -> String {
    let line = |name: &str, of: fn(&HistoryPoint) -> i64| {
        let values: Vec<i64> = chart.points.iter().map(of).collect();
        let sum: i64 = values.iter().sum();
        format!("{name:<10} {sum:>8}  {}", sparkline(&values))
    };
    let counted = match chart.counted_until {
        Some(until) if until < chart.to => format!(
            "\n\nCounted until {}: a minute is, a few seconds after its end.",
            until.strftime("%H:%M UTC")
        ),
        Some(_) => String::new(),
        None => "\n\nNo minute is counted yet: one is, a few seconds after its end.".to_owned(),
    };
    format!(
        "{}\n\n{}\n{}\n{}\n{}{counted}",
        rows(&chart.points),
        line("Enqueued", |point| point.enqueued),
        line("Started", |point| point.started),
        line("Completed", |point| point.completed),
        line("Failed", badly),
    )
}

/// A length of time as people say it.
fn seconds(seconds: f64) -> String {
    match seconds {
        short if short < 1.0 => format!("{:.0} ms", short * 1_000.0),
        middle if middle < 90.0 => format!("{middle:.1} s"),
        long if long < 5_400.0 => format!("{:.0} min", long / 60.0),
        long => format!("{:.1} h", long / 3_600.0),
    }
}

/// A small picture of how much there was in each step, the most as high as a letter.
fn sparkline(values: &[i64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().max().unwrap_or_default().max(1);
    let bar = |value: i64| match value {
        ..=0 => ' ',
        // What there is at all shows.
        value => BARS[usize::try_from((value * 8 - 1) / most).unwrap_or_default().min(7)],
    };
    values.iter().map(|value| bar(*value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_shows_the_most_as_highest_and_what_there_is_at_all() {
        assert_eq!(sparkline(&[0, 1, 4, 8]), " ▁▄█");
        assert_eq!(sparkline(&[0, 1, 1_000_000]), " ▁█");
        assert_eq!(sparkline(&[0, 0]), "  ");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn a_step_makes_about_a_dozen_lines() {
        for (hours, chosen) in [(1, "5m"), (6, "30m"), (24, "180m"), (24 * 7, "1440m")] {
            assert_eq!(step(SignedDuration::from_hours(hours), LINES).unwrap(), chosen);
        }
        assert_eq!(step(SignedDuration::from_hours(24 * 365), LINES), None);
    }
}
