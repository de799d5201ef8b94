//! A guide as a script: its blocks of commands, by heading.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) struct Guide {
    text: String,
}

impl Guide {
    pub(crate) fn read(name: &str) -> Self {
        let path = repository().join("docs/guides").join(name);
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { text }
    }

    /// The blocks of commands under this heading, up to the next one of any rank.
    pub(crate) fn blocks<const N: usize>(&self, heading: &str) -> [String; N] {
        let mut blocks = Vec::new();
        let (mut here, mut block) = (false, None::<String>);
        for line in self.text.lines() {
            match (&mut block, line) {
                (Some(_), "```") => blocks.extend(block.take().filter(|_| here)),
                (Some(block), _) => {
                    block.push_str(line);
                    block.push('\n');
                }
                (None, "```sh") => block = Some(String::new()),
                (None, _) if line.starts_with('#') => here = line.trim_start_matches('#').trim() == heading,
                (None, _) => {}
            }
        }
        let count = blocks.len();
        blocks.try_into().unwrap_or_else(|_| {
            panic!("under {heading:?} are {count} blocks of commands, and {N} are looked for")
        })
    }
}
