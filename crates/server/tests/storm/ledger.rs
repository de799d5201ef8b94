//! What we asked for, and what was acknowledged: written down by those who ask, before anybody looks what became of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use crate::world::Kind;

/// An item that was asked for. Its number stands in its input.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) kind: Kind,
    pub(crate) way: &'static str,
    /// The item that it became, once that was acknowledged.
    pub(crate) item: Option<Uuid>,
    /// Its transaction was rolled back: it must never be.
    pub(crate) unwanted: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Signal {
    pub(crate) number: u64,
    pub(crate) acknowledged: bool,
    /// Is there a trigger of its name?
    pub(crate) known: bool,
}

/// A series of alarms. Times are milliseconds.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) id: Uuid,
    pub(crate) every: i64,
    pub(crate) from: i64,
    /// From before a pause was asked for until after the resume was acknowledged.
    pub(crate) pauses: Vec<(i64, i64)>,
    /// Before it was paused for good.
    pub(crate) until: Option<i64>,
}

/// A lock that somebody had, for certain, within these times.
#[derive(Debug, Clone)]
pub(crate) struct Holding {
    pub(crate) name: String,
    pub(crate) token: i64,
    pub(crate) asked: i64,
    pub(crate) from: i64,
    pub(crate) until: i64,
}

#[derive(Default)]
pub(crate) struct Books {
    pub(crate) items: BTreeMap<u64, Asked>,
    pub(crate) cancelled: HashSet<Uuid>,
    /// How often an item may have been put back.
    pub(crate) retried: HashMap<Uuid, usize>,
    pub(crate) signals: BTreeMap<String, Signal>,
    pub(crate) series: Vec<Series>,
    /// Alarms for once; whether somebody cancelled it.
    pub(crate) once: BTreeMap<Uuid, bool>,
    pub(crate) holdings: Vec<Holding>,
    /// The limits of each room, from when on.
    pub(crate) limits: HashMap<usize, Vec<(i64, i32)>>,
    /// How many wait before each room, by the last look and what was asked for since.
    pub(crate) backlog: HashMap<usize, usize>,
    /// When stopped servers were continued.
    pub(crate) resumed: Vec<i64>,
    /// Faults that were carried out, by kind.
    pub(crate) faults: BTreeMap<&'static str, usize>,
    /// What was wrong at once.
    pub(crate) wrong: Vec<String>,
    next: u64,
}

#[derive(Default)]
pub(crate) struct Ledger(Mutex<Books>);

impl Ledger {
    pub(crate) fn open(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for something new.
    pub(crate) fn number(&self) -> u64 {
        let mut books = self.open();
        books.next += 1;
        books.next
    }

    pub(crate) fn count(&self, fault: &'static str) {
        *self.open().faults.entry(fault).or_default() += 1;
    }

    pub(crate) fn wrong(&self, what: String) {
        self.open().wrong.push(what);
    }
}
