//! Any text as a cron expression: it is read or refused with a place, and what is read has words and fires in order.

#![no_main]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use stationmaster_schedule::{Cron, DstPolicy, Series, zone};

fuzz_target!(|text: &str| {
    let cron = match Cron::parse(text) {
        Ok(cron) => cron,
        Err(error) => {
            assert!(error.at.start <= error.at.end && error.at.end <= text.len());
            assert!(error.pointed(text).ends_with('^'));
            return;
        }
    };
    assert!(!cron.describe().is_empty());
    let after = Timestamp::from_second(1_710_000_000).expect("a day before New York's clocks move");
    for dst in DstPolicy::ALL {
        let series = Series {
            cron: cron.clone(),
            zone: zone("America/New_York").expect("a zone"),
            dst,
            start: None,
            end: None,
            anchor: after,
        };
        let mut last = after;
        for fire in series.fires(after).take(5) {
            assert!(fire.at > last);
            last = fire.at;
        }
        assert!(last > after, "it was accepted and never fires");
    }
});
