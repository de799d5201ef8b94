//! Alarms and their occurrences.

use reqwest::Method;
use serde::Serialize;

use crate::Client;
use crate::error::Result;
use crate::wire::{
    Alarm, AlarmChange, AlarmDetails, AlarmEvent, AlarmMade, AlarmQuery, Backfill, Backfilled, Calendar,
    CalendarQuery, FiredByHand, NewAlarm, NextFires, NextQuery, Occurrence, OccurrenceQuery, Page, PageQuery,
    Reference,
};

impl Client {
    /// Sets an alarm. With an idempotency key in the request, a repeat gives the first alarm.
    pub async fn set_alarm<Id: Serialize + Sync>(&self, request: &NewAlarm<Id>) -> Result<AlarmMade> {
        let mut call = self.post(&["alarms"]);
        if request.idempotency_key.is_some() {
            call = call.named_by_its_body();
        }
        call.json(request).send().await
    }

    /// Alarms, newest first.
    pub async fn alarms(&self, query: &AlarmQuery) -> Result<Page<Alarm>> {
        self.read(&["alarms"], query).await
    }

    /// One alarm and its coming fires.
    pub async fn alarm(&self, which: impl Into<Reference>) -> Result<AlarmDetails> {
        self.get(&["alarms", &which.into().to_string()]).send().await
    }

    /// Changes an alarm; with a tag, only if it is still the one that was seen.
    pub async fn change_alarm(
        &self,
        which: impl Into<Reference>,
        change: &AlarmChange,
        if_match: Option<&str>,
    ) -> Result<AlarmDetails> {
        self.change(
            Method::PATCH,
            &["alarms", &which.into().to_string()],
            change,
            if_match,
        )
        .await
    }

    /// Cancels an alarm for good.
    pub async fn cancel_alarm(&self, which: impl Into<Reference>) -> Result<()> {
        self.remove(&["alarms", &which.into().to_string()]).await
    }

    /// Fires nothing more of an alarm.
    pub async fn pause_alarm(&self, which: impl Into<Reference>) -> Result<Alarm> {
        self.post(&["alarms", &which.into().to_string(), "pause"])
            .send()
            .await
    }

    /// Fires again, from the next instant on.
    pub async fn resume_alarm(&self, which: impl Into<Reference>) -> Result<Alarm> {
        self.post(&["alarms", &which.into().to_string(), "resume"])
            .send()
            .await
    }

    /// Fires an alarm now, beside its schedule.
    pub async fn fire_alarm(&self, which: impl Into<Reference>) -> Result<FiredByHand> {
        self.post(&["alarms", &which.into().to_string(), "fire"])
            .send()
            .await
    }

    /// The occurrences of an alarm, newest first.
    pub async fn occurrences(
        &self,
        which: impl Into<Reference>,
        query: &OccurrenceQuery,
    ) -> Result<Page<Occurrence>> {
        self.read(&["alarms", &which.into().to_string(), "occurrences"], query)
            .await
    }

    /// What was done to an alarm, newest first.
    pub async fn alarm_history(
        &self,
        which: impl Into<Reference>,
        query: &PageQuery,
    ) -> Result<Page<AlarmEvent>> {
        self.read(&["alarms", &which.into().to_string(), "history"], query)
            .await
    }

    /// Fires occurrences of the past, or tells which.
    pub async fn backfill(&self, which: impl Into<Reference>, range: &Backfill) -> Result<Backfilled> {
        self.ask(&["alarms", &which.into().to_string(), "backfill"], range)
            .await
    }

    /// The coming fires of all alarms.
    pub async fn alarm_calendar(&self, query: &CalendarQuery) -> Result<Calendar> {
        self.read(&["alarms", "calendar"], query).await
    }

    /// When an expression would fire.
    pub async fn next_fires(&self, query: &NextQuery) -> Result<NextFires> {
        self.read(&["alarms", "next"], query).await
    }
}
