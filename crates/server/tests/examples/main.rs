//! The guides for other languages, run as they are printed: from a Temporal and a `dev` of one's own to a finished workflow, and clients
//! made from the API's document. `cargo xtask examples` starts them; packages are kept between runs in a folder that it names.
//!
//! A language whose programs are not on the machine is left out, loudly.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../processes/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the other tests use the rest of it")]
mod support;

mod clients;
mod guide;
mod shop;
mod terminal;
mod wakes;

use std::io::Write as _;

/// A language of the guides, and the programs that it needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Language {
    pub(crate) name: &'static str,
    programs: &'static [&'static str],
}

pub(crate) const PYTHON: Language = Language {
    name: "Python",
    programs: &["python3"],
};
pub(crate) const TYPESCRIPT: Language = Language {
    name: "TypeScript",
    programs: &["node", "npm", "npx"],
};
pub(crate) const GO: Language = Language {
    name: "Go",
    programs: &["go"],
};
pub(crate) const JAVA: Language = Language {
    name: "Java",
    programs: &["java", "javac", "mvn"],
};

impl Language {
    /// Those of its programs that are not on this machine.
    fn missing(self) -> Vec<&'static str> {
        let absent = |program: &&str| !is_in_path(program);
        self.programs.iter().copied().filter(absent).collect()
    }
}

/// Those of these languages that can be run here. What cannot is told past the frame of the tests, which keeps what passing tests say.
pub(crate) fn present(of: &str, languages: &[Language]) -> Vec<Language> {
    let (here, absent): (Vec<Language>, Vec<Language>) = languages
        .iter()
        .partition(|language| language.missing().is_empty());
    for language in &absent {
        let missing = language.missing().join(", ");
        say(&format!(
            "LEFT OUT: {} of {of:?}; not on this machine: {missing}",
            language.name
        ));
    }
    say(&format!(
        "{of:?}: {} of {} languages are here",
        here.len(),
        languages.len()
    ));
    here
}

pub(crate) fn say(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
