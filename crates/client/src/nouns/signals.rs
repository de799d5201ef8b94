//! Signals, triggers, dispatchers.

use reqwest::Method;
use serde::Serialize;

use crate::Client;
use crate::error::Result;
use crate::wire::{
    BulkAnswer, BulkReplay, BulkSend, BulkSent, Dispatcher, DispatcherEvent, DispatcherQuery, NewSignal,
    Page, PageQuery, Reconcile, Reconciled, Signal, SignalPlace, SignalQuery, SignalSent, Trigger,
    TriggerChange, TriggerPlace, TriggerQuery,
};

impl Client {
    /// Sends a signal; it is committed when this returns.
    pub async fn send_signal(&self, signal: &NewSignal) -> Result<SignalSent> {
        self.ask(&["signals"], signal).await
    }

    /// Sends many at once, all or none.
    pub async fn send_signals(&self, signals: Vec<NewSignal>) -> Result<Vec<SignalSent>> {
        let request = BulkSend { items: signals };
        let answer: BulkSent = self.ask(&["signals", "bulk"], &request).await?;
        Ok(answer.items)
    }

    /// Signals, newest first.
    pub async fn signals(&self, query: &SignalQuery) -> Result<Page<Signal>> {
        self.read(&["signals"], query).await
    }

    /// One signal. Where several projects have one of this id, name the project by [`Self::signal_of`].
    pub async fn signal(&self, id: &str) -> Result<Signal> {
        self.get(&["signals", id]).send().await
    }

    /// One signal of a project.
    pub async fn signal_of(&self, project: &str, id: &str) -> Result<Signal> {
        let place = SignalPlace {
            project: Some(project.to_owned()),
        };
        self.read(&["signals", id], &place).await
    }

    /// Puts a dead letter back into the inbox.
    pub async fn replay_signal(&self, id: &str) -> Result<Signal> {
        self.post(&["signals", id, "replay"]).send().await
    }

    /// Puts a dead letter of a project back into the inbox.
    pub async fn replay_signal_of(&self, project: &str, id: &str) -> Result<Signal> {
        let place = SignalPlace {
            project: Some(project.to_owned()),
        };
        self.post(&["signals", id, "replay"]).query(&place).send().await
    }

    /// Puts every dead letter back that matches. Once for its key; without one, once for this call.
    pub async fn replay_all<Id: Serialize + Sync>(
        &self,
        filter: &BulkReplay<Id>,
        key: Option<&str>,
    ) -> Result<BulkAnswer> {
        self.ask_once(&["signals", "replay"], key, filter).await
    }

    /// Triggers, in the order of their names.
    pub async fn triggers(&self, query: &TriggerQuery) -> Result<Page<Trigger>> {
        self.read(&["triggers"], query).await
    }

    /// One trigger.
    pub async fn trigger(&self, project: &str, name: &str, place: &TriggerPlace) -> Result<Trigger> {
        self.read(&["triggers", project, name], place).await
    }

    /// Makes a trigger or changes it.
    pub async fn put_trigger<Id: Serialize + Sync>(
        &self,
        project: &str,
        name: &str,
        place: &TriggerPlace,
        change: &TriggerChange<Id>,
    ) -> Result<Trigger> {
        let call = self.call(Method::PUT, &["triggers", project, name]);
        call.query(place).json(change).send().await
    }

    /// Removes a trigger; signals of its name become dead letters from then on.
    pub async fn delete_trigger(&self, project: &str, name: &str, place: &TriggerPlace) -> Result<()> {
        self.call(Method::DELETE, &["triggers", project, name])
            .query(place)
            .send_for_nothing()
            .await
    }

    /// Dispatchers, in the order of their ids.
    pub async fn dispatchers(&self, query: &DispatcherQuery) -> Result<Page<Dispatcher>> {
        self.read(&["dispatchers"], query).await
    }

    /// Removes a dispatcher for which nothing waits; its owner does that as soon as it can.
    pub async fn remove_dispatcher(&self, id: &str) -> Result<Dispatcher> {
        self.call(Method::DELETE, &["dispatchers", id]).send().await
    }

    /// One dispatcher.
    pub async fn dispatcher(&self, id: &str) -> Result<Dispatcher> {
        self.get(&["dispatchers", id]).send().await
    }

    /// What happened to a dispatcher, newest first.
    pub async fn dispatcher_history(&self, id: &str, query: &PageQuery) -> Result<Page<DispatcherEvent>> {
        self.read(&["dispatchers", id, "history"], query).await
    }

    /// Removes what a crash left behind, or only looks.
    pub async fn reconcile_dispatchers(&self, how: &Reconcile) -> Result<Reconciled> {
        self.ask(&["dispatchers", "reconcile"], how).await
    }
}
