//! What is said again and again. A database that is away, a target that refuses everybody: such things would say the same thousands of
//! times and bury the rest. So a warning or an error that says the same again within a while is counted instead, and so are those of one
//! place in the code beyond a number; when the while is over, one line tells how many there were.
//!
//! What libraries warn of comes in their own words, with whole statements and debug output, under names that nobody on call knows. It is
//! told as a line of ours, shortened, and counted likewise. Their other levels are left as they are: whoever asks for them wants them so.

use std::collections::{HashMap, HashSet};
use std::fmt::{Debug, Write as _};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata};
use tracing_subscriber::layer::{Context, Filter};

use super::lines::Lines;

/// Lines of one place in the code that are told within the while.
const MOST: usize = 100;
/// Lines of one library.
const MOST_OF_A_LIBRARY: usize = 5;
/// The most that is told of what a library says.
const LONGEST: usize = 300;
/// Whose targets begin so, says it in our words.
const OURS: &str = "stationmaster";
/// Fields that differ while the same happens again.
const COUNTS: [&str; 4] = ["failures", "tries", "items", "occurrences"];
/// What a library tells beside its message that is worth a line.
const TELLING: [&str; 7] = ["error", "err", "details", "reason", "summary", "elapsed", "name"];
/// Who they are, by how their targets begin, and what we say.
const LIBRARIES: [(&str, &str); 8] = [
    ("sqlx", "The driver of PostgreSQL warns"),
    ("temporalio", "The client of Temporal warns"),
    ("tonic", "The client of Temporal warns"),
    ("h2", "The client of Temporal warns"),
    ("opentelemetry", "The export of traces warns"),
    ("redis", "The client of Redis warns"),
    ("hyper", "A library of the network warns"),
    ("rustls", "A library of the network warns"),
];

/// See the module. Copies are the same.
#[derive(Clone)]
pub(super) struct Repeats(Arc<Inner>);

struct Inner {
    /// The while.
    window: Duration,
    lines: Lines,
    places: Mutex<HashMap<Place, Heard>>,
    /// Rung when something is counted that nobody counted before.
    counted: Condvar,
}

/// Where something is said.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Place {
    Ours(Identifier),
    Library(&'static str),
}

/// What was heard from a place since the while began.
struct Heard {
    began: Instant,
    level: Level,
    target: String,
    words: String,
    told: HashSet<u64>,
    held: u64,
}

impl Repeats {
    /// Starts the thread that tells how many there were.
    pub(super) fn start(lines: Lines, window: Duration) -> std::io::Result<Self> {
        let repeats = Self(Arc::new(Inner {
            window,
            lines,
            places: Mutex::default(),
            counted: Condvar::new(),
        }));
        let inner = Arc::downgrade(&repeats.0);
        std::thread::Builder::new()
            .name("log repeats".to_owned())
            .spawn(move || {
                while let Some(inner) = inner.upgrade() {
                    inner.tell_when_due();
                }
            })?;
        Ok(repeats)
    }

    /// Tells what has been counted so far.
    pub(super) fn flush(&self) {
        let mut places = self.0.lock();
        for heard in places.values_mut() {
            self.0.tell(heard);
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, HashMap<Place, Heard>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a while is over in which something was counted, and tells how many. Returns now and then, also when there was nothing.
    fn tell_when_due(&self) {
        let mut places = self.lock();
        let held = places.values().filter(|heard| heard.held > 0);
        let due = held.map(|heard| heard.began + self.window).min();
        let wait = match due {
            // Nothing is due before the next count and a whole while.
            None => Duration::from_hours(1),
            Some(due) => due.saturating_duration_since(Instant::now()),
        };
        if !wait.is_zero() {
            let waited = self.counted.wait_timeout(places, wait);
            places = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let over = |heard: &&mut Heard| heard.began.elapsed() >= self.window;
        for heard in places.values_mut().filter(over) {
            self.tell(heard);
        }
    }

    /// Tells how many there were, if any, and begins anew.
    fn tell(&self, heard: &mut Heard) {
        if heard.held > 0 {
            let seconds = heard.began.elapsed().as_secs_f64().ceil();
            let words = format!("{} … {} more in the last {seconds} s", heard.words, heard.held);
            let more = [("more", heard.held.to_string())];
            self.write(heard.level, &heard.target, &words, &more);
        }
        heard.began = Instant::now();
        heard.told.clear();
        heard.held = 0;
    }

    /// Is this to be told? Otherwise it is counted.
    fn is_news(&self, place: Place, most: usize, said: &Said, new: impl FnOnce() -> Heard) -> bool {
        let mut places = self.lock();
        let heard = places.entry(place).or_insert_with(new);
        if heard.began.elapsed() >= self.window {
            self.tell(heard);
        }
        if heard.told.len() < most && heard.told.insert(said.same) {
            return true;
        }
        heard.held += 1;
        if heard.held == 1 {
            self.counted.notify_one();
        }
        false
    }

    fn write(&self, level: Level, target: &str, words: &str, fields: &[(&str, String)]) {
        let line = self.lines.line(level, target, words, fields);
        // It takes every line, or counts what it loses.
        let _ = self.lines.clone().write_all(line.as_bytes());
    }
}

/// What an event says.
#[derive(Default)]
struct Said {
    words: String,
    /// The rest, as far as it tells something.
    detail: String,
    /// Events that say the same have the same.
    same: u64,
    hasher: DefaultHasher,
}

impl Said {
    fn by(event: &Event<'_>) -> Self {
        let mut said = Self::default();
        event.record(&mut said);
        said.same = said.hasher.finish();
        said
    }
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let name = field.name();
        if COUNTS.contains(&name) {
            return;
        }
        let text = format!("{value:?}");
        (name, &text).hash(&mut self.hasher);
        if name == "message" {
            self.words = text;
        } else if TELLING.contains(&name) && !text.is_empty() {
            let space = if self.detail.is_empty() { "" } else { " " };
            // Writing into a String does not fail.
            let _ = write!(self.detail, "{space}{name}={text}");
        }
    }
}

/// On one line, and no longer than is worth it.
fn short(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}

/// What we say of this library.
fn words_of(target: &str) -> &'static str {
    let known = LIBRARIES.iter().find(|(begins, _)| target.starts_with(begins));
    known.map_or("A library warns", |(_, words)| words)
}

/// Only warnings and errors are.
fn may_be_counted(about: &Metadata<'_>) -> bool {
    about.is_event() && *about.level() <= Level::WARN
}

impl<S> Filter<S> for Repeats {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    /// Everything is asked about each time. What may be counted has to be. The rest must be, because of whoever only asks whether a line would
    /// be written, as the driver does for every statement: the answers of the filters stay behind on that thread until somebody asks again,
    /// and whoever did not need to ask would take them for its own. Then a request had no span, or a line was not written.
    fn callsite_enabled(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let about = event.metadata();
        if !may_be_counted(about) {
            return true;
        }
        let said = Said::by(event);
        let heard = |target: &str, level, words: &str| Heard {
            began: Instant::now(),
            level,
            target: target.to_owned(),
            words: words.to_owned(),
            told: HashSet::new(),
            held: 0,
        };
        if about.target().starts_with(OURS) {
            let place = Place::Ours(about.callsite());
            let new = || heard(about.target(), *about.level(), &said.words);
            return self.0.is_news(place, MOST, &said, new);
        }
        let words = words_of(about.target());
        let target = module_path!();
        let new = || heard(target, Level::WARN, words);
        if self
            .0
            .is_news(Place::Library(words), MOST_OF_A_LIBRARY, &said, new)
        {
            let mut fields = vec![
                ("library", about.target().to_owned()),
                ("said", short(&said.words)),
            ];
            if !said.detail.is_empty() {
                fields.push(("detail", short(&said.detail)));
            }
            self.0.write(Level::WARN, target, words, &fields);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::Layer as _;
    use tracing_subscriber::filter::filter_fn;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::config::LogFormat;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What is written while this is done, with a while of this length.
    fn written(window: Duration, work: impl FnOnce()) -> Vec<serde_json::Value> {
        let paper = Paper::default();
        let lines = Lines::to(paper.clone(), LogFormat::Json).unwrap();
        let repeats = Repeats::start(lines.clone(), window).unwrap();
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(lines.clone())
            .json()
            .flatten_event(true)
            .with_filter(repeats.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        repeats.flush();
        Lines::flush(&lines);
        let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    const LONG: Duration = Duration::from_mins(10);

    #[test]
    fn what_says_the_same_again_is_counted_and_told_in_one_line() {
        let lines = written(LONG, || {
            for failures in 0..38 {
                tracing::warn!(target: "stationmaster_core::x", error = "gone", failures, "It broke");
            }
            tracing::warn!(target: "stationmaster_core::x", error = "other", "It broke elsewhere");
            for _ in 0..3 {
                tracing::info!(target: "stationmaster_core::x", "It goes on");
            }
        });
        let said: Vec<&str> = lines
            .iter()
            .map(|line| line["message"].as_str().unwrap())
            .collect();
        assert_eq!(
            said[..5],
            [
                "It broke",
                "It broke elsewhere",
                "It goes on",
                "It goes on",
                "It goes on"
            ]
        );
        assert!(said[5].starts_with("It broke … 37 more in the last "), "{said:?}");
        assert_eq!((said.len(), &lines[5]["more"]), (6, &serde_json::json!(37)));
        assert_eq!(lines[5]["level"], "WARN");
    }

    /// Counts the spans that it is shown.
    #[derive(Clone, Default)]
    struct Spans(Arc<Mutex<usize>>);

    impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Spans {
        fn on_new_span(&self, _: &tracing::span::Attributes<'_>, _: &tracing::span::Id, _: Context<'_, S>) {
            *self.0.lock().unwrap() += 1;
        }
    }

    #[test]
    fn whoever_only_asks_whether_a_line_would_be_written_takes_no_span_away() {
        let spans = Spans::default();
        let lines = Lines::to(std::io::sink(), LogFormat::Json).unwrap();
        let repeats = Repeats::start(lines.clone(), LONG).unwrap();
        let written = tracing_subscriber::fmt::layer()
            .with_writer(lines)
            .with_filter(repeats);
        let ours = filter_fn(|about| about.is_span() && about.target().starts_with(OURS));
        let exported = spans.clone().with_filter(ours);
        let subscriber = tracing_subscriber::registry().with(written).with(exported);
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..10 {
                assert!(tracing::enabled!(target: "sqlx::query", Level::WARN));
                drop(tracing::info_span!("request"));
            }
        });
        assert_eq!(*spans.0.lock().unwrap(), 10);
    }

    #[test]
    fn of_what_differs_only_a_number_is_told_and_the_rest_is_counted() {
        let lines = written(LONG, || {
            for item in 0..150 {
                tracing::error!(target: "stationmaster_core::x", item, "It broke");
            }
        });
        assert_eq!(lines.len(), MOST + 1);
        assert_eq!(lines[MOST]["more"], 50);
    }

    #[test]
    fn when_the_while_is_over_the_number_is_told_and_the_next_one_is_news_again() {
        let lines = written(Duration::from_millis(300), || {
            let again = || tracing::warn!(target: "stationmaster_core::x", "It broke");
            again();
            again();
            // By the thread, not by the next one that comes.
            std::thread::sleep(Duration::from_secs(2));
            again();
        });
        let said: Vec<&str> = lines
            .iter()
            .map(|line| line["message"].as_str().unwrap())
            .collect();
        assert_eq!(
            (said[0], said[2], said.len()),
            ("It broke", "It broke", 3),
            "{said:?}"
        );
        assert!(said[1].starts_with("It broke … 1 more in the last "), "{said:?}");
    }

    #[test]
    fn what_a_library_warns_of_is_a_short_line_of_ours() {
        let statement = "select\n  1".repeat(1000);
        let lines = written(LONG, || {
            for _ in 0..10 {
                tracing::warn!(target: "sqlx::query", summary = "select …", db.statement = statement, "slow statement");
            }
            tracing::error!(target: "opentelemetry_sdk", name = "Exporter.Failed", error = statement);
            tracing::debug!(target: "sqlx::query", "as it was asked for");
        });
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert_eq!(lines[0]["message"], "The driver of PostgreSQL warns");
        assert_eq!(
            (&lines[0]["library"], &lines[0]["said"]),
            (&"sqlx::query".into(), &"slow statement".into())
        );
        assert_eq!(lines[0]["detail"], "summary=select …");
        assert_eq!(
            (&lines[1]["message"], &lines[1]["level"]),
            (&"The export of traces warns".into(), &"WARN".into())
        );
        assert!(lines[1]["detail"].as_str().unwrap().chars().count() <= LONGEST + 1);
        assert_eq!(lines[2]["message"], "as it was asked for");
        assert_eq!(lines[3]["more"], 9);
    }
}
