//! The lines of the log on their way to standard error. A disk that is full, a pipe that nobody reads, a terminal that was stopped: none of
//! them may hold up who has something to say, or end the process. So lines are handed to a thread, which writes them. Those for which
//! there is no room, and those that cannot be written, are lost and counted; how many is said when lines can be written again.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

use crate::config::LogFormat;

/// Lines that may wait.
const ROOM: usize = 32 * 1024;
/// How much is written at once.
const CHUNK: usize = 64 * 1024;
/// How long an end waits for what is left.
const LAST_WORDS: Duration = Duration::from_secs(1);

enum Said {
    Line(Vec<u8>),
    /// Everything before has been written, or lost.
    Flush(SyncSender<()>),
}

/// See the module. Copies lead to the same thread.
#[derive(Clone)]
pub(super) struct Lines {
    thread: SyncSender<Said>,
    lost: Arc<AtomicU64>,
    format: LogFormat,
}

impl Lines {
    /// Starts the thread that writes to standard error.
    pub(super) fn start(format: LogFormat) -> io::Result<Self> {
        Self::to(io::stderr(), format)
    }

    pub(super) fn to(output: impl Write + Send + 'static, format: LogFormat) -> io::Result<Self> {
        let (thread, said) = sync_channel(ROOM);
        let lost = Arc::new(AtomicU64::new(0));
        let writer = Writer {
            output,
            format,
            lost: Arc::clone(&lost),
            broken: false,
        };
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || writer.run(&said))?;
        Ok(Self { thread, lost, format })
    }

    /// A line that nobody's event stands behind, in the shape of the others.
    pub(super) fn line(&self, level: Level, target: &str, words: &str, fields: &[(&str, String)]) -> String {
        line(self.format, level, target, words, fields)
    }

    /// Waits until what was said has been written, for a moment at most.
    pub(super) fn flush(&self) {
        let until = Instant::now() + LAST_WORDS;
        let (done, is_done) = sync_channel(1);
        let mut said = Said::Flush(done);
        while let Err(TrySendError::Full(back)) = self.thread.try_send(said) {
            if Instant::now() > until {
                return;
            }
            said = back;
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = is_done.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

impl Write for Lines {
    /// Takes a whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.thread.try_send(Said::Line(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

struct Writer<W> {
    output: W,
    format: LogFormat,
    lost: Arc<AtomicU64>,
    /// The last try to write has failed, perhaps in the middle of a line.
    broken: bool,
}

impl<W: Write> Writer<W> {
    fn run(mut self, said: &Receiver<Said>) {
        while let Ok(first) = said.recv() {
            let (mut chunk, mut lines, mut flushed) = (Vec::new(), 0, None);
            let mut next = Some(first);
            while let Some(one) = next {
                match one {
                    Said::Line(line) => {
                        chunk.extend_from_slice(&line);
                        lines += 1;
                    }
                    Said::Flush(done) => flushed = Some(done),
                }
                let goes_on = chunk.len() < CHUNK && flushed.is_none();
                next = goes_on.then(|| said.try_recv().ok()).flatten();
            }
            self.write(&chunk, lines);
            if let Some(done) = flushed {
                let _ = done.send(());
            }
        }
    }

    fn write(&mut self, chunk: &[u8], lines: u64) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let mut text = Vec::new();
        if self.broken {
            text.push(b'\n');
        }
        if lost > 0 {
            text.extend_from_slice(self.confession(lost).as_bytes());
        }
        text.extend_from_slice(chunk);
        let written = self.output.write_all(&text).and_then(|()| self.output.flush());
        self.broken = written.is_err();
        if self.broken {
            self.lost.fetch_add(lost + lines, Ordering::Relaxed);
        }
    }

    fn confession(&self, lost: u64) -> String {
        let words = "Lines of the log were lost: they could not be written, or not as fast as they came";
        let lost = [("lost", lost.to_string())];
        line(self.format, Level::WARN, "stationmaster", words, &lost)
    }
}

/// With its end. Values that are numbers are shown as such.
fn line(format: LogFormat, level: Level, target: &str, words: &str, fields: &[(&str, String)]) -> String {
    let now = jiff::Timestamp::now();
    let number = |value: &String| value.parse::<u64>().ok();
    match format {
        LogFormat::Pretty => {
            let field = |(name, value): &(&str, String)| match number(value) {
                Some(number) => format!(" {name}={number}"),
                None => format!(" {name}={value:?}"),
            };
            let fields: String = fields.iter().map(field).collect();
            format!("{now} {level:>5} {target}: {words}{fields}\n")
        }
        LogFormat::Json => {
            let mut line = serde_json::json!({ "timestamp": now, "level": level.as_str(), "message": words, "target": target });
            for (name, value) in fields {
                line[*name] = number(value).map_or_else(|| value.as_str().into(), Into::into);
            }
            format!("{line}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A disk that is full, until it is not.
    #[derive(Clone, Default)]
    struct Disk {
        text: Arc<Mutex<Vec<u8>>>,
        full: Arc<Mutex<bool>>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if *self.full.lock().unwrap() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.text.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_a_full_disk_did_not_take_are_counted_and_confessed_when_there_is_room() {
        let disk = Disk::default();
        let mut lines = Lines::to(disk.clone(), LogFormat::Json).unwrap();
        lines.write_all(b"one\n").unwrap();
        Lines::flush(&lines);
        *disk.full.lock().unwrap() = true;
        for _ in 0..5 {
            lines.write_all(b"two\n").unwrap();
            Lines::flush(&lines);
        }
        *disk.full.lock().unwrap() = false;
        lines.write_all(b"three\n").unwrap();
        Lines::flush(&lines);
        let text = String::from_utf8(disk.text.lock().unwrap().clone()).unwrap();
        let said: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!((said[0], said[2], said.len()), ("one", "three", 3), "{text}");
        assert!(said[1].contains("\"lost\":5"), "{text}");
    }

    #[test]
    fn whoever_has_something_to_say_is_not_held_up_by_a_pipe_that_nobody_reads() {
        let (nobody, pipe) = io::pipe().unwrap();
        let mut lines = Lines::to(pipe, LogFormat::Pretty).unwrap();
        let line = [b'x'; 1024];
        let begun = Instant::now();
        for _ in 0..2 * ROOM {
            lines.write_all(&line).unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        assert!(lines.lost.load(Ordering::Relaxed) > 0);
        drop(nobody);
    }
}
