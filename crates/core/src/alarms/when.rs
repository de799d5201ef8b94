//! When an alarm is to fire, as requests say it: by one of four fields, two of which go with a zone. Read strictly. Pure.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use stationmaster_schedule::{Cron, zone};
use stationmaster_wire::{Alarm, AlarmChange, NewAlarm};

use super::set::Error;
use super::terms::{Written, Wrong};

/// What a request says.
pub(super) struct When {
    /// After this time, by the database's clock.
    pub(super) delay: Option<Duration>,
    /// Everything else, as rows hold it.
    pub(super) written: Written,
}

impl When {
    /// A new alarm must fire some time.
    pub(super) fn of_new(request: &NewAlarm) -> Result<Self, Error> {
        let words = "give exactly one of fire_at, delay, civil_at and cron_expr";
        let when = Given::of_new(request).read("UTC")?;
        when.ok_or_else(|| Wrong::of("cron_expr", words).into())
    }

    /// A change may leave it as it is, or name another zone for what the alarm says already.
    pub(super) fn of_change(change: &AlarmChange, alarm: &Alarm) -> Result<Option<Self>, Error> {
        let mut given = Given::of_change(change);
        if given.timezone.is_some() && given.count() == 0 {
            given.civil_at = alarm.civil_at.as_deref();
            given.cron_expr = alarm.cron_expr.as_deref();
        }
        given.read(alarm.timezone.as_deref().unwrap_or("UTC"))
    }
}

/// What is wrong with each of the fields by itself; [`When`] stops at the first.
pub(super) fn problems_of_new(request: &NewAlarm) -> Vec<Error> {
    Given::of_new(request).problems()
}

/// The same of a change.
pub(super) fn problems_of_change(change: &AlarmChange) -> Vec<Error> {
    Given::of_change(change).problems()
}

struct Given<'a> {
    fire_at: Option<Timestamp>,
    delay: Option<f64>,
    civil_at: Option<&'a str>,
    cron_expr: Option<&'a str>,
    timezone: Option<&'a str>,
}

impl<'a> Given<'a> {
    fn of_new(request: &'a NewAlarm) -> Self {
        Self {
            fire_at: request.fire_at,
            delay: request.delay,
            civil_at: request.civil_at.as_deref(),
            cron_expr: request.cron_expr.as_deref(),
            timezone: request.timezone.as_deref(),
        }
    }

    fn of_change(change: &'a AlarmChange) -> Self {
        Self {
            fire_at: change.fire_at,
            delay: change.delay,
            civil_at: change.civil_at.as_deref(),
            cron_expr: change.cron_expr.as_deref(),
            timezone: change.timezone.as_deref(),
        }
    }

    fn problems(&self) -> Vec<Error> {
        let expression = self.cron_expr.and_then(|text| {
            let error = Cron::parse(text).err()?;
            Some(Error::expression(text, error))
        });
        let zone = self.timezone.and_then(|name| zone(name).err());
        let zone = zone.map(|error| Wrong::of("timezone", error.to_string()));
        let civil = self.civil_at.and_then(|text| local(text).err());
        let delay = seconds("delay", self.delay).err();
        let others = [zone, civil, delay].into_iter().flatten();
        expression.into_iter().chain(others.map(Error::from)).collect()
    }

    fn count(&self) -> usize {
        usize::from(self.fire_at.is_some())
            + usize::from(self.delay.is_some())
            + usize::from(self.civil_at.is_some())
            + usize::from(self.cron_expr.is_some())
    }

    /// `None`: nothing was given. In the `usual` zone, when none is named.
    fn read(self, usual: &str) -> Result<Option<When>, Error> {
        let count = self.count();
        if count > 1 {
            let words = "give one of fire_at, delay, civil_at and cron_expr, not several";
            return Err(Wrong::of("cron_expr", words).into());
        }
        let in_zone = self.civil_at.is_some() || self.cron_expr.is_some();
        if let Some(name) = self.timezone {
            zone(name).map_err(|error| Wrong::of("timezone", error.to_string()))?;
            if !in_zone {
                return Err(Wrong::of("timezone", "a zone goes with civil_at or cron_expr").into());
            }
        }
        if let Some(expression) = self.cron_expr {
            Cron::parse(expression).map_err(|error| Error::expression(expression, error))?;
        }
        let written = Written {
            fire_at: self.fire_at,
            civil_at: self.civil_at.map(local).transpose()?,
            cron_expr: self.cron_expr.map(str::to_owned),
            timezone: in_zone.then(|| self.timezone.unwrap_or(usual).to_owned()),
            ..Written::default()
        };
        let delay = seconds("delay", self.delay)?;
        Ok((count == 1).then_some(When { delay, written }))
    }
}

fn local(text: &str) -> Result<String, Wrong> {
    let words = "a local time without a zone, such as 2026-03-29T02:30:00";
    let at: DateTime = text.parse().map_err(|_| Wrong::of("civil_at", words))?;
    Ok(at.to_string())
}

/// A time as requests give it.
pub(super) fn seconds(field: &'static str, seconds: Option<f64>) -> Result<Option<Duration>, Wrong> {
    /// More than thirty years is a mistake.
    const MOST: f64 = 1e9;
    match seconds {
        None => Ok(None),
        Some(seconds) if (0.0..=MOST).contains(&seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
        Some(_) => Err(Wrong::of(field, format!("seconds, from 0 to {MOST}"))),
    }
}
