//! Licences, sources and duplicates of what we depend on, held to `deny.toml` by cargo's own word. What `cargo deny` does as well, as far as it goes
//! without it: that program takes minutes to build, and a check must not be left out for that.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::Peekable;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::sbom::{metadata, text};
use crate::repository::Repository;

/// By these words a file of a licence is known, when the manifest names no licence and only a file.
const MIT: &str = "Permission is hereby granted, free of charge, to any person obtaining a copy";

/// What `deny.toml` says.
#[derive(Debug)]
struct Terms {
    /// Licences that may be.
    licences: Vec<String>,
    /// Crates that may be there in several versions.
    several: BTreeSet<String>,
}

/// Holds every crate of the lock file, those of tests too, to the terms.
pub(super) fn check(repository: &Repository) -> Result<String> {
    let terms = fs::read_to_string(repository.root.join("deny.toml"))?;
    let terms = Terms {
        licences: listed(&terms, "allow").context("deny.toml allows no licences")?,
        several: listed(&terms, "skip")
            .context("deny.toml has no list `skip`")?
            .into_iter()
            .collect(),
    };
    let metadata = metadata(repository, &[])?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo tells no packages")?;
    let wrong = violations(packages, &terms);
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(format!(
        "{} crates, their licences and sources are allowed, {} of them come in several versions",
        packages.len(),
        terms.several.len()
    ))
}

/// The strings of a list of `deny.toml`.
fn listed(file: &str, name: &str) -> Option<Vec<String>> {
    let (_, list) = file.split_once(&format!("\n{name} = ["))?;
    let (list, _) = list.split_once(']')?;
    let lines = list.lines().filter_map(|line| line.trim().strip_prefix('"'));
    Some(
        lines
            .filter_map(|line| Some(line.split_once('"')?.0.to_owned()))
            .collect(),
    )
}

fn violations(packages: &[Value], terms: &Terms) -> Vec<String> {
    let theirs: Vec<&Value> = packages
        .iter()
        .filter(|package| package["source"].is_string())
        .collect();
    let mut wrong = Vec::new();
    let mut sources: BTreeSet<&str> = BTreeSet::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut licences: BTreeSet<String> = BTreeSet::new();
    for package in &theirs {
        let (name, version, source) = (
            text(package, "name"),
            text(package, "version"),
            text(package, "source"),
        );
        versions.entry(name).or_default().insert(version);
        sources.insert(source);
        if !source.starts_with("registry+") {
            wrong.push(format!("{name} {version} is not from a registry: {source}"));
        }
        match licence(package) {
            Some(licence) if allows(&terms.licences, &licence) => drop(licences.insert(licence)),
            Some(licence) => wrong.push(format!("{name} {version} has the licence {licence}")),
            None => wrong.push(format!("{name} {version} tells no licence that is known here")),
        }
    }
    if sources.len() > 1 {
        wrong.push(format!("there is more than one source: {sources:?}"));
    }
    for one in &terms.licences {
        let others: Vec<String> = terms
            .licences
            .iter()
            .filter(|other| *other != one)
            .cloned()
            .collect();
        if licences.iter().all(|licence| allows(&others, licence)) {
            wrong.push(format!("deny.toml allows {one}, and nothing needs that"));
        }
    }
    versions.retain(|_, versions| versions.len() > 1);
    for (name, versions) in &versions {
        if !terms.several.contains(*name) {
            wrong.push(format!("{name} comes in several versions: {versions:?}"));
        }
    }
    for name in &terms.several {
        if !versions.contains_key(name.as_str()) {
            wrong.push(format!("deny.toml skips {name}, which comes in one version"));
        }
    }
    wrong
}

/// The expression of a crate's licence; by its file, where that is all it tells.
pub(super) fn licence(package: &Value) -> Option<String> {
    if let Some(licence) = package["license"].as_str() {
        // Older crates write a slash where the expression has a word.
        return Some(licence.replace(" / ", " OR ").replace('/', " OR "));
    }
    let folder = Path::new(text(package, "manifest_path")).parent()?;
    let file = fs::read_to_string(folder.join(package["license_file"].as_str()?)).ok()?;
    let words: Vec<&str> = file.split_whitespace().collect();
    words.join(" ").contains(MIT).then(|| "MIT".to_owned())
}

/// May something under this expression be used under these licences?
fn allows(licences: &[String], expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ");
    let mut words: Vec<String> = Vec::new();
    let mut raw = spaced.split_whitespace();
    while let Some(word) = raw.next() {
        if word == "WITH"
            && let (Some(last), Some(exception)) = (words.last_mut(), raw.next())
        {
            *last = format!("{last} WITH {exception}");
        } else {
            words.push(word.to_owned());
        }
    }
    let mut rest = words.iter().peekable();
    let holds = any(licences, &mut rest);
    holds && rest.peek().is_none()
}

type Words<'a> = Peekable<std::slice::Iter<'a, String>>;

fn skips(rest: &mut Words<'_>, word: &str) -> bool {
    rest.next_if(|next| *next == word).is_some()
}

fn any(licences: &[String], rest: &mut Words<'_>) -> bool {
    let mut holds = all(licences, rest);
    while skips(rest, "OR") {
        holds |= all(licences, rest);
    }
    holds
}

fn all(licences: &[String], rest: &mut Words<'_>) -> bool {
    let mut holds = one(licences, rest);
    while skips(rest, "AND") {
        holds &= one(licences, rest);
    }
    holds
}

fn one(licences: &[String], rest: &mut Words<'_>) -> bool {
    if skips(rest, "(") {
        let holds = any(licences, rest);
        return skips(rest, ")") && holds;
    }
    rest.next().is_some_and(|word| licences.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_expression_is_allowed_by_what_it_asks_for() {
        let known = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        for (expression, allowed) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("MIT AND (ISC OR GPL-3.0)", true),
            ("(MIT OR ISC) AND GPL-3.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0", false),
            ("MIT ISC", false),
            ("(MIT", false),
            ("", false),
        ] {
            assert_eq!(allows(&known, expression), allowed, "{expression}");
        }
    }

    #[test]
    fn whatever_the_terms_do_not_say_is_told() {
        let package = |name: &str, version: &str, licence: &str| {
            let source = if name == "forked" {
                "git+https://example.com"
            } else {
                "registry+one"
            };
            json!({ "name": name, "version": version, "license": licence, "source": source })
        };
        let terms = |licences: &[&str], several: &[&str]| Terms {
            licences: licences.iter().map(|&one| one.to_owned()).collect(),
            several: several.iter().map(|&one| one.to_owned()).collect(),
        };
        let fine = [
            package("a", "1.0.0", "MIT/GPL-3.0"),
            package("a", "2.0.0", "MIT"),
            json!({ "name": "ours", "version": "1.0.0", "source": null }),
        ];
        let none: [String; 0] = [];
        assert_eq!(violations(&fine, &terms(&["MIT"], &["a"])), none);
        let told = violations(&fine, &terms(&["MIT", "ISC"], &["b"]));
        assert_eq!(
            told,
            [
                "deny.toml allows ISC, and nothing needs that",
                "a comes in several versions: {\"1.0.0\", \"2.0.0\"}",
                "deny.toml skips b, which comes in one version",
            ]
        );
        let bad = [
            package("forked", "1.0.0", "MIT"),
            package("b", "1.0.0", "GPL-3.0"),
            json!({ "name": "mute", "version": "1.0.0", "source": "registry+one" }),
        ];
        assert_eq!(
            violations(&bad, &terms(&["MIT"], &[])),
            [
                "forked 1.0.0 is not from a registry: git+https://example.com",
                "b 1.0.0 has the licence GPL-3.0",
                "mute 1.0.0 tells no licence that is known here",
                "there is more than one source: {\"git+https://example.com\", \"registry+one\"}",
            ]
        );
    }

    #[test]
    fn lists_of_the_terms_are_read_by_their_names() {
        let file = "[licenses]\nallow = [\n    \"MIT\",\n    # why\n    \"ISC\", # so\n]\n";
        assert_eq!(listed(file, "allow").unwrap(), ["MIT", "ISC"]);
        assert!(listed(file, "skip").is_none());
    }
}
