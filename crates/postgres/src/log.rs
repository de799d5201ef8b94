//! The server's log file: what it writes goes there, and what it wrote last explains why a start failed.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::account::private_file;

/// From this size on the file is set aside at the next start, so that years of `dev` do not fill the disk.
const SET_ASIDE_FROM: u64 = 8 * 1024 * 1024;

/// How many of the last lines an error quotes.
const QUOTED_LINES: usize = 12;

/// The log of one start: remembers where in the file it began.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    path: PathBuf,
    begins_at: u64,
}

impl Log {
    /// Opens the file for appending; the handle is for the server.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, File)> {
        if fs::metadata(path).is_ok_and(|metadata| metadata.len() >= SET_ASIDE_FROM) {
            fs::rename(path, path.with_extension("log.old"))?;
        }
        let file = private_file().append(true).create(true).open(path)?;
        let begins_at = file.metadata()?.len();
        Ok((
            Self {
                path: path.to_path_buf(),
                begins_at,
            },
            file,
        ))
    }

    /// Everything written since this start. Empty when it cannot be read: it only serves to explain.
    pub(crate) fn since_start(&self) -> String {
        let read = || -> io::Result<String> {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.begins_at))?;
            let mut bytes = Vec::new();
            file.take(SET_ASIDE_FROM).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().unwrap_or_default()
    }

    /// The last lines since this start, with the place to read more.
    pub(crate) fn quote(&self) -> String {
        format!(
            "{}\n(from {})",
            last_lines(&self.since_start()),
            self.path.display()
        )
    }
}

/// The last lines of a program's output, indented for a message.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = &lines[lines.len().saturating_sub(QUOTED_LINES)..];
    tail.iter()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_the_last_lines_only() {
        let text = (1..=20)
            .map(|number| format!("line {number}"))
            .collect::<Vec<_>>()
            .join("\n");
        let quoted = last_lines(&text);
        assert!(
            quoted.starts_with("  line 9\n") && quoted.ends_with("  line 20"),
            "{quoted}"
        );
    }
}
