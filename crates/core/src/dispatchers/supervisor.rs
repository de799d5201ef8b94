//! The supervisor: what we recorded, the heartbeats and the engine's open runs are compared from both sides (I7), and what a crash
//! left behind is removed.
//!
//! One server does it for all. It looks at start and again and again; what looks left over is looked at a second time; a run is
//! ended before its heartbeat is removed, only by its run id, only while the dispatcher is as it was seen, and every act is
//! audited. The same by hand: [`reconcile`].

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use serde::Serialize;

use super::classify::{Act, Class, Finding, Legacy, Survey, classify};
use super::desk::listed;
use super::heartbeats::{Health, Heartbeats, Unread};
use super::{DispatcherId, Epoch, Settings, remove};
use crate::db::{self, Database, Read as _, Write as _, statement};
use crate::duty;
use crate::engine::dispatchers::{DispatcherEngine, OpenRun};
use crate::engine::{LOCAL, Reach, all_pages};
use crate::id::ServerId;
use crate::observe::{Metrics, trace};
use crate::presence::Presence;
use crate::task::{Next, Pass, chain};

const DUTY: &str = "supervisor";
/// How soon to ask again for the duty when another server has it.
const BEAT: Duration = Duration::from_secs(2);
/// The most acts of one look: a mistake must not end everything at once.
const MAX_ACTS: usize = 20;
/// The first look comes within this time, each server at its own moment.
const STAGGER: Duration = Duration::from_secs(1);

/// What the supervisor needs, by itself or by hand.
#[derive(Clone)]
pub struct Office {
    pub(super) database: Database,
    pub(super) engine: Arc<dyn DispatcherEngine>,
    pub(super) heartbeats: Arc<dyn Heartbeats>,
    pub(super) health: Health,
    pub(super) settings: Arc<Settings>,
    pub(super) metrics: Arc<Metrics>,
}

impl Office {
    /// An office on these.
    pub fn new(
        database: Database,
        engine: Arc<dyn DispatcherEngine>,
        heartbeats: Arc<dyn Heartbeats>,
        settings: Arc<Settings>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            database,
            engine,
            heartbeats,
            health: Health::default(),
            settings,
            metrics,
        }
    }
}

/// How to reconcile by hand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Only look.
    pub dry_run: bool,
    /// Whether what older deployments left behind goes as well.
    pub legacy: Legacy,
}

/// What a reconciliation found and did.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What was found.
    pub findings: Vec<Finding>,
    /// What was done about it; nothing in a dry run.
    pub done: Vec<Deed>,
    /// Who did not answer: then nothing that depends on it was done.
    pub problems: Vec<String>,
}

/// Something that was done.
#[derive(Debug, Clone, Serialize)]
pub struct Deed {
    /// To which dispatcher.
    pub dispatcher_id: DispatcherId,
    /// What.
    #[serde(flatten)]
    pub act: Act,
    /// What went wrong; `None`: nothing.
    pub error: Option<String>,
}

/// On whose word something is done, and in which trace they asked for it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Who.
    pub by: &'a str,
    /// Their trace context (`traceparent`); `None`: what is done belongs to our own.
    pub traceparent: Option<&'a str>,
}

impl<'a> From<&'a str> for Asked<'a> {
    fn from(by: &'a str) -> Self {
        Self {
            by,
            traceparent: None,
        }
    }
}

impl Asked<'_> {
    /// The trace that what is done belongs to.
    fn trace(&self) -> Option<String> {
        self.traceparent.map(str::to_owned).or_else(trace::own)
    }
}

/// Looks twice and acts, or only looks.
pub async fn reconcile(office: &Office, options: Options, asked: Asked<'_>) -> Result<Report, db::Error> {
    let (findings, problems) = office.look(options.legacy).await?;
    let suspects = suspects(&findings);
    if options.dry_run || suspects.is_empty() {
        return Ok(Report {
            findings,
            done: Vec::new(),
            problems,
        });
    }
    tokio::time::sleep(office.settings.second_look).await;
    let (findings, problems) = office.look(options.legacy).await?;
    let done = office.act(&findings, &suspects, asked).await?;
    Ok(Report {
        findings,
        done,
        problems,
    })
}

/// An act that a look calls for.
type Suspect = (DispatcherId, Option<Epoch>, Act);

fn suspects(findings: &[Finding]) -> HashSet<Suspect> {
    findings.iter().filter_map(suspect).collect()
}

fn suspect(finding: &Finding) -> Option<Suspect> {
    Some((finding.dispatcher_id.clone(), finding.epoch, finding.act.clone()?))
}

impl Office {
    async fn look(&self, legacy: Legacy) -> Result<(Vec<Finding>, Vec<String>), db::Error> {
        let mut problems = Vec::new();
        // The engine first: a run that appears between the looks is then of an epoch that the rows know.
        let runs = match self.engine.reach() {
            Reach::Shared => {
                let runs = all_pages(|page| self.engine.open_runs(page)).await;
                runs.map_err(|error| problems.push(error.to_string())).ok()
            }
            Reach::Local => None,
        };
        let heartbeats = self.heartbeats.list().await;
        self.health.note(&heartbeats);
        let found = heartbeats.map_err(|error| problems.push(error.to_string())).ok();
        let (heartbeats, unread) =
            found.map_or((None, Vec::new()), |found| (Some(found.heartbeats), found.unread));
        let rows = sqlx::query_as(statement!("supervise/dispatchers")).bind(LOCAL);
        let survey = Survey {
            rows: rows.all(&self.database).await?,
            heartbeats,
            unread,
            runs,
        };
        let findings = classify(&survey, self.settings.stale_after, legacy);
        Ok((findings, problems))
    }

    /// Counts what was seen, on behalf of all. Only who has the duty does.
    fn count(&self, findings: &[Finding], problems: &[String]) {
        let stale = findings
            .iter()
            .filter(|finding| matches!(finding.class, Class::Stale | Class::Orphan) && finding.act.is_some())
            .count();
        let duplicates: HashSet<&DispatcherId> = findings
            .iter()
            .filter(|finding| finding.owned && matches!(finding.act, Some(Act::Terminate { .. })))
            .map(|finding| &finding.dispatcher_id)
            .collect();
        self.metrics
            .dispatchers
            .looked(stale, duplicates.len(), problems.is_empty());
    }

    /// Does what both looks call for. What follows on something that failed is left for the next time.
    async fn act(
        &self,
        findings: &[Finding],
        suspects: &HashSet<Suspect>,
        asked: Asked<'_>,
    ) -> Result<Vec<Deed>, db::Error> {
        let mut done = Vec::new();
        let mut stuck: HashSet<&DispatcherId> = HashSet::new();
        let again = findings
            .iter()
            .filter_map(|finding| Some((finding, suspect(finding)?)));
        for (finding, suspect) in again
            .filter(|(_, suspect)| suspects.contains(suspect))
            .take(MAX_ACTS)
        {
            if stuck.contains(&finding.dispatcher_id) {
                continue;
            }
            let (dispatcher_id, _, act) = suspect;
            let limit = self.settings.cleanup_timeout;
            let attempt = tokio::time::timeout(limit, self.carry_out(finding, &act, asked)).await;
            let error = match attempt {
                Ok(Ok(Outcome::Done)) => None,
                // Somebody else was faster, or the dispatcher has changed: there is nothing to do any more.
                Ok(Ok(Outcome::Moot)) => continue,
                Ok(Err(error)) => Some(error),
                Err(_) => Some(format!("it took longer than {limit:?}")),
            };
            if let Some(error) = &error {
                stuck.insert(&finding.dispatcher_id);
                self.metrics.dispatchers.cleanup_error();
                tracing::error!(dispatcher = %dispatcher_id, ?act, error, "The supervisor could not clean up; it tries again");
            }
            done.push(Deed {
                dispatcher_id,
                act,
                error,
            });
        }
        Ok(done)
    }

    async fn carry_out(&self, finding: &Finding, act: &Act, asked: Asked<'_>) -> Result<Outcome, String> {
        if !self.is_still(finding).await? {
            return Ok(Outcome::Moot);
        }
        match act {
            Act::Terminate { workflow_id, run_id } => {
                let run = OpenRun {
                    workflow_id: workflow_id.clone(),
                    run_id: run_id.clone(),
                    epoch: finding.epoch,
                    server_id: None,
                    started_at: None,
                };
                let reason = format!("stationmaster: {}", finding.reason);
                self.engine
                    .terminate(&run, &reason)
                    .await
                    .map_err(|error| error.to_string())?;
                self.metrics.dispatchers.terminated();
                tracing::warn!(
                    dispatcher = workflow_id,
                    run = run_id,
                    reason = finding.reason,
                    "Terminated a run that was left behind"
                );
                self.tell(finding, "run_terminated", None, Some(run_id), asked)
                    .await?;
            }
            Act::RemoveHeartbeat { epoch, server_id } => {
                let removed = self
                    .heartbeats
                    .remove(&finding.dispatcher_id, *epoch, *server_id)
                    .await;
                if !removed.map_err(|error| error.to_string())? {
                    return Ok(Outcome::Moot);
                }
                tracing::info!(dispatcher = %finding.dispatcher_id, epoch = epoch.0, server = %server_id, "Removed a heartbeat that was left behind");
                self.tell(finding, "heartbeat_removed", Some(*server_id), None, asked)
                    .await?;
            }
            Act::RemoveLegacyHeartbeat { text } => {
                let found = Unread {
                    dispatcher_id: finding.dispatcher_id.clone(),
                    text: text.clone(),
                };
                let removed = self.heartbeats.remove_unread(&found).await;
                if !removed.map_err(|error| error.to_string())? {
                    return Ok(Outcome::Moot);
                }
                tracing::info!(dispatcher = %finding.dispatcher_id, "Removed a heartbeat of an older deployment");
                self.tell(finding, "heartbeat_removed", None, None, asked).await?;
            }
            Act::Release => {
                let query = sqlx::query_scalar::<_, String>(statement!("supervise/release"))
                    .bind(&finding.dispatcher_id)
                    .bind(finding.epoch);
                let released = query.maybe(&self.database).await.map_err(words)?;
                if released.is_none() {
                    return Ok(Outcome::Moot);
                }
                self.tell(finding, "released", None, None, asked).await?;
            }
        }
        Ok(Outcome::Done)
    }

    /// Is the dispatcher as it was when it was looked at? What has no row of ours is judged by its name alone.
    async fn is_still(&self, finding: &Finding) -> Result<bool, String> {
        let Some(epoch) = finding.epoch else {
            return Ok(true);
        };
        let query = sqlx::query_scalar(statement!("supervise/still"))
            .bind(&finding.dispatcher_id)
            .bind(epoch)
            .bind(finding.owned);
        query.one(&self.database).await.map_err(words)
    }

    async fn tell(
        &self,
        finding: &Finding,
        event: &str,
        server: Option<ServerId>,
        run_id: Option<&String>,
        asked: Asked<'_>,
    ) -> Result<(), String> {
        let detail = serde_json::json!({ "reason": finding.reason, "class": finding.class });
        let query = sqlx::query(statement!("supervise/tell"))
            .bind(&finding.dispatcher_id)
            .bind(event)
            .bind(finding.epoch)
            .bind(server)
            .bind(run_id)
            .bind(asked.by)
            .bind(detail.to_string())
            .bind(asked.trace());
        query.run(&self.database).await.map(drop).map_err(words)
    }

    /// Registrations of lost servers with dispatchers that nobody owns, taken away or only found; an owner evicts its own.
    async fn strangers(&self, evict: bool, actor: &str) -> Result<Vec<Batch>, db::Error> {
        let query = sqlx::query_as(statement!("supervise/strangers"))
            .bind((self.settings.stale_after + self.settings.second_look).as_secs_f64())
            .bind(evict)
            .bind(actor)
            .bind(trace::own());
        let batches: Vec<(DispatcherId, Vec<ServerId>, Option<i64>)> = query.all(&self.database).await?;
        if evict {
            for (dispatcher, servers, _) in &batches {
                self.metrics.dispatchers.evicted(servers.len());
                let servers = listed(servers);
                tracing::warn!(%dispatcher, servers, "Evicted servers that were not heard of");
            }
        }
        let batch = |(dispatcher, servers, _)| (dispatcher, servers);
        Ok(batches.into_iter().map(batch).collect())
    }
}

/// Servers that were not heard of, of one dispatcher.
type Batch = (DispatcherId, Vec<ServerId>);

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over results")]
fn words(error: db::Error) -> String {
    chain(&error)
}

enum Outcome {
    Done,
    Moot,
}

/// The supervisor's own rounds.
pub(super) struct Supervise {
    office: Office,
    presence: Presence,
    next: Instant,
    suspects: HashSet<Suspect>,
    /// What it would have done and did not, so that it says so once.
    spared: HashSet<Suspect>,
    spared_servers: HashSet<Batch>,
}

impl Supervise {
    pub(super) fn new(office: Office, presence: Presence) -> Self {
        let stagger = STAGGER.min(office.settings.scan_interval / 4);
        Self {
            office,
            presence,
            next: Instant::now() + stagger.mul_f64(rand::rng().random_range(0.0..=1.0)),
            suspects: HashSet::new(),
            spared: HashSet::new(),
            spared_servers: HashSet::new(),
        }
    }

    /// One round; answers what is to be looked at a second time.
    #[tracing::instrument(name = "flow:supervise", level = "debug", skip_all)]
    async fn look_and_clean_up(&mut self) -> Result<HashSet<Suspect>, db::Error> {
        let (findings, problems) = self.office.look(Legacy::Leave).await?;
        self.office.count(&findings, &problems);
        remove::restore(&self.office.database).await?;
        let before = std::mem::take(&mut self.suspects);
        self.clean_up(&findings, &before).await?;
        Ok(suspects(&findings).difference(&before).cloned().collect())
    }

    /// Does what both looks call for, as far as the settings let it; tells of the rest.
    async fn clean_up(&mut self, findings: &[Finding], before: &HashSet<Suspect>) -> Result<(), db::Error> {
        let actor = self.presence.id().to_string();
        let settings = Arc::clone(&self.office.settings);
        if settings.observe_only {
            self.spare(findings, before);
        } else if !before.is_empty() {
            self.office.act(findings, before, actor.as_str().into()).await?;
        }
        let evict = settings.evict && !settings.observe_only;
        let found = self.office.strangers(evict, &actor).await?;
        let found: HashSet<Batch> = found.into_iter().filter(|_| !evict).collect();
        for (dispatcher, servers) in found.difference(&self.spared_servers) {
            let servers = listed(servers);
            tracing::info!(%dispatcher, servers, "Servers were not heard of; they would be evicted, and that is switched off");
        }
        self.spared_servers = found;
        Ok(())
    }

    /// The supervisor only observes: what it would do now is told, each act once.
    fn spare(&mut self, findings: &[Finding], before: &HashSet<Suspect>) {
        self.spared.retain(|known| {
            findings
                .iter()
                .any(|finding| suspect(finding).as_ref() == Some(known))
        });
        for finding in findings {
            let Some(suspect) = suspect(finding).filter(|suspect| before.contains(suspect)) else {
                continue;
            };
            let (dispatcher, act, reason) = (&finding.dispatcher_id, &suspect.2, &finding.reason);
            if !self.spared.contains(&suspect) {
                tracing::info!(%dispatcher, ?act, reason, "The supervisor would clean this up, and only observes");
            }
            self.spared.insert(suspect);
        }
    }
}

impl Pass for Supervise {
    fn name(&self) -> &'static str {
        "supervisor"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        // The duty is held by renewing it; the work itself is done when it is due.
        let held = duty::hold(&self.office.database, &self.presence, DUTY).await;
        if !matches!(held, Ok(Some(_))) {
            self.office.metrics.dispatchers.looks_elsewhere();
            held?;
            self.suspects.clear();
            return Ok(Next::After(BEAT));
        }
        let left = self.next.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            return Ok(Next::After(left.min(duty::ELSEWHERE)));
        }
        let new = self.look_and_clean_up().await?;
        let interval = self.office.settings.scan_interval;
        // Whoever looks left over is looked at again soon; otherwise the next round is at nobody else's moment.
        self.next = Instant::now()
            + if new.is_empty() {
                interval.mul_f64(rand::rng().random_range(0.9..=1.0))
            } else {
                self.office.settings.second_look.min(interval)
            };
        self.suspects = new;
        Ok(Next::After(
            duty::ELSEWHERE.min(self.next.saturating_duration_since(Instant::now())),
        ))
    }
}
