//! What is done to everything that matches: a look at how much it is, a question, and then many small calls with progress. What is changed
//! is bound to what the look has counted, and a call that is lost on the way is made again where it stopped.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use stationmaster_client::Client;
use stationmaster_client::wire::{BulkAnswer, Operation, OperationKind};

use super::arguments::{Caution, distinct};
use super::{Context, typed};
use crate::output::counted;

/// Walks over everything at most: what changed hands while it was walked past is met by the next one.
const WALKS: u32 = 5;

/// How carefully, and whether to wait for it.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct How {
    #[command(flatten)]
    pub(super) caution: Caution,
    /// Let the servers do it, and do not wait: `stationmaster operations` tells how far they are
    #[arg(long, conflicts_with = "dry_run")]
    detach: bool,
}

/// Each value of a filter, or once none.
pub(super) fn each<T: Copy + PartialEq>(values: &[T]) -> Vec<Option<T>> {
    match distinct(values) {
        values if values.is_empty() => vec![None],
        values => values.into_iter().map(Some).collect(),
    }
}

/// One call of many.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// Of which of several combinations of values of filters.
    pub(super) part: usize,
    /// Only look.
    pub(super) dry_run: bool,
    /// Where to go on.
    pub(super) after: Option<String>,
    /// When the look was made, by the database's clock.
    pub(super) as_of: Option<Timestamp>,
}

impl Step {
    /// The upper end of a time: what was asked for, and not beyond the look.
    pub(super) fn before(&self, asked: Option<Timestamp>) -> Option<Timestamp> {
        match (asked, self.as_of) {
            (Some(asked), Some(as_of)) => Some(asked.min(as_of)),
            (asked, as_of) => asked.or(as_of),
        }
    }
}

/// How it is told.
pub(super) struct Words {
    /// What is done, for the progress: `Retrying`.
    pub(super) doing: &'static str,
    /// What it is done to: `item`.
    pub(super) noun: &'static str,
    /// What was done, for the answer: `retried`.
    pub(super) done: &'static str,
    /// The question, from how many of them: `Cancel 7 items?` and what comes of it.
    pub(super) question: fn(&str) -> String,
    /// The answer, from how many of them.
    pub(super) sentence: fn(&str) -> String,
}

/// What the looks have counted, of all parts.
#[derive(Default)]
struct Seen {
    items: u64,
    more: bool,
    sample: Vec<String>,
}

/// Looks, asks, does it or lets it be done, and says what was done; `parts`: what is asked for in turn, each a combination of the values of filters
/// that take several.
pub(super) async fn run<R: Serialize + Sync>(
    (kind, how): (OperationKind, How),
    words: &Words,
    parts: usize,
    request: impl Fn(Step) -> R,
    (client, context): (&Client, &Context),
) -> Result<()> {
    let call = async |step: Step| client.carry_out(kind, &request(step), None).await;
    let (mut seen, mut looks) = (Seen::default(), Vec::new());
    for part in 0..parts.max(1) {
        let look = Step {
            part,
            dry_run: true,
            after: None,
            as_of: None,
        };
        let answer = call(look).await?;
        seen.items += answer.items;
        seen.more |= answer.more;
        seen.sample.extend(answer.sample.iter().cloned());
        looks.push(answer);
    }
    let caution = how.caution;
    if caution.dry_run || seen.items == 0 {
        return context.print(&outcome(&seen, words, 0), |_| preview(&seen, words));
    }
    Context::confirm(&(words.question)(&matching(&seen, words)), caution.yes)?;
    if how.detach {
        let begin = async |step: Step| client.begin(kind, &request(step), None).await;
        return detach(&looks, begin, context).await;
    }
    let bar = if seen.more {
        context.format.progress_uncounted(words.doing)
    } else {
        context.format.progress(seen.items, words.doing)
    };
    let mut done = 0;
    for (part, look) in looks.iter().enumerate() {
        done += walk(part, look, &call, |walked| bar.set_position(done + walked))
            .await
            .inspect_err(|_| bar.abandon())?;
    }
    bar.finish_and_clear();
    context.print(&outcome(&seen, words, done), |_| {
        (words.sentence)(&counted(done, words.noun))
    })
}

/// Lets the servers do it to what the looks have counted, and says where to look.
async fn detach(
    looks: &[BulkAnswer],
    ask: impl AsyncFn(Step) -> stationmaster_client::Result<Operation>,
    context: &Context,
) -> Result<()> {
    let mut begun = Vec::new();
    for (part, look) in looks.iter().enumerate().filter(|(_, look)| look.items > 0) {
        let step = Step {
            part,
            dry_run: false,
            after: None,
            as_of: Some(look.as_of),
        };
        begun.push(ask(step).await?);
    }
    context.print(&begun, |begun| {
        let ids: Vec<String> = begun.iter().map(|one| one.id.to_string()).collect();
        let wait = typed::beside(&format!("operations wait {}", ids.join(" ")));
        format!("On record, and the servers do it. Wait for the end: {wait}")
    })
}

/// Does it to what one look has counted. Answers to how many.
async fn walk(
    part: usize,
    look: &BulkAnswer,
    call: &impl AsyncFn(Step) -> stationmaster_client::Result<BulkAnswer>,
    tell: impl Fn(u64),
) -> Result<u64> {
    let mut done = 0;
    for _ in 0..WALKS {
        let (mut after, mut walked) = (None, 0);
        loop {
            let step = Step {
                part,
                dry_run: false,
                after,
                as_of: Some(look.as_of),
            };
            let answer = call(step).await?;
            walked += answer.items;
            tell(done + walked);
            after = answer.next.filter(|_| answer.more);
            if after.is_none() {
                break;
            }
        }
        done += walked;
        if walked == 0 || (done >= look.items && !look.more) {
            break;
        }
    }
    Ok(done)
}

fn outcome(seen: &Seen, words: &Words, done: u64) -> serde_json::Value {
    json!({
        "matching": seen.items,
        "more": seen.more,
        "sample": seen.sample,
        words.done: done,
    })
}

fn matching(seen: &Seen, words: &Words) -> String {
    let many = counted(seen.items, words.noun);
    if seen.more {
        format!("more than {many}")
    } else {
        many
    }
}

fn preview(seen: &Seen, words: &Words) -> String {
    let mut lines = vec![format!(
        "Matching: {}; nothing was changed.",
        matching(seen, words)
    )];
    if !seen.sample.is_empty() {
        lines.push("Such as:".to_owned());
        lines.extend(
            seen.sample
                .iter()
                .map(|id| format!("  {}", crate::output::printable(id))),
        );
    }
    lines.join("\n")
}
