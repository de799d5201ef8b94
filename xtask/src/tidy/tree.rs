//! The repository as the rules see it: the text of its sources and the names of everything.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Violation;
use crate::repository::Repository;

/// Directories that hold nothing of ours.
const SKIPPED: [&str; 4] = [".git", "target", "node_modules", ".venv"];

/// Endings of the files whose text the rules look at.
const READ: [&str; 6] = ["rs", "sql", "md", "yml", "json", "js"];

/// All sources. Paths are relative to the root and written with `/`.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<Source>,
    /// Every file and directory.
    pub(crate) paths: BTreeSet<String>,
}

/// One file.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Tree {
    /// Reads the repository.
    pub(crate) fn read(repository: &Repository) -> Result<Self> {
        let mut tree = Self::default();
        tree.add_directory(&repository.root, "", &repository.target)?;
        Ok(tree)
    }

    fn add_directory(&mut self, directory: &Path, prefix: &str, target: &Path) -> Result<()> {
        let entries =
            fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
        let mut entries = entries.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if SKIPPED.contains(&name.as_str()) || entry.path() == target {
                continue;
            }
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                self.add_directory(&entry.path(), &format!("{path}/"), target)?;
            } else if name
                .rsplit_once('.')
                .is_some_and(|(_, ending)| READ.contains(&ending))
            {
                let text = fs::read_to_string(entry.path()).with_context(|| format!("cannot read {path}"))?;
                self.files.push(Source {
                    path: path.clone(),
                    text,
                });
            }
            self.paths.insert(path);
        }
        Ok(())
    }

    /// The files with an ending.
    pub(crate) fn with_ending(&self, ending: &str) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(move |file| {
            file.path
                .rsplit_once('.')
                .is_some_and(|(_, found)| found == ending)
        })
    }

    /// A tree of these files, for the tests of rules.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let source = |&(path, text): &(&str, &str)| Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let above = |path: &str| {
            let ends: Vec<usize> = path
                .match_indices('/')
                .map(|(end, _)| end)
                .chain([path.len()])
                .collect();
            ends.into_iter()
                .map(|end| path[..end].to_owned())
                .collect::<Vec<_>>()
        };
        Self {
            files: files.iter().map(source).collect(),
            paths: files.iter().flat_map(|(path, _)| above(path)).collect(),
        }
    }
}

impl Source {
    /// The last part of the path without its ending.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.rsplit_once('.').map_or(name, |(stem, _)| stem)
    }

    /// Lines with their numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    /// Something wrong with the whole file.
    pub(crate) fn violation(&self, message: impl Into<String>) -> Violation {
        self.violation_at(0, message)
    }

    /// Something wrong with a line.
    pub(crate) fn violation_at(&self, line: usize, message: impl Into<String>) -> Violation {
        Violation {
            path: self.path.clone(),
            line,
            message: message.into(),
        }
    }
}
